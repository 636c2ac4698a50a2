//! The end of a run.

use super::metrics::SharedMetrics;
use super::observed;
use super::phase_run::{PhaseRun, phase_views};
use super::program::ProgramRun;
use super::state::Run;
use crate::end::{self, Further, MeasuredRun, RunEnd};
use crate::exit::{Exit, Failure};
use crate::limits;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, CommandEnd, Outcome, Verdict};
use punctual_core::Finding;
use std::path::PathBuf;

/// The result of a run.
pub struct FinishedRun {
    pub summary: Summary,
    pub phases: Vec<PhaseRun>,
    pub directory: PathBuf,
    pub exit: Exit,
    /// How the attached command ended.
    pub command: Option<CommandEnd>,
    /// The error of the last writes.
    pub trouble: Option<Failure>,
}

/// Computes the figures, closes the bundle, and writes the last metrics with the final verdict.
pub(crate) fn end_run(
    run: Run,
    phases: Vec<PhaseRun>,
    outcome: Outcome,
    further: Further,
) -> FinishedRun {
    let (mut writer, mut found) = (run.writer, run.findings);
    let directory = writer.directory().to_owned();
    // Closing the bundle reports why it cannot be read.
    let bundle = Bundle::open(&directory).ok();
    let asked_limits = run.plan.record.as_ref().map_or(&[][..], |record| &record.limits);
    if let Some(bundle) = &bundle {
        let judged = limits::judge_limits(bundle, asked_limits);
        found.extend(judged.iter().filter_map(limits::limit_finding));
        writer.set_limits(judged);
    }
    writer.set_observed(observed::observed_series(&phases, bundle.as_ref()));
    let (attached, mut further) = (attached_program(&phases), further);
    let command = attached.and_then(|program| program.command);
    writer.set_command(command);
    let outcome = match attached.and_then(|program| program.nothing_found.clone()) {
        Some(why) => {
            // Without figures there is no comparison.
            further.baseline = None;
            // With requirements, missing measurements decide the verdict.
            let decides = phases.iter().any(|phase| !phase.meta.without_series.is_empty());
            if decides { outcome } else { Outcome::Failed { why } }
        }
        None => outcome,
    };
    let recorded = bundle.and_then(|bundle| bundle.recording).map(|of| of.count_recorded());
    let (phase_views, found): (_, &[Finding]) = (phase_views(&phases), &found);
    let unwritten = run.unwritten;
    let measured =
        MeasuredRun { phases: &phase_views, found, recorded: recorded.as_ref(), unwritten };
    let conclude = |verdict: &Verdict| {
        let write = |of: SharedMetrics| of.borrow_mut().write_final(&phases, verdict);
        run.metrics.map_or(Ok(()), write)
    };
    let RunEnd { summary, exit, trouble } =
        end::end_bundle(writer, outcome, measured, &further, conclude);
    drop(phase_views);
    FinishedRun { summary, phases, directory, exit, command, trouble }
}

fn attached_program(phases: &[PhaseRun]) -> Option<&ProgramRun> {
    phases.iter().flat_map(|phase| &phase.programs).find(|program| program.is_attached)
}

impl FinishedRun {
    /// The attached program.
    pub fn attached_program(&self) -> Option<&ProgramRun> {
        attached_program(&self.phases)
    }
}
