//! `punctual lab`: an experiment over kernels, configurations and loads.

mod cell;
mod replay;
pub mod report;
mod restore;
mod run;

use crate::exit::Ending;
pub use run::LabFile;

/// Run an experiment over kernels, configurations and loads, and show the effect of each
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual lab run examples/lab-quick.toml\n  punctual lab \
                        run --plan examples/p2-lab.toml\n  punctual lab report punctual-lab-p2\n  \
                        punctual lab replay punctual-lab-p2 6.1_voluntary_loaded --seed 7")]
pub struct LabArgs {
    /// What to do
    #[command(subcommand)]
    action: LabAction,
}

#[derive(clap::Subcommand)]
enum LabAction {
    #[command(visible_alias = "resume")]
    Run(run::LabRunArgs),
    Cell(cell::LabCellArgs),
    Replay(replay::LabReplayArgs),
    Report(report::LabReportArgs),
    Restore(restore::LabRestoreArgs),
}

/// Runs a lab file given to `punctual run`.
pub fn run_file(asked: LabFile) -> Ending {
    run::run(asked.into())
}

/// Runs the subcommand.
pub fn run(args: LabArgs) -> Ending {
    match args.action {
        LabAction::Run(args) => run::run(args),
        LabAction::Cell(args) => cell::run(args),
        LabAction::Replay(args) => replay::run(args),
        LabAction::Report(args) => report::run(args),
        LabAction::Restore(args) => restore::run(args),
    }
}
