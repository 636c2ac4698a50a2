//! The end of a recording: the last files of the bundle, a summary, the exit code.

use super::watch;
use crate::commands::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_bundle::{Bundle, BundleWriter, CommandEnd, Outcome, Verdict};
use punctual_core::Finding;
use punctual_core::event::Group;
use punctual_report::terminal;
use punctual_session::end::{self, MeasuredRun};
use punctual_session::messages::display_path;
use punctual_session::recording::RecordingResult;
use punctual_session::{limits, playback};

/// Closes the bundle, prints a summary on standard error, and ends with the command's code.
pub fn end_recording(
    writer: BundleWriter,
    done: RecordingResult,
    outcome: Outcome,
    command: Option<CommandEnd>,
    limits: &[String],
    quiet: bool,
) -> Ending {
    let closed = close_bundle(writer, done, outcome, command, limits)?;
    // Under --quiet too: they are the reason for the exit code.
    watch::report_findings(&closed.of_limits);
    if !quiet {
        sum_up(&closed.bundle);
    }
    exit::of_code(exit_code(&closed.verdict, command))
}

/// The exit code of a recording: that of the command, even if the recording ended it, unless the
/// verdict forbids it.
pub fn exit_code(verdict: &Verdict, command: Option<CommandEnd>) -> u8 {
    match (verdict.to_exit(), command) {
        (Exit::Done, Some(command)) => command.code,
        (exit, _) => exit as u8,
    }
}

/// A closed recording.
pub struct ClosedRecording {
    /// The verdict on the request.
    pub verdict: Verdict,
    /// The findings about its limits.
    pub of_limits: Vec<Finding>,
    /// The bundle of the recording.
    pub bundle: Bundle,
}

/// Writes the last files of the bundle: how the recording ended, and the results of its limits.
pub fn close_bundle(
    mut writer: BundleWriter,
    done: RecordingResult,
    outcome: Outcome,
    command: Option<CommandEnd>,
    limits: &[String],
) -> Result<ClosedRecording, Failure> {
    let directory = writer.directory().to_owned();
    let written = Bundle::open(&directory).map_err(Failure::failed)?;
    let judged = limits::judge_limits(&written, limits);
    let of_limits: Vec<Finding> = judged.iter().filter_map(limits::limit_finding).collect();
    writer.set_limits(judged);
    writer.set_command(command);
    let unwritten: Vec<String> = done.trouble.into_iter().collect();
    let found = [done.recorded.findings.clone(), of_limits.clone()].concat();
    let recorded = Some(&done.recorded);
    let measured = MeasuredRun { phases: &[], found: &found, recorded, unwritten };
    let mut summary = end::judge_run(&mut writer, outcome, measured).0;
    summary.recording = playback::open_recording(&written).map(|opened| opened.to_summary());
    end::close_bundle(writer, &summary).map_or(Ok(()), Err)?;
    let bundle = Bundle::open(&directory).map_err(Failure::failed)?;
    Ok(ClosedRecording { verdict: summary.verdict, of_limits, bundle })
}

/// Prints a summary of the recording, its busiest tasks, and possible next commands.
fn sum_up(bundle: &Bundle) {
    let Some(opened) = playback::open_recording(bundle) else { return };
    let ((tally, occupancy), options) = (opened.count_events(), show_options());
    output::print_stderr(&terminal::show_recording(
        &opened.recorded,
        &tally,
        occupancy.contradictions,
        &options,
    ));
    if opened.recorded.has_group(Group::Sched) {
        output::print_stderr(&terminal::show_busiest(&occupancy, &options));
    }
    output::print_stderr(&terminal::show_calibration(&bundle.manifest.calibration, &options));
    let directory = display_path(&bundle.directory);
    let next = [
        ("pairs", "the time between any two points"),
        ("occupancy", "CPU usage, and what waiting threads waited for"),
        ("report", "one HTML file with the timeline"),
        ("show", "this again"),
    ];
    let next = next
        .iter()
        .map(|(command, what)| format!("  punctual {command:<10} {directory}   {what}\n"));
    output::print_stderr(&format!("\nbundle {directory}\n{}", next.collect::<String>()));
}
