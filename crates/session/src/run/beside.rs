//! Companions almost independent of the run: a recording, the violation's command, the service
//! manager.

use super::companion::{Companion, CompanionResults};
use super::phase_run::PhaseRun;
use crate::notify::ServiceManager;
use crate::recording::{Recording, RecordingResult};
use crate::violation::ViolationHook;
use punctual_core::Nanos;

impl Companion for Recording {
    fn finish(self: Box<Self>, _: &[PhaseRun]) -> CompanionResults {
        match self.stop() {
            Ok(RecordingResult { recorded, trouble }) => CompanionResults {
                findings: recorded.findings,
                unwritten: trouble.into_iter().collect(),
            },
            Err(why) => CompanionResults {
                unwritten: vec![why.render(false)],
                ..CompanionResults::default()
            },
        }
    }
}

/// The command starts one checkpoint after its violation was found: by then the bundle holds the
/// sample, and the window around it.
impl Companion for ViolationHook {
    fn on_save(&mut self, phase: &mut PhaseRun) {
        self.advance();
        self.examine_series(&phase.meta.name, phase.view().series, false);
    }

    fn stopped_above(&mut self, series: &str, latency: Nanos, limit: Nanos) {
        ViolationHook::stopped_above(self, series.to_owned(), latency, limit);
    }

    fn end_phase(&mut self, phase: &mut PhaseRun) {
        self.advance();
        self.examine_series(&phase.meta.name, phase.view().series, true);
    }

    fn finish(self: Box<Self>, _: &[PhaseRun]) -> CompanionResults {
        CompanionResults::from_findings(ViolationHook::finish(*self))
    }
}

impl Companion for ServiceManager {
    fn on_checkpoint(&mut self, _: &mut PhaseRun) {
        self.report_alive();
    }
}
