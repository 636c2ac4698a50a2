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
}
