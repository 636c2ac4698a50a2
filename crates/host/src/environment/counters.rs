//! Counters that only grow: two readings, before and after a run, show the events during it.

use super::topology::Topology;
use super::{Interrupts, Machine};
use crate::files::Files;
use punctual_core::{Fact, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A count of SMIs since power-on, on Intel processors (Intel SDM vol. 4, MSR_SMI_COUNT).
const MSR_SMI_COUNT: u64 = 0x34;

/// One reading.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelCounters {
    pub interrupts: Fact<Interrupts>,
    pub softirqs: Fact<Interrupts>,
    /// Steal time, by CPU: time that the hypervisor gave to others while the CPU had work.
    pub steal: Fact<BTreeMap<usize, Nanos>>,
    /// System management interrupts, by CPU: time taken by the firmware, invisible to the kernel.
    pub smi: Fact<BTreeMap<usize, u64>>,
}

impl KernelCounters {
    pub(super) fn read(
        files: &dyn Files,
        topology: &Topology,
        machine: &Machine,
    ) -> KernelCounters {
        KernelCounters {
            interrupts: Interrupts::read(files, "/proc/interrupts"),
            softirqs: Interrupts::read(files, "/proc/softirqs"),
            steal: read_steal(files),
            smi: read_smi(files, topology, machine),
        }
    }
}

/// `cpu0 user nice system idle iowait irq softirq steal …` in ticks of USER_HZ, which is 100 on
/// every architecture that Linux supports except Alpha (include/asm-generic/param.h).
fn read_steal(files: &dyn Files) -> Fact<BTreeMap<usize, Nanos>> {
    let path = "/proc/stat";
    let cpu = |line: &str| -> Option<(usize, Nanos)> {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
        let ticks: i64 = words.nth(7)?.parse().ok()?;
        Some((cpu, Nanos(ticks.saturating_mul(10_000_000))))
    };
    match files.read(path) {
        Err(why) => Fact::Unavailable(why.to_string()),
        Ok(text) => {
            let steal: BTreeMap<usize, Nanos> = text.lines().filter_map(cpu).collect();
            if steal.is_empty() {
                Fact::Unavailable(format!("{path} has no steal time"))
            } else {
                Fact::Known(steal)
            }
        }
    }
}

fn read_smi(
    files: &dyn Files,
    topology: &Topology,
    machine: &Machine,
) -> Fact<BTreeMap<usize, u64>> {
    if !matches!(machine.vendor.known_value(), Some(vendor) if vendor == "GenuineIntel") {
        return Fact::Unavailable("only Intel processors count SMIs (MSR 0x34)".into());
    }
    let one = |cpu: usize| {
        let bytes = files
            .read_at(&format!("/dev/cpu/{cpu}/msr"), MSR_SMI_COUNT, 8)
            .map_err(|why| why.to_string())?;
        let bytes: [u8; 8] =
            bytes.try_into().map_err(|_| format!("/dev/cpu/{cpu}/msr gave no 8 bytes"))?;
        // The upper half is reserved.
        Ok((cpu, u64::from_le_bytes(bytes) & 0xffff_ffff))
    };
    match &topology.online {
        Fact::Known(online) => {
            online.iter().map(one).collect::<Result<BTreeMap<_, _>, String>>().into()
        }
        _ => Fact::Unavailable("which CPUs are online is not known".into()),
    }
}
