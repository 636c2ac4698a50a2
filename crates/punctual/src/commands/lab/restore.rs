//! `punctual lab restore`: boards back in their usual boot.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_study::labs::boards;
use punctual_study::labs::jobs::PlannedLab;
use punctual_study::labs::request::{self, Overrides};
use std::path::PathBuf;

/// Bring every board that a lab boots back to its usual boot
///
/// A lab does so at its end. This is for one that was killed, or a board that did not come back in
/// time. The lab itself is continued by `punctual lab run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual lab restore examples/p4-board.toml")]
pub struct LabRestoreArgs {
    /// The lab file
    file: PathBuf,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the subcommand.
pub fn run(args: LabRestoreArgs) -> Ending {
    let planned = PlannedLab::from_lab(request::read_lab(&args.file)?, &Overrides::default())?;
    if !planned.has_boots() {
        return Err(Failure::refused("no cell of this lab is booted on another system"));
    }
    let left = boards::restore_boards(&planned, output::stderr_messages(args.quiet))?;
    if !left.is_empty() {
        return Err(Failure::failed(left.join("\n")));
    }
    output::print_stdout("every board is in its usual boot\n")?;
    Ok(Exit::Done)
}
