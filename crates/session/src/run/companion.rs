//! What goes on beside measuring, on the controller thread: recorders, the flight recorder, the
//! accounting, what runs or is written while samples come in.

use super::phase_run::PhaseRun;
use super::series::SeriesRun;
use punctual_core::{Finding, Nanos};
use punctual_measure::sink::SampleSource;
use punctual_plan::Workload;

/// A companion of a run. Each is called at every step, in the order in which the run has them.
pub trait Companion {
    /// A series is prepared: nothing of it is measured yet, and its bundle shows nothing of it.
    fn prepare_series(&mut self, _: &Workload, _: &mut SeriesRun) -> Result<(), String> {
        Ok(())
    }
    /// The thread of the series, which stands at `place` in its phase, was started.
    fn begin_series(&mut self, _phase: &str, _place: usize, _: &SeriesRun, _: &SampleSource) {}
    fn begin_phase(&mut self, _: &mut PhaseRun) {}
    fn tick(&mut self, _: &mut PhaseRun) {}
    /// About each second: statistics were saved.
    fn checkpoint(&mut self, _: &mut PhaseRun) {}
    /// A latency of this series was above this limit, and ends the run.
    fn stopped_above(&mut self, _series: &str, _latency: Nanos, _limit: Nanos) {}
    /// All threads have ended, or one of them did not stop.
    fn end_phase(&mut self, _: &mut PhaseRun) {}
    /// The run is over; without phases nothing of it was started.
    fn finish(self: Box<Self>, _: &[PhaseRun]) -> Left {
        Left::default()
    }
}

/// What the reader of a run must know of a companion.
#[derive(Default)]
pub struct Left {
    pub findings: Vec<Finding>,
    /// What could not be written: it fails the run.
    pub unwritten: Vec<String>,
}

impl Left {
    pub fn findings(found: impl IntoIterator<Item = Finding>) -> Left {
        Left { findings: found.into_iter().collect(), unwritten: Vec::new() }
    }
}
