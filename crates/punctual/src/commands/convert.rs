//! `punctual convert`: the TOML that means the same as a systress file.

use crate::exit::{Ending, Exit};
use crate::output;
use crate::session::request;
use std::path::PathBuf;

/// Print the TOML that means the same as a systress file
#[derive(clap::Args)]
#[command(after_help = "Example: punctual convert stress.cfg > stress.toml")]
pub struct Args {
    /// The systress file
    file: PathBuf,
    /// Leave out sections and keys that are not known, with a warning
    #[arg(long)]
    allow_unknown: bool,
}

/// Reads one and prints the other.
pub fn run(args: Args) -> Ending {
    let experiment = request::load(&args.file, args.allow_unknown)?.experiment;
    output::print(&experiment.to_toml())?;
    Ok(Exit::Done)
}
