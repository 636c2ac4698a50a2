//! `punctual occupancy`: CPU usage during a recording, and what waiting threads waited for.

use super::pairs::recording;
use super::show::{open, show_options_of};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use crate::recorded::Opened;
use punctual_analyze::EventCounts;
use punctual_analyze::gaps::Gaps;
use punctual_analyze::occupancy::Occupancy;
use punctual_analyze::threads::{Coverage, Tracker};
use punctual_bundle::intervals::OccupancyDocument;
use punctual_core::event::Group;
use punctual_report::terminal;
use std::path::PathBuf;

/// Show CPU usage during a recording, and what waiting threads waited for
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual occupancy BUNDLE\n  punctual occupancy BUNDLE \
                        --threads\n  punctual occupancy BUNDLE --json | jq '.processes[] | \
                        {name, running, ready}'")]
pub struct Args {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Show threads instead of processes
    #[arg(long)]
    threads: bool,
    /// Print JSON in the format punctual-occupancy/2 (docs/pairs.md)
    #[arg(long)]
    json: bool,
}

/// Reads the recording, sums up CPU usage and prints it.
pub fn run(args: Args) -> Ending {
    let bundle = open(&args.bundle)?;
    let opened = recording(&bundle)?;
    if !opened.recorded.covers(Group::Sched) {
        let message = "context switches were not recorded, so CPU usage is unknown: record with \
                       `--events sched`";
        return Err(Failure::refused(message));
    }
    let document = document(&opened);
    if args.json {
        output::print_figures(&document, bundle.timebase())?;
    } else {
        output::print(&terminal::occupancy(&document, args.threads, &show_options_of(&bundle)))?;
    }
    Ok(Exit::Done)
}

/// Adds up a recording.
pub fn document(opened: &Opened) -> OccupancyDocument {
    counted(opened).1
}

/// Counts the events of a recording, and adds it up, in one pass.
pub fn counted(opened: &Opened) -> (EventCounts, OccupancyDocument) {
    let gaps = if opened.recorded.lost() > 0 { Gaps::of(opened.events()) } else { Gaps::default() };
    let coverage = Coverage::of(&opened.recorded, opened.names());
    let mut tracker = Tracker::new(coverage, gaps, Occupancy::default());
    let mut counts = EventCounts::default();
    opened.events().for_each(|event| {
        counts.add(&event);
        tracker.push(&event);
    });
    let (occupancy, warnings) = tracker.finish();
    (counts, occupancy.document(warnings, opened.names(), &opened.recorded))
}
