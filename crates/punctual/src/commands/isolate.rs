//! `punctual isolate`: reserves CPUs for real-time tasks, and releases them.

mod create;
mod enter;
mod journals;
mod list;
mod status;
mod tweaks;
mod undo;

use crate::exit::Ending;
use crate::output;
use punctual_host::isolate::{Pending, Standing, pending};
use punctual_host::journal::record::Purpose;

/// Reserve CPUs for real-time tasks, and release them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual isolate create 3\n  punctual isolate run --fifo 80 \
                        rt -- ./control-loop\n  punctual isolate status\n  punctual isolate undo")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Create(create::Args),
    Undo(undo::Args),
    Status(status::Args),
    List(list::Args),
    Run(enter::RunArgs),
    Move(enter::MoveArgs),
    Tweaks(tweaks::Args),
}

/// Runs the subcommand.
pub fn run(args: Args) -> Ending {
    match args.action {
        Action::Create(args) => create::run(args),
        Action::Undo(args) => undo::run(args),
        Action::Status(args) => status::run(args),
        Action::List(args) => list::run(args),
        Action::Run(args) => enter::run(args),
        Action::Move(args) => enter::run_move(args),
        Action::Tweaks(args) => tweaks::run(args),
    }
}

/// Reports, at the start of another command, changes that a killed process left behind.
pub fn report_leftovers() {
    leftovers().iter().for_each(|left| output::say(&format!("note: {left}\n")));
}

/// `None` without leftovers, or without the right to see them.
fn leftovers() -> Option<String> {
    let (files, store) = journals::system();
    let left = pending(&store, &files).ok()?.into_iter().find(Pending::is_leftover)?;
    let what = match left.purpose {
        Some(Purpose::Fix) => "`check --fix`",
        Some(Purpose::Tuning) => "`tune`",
        Some(Purpose::Partition(_)) | None => "a partition",
    };
    let how = match left.standing {
        Standing::HalfUndone => "were only partly undone",
        Standing::Abandoned => "were left by an experiment that was killed",
        Standing::HalfMade | Standing::InForce => "were left by a process that was killed",
    };
    let undo = match left.purpose {
        Some(Purpose::Fix) => "punctual isolate undo --fixes",
        _ => "punctual isolate undo",
    };
    Some(format!("the changes of {what} ({}) {how}; `{undo}` reverts them", left.journal))
}
