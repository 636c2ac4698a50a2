//! Who watches while a program is attached to, and what they see.

use crate::cycles::rows::{ThreadRow, TopCulprit};
use punctual_core::Nanos;

/// A watcher of an attached program.
pub trait Watcher {
    /// Whether anything is shown.
    fn watches(&self) -> bool {
        true
    }
    /// Shows the current state.
    fn refresh(&mut self, state: &Attached);
    /// Nothing is measured any more.
    fn end(&mut self) {}
}

/// The state at a refresh.
pub struct Attached {
    /// The program.
    pub name: String,
    /// Since it was attached to.
    pub elapsed: Nanos,
    /// How long it will take; `None`: until interrupted or the program ends.
    pub planned: Option<Nanos>,
    /// The threads with cycles.
    pub threads: Vec<ThreadRow>,
    /// Threads whose cycles are not known yet, or that have none.
    pub others: usize,
    /// What delayed the cycles of the last minute the most.
    pub culprit: Option<TopCulprit>,
}
