//! Frequency scaling and idle states of each CPU.

use super::read::{read_number, read_text};
use super::topology::Topology;
use crate::files::Files;
use punctual_core::{Fact, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A CPU has at most ten idle states (CPUIDLE_STATE_MAX, include/linux/cpuidle.h).
const MAX_STATES: usize = 10;

/// A frequency in kHz, as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kilohertz(pub u64);

impl std::str::FromStr for Kilohertz {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Kilohertz, Self::Err> {
        text.parse().map(Kilohertz)
    }
}

impl fmt::Display for Kilohertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} MHz", self.0 / 1_000))
    }
}

/// One online CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CpuInfo {
    pub cpu: usize,
    /// Its frequency scaling.
    pub frequency: Frequency,
    /// Its idle states, the shallowest first.
    pub idle_states: Fact<Vec<IdleState>>,
}

/// Files of /sys/devices/system/cpu/cpuN/cpufreq (Documentation/admin-guide/pm/cpufreq.rst).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Frequency {
    /// `intel_pstate`, `acpi-cpufreq`, …
    pub driver: Fact<String>,
    /// `performance`, `schedutil`, …
    pub governor: Fact<String>,
    /// The lowest frequency allowed to the governor.
    pub min: Fact<Kilohertz>,
    /// The highest frequency allowed to the governor.
    pub max: Fact<Kilohertz>,
    /// The highest frequency of the hardware.
    pub hardware_max: Fact<Kilohertz>,
    /// The frequency when it was read.
    pub current: Fact<Kilohertz>,
    /// The preference given to drivers that choose the frequency themselves.
    pub energy_preference: Fact<String>,
}

/// Files of /sys/devices/system/cpu/cpuN/cpuidle/stateM (Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdleState {
    /// `POLL`, `C1`, `C6`, `WFI`.
    pub name: String,
    /// The declared exit latency.
    pub exit_latency: Fact<Nanos>,
    /// The minimum residency for which entering it pays off.
    pub residency: Fact<Nanos>,
    /// Whether it is disabled for this CPU.
    pub disabled: Fact<bool>,
}

pub(super) fn read_all(files: &dyn Files, topology: &Topology) -> Fact<Vec<CpuInfo>> {
    let one = |cpu| CpuInfo {
        cpu,
        frequency: read_frequency(files, cpu),
        idle_states: read_idle_states(files, cpu),
    };
    topology.online.clone().map(|online| online.iter().map(one).collect())
}

fn read_frequency(files: &dyn Files, cpu: usize) -> Frequency {
    let path = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
    Frequency {
        driver: read_text(files, &path("scaling_driver")),
        governor: read_text(files, &path("scaling_governor")),
        min: read_number(files, &path("scaling_min_freq")),
        max: read_number(files, &path("scaling_max_freq")),
        hardware_max: read_number(files, &path("cpuinfo_max_freq")),
        current: read_number(files, &path("scaling_cur_freq")),
        energy_preference: read_text(files, &path("energy_performance_preference")),
    }
}

fn read_idle_states(files: &dyn Files, cpu: usize) -> Fact<Vec<IdleState>> {
    let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    files.list(&directory).map(|names| states_in(files, &directory, &names)).into()
}

fn states_in(files: &dyn Files, directory: &str, names: &[String]) -> Vec<IdleState> {
    let mut numbers: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("state"))
        .filter_map(|n| n.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.truncate(MAX_STATES);
    let micros =
        |path: &str| read_number::<i64>(files, path).map(|us| Nanos(us.saturating_mul(1_000)));
    let state = |n: u32| {
        let path = |name: &str| format!("{directory}/state{n}/{name}");
        IdleState {
            name: read_text(files, &path("name"))
                .known_value()
                .cloned()
                .unwrap_or_else(|| format!("state{n}")),
            exit_latency: micros(&path("latency")),
            residency: micros(&path("residency")),
            disabled: read_number::<u32>(files, &path("disable")).map(|n| n != 0),
        }
    };
    numbers.into_iter().map(state).collect()
}
