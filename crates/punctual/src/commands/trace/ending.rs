//! The end of a recording: the last files of the bundle, a summary, the exit code.

use super::watch;
use crate::commands::bundle::show_options;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_analyze::summary::VERDICTS;
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::{Bundle, BundleWriter, Outcome};
use punctual_core::Finding;
use punctual_core::event::{Group, Recorded};
use punctual_host::environment::Environment;
use punctual_host::files::Root;
use punctual_report::terminal;
use punctual_session::command::Ended;
use punctual_session::messages::shown;
use punctual_session::recording::Done;
use punctual_session::{limits, recorded};
use std::process;

/// When more than this share of the events was lost, the recording is no evidence: as for samples
/// of a run.
const TOO_MUCH_LOST: f64 = 0.01;

/// Closes the bundle, sums up on standard error, and ends as the command did.
pub fn end(
    writer: BundleWriter,
    done: Done,
    outcome: Outcome,
    command: Option<Ended>,
    limits: &[String],
    quiet: bool,
) -> Ending {
    let (exit, bundle) = close(writer, done, outcome, limits)?;
    // Under --quiet too: they are why it ends so.
    let of_limits = |found: &&Finding| VERDICTS.iter().any(|(id, _)| found.id == *id);
    watch::report_findings(&bundle.findings.iter().filter(of_limits).cloned().collect::<Vec<_>>());
    if !quiet {
        sum_up(&bundle);
    }
    match (exit, command) {
        // The command's own code, which the four of punctual cannot hold.
        (Exit::Done, Some(Ended { code })) => process::exit(code.into()),
        (exit, _) => Ok(exit),
    }
}

/// Writes the last files of the bundle: how the recording itself ended, what became of the limits
/// on it, and the bundle.
pub fn close(
    writer: BundleWriter,
    done: Done,
    outcome: Outcome,
    limits: &[String],
) -> Result<(Exit, Bundle), Failure> {
    let directory = writer.directory().to_owned();
    let outcome = match &done.trouble {
        Some(why) => Outcome::Failed { why: why.clone() },
        None => outcome,
    };
    let written = Bundle::open(&directory).map_err(Failure::failed)?;
    let limits = limits::judge(&written, limits);
    let exit = match (&outcome, limits.verdict) {
        (Outcome::Failed { .. }, _) => Exit::Failed,
        (_, Some(VerdictWord::NotMet)) => Exit::NotMet,
        (_, Some(VerdictWord::Undecided | VerdictWord::Invalid)) => Exit::NoEvidence,
        _ if too_much_lost(&done.recorded) => Exit::NoEvidence,
        _ => Exit::Done,
    };
    if let Ok(Some(mut environment)) = writer.document::<Environment>("environment") {
        environment.close(&Root::system());
        let _ = writer.write_document("environment", &environment);
    }
    let mut manifest = writer.manifest().clone();
    let ending =
        punctual_bundle::Ending { at: jiff::Timestamp::now(), outcome, exit_code: exit as u8 };
    manifest.ending = Some(ending.clone());
    let findings = [done.recorded.findings.clone(), limits.findings.clone()].concat();
    let mut summary =
        punctual_analyze::summarize_run(&manifest, &[], &findings, &[], Some(&done.recorded));
    summary.recording = recorded::open(&written).map(|opened| opened.summary());
    writer.finish(&summary, ending).map_err(Failure::failed)?;
    let bundle = Bundle::open(&directory).map_err(Failure::failed)?;
    Ok((exit, bundle))
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

fn too_much_lost(recorded: &Recorded) -> bool {
    let there =
        recorded.sources.iter().fold(0u64, |sum, source| sum.saturating_add(source.recorded));
    let lost = recorded.lost();
    lost as f64 > TOO_MUCH_LOST * there.saturating_add(lost) as f64
}
