//! Tasks of the controller thread beside measuring: recorders, the flight recorder, the accounting,
//! everything that runs or is written while samples arrive.

use super::phase_run::PhaseRun;
use super::series::SeriesRun;
use punctual_core::{Finding, Nanos};
use punctual_measure::sink::SampleSource;
use punctual_plan::Workload;

/// A companion of a run. All are called at every step, in the order of the run.
pub trait Companion {
    /// A series is prepared: nothing is measured yet, and its bundle is empty.
    fn prepare_series(&mut self, _: &Workload, _: &mut SeriesRun) -> Result<(), String> {
        Ok(())
    }
    /// The thread of the series at index `place` of its phase was started.
    fn begin_series(&mut self, _phase: &str, _place: usize, _: &SeriesRun, _: &SampleSource) {}
    fn begin_phase(&mut self, _: &mut PhaseRun) {}
    fn on_tick(&mut self, _: &mut PhaseRun) {}
    /// After statistics were saved: about each second, unless the disk takes nothing.
    fn on_save(&mut self, _: &mut PhaseRun) {}
    /// About each second.
    fn on_checkpoint(&mut self, _: &mut PhaseRun) {}
    /// A latency of this series exceeded this limit and ends the run.
    fn stopped_above(&mut self, _series: &str, _latency: Nanos, _limit: Nanos) {}
    /// All threads have ended, or one of them did not stop.
    fn end_phase(&mut self, _: &mut PhaseRun) {}
    /// The run is over; without phases nothing of it was started.
    fn finish(self: Box<Self>, _: &[PhaseRun]) -> CompanionResults {
        CompanionResults::default()
    }
}

/// The results of a companion.
#[derive(Default)]
pub struct CompanionResults {
    pub findings: Vec<Finding>,
    /// The errors that prevented writes: they fail the run.
    pub unwritten: Vec<String>,
}

impl CompanionResults {
    pub(crate) fn from_findings(found: impl IntoIterator<Item = Finding>) -> CompanionResults {
        CompanionResults { findings: found.into_iter().collect(), unwritten: Vec::new() }
    }
}
