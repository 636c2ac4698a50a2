//! `punctual occupancy`: CPU usage during a recording, and the waits of threads.

use super::bundle::{open_bundle, show_options_of};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::Bundle;
use punctual_core::event::Group;
use punctual_explain::allocator::allocator_use;
use punctual_report::terminal;
use punctual_session::playback::{self, OpenedRecording};
use std::path::PathBuf;

/// Show CPU usage during a recording, and what waiting threads waited for
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual occupancy BUNDLE\n  punctual occupancy BUNDLE \
                        --threads\n  punctual occupancy BUNDLE --memory\n  \
                        punctual occupancy BUNDLE --json | jq '.processes[] | {name, \
                        running, ready}'")]
pub struct OccupancyArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Show threads instead of processes
    #[arg(long)]
    threads: bool,
    /// Show instead what the kernel's allocators gave for what was asked, and how often a freed
    /// object was given again: of a recording, or a trace, with the events kmalloc and page
    #[arg(long, conflicts_with = "threads")]
    memory: bool,
    /// Print JSON in the format punctual-occupancy/2, with --memory punctual-allocator/1
    /// (docs/reference/pairs.md)
    #[arg(long)]
    json: bool,
}

/// Reads the recording, sums up CPU usage and prints it.
pub fn run(args: OccupancyArgs) -> Ending {
    let bundle = open_bundle(&args.bundle)?;
    let opened = playback::require_recording(&bundle)?;
    if args.memory {
        return print_allocators(&bundle, &opened, args.json);
    }
    if !opened.recorded.has_group(Group::Sched) {
        let message = "context switches were not recorded, so CPU usage is unknown: record with \
                       `--events sched`";
        return Err(Failure::refused(message));
    }
    let (_, document) = opened.count_events();
    if args.json {
        output::print_figures(&document, bundle.timebase())?;
    } else {
        output::print_stdout(&terminal::show_occupancy(
            &document,
            args.threads,
            &show_options_of(&bundle),
        ))?;
    }
    Ok(Exit::Done)
}

/// The allocators of a recording.
fn print_allocators(bundle: &Bundle, opened: &OpenedRecording<'_>, json: bool) -> Ending {
    if ![Group::Kmalloc, Group::Page].iter().any(|group| opened.recorded.has_group(*group)) {
        let message = "requests to the kernel's allocators were not recorded: record with \
                       `--events kmalloc,page`";
        return Err(Failure::refused(message));
    }
    let allocator_document = allocator_use(opened.events());
    match json {
        true => output::print_json(&allocator_document)?,
        false => output::print_stdout(&terminal::show_allocator(
            &allocator_document,
            &show_options_of(bundle),
        ))?,
    }
    Ok(Exit::Done)
}
