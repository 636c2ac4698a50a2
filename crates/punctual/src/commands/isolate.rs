//! `punctual isolate`: reserves CPUs for real-time tasks, and releases them.

mod create;
mod enter;
mod journals;
mod list;
mod status;
mod tweaks;
mod undo;
mod unit;

use crate::exit::Ending;
use crate::output;
use punctual_host::isolate::{JournalState, Pending, pending_journals};
use punctual_host::journal::record::ChangePurpose;

/// Reserve CPUs for real-time tasks, and release them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate create 3\n  punctual isolate run --fifo 80 \
                        rt -- ./control-loop\n  punctual isolate status\n  punctual isolate undo")]
pub struct IsolateArgs {
    /// What to do
    #[command(subcommand)]
    action: IsolateAction,
}

#[derive(clap::Subcommand)]
enum IsolateAction {
    Create(create::IsolateCreateArgs),
    Undo(undo::IsolateUndoArgs),
    Status(status::IsolateStatusArgs),
    List(list::IsolateListArgs),
    Run(enter::IsolateRunArgs),
    Move(enter::MoveArgs),
    Tweaks(tweaks::IsolateTweaksArgs),
    Unit(unit::IsolateUnitArgs),
}

/// Runs the subcommand.
pub fn run(args: IsolateArgs) -> Ending {
    match args.action {
        IsolateAction::Create(args) => create::run(args),
        IsolateAction::Undo(args) => undo::run(args),
        IsolateAction::Status(args) => status::run(args),
        IsolateAction::List(args) => list::run(args),
        IsolateAction::Run(args) => enter::run(args),
        IsolateAction::Move(args) => enter::run_move(args),
        IsolateAction::Tweaks(args) => tweaks::run(args),
        IsolateAction::Unit(args) => unit::run(args),
    }
}

/// Reports, at the start of another command, changes that a killed process left behind.
pub fn report_leftovers() {
    describe_leftovers().iter().for_each(|left| output::print_stderr(&format!("note: {left}\n")));
}

/// `None` without leftovers, or without the right to see them.
fn describe_leftovers() -> Option<String> {
    let (files, store) = journals::system_journals();
    let left = pending_journals(&store, &files).ok()?.into_iter().find(Pending::is_leftover)?;
    let what = match left.purpose {
        Some(ChangePurpose::Fix) => "`check --fix`",
        Some(ChangePurpose::Tuning) => "`tune`",
        Some(ChangePurpose::Experiment) => "an experiment's settings",
        Some(ChangePurpose::Partition(_)) | None => "a partition",
    };
    let how = match left.standing {
        JournalState::HalfUndone => "were only partly undone",
        JournalState::Abandoned => "were left by an experiment that was killed",
        JournalState::HalfMade | JournalState::InForce => "were left by a process that was killed",
    };
    let undo = match left.purpose {
        Some(ChangePurpose::Fix) => "punctual isolate undo --fixes",
        _ => "punctual isolate undo",
    };
    Some(format!("the changes of {what} ({}) {how}; `{undo}` reverts them", left.journal))
}
