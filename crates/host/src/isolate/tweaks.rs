//! The tweaks: settings that keep the kernel's own work off the partition. Each entry of the table
//! is one tweak.

mod cgroup;
pub mod irq;
mod memory;
mod net;
mod power;
mod sched;
mod workqueue;

use super::Refusal;
use super::machine::MachineSplit;
use crate::files::Files;
use crate::journal::record::KernelWrite;
use crate::journal::value::{is_same_value, normalize_value};
use punctual_core::words::nearest_word;

/// The tweak that takes the partition out of the scheduler's balancing.
pub const LOAD_BALANCE: &str = "load-balance";
/// The tweak that moves interrupts.
const IRQ_AFFINITY: &str = "irq-affinity";
/// The tweak that briefly unplugs each CPU.
pub const REPLUG: &str = "replug";

/// The time at which a tweak's settings are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TweakPhase {
    /// Before the tasks leave the CPUs.
    First,
    Last,
    /// At a place of its own in the plan.
    Own,
}

/// A tweak.
#[derive(Clone, Copy)]
pub struct Tweak {
    /// Its name; `--no-NAME` omits it.
    pub name: &'static str,
    /// Its effect, in one sentence.
    pub doc: &'static str,
    /// The kernel source of the effect.
    pub source: &'static str,
    pub phase: TweakPhase,
    /// Compares the settings with the request. An error is the reason to skip the whole tweak.
    pub settings: fn(&dyn Files, &MachineSplit, &mut Draft) -> Result<(), String>,
}

/// The writes of one tweak.
#[derive(Default)]
pub struct Draft {
    /// The writes, each with its subject if the path does not show it.
    pub writes: Vec<(Option<String>, KernelWrite)>,
    /// Omitted settings, with the reasons.
    pub skipped: Vec<String>,
}

impl Draft {
    /// Requests a value of a file; adds no write if it already has it. A file that is missing or
    /// unreadable is omitted with that reason.
    pub(crate) fn request_value(&mut self, files: &dyn Files, path: &str, value: &str) {
        match files.read(path) {
            Ok(text) if is_same_value(&text, value) => {}
            Ok(text) => self.write(None, path, &text, value),
            Err(error) if error.is_missing() => {
                self.skipped.push(format!("this kernel has no {path}"))
            }
            Err(error) => self.skipped.push(error.to_string()),
        }
    }

    /// A write to a file that holds `old`.
    pub fn write(&mut self, about: Option<String>, path: &str, old: &str, new: &str) {
        self.writes.push((about, KernelWrite::new(path, normalize_value(old), new)));
    }

    /// Requests that a file with a CPU mask excludes the partition's CPUs.
    pub(crate) fn keep_off(&mut self, files: &dyn Files, machine: &MachineSplit, path: &str) {
        match files.read(path) {
            Ok(text) => match punctual_core::CpuSet::from_mask(&text) {
                Ok(set) if set.intersection(&machine.rt).is_empty() => {}
                Ok(set) => self.write(None, path, &text, &machine.keep_off(&set).to_mask()),
                Err(error) => self.skipped.push(format!("{path}: {error}")),
            },
            Err(error) if error.is_missing() => {
                self.skipped.push(format!("this kernel has no {path}"))
            }
            Err(error) => self.skipped.push(error.to_string()),
        }
    }
}

/// All tweaks, in order of execution.
pub fn all_tweaks() -> impl Iterator<Item = &'static Tweak> {
    TABLE.iter()
}

/// The tweak with this name.
pub(crate) fn find_tweak(name: &str) -> Option<&'static Tweak> {
    all_tweaks().find(|tweak| tweak.name == name)
}

/// Refuses names of unknown tweaks.
pub(crate) fn check_names(names: &[String]) -> Result<(), Refusal> {
    let unknown = names.iter().find(|name| find_tweak(name).is_none());
    unknown.map_or(Ok(()), |name| {
        let near = nearest_word(name, all_tweaks().map(|tweak| tweak.name));
        Err(Refusal::UnknownTweak { name: name.clone(), near })
    })
}

/// The table as Markdown, as in docs/reference/isolate.md.
pub fn format_markdown() -> String {
    let mut text = String::from("| tweak | what it does | in the kernel |\n|---|---|---|\n");
    for tweak in all_tweaks() {
        text += &format!("| `{}` | {} | {} |\n", tweak.name, tweak.doc, tweak.source);
    }
    text
}

