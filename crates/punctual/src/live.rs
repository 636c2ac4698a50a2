//! Watching a run while it goes on.

pub mod attached;
mod plain;
mod terminal;

pub use terminal::View;

use crate::session::{LoadCounts, PhaseRun};
use punctual_bundle::load::CpuLoad;
use punctual_core::{Finding, Nanos};
use std::io::{self, IsTerminal};

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

/// Shows nothing.
struct Nobody;

impl Watcher for Nobody {
    fn watches(&self) -> bool {
        false
    }
    fn refresh(&mut self, _: &Snapshot) {}
}

/// The watcher for standard error: a live view on a terminal, lines on a pipe, nothing with
/// --quiet. Standard output is reserved for the results.
pub fn watcher(quiet: bool) -> Box<dyn Watcher> {
    match (quiet, has_terminal()) {
        (true, _) => Box::new(Nobody),
        (false, true) => Box::new(terminal::View::new()),
        (false, false) => Box::new(plain::Lines::new()),
    }
}

/// The view of an attached program, where standard error is a terminal.
pub fn attached_view(quiet: bool) -> Option<View> {
    (!quiet && has_terminal()).then(View::new)
}

/// Whether standard error is a terminal that can be drawn on.
fn has_terminal() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stderr().is_terminal() && !dumb
}
