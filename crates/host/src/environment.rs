//! The environment of a run: the properties of the machine and its kernel that affect latency.
//!
//! Each fact is read only here: the bundle stores it, the rules of `check` judge it. An unreadable
//! fact is [`Fact::Unavailable`] with the reason. Texts are as the kernel provides them, limited in
//! length but not sanitised: they can hold any byte that a task, a driver or a hypervisor chose,
//! and must be escaped for display.

mod boot_list;
mod config;
mod counters;
mod cpu;
mod interrupts;
mod kernel;
mod machine;
mod preemption;
mod read;
mod topology;

use crate::files::Files;
pub use boot_list::BootList;
pub(crate) use boot_list::ListReader;
#[cfg(test)]
pub(crate) use config::OPTIONS;
pub use config::{ConfigSource, KernelConfig};
pub use counters::KernelCounters;
pub use cpu::{CpuInfo, Frequency, IdleState, Kilohertz};
pub use interrupts::{InterruptLine, Interrupts};
pub use kernel::{IsolCpus, KernelCommandLine, RunningKernel, TimerTick};
pub use machine::{
    ClockSource, Hypervisor, Machine, MachineMemory, MemorySize, RtThrottling, TscFlags,
};
pub use preemption::{Preemption, PreemptionModel};
use punctual_core::Fact;
pub(crate) use read::{cpu_list, read_number, read_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use topology::{Cache, CpuPlace, Node, Topology};

/// The system of a run. Every field has a default, so that bundles of older versions can be read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version, command line, configuration, preemption and tick.
    pub kernel: RunningKernel,
    pub machine: Machine,
    /// The source of time.
    pub clock: ClockSource,
    /// The CPUs and the resources that they share.
    pub topology: Topology,
    /// Each online CPU: frequency and idle states.
    pub cpus: Fact<Vec<CpuInfo>>,
    /// The cpuidle driver and governor of the system.
    pub idle_driver: Fact<String>,
    /// The cpuidle governor of the system.
    pub idle_governor: Fact<String>,
    /// The share of the CPU that the kernel allows real-time tasks.
    pub rt_throttling: Fact<RtThrottling>,
    pub memory: MachineMemory,
    /// Kernel files that hold one setting each, by path.
    pub settings: KernelSettings,
    /// Interrupts, steal time and SMIs at the beginning of the run.
    pub before: KernelCounters,
    /// The same at its end; not asked until then.
    pub after: KernelCounters,
}

/// Reads everything but [`Environment::after`], each file once. Takes some milliseconds.
pub fn capture_environment(files: &dyn Files) -> Environment {
    let topology = Topology::read(files);
    let machine = Machine::read(files);
    Environment {
        kernel: RunningKernel::read(files),
        clock: ClockSource::read(files),
        cpus: cpu::read_all(files, &topology),
        idle_driver: read_text(files, "/sys/devices/system/cpu/cpuidle/current_driver"),
        idle_governor: idle_governor(files),
        rt_throttling: RtThrottling::read(files),
        memory: MachineMemory::read(files),
        settings: KernelSettings::read(files),
        before: KernelCounters::read(files, &topology, &machine),
        after: KernelCounters::default(),
        topology,
        machine,
    }
}

impl Environment {
    /// Reads [`Environment::after`], at the end of the run.
    pub fn record_end(&mut self, files: &dyn Files) {
        self.after = KernelCounters::read(files, &self.topology, &self.machine);
    }
}

/// `current_governor` is writable only since Linux 5.7 (drivers/cpuidle/sysfs.c); before, only the
/// read-only file existed.
fn idle_governor(files: &dyn Files) -> Fact<String> {
    let governor = read_text(files, "/sys/devices/system/cpu/cpuidle/current_governor");
    match governor.known_value() {
        Some(_) => governor,
        None => read_text(files, "/sys/devices/system/cpu/cpuidle/current_governor_ro"),
    }
}

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
    fn read(files: &dyn Files) -> KernelSettings {
        KernelSettings(
            SETTINGS.iter().map(|path| ((*path).to_owned(), read_text(files, path))).collect(),
        )
    }

    /// A setting; [`Fact::NotAsked`] for a path that is not among [`SETTINGS`].
    pub fn get(&self, path: &str) -> Fact<String> {
        self.0.get(path).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
