//! Kernel files that hold one setting each.

use super::read::text;
use crate::files::Files;
use punctual_core::Fact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings that the bundle stores and the rules judge.
pub const SETTINGS: &[&str] = &[
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/sched_schedstats",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/stack_tracer_enabled",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/stat_interval",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/machinecheck/machinecheck0/check_interval",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/writeback/cpumask",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/security/lockdown",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// The contents of [`SETTINGS`], by path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelSettings(pub BTreeMap<String, Fact<String>>);

impl KernelSettings {
    pub(super) fn read(files: &dyn Files) -> KernelSettings {
        KernelSettings(
            SETTINGS.iter().map(|path| ((*path).to_owned(), text(files, path))).collect(),
        )
    }

    /// A setting; [`Fact::NotAsked`] for a path that is not among [`SETTINGS`].
    pub fn get(&self, path: &str) -> Fact<String> {
        self.0.get(path).cloned().unwrap_or_default()
    }
}
