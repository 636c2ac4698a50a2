//! Who watches while a program is attached to, and what they see.

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

/// A thread with cycles.
pub struct ThreadRow {
    /// What its series begin with.
    pub name: String,
    /// What releases its cycles, in a word.
    pub kind: &'static str,
    /// How many.
    pub cycles: u64,
    /// The response time of the last one.
    pub last: Option<Nanos>,
    /// The longest response time.
    pub worst: Option<Nanos>,
    /// Releases without a cycle of their own.
    pub skipped: u64,
    /// Releases that passed while the cycle before went on.
    pub overruns: u64,
}

/// A task or a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopCulprit {
    /// The name of the task, or the cause in words.
    pub name: String,
    /// Whether it is a task.
    pub is_task: bool,
    /// The time that cycles waited for it.
    pub time: Nanos,
    /// How many cycles did.
    pub cycles: u64,
}
