//! `punctual tune undo`: removes the files of a tuning across reboots outside of its directory.

use crate::exit::{Ending, Exit};
use crate::output;
use punctual_core::format::plain;
use punctual_study::tune::reboots::system::undo;
use std::path::PathBuf;

/// Take back the boot entry and the service of a tuning across reboots
///
/// The next boot is the usual one, and nothing goes on after it. What was measured stays: `punctual
/// tune --resume DIR` goes on with it. While a boot is being measured, `systemctl stop
/// punctual-tune` ends that first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual tune undo punctual-tune-experiment")]
pub struct TuneUndoArgs {
    /// The tuning's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Reverts everything.
pub fn run(args: TuneUndoArgs) -> Ending {
    let not_done = undo(&args.directory)?;
    let mut text = String::new();
    for why in &not_done {
        text += &format!("not reverted: {}\n", plain(why));
    }
    if not_done.is_empty() {
        text += "boot entry and service are removed\n";
    }
    output::print(&text)?;
    Ok(if not_done.is_empty() { Exit::Done } else { Exit::Failed })
}
