//! The end of a run.

use super::metrics::SharedMetrics;
use super::phase_run::{PhaseRun, views};
use super::state::Run;
use crate::end::{self, Ended, Further, Measured};
use crate::exit::{Exit, Failure};
use crate::limits;
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, Outcome, Verdict};
use punctual_core::Finding;
use std::path::PathBuf;

/// The result of a run.
pub struct FinishedRun {
    pub summary: Summary,
    pub phases: Vec<PhaseRun>,
    pub directory: PathBuf,
    pub exit: Exit,
    /// What could not be written at the very end.
    pub trouble: Option<Failure>,
}

/// Computes the figures, closes the bundle, and writes the last metrics: with the verdict that
/// holds then.
pub fn end(run: Run, phases: Vec<PhaseRun>, outcome: Outcome, further: &Further) -> FinishedRun {
    let (mut writer, mut found) = (run.writer, run.findings);
    let directory = writer.directory().to_owned();
    // Whoever closes the bundle says why it cannot be read.
    let bundle = Bundle::open(&directory).ok();
    let asked = run.plan.record.as_ref().map_or(&[][..], |record| &record.limits);
    if let Some(bundle) = &bundle {
        let judged = limits::judge(bundle, asked);
        found.extend(judged.iter().filter_map(limits::finding));
        writer.set_limits(judged);
    }
    let recorded = bundle.and_then(|bundle| bundle.recording).map(|of| of.recorded());
    let (phase_views, found): (_, &[Finding]) = (views(&phases), &found);
    let unwritten = run.unwritten;
    let measured = Measured { phases: &phase_views, found, recorded: recorded.as_ref(), unwritten };
    let conclude = |verdict: &Verdict| {
        let write = |of: SharedMetrics| of.borrow_mut().conclude(&phase_views, verdict);
        run.metrics.map_or(Ok(()), write)
    };
    let Ended { summary, exit, trouble } = end::end(writer, outcome, measured, further, conclude);
    drop(phase_views);
    FinishedRun { summary, phases, directory, exit, trouble }
}
