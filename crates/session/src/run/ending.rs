//! The end of a run: figures, verdict, exit code, and the last files of the bundle.

use super::phase_run::{PhaseRun, views};
use super::state::Run;
use crate::exit::{Exit, Failure};
use crate::limits::{self, Judged};
use punctual_bundle::summary::{Summary, ValidityWord, VerdictWord};
use punctual_bundle::{Bundle, Ending, Outcome};
use punctual_core::Finding;
use std::path::PathBuf;

/// The result of a run.
pub struct FinishedRun {
    /// The figures.
    pub summary: Summary,
    /// What they are of.
    pub phases: Vec<PhaseRun>,
    /// The bundle.
    pub directory: PathBuf,
    /// How the command ends.
    pub exit: Exit,
    /// What could not be written at the very end.
    pub trouble: Option<Failure>,
}

/// Computes the figures and closes the bundle.
pub fn end(run: Run, phases: Vec<PhaseRun>, outcome: Outcome) -> FinishedRun {
    let directory = run.writer.directory().to_owned();
    let mut manifest = run.writer.manifest().clone();
    let mut ending = Ending { at: jiff::Timestamp::now(), outcome, exit_code: 0 };
    manifest.ending = Some(ending.clone());
    let limits = held_limits(&run);
    let findings: Vec<Finding> = run.findings.iter().chain(&limits.findings).cloned().collect();
    let recording = Bundle::open(run.writer.directory()).ok().and_then(|bundle| bundle.recording);
    let recorded = recording.map(|recording| recording.recorded());
    let mut summary = punctual_analyze::summarize_run(
        &manifest,
        &views(&phases),
        &findings,
        &[],
        recorded.as_ref(),
    );
    if summary.verdict == Some(VerdictWord::Met)
        && phases.len() < run.plan.phases.len()
        && later_require(&run, phases.len())
    {
        summary.verdict = Some(VerdictWord::Undecided);
    }
    let exit = exit_of(&ending.outcome, &summary);
    let incomplete = summary.findings.iter().find(|finding| finding.id == "bundle-incomplete");
    if let (Outcome::Completed, Some(finding)) = (&ending.outcome, incomplete) {
        let why = finding.evidence.clone().unwrap_or_else(|| finding.message.clone());
        ending.outcome = Outcome::Failed { why };
    }
    ending.exit_code = exit as u8;
    summary.ending = Some(ending.clone());
    let trouble = run.writer.finish(&summary, ending).err().map(Failure::failed);
    FinishedRun { summary, phases, directory, exit, trouble }
}

/// What became of the limits on the recording.
fn held_limits(run: &Run) -> Judged {
    let limits = run.plan.record.as_ref().map_or(&[][..], |record| &record.limits);
    match Bundle::open(run.writer.directory()) {
        Ok(bundle) => limits::judge(&bundle, limits),
        // Whoever closes the bundle says why it cannot be read.
        Err(_) => Judged {
            verdict: (!limits.is_empty()).then_some(VerdictWord::Undecided),
            ..Judged::default()
        },
    }
}

/// Whether a phase that was not begun has requirements: what it would have shown is not known.
fn later_require(run: &Run, begun: usize) -> bool {
    let later = run.plan.phases.iter().skip(begun).flat_map(|phase| &phase.measures);
    later.into_iter().any(|measure| !measure.require.is_empty())
}

/// The exit code, the gravest reason first.
pub fn exit_of(outcome: &Outcome, summary: &Summary) -> Exit {
    let invalid =
        summary.validity.as_ref().is_some_and(|validity| validity.verdict == ValidityWord::Invalid);
    match (outcome, summary.verdict) {
        (Outcome::Failed { .. }, _) => Exit::Failed,
        (Outcome::StoppedByLoad { how, .. }, _) if !how.contains("success") => Exit::Failed,
        (Outcome::StoppedAbove { .. }, _) | (_, Some(VerdictWord::NotMet)) => Exit::NotMet,
        _ if invalid => Exit::NoEvidence,
        (_, Some(VerdictWord::Undecided | VerdictWord::Invalid)) => Exit::NoEvidence,
        _ if summary.findings.iter().any(|finding| finding.id == "bundle-incomplete") => {
            Exit::Failed
        }
        _ => Exit::Done,
    }
}
