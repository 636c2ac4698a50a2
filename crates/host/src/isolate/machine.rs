//! The machine as input of the plan, and refusals of requests that would make it unusable.

use super::Refusal;
use super::cpusets::Cpusets;
use super::request::{PartitionRequest, TargetCpus};
use crate::files::Files;
use crate::isolate;
use punctual_core::CpuSet;
use punctual_sys::rights::{Capabilities, Capability};
use punctual_sys::status::find_field;

/// The machine split in two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineSplit {
    /// The cpuset controller.
    pub cpusets: Cpusets,
    /// The CPUs given to real time.
    pub rt: CpuSet,
    /// All others that are online.
    pub housekeeping: CpuSet,
    /// The memory nodes of the real-time partition; `None` if it shares all of them.
    pub rt_nodes: Option<CpuSet>,
    /// The memory nodes of the housekeeping partition, likewise.
    pub nrt_nodes: Option<CpuSet>,
    pub nodes: CpuSet,
}

impl MachineSplit {
    /// Examines the machine and refuses impossible or harmful requests.
    pub fn survey_machine(
        files: &dyn Files,
        request: &PartitionRequest,
    ) -> Result<MachineSplit, Refusal> {
        let cpusets = Cpusets::find_controller(files)?;
        let (rt, nodes) = (wanted_cpus(files, &request.target)?, memory_nodes(files)?);
        let housekeeping = remaining_cpus(files, &rt)?;
        isolate::check_overlap(files, &cpusets, &rt)?;
        for name in [&request.rt_name, &request.nrt_name] {
            let path = cpusets.child_path(name);
            if files.exists(&path) {
                return Err(Refusal::Exists(path));
            }
        }
        let (rt_nodes, nrt_nodes) = match request.target {
            TargetCpus::Cpus(_) => (None, None),
            TargetCpus::Node(node) => {
                let own_nodes = CpuSet::from_cpu(node);
                let rest = nodes.difference(&own_nodes);
                (Some(own_nodes), Some(rest).filter(|rest| !rest.is_empty()))
            }
        };
        Ok(MachineSplit { cpusets, rt, housekeeping, rt_nodes, nrt_nodes, nodes })
    }

    /// A set without the partition's CPUs; the housekeeping CPUs if it would be empty.
    pub(crate) fn keep_off(&self, set: &CpuSet) -> CpuSet {
        let rest = set.difference(&self.rt);
        if rest.is_empty() { self.housekeeping.clone() } else { rest }
    }
}

/// Refuses a caller without the capabilities, and names them.
pub fn check_rights(files: &dyn Files) -> Result<(), Refusal> {
    let status = files.read("/proc/self/status")?;
    let ids = find_field(&status, "Uid").unwrap_or_default();
    // Real, effective, saved, file system.
    let effective = ids.split_whitespace().nth(1).unwrap_or("unknown");
    let rights = Capabilities::parse(&status).ok_or_else(|| Refusal::Unreadable {
        path: "/proc/self/status".to_owned(),
        why: "it has no line CapEff".to_owned(),
    })?;
    match (effective, rights.has_capability(Capability::SysAdmin)) {
        ("0", true) => Ok(()),
        ("0", false) => Err(Refusal::NoRights(
            "this process is root but lacks CAP_SYS_ADMIN (a container?)".into(),
        )),
        (uid, _) => Err(Refusal::NoRights(format!(
            "this process runs as user {uid}; root is needed: run it with sudo"
        ))),
    }
}

fn read_set(files: &dyn Files, path: &str) -> Result<CpuSet, Refusal> {
    let text = files.read_trimmed(path)?;
    text.parse().map_err(|why| Refusal::Unreadable { path: path.to_owned(), why: format!("{why}") })
}

fn wanted_cpus(files: &dyn Files, target: &TargetCpus) -> Result<CpuSet, Refusal> {
    let node = match target {
        TargetCpus::Cpus(cpus) => return Ok(cpus.clone()),
        TargetCpus::Node(node) => *node,
    };
    let nodes = "/sys/devices/system/node";
    if !files.exists(nodes) {
        return Err(Refusal::NoNode { node, why: "the kernel has no CONFIG_NUMA".into() });
    }
    let path = format!("{nodes}/node{node}/cpulist");
    if !files.exists(&path) {
        let online = files.read_trimmed(&format!("{nodes}/online")).unwrap_or_default();
        return Err(Refusal::NoNode { node, why: format!("the nodes are {online}") });
    }
    let cpus = read_set(files, &path)?;
    let with_memory = read_set(files, &format!("{nodes}/has_memory")).unwrap_or_default();
    if !with_memory.is_empty() && !with_memory.contains(node) {
        return Err(Refusal::NoNode {
            node,
            why: format!("it has no memory; nodes with memory are {with_memory}"),
        });
    }
    Ok(cpus)
}

/// The nodes with memory; only node 0 without CONFIG_NUMA.
fn memory_nodes(files: &dyn Files) -> Result<CpuSet, Refusal> {
    let path = "/sys/devices/system/node/has_memory";
    if files.exists(path) { read_set(files, path) } else { Ok(CpuSet::from_cpu(0)) }
}

/// The CPUs that remain for all other tasks.
fn remaining_cpus(files: &dyn Files, rt: &CpuSet) -> Result<CpuSet, Refusal> {
    let online = read_set(files, "/sys/devices/system/cpu/online")?;
    let possible = read_set(files, "/sys/devices/system/cpu/possible")?;
    if rt.is_empty() {
        return Err(Refusal::NoCpus);
    }
    let unknown = rt.difference(&possible);
    if !unknown.is_empty() {
        return Err(Refusal::NoSuchCpu { cpus: unknown, possible });
    }
    let offline = rt.difference(&online);
    if !offline.is_empty() {
        return Err(Refusal::Offline { cpus: offline, online });
    }
    let housekeeping = online.difference(rt);
    if housekeeping.is_empty() { Err(Refusal::NoHousekeeping { online }) } else { Ok(housekeeping) }
}
