//! Companions almost independent of the run: a recording, the violation's command, the service
//! manager.

use super::companion::{Companion, Left};
use super::phase_run::PhaseRun;
use crate::notify::ServiceManager;
use crate::recording::{Done, Recording};
use crate::violation::ViolationHook;
use punctual_core::Nanos;

impl Companion for Recording {
    fn finish(self: Box<Self>, _: &[PhaseRun]) -> Left {
        match self.stop() {
            Ok(Done { recorded, trouble }) => {
                Left { findings: recorded.findings, unwritten: trouble.into_iter().collect() }
            }
            Err(why) => Left { unwritten: vec![why.render(false)], ..Left::default() },
        }
    }
}

/// The command starts one checkpoint after its violation was found: by then the bundle holds the
/// sample, and the window around it.
impl Companion for ViolationHook {
    fn checkpoint(&mut self, phase: &mut PhaseRun) {
        self.advance();
        self.examine(&phase.meta.name, phase.view().series, false);
    }

    fn stopped_above(&mut self, series: &str, latency: Nanos, limit: Nanos) {
        ViolationHook::stopped_above(self, series.to_owned(), latency, limit);
    }

    fn end_phase(&mut self, phase: &mut PhaseRun) {
        self.advance();
        self.examine(&phase.meta.name, phase.view().series, true);
    }

    fn finish(self: Box<Self>, _: &[PhaseRun]) -> Left {
        Left::findings(ViolationHook::finish(*self))
    }
}

impl Companion for ServiceManager {
    fn checkpoint(&mut self, _: &mut PhaseRun) {
        self.alive();
    }
}
