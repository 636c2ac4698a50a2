//! `punctual convert`: a systress file as TOML.

use crate::exit::{Ending, Exit};
use crate::output;
use punctual_session::request;
use std::path::PathBuf;

/// Convert a systress file to TOML
#[derive(clap::Args)]
#[command(after_help = "Example: punctual convert stress.cfg > stress.toml")]
pub struct ConvertArgs {
    /// The systress file
    file: PathBuf,
    /// Ignore unknown sections and keys, with a warning
    #[arg(long)]
    allow_unknown: bool,
}

/// Reads one format and prints the other.
pub fn run(args: ConvertArgs) -> Ending {
    let experiment = request::load_experiment(&args.file, args.allow_unknown)?.experiment;
    output::print_stdout(&experiment.to_toml())?;
    Ok(Exit::Done)
}
