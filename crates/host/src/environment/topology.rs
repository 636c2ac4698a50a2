//! The CPUs, and what they share: cores, packages, caches, memory nodes.
//!
//! From /sys/devices/system/cpu and /sys/devices/system/node
//! (Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node). A
//! missing file leaves its fact unavailable.

use super::machine::MemorySize;
use super::read::{cpu_list, read_number, read_text};
use crate::files::Files;
use punctual_core::{CpuSet, Fact};
use serde::{Deserialize, Serialize};

/// At most this many caches of one CPU are read; today's CPUs have four or five.
const MAX_CACHES: usize = 16;
/// The kernel has at most 1024 memory nodes (MAX_NUMNODES, CONFIG_NODES_SHIFT ≤ 10).
const MAX_NODES: usize = 1024;

/// The CPUs of the system.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// The possible CPUs.
    pub possible: Fact<CpuSet>,
    /// The present CPUs.
    pub present: Fact<CpuSet>,
    pub online: Fact<CpuSet>,
    /// CPUs taken out of the scheduler's domains at boot (`isolcpus=`); whether it includes
    /// partitions depends on the kernel.
    pub isolated: Fact<CpuSet>,
    pub cpus: Fact<Vec<CpuPlace>>,
    pub caches: Fact<Vec<Cache>>,
    pub nodes: Fact<Vec<Node>>,
}

/// The place of one CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CpuPlace {
    pub cpu: usize,
    /// The core, by its number in the package.
    pub core: Fact<u32>,
    /// The package; -1 if the architecture does not know it (arm64 without ACPI).
    pub package: Fact<i32>,
    /// The hardware threads of its core, itself included.
    pub siblings: Fact<CpuSet>,
}

/// One cache.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3, …
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// As the kernel formats it: `1024K`.
    pub size: Fact<String>,
    /// The CPUs that share it.
    pub shared: CpuSet,
}

/// One memory node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    pub node: usize,
    pub cpus: Fact<CpuSet>,
    pub memory: Fact<MemorySize>,
}

impl Topology {
    pub fn read(files: &dyn Files) -> Topology {
        let set = |name: &str| read_cpu_list(files, &format!("/sys/devices/system/cpu/{name}"));
        let online = set("online");
        let places = |online: CpuSet| online.iter().map(|cpu| read_place(files, cpu)).collect();
        let each_cache = |online: CpuSet| read_caches(files, &online);
        Topology {
            possible: set("possible"),
            present: set("present"),
            isolated: set("isolated"),
            cpus: online.clone().map(places),
            caches: online.clone().map(each_cache),
            nodes: read_cpu_list(files, "/sys/devices/system/node/online")
                .map(|nodes| memory_nodes(files, &nodes)),
            online,
        }
    }

    /// The hardware threads of a CPU's core, itself included; `None` if the kernel does not show
    /// them.
    pub fn siblings_of(&self, cpu: usize) -> Option<&CpuSet> {
        self.cpus.known_value()?.iter().find(|place| place.cpu == cpu)?.siblings.known_value()
    }
}

fn read_cpu_list(files: &dyn Files, path: &str) -> Fact<CpuSet> {
    cpu_list(files, path)
}

fn read_place(files: &dyn Files, cpu: usize) -> CpuPlace {
    let path = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
    CpuPlace {
        cpu,
        core: read_number(files, &path("core_id")),
        package: read_number(files, &path("physical_package_id")),
        siblings: read_cpu_list(files, &path("thread_siblings_list")),
    }
}

/// Each CPU that shares a cache lists it; the first of them is used.
fn read_caches(files: &dyn Files, online: &CpuSet) -> Vec<Cache> {
    let mut found = Vec::new();
    for cpu in online.iter() {
        for index in 0..MAX_CACHES {
            let path =
                |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
            let Fact::Known(level) = read_number(files, &path("level")) else { break };
            let (Fact::Known(kind), Fact::Known(shared)) =
                (read_text(files, &path("type")), read_cpu_list(files, &path("shared_cpu_list")))
            else {
                continue;
            };
            if shared.intersection(online).first_cpu() == Some(cpu) {
                found.push(Cache { level, kind, shared, size: read_text(files, &path("size")) });
            }
        }
    }
    found
}

fn memory_nodes(files: &dyn Files, nodes: &CpuSet) -> Vec<Node> {
    let one = |node: usize| Node {
        node,
        cpus: read_cpu_list(files, &format!("/sys/devices/system/node/node{node}/cpulist")),
        memory: node_memory(files, node),
    };
    nodes.iter().take(MAX_NODES).map(one).collect()
}

/// `Node 0 MemTotal:       16314820 kB`.
fn node_memory(files: &dyn Files, node: usize) -> Fact<MemorySize> {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let total = |text: &str| {
        let line = text.lines().find(|line| line.contains("MemTotal:"))?;
        line.split_whitespace().nth(3)?.parse::<u64>().ok()?.checked_mul(1024).map(MemorySize)
    };
    match files.read(&path) {
        Ok(text) => total(&text)
            .map(Fact::Known)
            .unwrap_or_else(|| Fact::Unavailable(format!("{path} has no MemTotal"))),
        Err(why) => Fact::Unavailable(why.to_string()),
    }
}