const TABLE: [Tweak; 20] = [
    Tweak {
        name: LOAD_BALANCE,
        doc: "Takes the partition's CPUs out of the scheduler's balancing: v1 \
              `sched_load_balance` 0 in the root and in the partition; v2 the partition type \
              `isolated` (without the tweak: `root`).",
        source: "kernel/cgroup/cpuset.c, rebuild_sched_domains",
        phase: TweakPhase::First,
        settings: cgroup::load_balance,
    },
    Tweak {
        name: IRQ_AFFINITY,
        doc: "Moves each interrupt off the partition's CPUs, and lists those that cannot be moved.",
        source: "kernel/irq/proc.c, irq_affinity_list_proc_write",
        phase: TweakPhase::First,
        settings: irq::move_interrupts,
    },
    Tweak {
        name: "default-irq-affinity",
        doc: "Keeps interrupts that are requested later off the partition's CPUs.",
        source: "kernel/irq/proc.c, default_affinity_write",
        phase: TweakPhase::First,
        settings: irq::default_affinity,
    },
    Tweak {
        name: "rps-xps",
        doc: "Takes the partition's CPUs out of the network queues' receive (RPS) and transmit \
              (XPS) masks.",
        source: "net/core/net-sysfs.c, store_rps_map and xps_cpus_store",
        phase: TweakPhase::First,
        settings: net::limit_queue_masks,
    },
    Tweak {
        name: "workqueue-unbound",
        doc: "Keeps the workers of unbound workqueues off the partition's CPUs.",
        source: "kernel/workqueue.c, workqueue_set_unbound_cpumask",
        phase: TweakPhase::First,
        settings: workqueue::limit_unbound,
    },
    Tweak {
        name: "workqueue-writeback",
        doc: "Keeps the writeback of dirty pages off the partition's CPUs, and disables its NUMA \
              affinity where the kernel has that setting (before 6.6).",
        source: "kernel/workqueue.c, wq_cpumask_store; mm/backing-dev.c, bdi_wq",
        phase: TweakPhase::First,
        settings: workqueue::limit_writeback,
    },
    Tweak {
        name: "workqueue-block",
        doc: "Keeps the block layer's workqueue, and every other one with a cpumask in sysfs, off \
              the partition's CPUs.",
        source: "kernel/workqueue.c, workqueue_sysfs_register; block/blk-cgroup.c",
        phase: TweakPhase::First,
        settings: workqueue::limit_others,
    },
    Tweak {
        name: "rt-throttling",
        doc: "Lets real-time tasks use all CPU time: `sched_rt_runtime_us` −1.",
        source: "kernel/sched/rt.c, sched_rt_handler",
        phase: TweakPhase::First,
        settings: sched::disable_throttling,
    },
    Tweak {
        name: "tick-deferment",
        doc: "Lets a CPU defer its tick without limit: debugfs `sched_tick_max_deferment` −1 \
              (removed in 4.17).",
        source: "kernel/sched/core.c before 4.17, scheduler_tick_max_deferment",
        phase: TweakPhase::First,
        settings: sched::tick_deferment,
    },
    Tweak {
        name: "timer-migration",
        doc: "Stops timers from migrating between CPUs: `kernel.timer_migration` 0.",
        source: "kernel/time/timer.c, timer_migration_handler",
        phase: TweakPhase::First,
        settings: sched::timer_migration,
    },
    Tweak {
        name: "watchdog",
        doc: "Takes the partition's CPUs out of the lockup detectors' `watchdog_cpumask`; \
              `kernel.watchdog` 0 where the kernel has no mask.",
        source: "kernel/watchdog.c, proc_watchdog_cpumask",
        phase: TweakPhase::First,
        settings: sched::limit_watchdog,
    },
    Tweak {
        name: "machine-check",
        doc: "Stops the polling for corrected machine checks: `check_interval` 0 (x86).",
        source: "arch/x86/kernel/cpu/mce/core.c, store_int_with_restart",
        phase: TweakPhase::First,
        settings: sched::machine_check,
    },
    Tweak {
        name: "vmstat",
        doc: "Updates the vm statistics of each CPU only every 1,000 s: `vm.stat_interval`.",
        source: "mm/vmstat.c, vmstat_shepherd",
        phase: TweakPhase::First,
        settings: memory::slow_vmstat,
    },
    Tweak {
        name: "transparent-hugepages",
        doc: "Stops khugepaged from collapsing pages into huge pages, which stalls the processes \
              that use them: `enabled` never.",
        source: "mm/huge_memory.c, enabled_store; mm/khugepaged.c",
        phase: TweakPhase::First,
        settings: memory::transparent_hugepages,
    },
    Tweak {
        name: "ksm",
        doc: "Stops kernel same-page merging (KSM) if it runs: `ksm/run` 0.",
        source: "mm/ksm.c, run_store",
        phase: TweakPhase::First,
        settings: memory::stop_ksm,
    },
    Tweak {
        name: "numa-balancing",
        doc: "Stops the page faults of automatic NUMA balancing: `kernel.numa_balancing` 0.",
        source: "kernel/sched/fair.c, task_numa_work",
        phase: TweakPhase::First,
        settings: memory::numa_balancing,
    },
    Tweak {
        name: REPLUG,
        doc: "Takes each of the partition's CPUs offline and online again, so that timers armed \
              there move to others.",
        source: "kernel/time/timer.c, timers_dead_cpu; kernel/time/hrtimer.c, hrtimers_cpu_dying",
        phase: TweakPhase::Own,
        settings: cgroup::nothing_here,
    },
    Tweak {
        name: "governor",
        doc: "Sets the frequency governor of the partition's CPUs to `performance`.",
        source: "drivers/cpufreq/cpufreq.c, store_scaling_governor",
        phase: TweakPhase::Last,
        settings: power::set_governor,
    },
    Tweak {
        name: "idle-states",
        doc: "Disables idle states with an exit latency above 2 µs on the partition's CPUs.",
        source: "drivers/cpuidle/sysfs.c, store_state_disable",
        phase: TweakPhase::Last,
        settings: power::idle_states,
    },
    Tweak {
        name: "resume-latency",
        doc: "Limits the resume latency of the partition's CPUs to 2 µs with any idle driver: \
              `pm_qos_resume_latency_us`.",
        source: "drivers/base/power/sysfs.c, pm_qos_resume_latency_us_store",
        phase: TweakPhase::Last,
        settings: power::resume_latency,
    },
];
