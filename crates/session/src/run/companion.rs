//! What goes on beside measuring, on the controller thread: recorders, the flight recorder, the
//! accounting, what runs or is written while samples come in.

use super::phase_run::PhaseRun;
use super::series::SeriesRun;
use crate::exit::Failure;
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
    /// The run is over; without phases nothing of it was started. What its reader must know.
    fn finish(self: Box<Self>, _: &[PhaseRun]) -> Result<Vec<Finding>, Failure>;
}
