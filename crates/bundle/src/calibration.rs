//! The overhead of recording, as measured on the same system before the run: in `bundle.json` and
//! in the summary. Times are in ns.

use punctual_core::Fact;
use serde::{Deserialize, Serialize};

/// The rise of a timer thread's latency during recording.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// The recorders switched on and off: `flight recorder`, `accounting`, `recording`, `cycles`.
    pub recorders: Vec<String>,
    /// The CPU of the thread.
    pub cpu: u32,
    pub scheduling: String,
    pub period_ns: i64,
    /// The number of turns, each measured without and with the recorders.
    pub turns: u64,
    pub block_ns: i64,
    /// The number of samples without recording.
    pub samples_without: u64,
    pub samples_with: u64,
    /// The percentiles that a block supports.
    pub shifts: Vec<PercentileShift>,
    /// The run times of the BPF programs; unavailable if the kernel does not count them or the
    /// recorders have none.
    pub programs: Fact<ProgramTimes>,
}

/// The shift of a percentile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PercentileShift {
    pub percentile: f64,
    /// The percentile without recording.
    pub without_ns: i64,
    /// The median of the turns' differences.
    pub added_ns: i64,
    /// The lower confidence bound, at 95 % or more.
    pub low_ns: i64,
    pub high_ns: i64,
    /// Whether the interval excludes 0. If not, a shift is neither shown nor excluded.
    pub resolved: bool,
}

/// Run times of BPF programs, on all CPUs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProgramTimes {
    /// The time span of the count.
    pub span_ns: i64,
    pub runs: u64,
    pub total_ns: u64,
    /// The programs that ran, the longest total first.
    pub programs: Vec<ProgramTime>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramTime {
    /// Its recorder: one of [`Calibration::recorders`].
    pub recorder: String,
    /// The tracepoint that it runs at.
    pub tracepoint: String,
    pub runs: u64,
    pub total_ns: u64,
}

impl ProgramTimes {
    /// The mean per run: the cost of an event on its CPU. `None` without runs.
    pub fn per_run_ns(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.total_ns as f64 / self.runs as f64)
    }
}
