//! Possible improvements of a valid partition.

use super::machine::MachineSplit;
use crate::environment::Topology;
use crate::files::Files;
use crate::journal::tasks;
use punctual_core::{CpuSet, Finding, Severity};

/// Finds settings that work against the partition.
pub(crate) fn find_advice(files: &dyn Files, machine: &MachineSplit) -> Vec<Finding> {
    [
        boot_cpu(machine),
        check_siblings(files, machine),
        check_tick(files, machine),
        check_irqbalance(files),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn new_advice(id: &str, message: String) -> Finding {
    Finding::new(id, Severity::Advice, "partition", message)
}

fn boot_cpu(machine: &MachineSplit) -> Option<Finding> {
    machine.rt.contains(0).then(|| {
        new_advice(
            "partition-has-boot-cpu",
            "CPU 0 is in the partition, and much of the kernel's own work stays on it".into(),
        )
        .with_evidence(format!("the partition's CPUs: {}", machine.rt))
        .with_remedy("leave CPU 0 to housekeeping")
    })
}

/// Hardware threads of one core share its execution units and its first-level caches.
fn check_siblings(files: &dyn Files, machine: &MachineSplit) -> Option<Finding> {
    let topology = Topology::read(files);
    let all_siblings = machine
        .rt
        .iter()
        .filter_map(|cpu| topology.siblings_of(cpu))
        .fold(CpuSet::new(), |all, one| all.union(one));
    let outside = all_siblings.intersection(&machine.housekeeping);
    (!outside.is_empty()).then(|| {
        new_advice(
            "partition-shares-cores",
            format!("housekeeping CPUs {outside} share cores with the partition"),
        )
        .with_evidence("/sys/devices/system/cpu/cpuN/topology/thread_siblings_list")
        .with_remedy(format!(
            "take them into the partition, or offline: echo 0 > \
             /sys/devices/system/cpu/cpu{}/online",
            outside.first_cpu().unwrap_or(0)
        ))
    })
}

/// Only the kernel's command line stops the periodic tick of a busy CPU.
fn check_tick(files: &dyn Files, machine: &MachineSplit) -> Option<Finding> {
    let path = "/sys/devices/system/cpu/nohz_full";
    let text = files.read_trimmed(path).unwrap_or_default();
    let without_tick: CpuSet = text.parse().unwrap_or_default();
    let ticking = machine.rt.difference(&without_tick);
    (!ticking.is_empty()).then(|| {
        let file_state = if text.is_empty() {
            "is missing or empty".to_owned()
        } else {
            format!("holds {text}")
        };
        new_advice(
            "partition-has-tick",
            format!("CPU {ticking} keeps its periodic tick while a task runs"),
        )
        .with_evidence(format!("{path} {file_state}"))
        .with_remedy(format!(
            "boot with nohz_full={0} rcu_nocbs={0} on a kernel with CONFIG_NO_HZ_FULL",
            machine.rt
        ))
    })
}

/// The daemon redistributes interrupts over all CPUs every ten seconds.
fn check_irqbalance(files: &dyn Files) -> Option<Finding> {
    let processes = files.list("/proc").ok()?.into_iter().filter_map(|name| name.parse().ok());
    let daemon = processes
        .filter_map(|pid| tasks::read_stat(files, pid).ok())
        .find(|stat| stat.name == "irqbalance")?;
    let found = new_advice(
        "irqbalance-runs",
        "irqbalance will move interrupts back into the partition".into(),
    );
    Some(
        found
            .with_evidence(format!("process {} is irqbalance", daemon.id.tid))
            .with_remedy("stop it, or set IRQBALANCE_BANNED_CPULIST to the partition's CPUs"),
    )
}
