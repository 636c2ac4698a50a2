//! What recording does to what is measured, as it was measured on the same system before the run:
//! in `bundle.json` and in the summary. Times are in ns.

use punctual_core::Fact;
use serde::{Deserialize, Serialize};

/// By how much the latency of a timer thread rises while something is recorded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// What was switched on and off: `flight recorder`, `accounting`, `recording`, `cycles`.
    pub recorders: Vec<String>,
    /// The CPU of the thread.
    pub cpu: u32,
    pub scheduling: String,
    pub period_ns: i64,
    /// How often it was measured without and with the recorders, beside one another.
    pub turns: u64,
    pub block_ns: i64,
    /// Samples while nothing was recorded.
    pub samples_without: u64,
    pub samples_with: u64,
    /// The percentiles that a block supports.
    pub shifts: Vec<Shift>,
    /// How long the BPF programs ran; unavailable where the kernel does not count it, or the
    /// recorders have none.
    pub programs: Fact<ProgramTimes>,
}

/// The shift of a percentile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shift {
    pub percentile: f64,
    /// What it is while nothing is recorded.
    pub without_ns: i64,
    /// The median of the differences of the turns.
    pub added_ns: i64,
    /// The least that it is, at a confidence of at least 95 %.
    pub low_ns: i64,
    pub high_ns: i64,
    /// Whether 0 lies outside of that: else no shift is shown, and none excluded.
    pub resolved: bool,
}

/// Run times of BPF programs, on all CPUs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProgramTimes {
    /// For how long they were counted.
    pub span_ns: i64,
    pub runs: u64,
    pub total_ns: u64,
    /// Each one that ran, the longest total first.
    pub programs: Vec<ProgramTime>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramTime {
    /// Whose it is: one of [`Calibration::recorders`].
    pub recorder: String,
    /// The tracepoint that it runs at.
    pub tracepoint: String,
    pub runs: u64,
    pub total_ns: u64,
}

impl ProgramTimes {
    /// The mean of a run: what an event costs the CPU that it occurs on. `None` without any.
    pub fn per_run_ns(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.total_ns as f64 / self.runs as f64)
    }
}
