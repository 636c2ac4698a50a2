//! The end of a recording: the last files of the bundle, a summary, the exit code.

use super::watch;
use crate::commands::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::{Bundle, BundleWriter, CommandEnd, Outcome, Verdict};
use punctual_core::Finding;
use punctual_core::event::Group;
use punctual_report::terminal;
use punctual_session::end::{self, Measured};
use punctual_session::messages::shown;
use punctual_session::recording::Done;
use punctual_session::{limits, recorded};

/// Closes the bundle, sums up on standard error, and ends as the command did.
pub fn end(
    writer: BundleWriter,
    done: Done,
    outcome: Outcome,
    command: Option<CommandEnd>,
    limits: &[String],
    quiet: bool,
) -> Ending {
    let closed = close(writer, done, outcome, command, limits)?;
    // Under --quiet too: they are why it ends so.
    watch::report_findings(&closed.of_limits);
    if !quiet {
        sum_up(&closed.bundle);
    }
    exit::of_code(code(&closed.verdict, command))
}

/// The exit code of a recording: that of the command, also where the recording ended it, unless
/// something stands against it.
pub fn code(verdict: &Verdict, command: Option<CommandEnd>) -> u8 {
    match (verdict.exit(), command) {
        (Exit::Done, Some(command)) => command.code,
        (exit, _) => exit as u8,
    }
}

/// A recording that has ended.
pub struct Closed {
    /// What became of what was asked.
    pub verdict: Verdict,
    /// What was found of its limits.
    pub of_limits: Vec<Finding>,
    /// It.
    pub bundle: Bundle,
}

/// Writes the last files of the bundle: how the recording itself ended, what became of the limits
/// on it, and the bundle.
pub fn close(
    mut writer: BundleWriter,
    done: Done,
    outcome: Outcome,
    command: Option<CommandEnd>,
    limits: &[String],
) -> Result<Closed, Failure> {
    let directory = writer.directory().to_owned();
    let written = Bundle::open(&directory).map_err(Failure::failed)?;
    let judged = limits::judge(&written, limits);
    let of_limits: Vec<Finding> = judged.iter().filter_map(limits::finding).collect();
    writer.set_limits(judged);
    writer.set_command(command);
    let unwritten: Vec<String> = done.trouble.into_iter().collect();
    let found = [done.recorded.findings.clone(), of_limits.clone()].concat();
    let recorded = Some(&done.recorded);
    let measured = Measured { phases: &[], found: &found, recorded, unwritten };
    let mut summary = end::judge(&mut writer, outcome, measured).0;
    summary.recording = recorded::open(&written).map(|opened| opened.summary());
    end::close(writer, &summary).map_or(Ok(()), Err)?;
    let bundle = Bundle::open(&directory).map_err(Failure::failed)?;
    Ok(Closed { verdict: summary.verdict, of_limits, bundle })
}

/// What the recording holds, who was busiest, and what can be asked of it next.
fn sum_up(bundle: &Bundle) {
    let Some(opened) = recorded::open(bundle) else { return };
    let ((tally, occupancy), options) = (opened.counted(), show_options());
    output::say(&terminal::recording(&opened.recorded, &tally, occupancy.contradictions, &options));
    if opened.recorded.covers(Group::Sched) {
        output::say(&terminal::busiest(&occupancy, &options));
    }
    output::say(&terminal::calibration(&bundle.manifest.calibration, &options));
    let directory = shown(&bundle.directory);
    let next = [
        ("pairs", "the time between any two points"),
        ("occupancy", "CPU usage, and what waiting threads waited for"),
        ("report", "one HTML file with the timeline"),
        ("show", "this again"),
    ];
    let next = next
        .iter()
        .map(|(command, what)| format!("  punctual {command:<10} {directory}   {what}\n"));
    output::say(&format!("\nbundle {directory}\n{}", next.collect::<String>()));
}
