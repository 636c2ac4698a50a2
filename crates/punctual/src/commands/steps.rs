//! `punctual steps`: coverage of programs with points at every function or step.

use super::bundle::{open_bundle, show_options_of};
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_core::MonotonicNs;
use punctual_core::event::{EventKind, PointKind, Tid};
use punctual_report::{export, terminal};
use punctual_session::playback::{self, OpenedRecording};
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Show which lines of a program ran
///
/// Of programs compiled with points at every step (-fsanitize-coverage=trace-pc) or function
/// (-finstrument-functions) and linked with punctual-steps. `punctual pairs` shows the times of
/// their functions.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual steps BUNDLE\n  punctual steps BUNDLE --lcov \
                        ran.info && genhtml ran.info -o coverage\n  punctual steps BUNDLE --path | \
                        less")]
pub struct StepsArgs {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Also write what ran in the format of lcov, for genhtml and editors
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,
    /// Print the path instead: each step, begin (>) and end (<) of a function with the thread's one
    /// before it, in the order of time
    #[arg(long, conflicts_with = "lcov")]
    path: bool,
}

/// Reads the recording and prints what ran.
pub fn run(args: StepsArgs) -> Ending {
    let bundle = open_bundle(&args.bundle)?;
    let opened = playback::require_recording(&bundle)?;
    let Some(steps) = &opened.steps else {
        let refusal = "no steps or functions were recorded: compile the program with \
                   -fsanitize-coverage=trace-pc or -finstrument-functions and link it with \
                   punctual-steps (docs/testpoints.md)";
        return Err(Failure::refused(refusal));
    };
    if args.path {
        print_path(&opened)?;
        return Ok(Exit::Done);
    }
    let counts = steps.count_steps(opened.recorded.lost_count());
    if let Some(path) = &args.lcov {
        output::write_to(Some(path), export::format_tracefile(&counts).as_bytes())?;
    }
    output::print_stdout(&terminal::show_steps(&counts, &show_options_of(&bundle)))?;
    Ok(Exit::Done)
}

fn print_path(opened: &OpenedRecording<'_>) -> Result<(), Failure> {
    let (names, began) = (opened.names(), opened.recorded.began);
    let mut out = BufWriter::new(output::standard_output()?);
    writeln!(out, "{}", terminal::call_header())?;
    let mut last: HashMap<Tid, (MonotonicNs, String)> = HashMap::new();
    for event in opened.events() {
        let EventKind::Point { point, kind, .. } = event.what else { continue };
        let sign = match kind {
            PointKind::Begin => ">",
            PointKind::End => "<",
            PointKind::Point => "",
        };
        let name = names.points.get(point.0 as usize).map_or("?", String::as_str);
        let name = format!("{sign}{name}");
        if let Some((from, before)) = last.insert(event.tid, (event.at, name.clone())) {
            let (tid, pair) = (event.tid.0, format!("{before}->{name}"));
            let task = names.task_name(event.tid);
            let (at, took) = (from - began, event.at - from);
            let line = terminal::call_line(at, took, None, tid, &task, &pair, false);
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}
