//! Rows of a live view for the threads of a program.

use punctual_core::Nanos;

pub struct ThreadRow {
    /// The prefix of its series.
    pub name: String,
    /// The release of its cycles, in a word.
    pub kind: &'static str,
    pub cycles: u64,
    /// The response time of the last one.
    pub last: Option<Nanos>,
    pub worst: Option<Nanos>,
    /// Releases without a cycle of their own.
    pub skipped: u64,
    /// Releases that passed during the cycle before.
    pub overruns: u64,
}

/// A task or a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopCulprit {
    /// The name of the task, or the cause in words.
    pub name: String,
    /// Whether this is a task.
    pub is_task: bool,
    /// The time by which the task or the cause delayed cycles.
    pub time: Nanos,
    pub cycles: u64,
}
