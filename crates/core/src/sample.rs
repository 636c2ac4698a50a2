//! A measured interval, and the losses of a series.

use crate::{ClockNs, Nanos};
use serde::{Deserialize, Serialize};

/// A measured interval: the due time and the arrival of its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Its index in the series, from 0, counting dropped ones.
    pub seq: u64,
    /// The due time of the event (for a timer: the programmed expiry).
    pub due: ClockNs,
    /// The time it was seen (for a timer: the first instruction after wake-up).
    pub woke: ClockNs,
    /// The CPU on which it was seen.
    pub cpu: u32,
}

impl Sample {
    /// `woke - due`; negative if the clock was stepped in between or the event came early.
    pub fn latency(&self) -> Nanos {
        self.woke - self.due
    }
}

/// An interval in progress at the end of the measurement: a sample with a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unfinished {
    /// The due time, on the clock of its series.
    pub due: ClockNs,
    /// The lower bound of its latency.
    pub at_least: Nanos,
    /// The observed duration; more than `at_least` if some of it may not be its own.
    pub lasted: Nanos,
    /// Releases that passed meanwhile.
    pub passed: u64,
    /// Whether its own end was seen, and only its cycle was in progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// The samples in a window of time: samples over time at a bounded size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SampleWindow {
    /// The start, on the series' clock.
    pub start: ClockNs,
    pub count: u64,
    pub min: Nanos,
    pub max: Nanos,
    /// The sum of the latencies.
    pub sum: Nanos,
}

/// The expected and actual samples of a series. `recorded + skipped + dropped = expected` for a
/// finished series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Losses {
    /// Samples that were measured and counted in every statistic.
    pub recorded: u64,
    /// Skipped releases, which have no sample: missed periods (coordinated omission). The corrected
    /// figures include them.
    #[serde(rename = "overruns")]
    pub skipped: u64,
    /// Samples lost after measurement (the ring was full) or unknown: in no statistic.
    pub dropped: u64,
    /// The part of `dropped` that a full buffer lost, of the cycles of a program; of the others no
    /// event shows the release.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_records: u64,
    /// Overruns: releases that passed while the previous cycle still ran, and that have a late
    /// sample of their own; `None` if the two are not distinguished.
    #[serde(rename = "passed", default, skip_serializing_if = "Option::is_none")]
    pub overruns: Option<u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Losses {
    /// The number of intervals that were to be measured.
    pub fn expected_count(&self) -> u64 {
        self.recorded + self.skipped + self.dropped
    }
}
