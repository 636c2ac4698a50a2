//! What a live view shows of the threads of a program.

use punctual_core::Nanos;

pub struct ThreadRow {
    /// What its series begin with.
    pub name: String,
    /// What releases its cycles, in a word.
    pub kind: &'static str,
    pub cycles: u64,
    /// The response time of the last one.
    pub last: Option<Nanos>,
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
    pub cycles: u64,
}
