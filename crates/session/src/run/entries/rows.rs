//! Rows of a live view for CPUs.

use punctual_core::Nanos;

#[derive(Clone)]
pub struct CpuRow {
    pub cpu: usize,
    pub entries: u64,
    /// The rate per second, since the refresh before.
    pub a_second: f64,
    pub longest: Option<Nanos>,
    /// The share of time in which its tasks were interrupted.
    pub interrupted: f64,
    /// The entries that took the most time.
    pub top: Option<TopEntry>,
}

/// Entries of one kind and originator.
#[derive(Clone)]
pub struct TopEntry {
    pub what: String,
    pub originator: String,
}
