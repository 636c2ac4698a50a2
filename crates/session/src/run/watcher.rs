//! Watchers of a run, and the state that they see.

use super::phase_run::{LoadCounts, PhaseRun};
use punctual_bundle::load::CpuLoad;
use punctual_core::{Finding, Nanos};

/// The state at a refresh.
pub struct Snapshot<'a> {
    pub experiment: &'a str,
    /// The phase with its series.
    pub phase: &'a PhaseRun,
    /// The number of the phase, from 0.
    pub phase_number: usize,
    pub phases: usize,
    pub elapsed: Nanos,
    /// The planned duration; `None`: until interrupted.
    pub planned: Option<Nanos>,
    pub cpu_load: Option<&'a CpuLoad>,
    pub loads: &'a [LoadCounts],
    pub findings: &'a [Finding],
}

/// A watcher of a run.
pub trait RunWatcher {
    fn is_watching(&self) -> bool {
        true
    }
    /// Shows a step before the first phase.
    fn show_preparation(&mut self, _what: &str) {}
    fn show_snapshot(&mut self, snapshot: &Snapshot);
    /// Called at the end of the run: restores the terminal.
    fn on_run_end(&mut self) {}
}
