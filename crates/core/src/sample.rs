//! One measured interval, and what was lost between them.

use crate::{ClockNs, Nanos};
use serde::{Deserialize, Serialize};

/// One measured interval: when its end was due and when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Its place in the series, from 0, counting dropped ones.
    pub seq: u64,
    /// When the event was due (for a timer: the programmed expiry).
    pub due: ClockNs,
    /// When it was seen (for a timer: the first instruction after wake-up).
    pub woke: ClockNs,
    /// The CPU on which it was seen.
    pub cpu: u32,
}

impl Sample {
    /// `woke - due`; negative where the clock was stepped in between or the event came early.
    pub fn latency(&self) -> Nanos {
        self.woke - self.due
    }
}

/// An interval that was under way when the measurement ended: a sample with a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unfinished {
    /// When it was due, on the clock of its series.
    pub due: ClockNs,
    /// Its latency is at least this.
    pub at_least: Nanos,
    /// How long it was seen; more than `at_least` where some of that may not be its own.
    pub lasted: Nanos,
    /// Releases that passed meanwhile.
    pub passed: u64,
    /// Its own end was seen, and only its cycle was under way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// The samples of one window of time: samples over time at a bounded size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// When it began, on the series' clock.
    pub start: ClockNs,
    pub count: u64,
    pub min: Nanos,
    pub max: Nanos,
    /// The sum of the latencies.
    pub sum: Nanos,
}

/// What a series should have held and what it holds. `recorded + skipped + dropped = expected` for
/// a finished series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Losses {
    /// Samples that were measured and counted in every statistic.
    pub recorded: u64,
    /// Skipped releases, which have no sample of their own: missed periods (coordinated omission).
    /// The corrected figures include them.
    #[serde(rename = "overruns")]
    pub skipped: u64,
    /// Samples measured but lost on the way (the ring was full), or not known: in no statistic.
    pub dropped: u64,
    /// Overruns: releases that passed while the cycle before still ran, and that have a late sample
    /// of their own; `None` where the two are not distinguished.
    #[serde(rename = "passed", default, skip_serializing_if = "Option::is_none")]
    pub overruns: Option<u64>,
}

impl Losses {
    /// The number of intervals that there were to measure.
    pub fn expected(&self) -> u64 {
        self.recorded + self.skipped + self.dropped
    }
}
