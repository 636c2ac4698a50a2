//! The accuracy of explanations (`punctual-truth --json`): causes injected at known instants, and
//! the explanations of the samples that they delayed. Times are in ns.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of [`TruthDocument`].
pub const TRUTH_SCHEMA: &str = "punctual-truth/1";

/// The scores of one or more kernels.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TruthDocument {
    /// [`TRUTH_SCHEMA`].
    pub schema: String,
    /// The version of punctual with its commit.
    pub version: String,
    pub systems: Vec<TruthSystem>,
}

/// The scores on one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TruthSystem {
    /// `uname -r`.
    pub kernel: String,
    /// Whether it is a guest in virtual time.
    pub virtual_time: bool,
    /// The command that measured: `run` or `attach`.
    #[serde(default = "run")]
    pub through: String,
    /// The cases, in the order in which they ran.
    pub cases: Vec<TruthCase>,
}

fn run() -> String {
    "run".to_owned()
}

/// An injected cause of one size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TruthCase {
    /// Its name: `hog-3ms`.
    pub name: String,
    /// The correct cause; `null` if none is injected.
    pub cause: Option<String>,
    /// Its duration per injection.
    pub length_ns: i64,
    /// The events that its cause needs, if they were not recorded: right is then what names no
    /// cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
    /// Why it did not run; all other values are then zero.
    pub skipped: Option<String>,
    pub score: TruthScore,
}

/// The accuracy on samples of known cause.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TruthScore {
    /// The number of injections while samples were taken.
    pub injected: u64,
    pub explained: u64,
    /// Samples due during an injection and ended after it, with at least half of their latency, and
    /// 20 µs, due to it.
    pub affected: u64,
    /// Affected samples with the largest part attributed to the correct cause.
    pub right: u64,
    /// Affected samples with it attributed to another cause, by that cause.
    pub confused: BTreeMap<String, u64>,
    /// One sample for each of these causes: all of its parts, with the events that prove them.
    #[serde(default)]
    pub examples: BTreeMap<String, String>,
    /// Unaffected samples with the largest part wrongly attributed to the injected cause and its
    /// culprit.
    pub falsely_named: u64,
    /// The time that the cause took from affected samples.
    pub time_ns: i64,
    /// The sum of absolute differences between that and the attributed time, over affected samples.
    pub time_error_ns: i64,
    /// The latencies of affected samples, and the part of them that was not attributed.
    pub latency_ns: i64,
    /// See `latency_ns`.
    pub unknown_ns: i64,
}

impl TruthScore {
    pub fn add(&mut self, other: &TruthScore) {
        self.injected += other.injected;
        self.explained += other.explained;
        self.affected += other.affected;
        self.right += other.right;
        for (cause, count) in &other.confused {
            *self.confused.entry(cause.clone()).or_default() += count;
        }
        for (cause, example) in &other.examples {
            self.examples.entry(cause.clone()).or_insert_with(|| example.clone());
        }
        self.falsely_named += other.falsely_named;
        self.time_ns += other.time_ns;
        self.time_error_ns += other.time_error_ns;
        self.latency_ns += other.latency_ns;
        self.unknown_ns += other.unknown_ns;
    }

    /// The share of affected samples attributed to the correct cause; `None` without any.
    pub fn recall(&self) -> Option<f64> {
        share_of_whole(self.right as f64, self.affected as f64)
    }

    /// The share of samples attributed to the injected cause that it did delay.
    pub fn precision(&self) -> Option<f64> {
        share_of_whole(self.right as f64, (self.right + self.falsely_named) as f64)
    }

    /// The error of the attributed time as a share of the time.
    pub fn time_error(&self) -> Option<f64> {
        share_of_whole(self.time_error_ns as f64, self.time_ns as f64)
    }

    /// The share of the latencies that was not attributed.
    pub fn unknown_share(&self) -> Option<f64> {
        share_of_whole(self.unknown_ns as f64, self.latency_ns as f64)
    }
}

fn share_of_whole(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
