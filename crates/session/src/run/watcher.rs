//! Who watches a run while it goes on, and what they see.

use super::phase_run::{LoadCounts, PhaseRun};
use punctual_bundle::load::CpuLoad;
use punctual_core::{Finding, Nanos};

/// The state at a refresh.
pub struct Snapshot<'a> {
    pub experiment: &'a str,
    /// The phase with its series.
    pub phase: &'a PhaseRun,
    /// Its number, from 0.
    pub phase_number: usize,
    pub phases: usize,
    pub elapsed: Nanos,
    /// How long it will take; `None`: until interrupted.
    pub planned: Option<Nanos>,
    pub cpu_load: Option<&'a CpuLoad>,
    pub loads: &'a [LoadCounts],
    pub findings: &'a [Finding],
}

/// A watcher of a run.
pub trait Watcher {
    fn watches(&self) -> bool {
        true
    }
    /// A step before the first phase begins.
    fn preparing(&mut self, _what: &str) {}
    fn refresh(&mut self, snapshot: &Snapshot);
    /// The id of the run is over: leaves the terminal as it was.
    fn end(&mut self) {}
}
