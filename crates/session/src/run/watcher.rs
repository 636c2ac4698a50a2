//! Who watches a run while it goes on, and what they see.

use super::phase_run::{LoadCounts, PhaseRun};
use punctual_bundle::load::CpuLoad;
use punctual_core::{Finding, Nanos};

/// The state at a refresh.
pub struct Snapshot<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The phase with its series.
    pub phase: &'a PhaseRun,
    /// Its number, from 0.
    pub phase_number: usize,
    /// How many there are.
    pub phases: usize,
    /// Since it began.
    pub elapsed: Nanos,
    /// How long it will take; `None`: until interrupted.
    pub planned: Option<Nanos>,
    /// Since the last refresh.
    pub cpu_load: Option<&'a CpuLoad>,
    /// The loads so far.
    pub loads: &'a [LoadCounts],
    /// The findings so far.
    pub findings: &'a [Finding],
}

/// A watcher of a run.
pub trait Watcher {
    /// Whether anything is shown.
    fn watches(&self) -> bool {
        true
    }
    /// A step before the first phase begins.
    fn preparing(&mut self, _what: &str) {}
    /// Shows the current state.
    fn refresh(&mut self, snapshot: &Snapshot);
    /// The id of the run is over: leaves the terminal as it was.
    fn end(&mut self) {}
}
