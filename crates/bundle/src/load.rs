//! The load of the CPUs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Shares of CPU time over an interval, from /proc/stat (proc(5)), each 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shares {
    /// Not idle: everything but idle and iowait.
    pub busy: f64,
    pub steal: f64,
    /// In hardirqs and softirqs.
    pub interrupts: f64,
}

/// The load of all CPUs together and of each.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CpuLoad {
    pub all: Shares,
    /// Each CPU by its number.
    pub cpus: BTreeMap<u32, Shares>,
    /// Context switches of all CPUs (`ctxt`); absent in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
}

/// The work of a load in a phase, as it counts itself, or the kernel counts for all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoadWork {
    /// The stressor, or the counter.
    pub what: String,
    /// Its units of work (stress-ng's *bogo ops*), all together.
    pub operations: u64,
    /// The time in which they were done.
    pub seconds: f64,
    /// The runs of the program that ended by themselves and said so.
    pub runs: u64,
}

impl LoadWork {
    /// Units a second; `None` without any time.
    pub fn per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.operations as f64 / self.seconds)
    }

    /// Adds the same work of another run.
    pub fn add(&mut self, other: &LoadWork) {
        self.operations = self.operations.saturating_add(other.operations);
        self.seconds += other.seconds;
        self.runs = self.runs.saturating_add(other.runs);
    }
}
