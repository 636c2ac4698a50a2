//! `punctual occupancy`: CPU usage during a recording, and the waits of threads.

use super::bundle::{open, show_options_of};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::event::Group;
use punctual_report::terminal;
use punctual_session::playback;
use std::path::PathBuf;

/// Show CPU usage during a recording, and what waiting threads waited for
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual occupancy BUNDLE\n  punctual occupancy BUNDLE \
                        --threads\n  punctual occupancy BUNDLE --json | jq '.processes[] | \
                        {name, running, ready}'")]
pub struct OccupancyArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Show threads instead of processes
    #[arg(long)]
    threads: bool,
    /// Print JSON in the format punctual-occupancy/2 (docs/reference/pairs.md)
    #[arg(long)]
    json: bool,
}

/// Reads the recording, sums up CPU usage and prints it.
pub fn run(args: OccupancyArgs) -> Ending {
    let bundle = open(&args.bundle)?;
    let opened = playback::required(&bundle)?;
    if !opened.recorded.covers(Group::Sched) {
        let message = "context switches were not recorded, so CPU usage is unknown: record with \
                       `--events sched`";
        return Err(Failure::refused(message));
    }
    let (_, document) = opened.counted();
    if args.json {
        output::print_figures(&document, bundle.timebase())?;
    } else {
        output::print(&terminal::occupancy(&document, args.threads, &show_options_of(&bundle)))?;
    }
    Ok(Exit::Done)
}
