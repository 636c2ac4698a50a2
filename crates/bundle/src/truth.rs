//! How often an explanation is right (`punctual truth --json`): causes that were injected at known
//! instants, and what was said of the samples that they delayed. Times are in ns.

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
    /// The cause that is right; `null` where nothing is injected.
    pub cause: Option<String>,
    /// How long it lasts each time.
    pub length_ns: i64,
    /// Why it did not run; everything else is zero then.
    pub skipped: Option<String>,
    pub score: TruthScore,
}

/// What was said of samples whose causes are known.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TruthScore {
    /// How often the cause was injected while samples were taken.
    pub injected: u64,
    pub explained: u64,
    /// Of these, samples that were due while the cause was at work and ended after it, and of which
    /// at least half, and 20 µs, were its.
    pub affected: u64,
    /// Affected samples of which the largest part was given to the right cause.
    pub right: u64,
    /// Affected samples of which it was given to another one, by that cause.
    pub confused: BTreeMap<String, u64>,
    /// Of each of these causes one sample: all of its parts, with the events that prove them.
    #[serde(default)]
    pub examples: BTreeMap<String, String>,
    /// Samples that were not affected, and of which the largest part was given to the injected
    /// cause and its culprit nevertheless.
    pub falsely_named: u64,
    /// The time that the cause took of affected samples.
    pub time_ns: i64,
    /// The sum of the differences, without their signs, between that and what was attributed to it,
    /// over affected samples.
    pub time_error_ns: i64,
    /// The latencies of affected samples, and of these what was attributed to nothing.
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

    /// The share of affected samples that were given to the right cause; `None` where none was.
    pub fn recall(&self) -> Option<f64> {
        share(self.right as f64, self.affected as f64)
    }

    /// The share of samples given to the cause that it had delayed.
    pub fn precision(&self) -> Option<f64> {
        share(self.right as f64, (self.right + self.falsely_named) as f64)
    }

    /// The error of the attributed time, as a share of the time.
    pub fn time_error(&self) -> Option<f64> {
        share(self.time_error_ns as f64, self.time_ns as f64)
    }

    /// The share of the latencies that was attributed to nothing.
    pub fn unknown(&self) -> Option<f64> {
        share(self.unknown_ns as f64, self.latency_ns as f64)
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
