//! Threads of the kernel and of virtual machines.

use super::{Rule, RuleGroup};
use crate::check::context::Context;
use crate::check::outcome::*;
use crate::check::rights;
use crate::check::tasks::{CheckedTask, TaskStat};
use crate::cpu_time::CpuTimes;
use punctual_core::CpuSet;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "kernel-thread-order",
        group: RuleGroup::Workload,
        title: "the kernel's threads keep their order of priorities",
        why: "irq_work and RCU must get the CPU before softirq threads that were raised, or RCU \
              stalls and memory runs out; a raised ksoftirqd runs every softirq above the tasks \
              below it.",
        source: "kernel/softirq.c; kernel/irq_work.c; kernel/rcu/tree.c",
        evaluate: kernel_thread_order,
    },
    Rule {
        id: "vcpu-threads",
        group: RuleGroup::Workload,
        title: "virtual CPUs on real-time CPUs may not run elsewhere",
        why: "A thread of QEMU that may leave the isolated CPUs shares a CPU with other tasks, and \
              its guest sees that as lost time.",
        source: "qemu(1), -name debug-threads; libvirt, <vcpupin>",
        evaluate: vcpu_threads,
    },
    Rule {
        id: "interrupt-thread-below-program",
        group: RuleGroup::Workload,
        title: "interrupt threads are not below the programs that wait for their devices",
        why: "A program that waits for a device runs after the device's interrupt thread: below \
              the program's priority, that thread waits for every other task between the two.",
        source: "kernel/irq/manage.c, setup_irq_thread; sched(7)",
        evaluate: interrupt_threads_of_programs,
    },
    Rule {
        id: "poller-on-cpu-0",
        group: RuleGroup::Workload,
        title: "no real-time thread polls on CPU 0",
        why: "Timekeeping, work from boot and interrupts without another CPU stay on CPU 0: a \
              real-time thread that never sleeps there starves them, and with them the system.",
        source: "kernel/time/tick-common.c; Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        evaluate: poller_on_cpu_0,
    },
];

/// Which must not be below which: the beginnings of the names, of threads of each CPU or of all.
const ORDER: [(&str, &str); 3] =
    [("irq_work/", "rcu"), ("rcu", "ksoftirqd/"), ("ktimers/", "ksoftirqd/")];

fn kernel_thread_order(ctx: &Context) -> Conclusion {
    let kernel: Vec<&CheckedTask> =
        ctx.checked_tasks()?.iter().filter(|task| task.kernel).collect();
    let threads_named = |name: &str| {
        let is = |task: &&&CheckedTask| {
            // Of RCU's, those that boost, call back and end grace periods: not its workers.
            let rcu = ["rcuc/", "rcub/", "rcu_preempt", "rcu_sched"];
            let named = match name {
                "rcu" => rcu.iter().any(|name| task.name.starts_with(name)),
                name => task.name.starts_with(name),
            };
            named && task.may_run_on(&ctx.cpus)
        };
        kernel.iter().filter(is).copied().collect::<Vec<_>>()
    };
    if kernel.is_empty() {
        return unknown_outcome("/proc/*/stat show no thread of the kernel").conclude();
    }
    let label = |task: &CheckedTask| format!("{} at {}", task.label(), task.rt_priority);
    let raised = threads_named("ksoftirqd/").into_iter().filter(|task| task.rt_priority > 0);
    let raised: Vec<String> = raised.map(label).collect();
    let turned = ORDER.iter().filter_map(|(above, below)| {
        let lowest_above = threads_named(above).into_iter().min_by_key(|task| task.rt_priority)?;
        let highest_below = threads_named(below).into_iter().max_by_key(|task| task.rt_priority)?;
        (lowest_above.rt_priority < highest_below.rt_priority)
            .then(|| format!("{} is below {}", label(lowest_above), label(highest_below)))
    });
    let turned: Vec<String> = turned.collect();
    let evidence = |list: &[String]| format!("/proc/*/stat: {}", join_some(list));
    if !turned.is_empty() {
        return warning_outcome(
            "the order of the kernel's threads is turned round",
            evidence(&turned),
        )
        .with_fix(Fix::by_hand(
            "give the upper ones at least the priority of the lower ones (chrt -f -p PRIORITY \
                 PID), or ksoftirqd none (chrt -o -p 0 PID)",
        ))
        .conclude();
    }
    if !raised.is_empty() {
        return warning_outcome(
            "softirq threads were raised: they run above tasks",
            evidence(&raised),
        )
        .with_fix(Fix::by_hand("chrt -o -p 0 PID for each, unless the load needs it"))
        .conclude();
    }
    ok_outcome(
        "the kernel's threads are in their order",
        "/proc/*/stat of irq_work, rcu, ktimers, ksoftirqd",
    )
    .conclude()
}

/// Virtual machines and threads beyond this are not examined.
const MAX_MACHINES: usize = 64;
const MAX_THREADS: usize = 1024;

/// A virtual CPU: where it may run, and where it ran last.
struct VirtualCpu {
    label: String,
    allowed: CpuSet,
    ran_on: u32,
}

fn vcpu_threads(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let is_qemu = |name: &str| ["qemu-", "kvm"].iter().any(|start| name.starts_with(start));
    let tasks = ctx.checked_tasks()?.iter();
    let machines: Vec<&CheckedTask> =
        tasks.filter(|task| !task.kernel && is_qemu(&task.name)).take(MAX_MACHINES).collect();
    if machines.is_empty() {
        return not_applicable("no QEMU runs here", "/proc/*/stat").conclude();
    }
    let mut escaping = Vec::new();
    for machine in machines {
        let threads = virtual_cpus(ctx, machine.pid);
        // A machine without a virtual CPU there is none of real time.
        let is_on_these_cpus =
            threads.iter().any(|thread| !thread.allowed.intersection(cpus).is_empty());
        let out =
            threads.iter().filter(|thread| is_on_these_cpus && !thread.allowed.is_subset(cpus));
        escaping.extend(out.map(|VirtualCpu { label, allowed, ran_on }| {
            format!("{label} of {} may run on {allowed} and ran on {ran_on}", machine.label())
        }));
    }
    if escaping.is_empty() {
        let evidence = "/proc/*/task/*/status, Cpus_allowed_list, of threads named `CPU N/KVM`";
        return ok_outcome("no virtual CPU leaves the real-time CPUs", evidence).conclude();
    }
    let message = format!("{} virtual CPUs may leave the real-time CPUs", escaping.len());
    warning_outcome(message, join_some(&escaping))
        .with_fix(Fix::by_hand(format!(
            "taskset -cp {cpus} THREAD for each (libvirt: virsh vcpupin)"
        )))
        .conclude()
}

/// QEMU names the threads of virtual CPUs `CPU N/KVM` (accel/kvm/kvm-accel-ops.c), if
/// debug-threads=on, which libvirt sets.
fn virtual_cpus(ctx: &Context, pid: u32) -> Vec<VirtualCpu> {
    let directory = format!("/proc/{pid}/task");
    let ids = ctx.files().list(&directory).unwrap_or_default();
    let read = |id: &String| {
        let read = |name: &str| ctx.files().read(&format!("{directory}/{id}/{name}")).ok();
        let stat = TaskStat::parse(&read("stat")?)?;
        if !(stat.name.starts_with("CPU ") && stat.name.ends_with("/KVM")) {
            return None;
        }
        let status = read("status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let label = format!("{} ({id})", stat.name);
        Some(VirtualCpu { label, allowed: list.trim().parse().ok()?, ran_on: stat.processor? })
    };
    ids.iter().take(MAX_THREADS).filter_map(read).collect()
}

/// Programs, and open files of each, beyond these are not examined.
const MAX_PROGRAMS: usize = 4096;
const MAX_FILES: usize = 1024;

/// The threads of the devices that real-time programs have open: a device and its thread have the
/// same name (`irq/40-ttyS0`), or the file of a UIO device says which.
fn interrupt_threads_of_programs(ctx: &Context) -> Conclusion {
    let tasks = ctx.checked_tasks()?;
    // `irq/NUMBER-NAME`, of at most 15 bytes.
    let device =
        |task: &CheckedTask| Some(task.name.strip_prefix("irq/")?.split_once('-')?.1.to_owned());
    let threads: Vec<(String, &CheckedTask)> = tasks
        .iter()
        .filter(|task| task.kernel)
        .filter_map(|task| Some((device(task)?, task)))
        .collect();
    if threads.is_empty() {
        return not_applicable("no interrupt has a thread", "/proc/*/stat name no irq/ thread")
            .conclude();
    }
    let (mut below, mut seen) = (Vec::new(), 0);
    // The kernel cuts a thread's name at 15 bytes.
    let is_its = |(name, thread): &&(String, &CheckedTask), open: &str| {
        *name == open || thread.name.len() == MAX_COMM && open.starts_with(name.as_str())
    };
    for program in tasks.iter().filter(|task| !task.kernel).take(MAX_PROGRAMS) {
        let mut highest = None;
        for open in open_devices(ctx, program.pid) {
            for (_, thread) in threads.iter().filter(|of| is_its(of, &open)) {
                seen += 1;
                let highest = *highest.get_or_insert_with(|| {
                    let all_threads = rights::list_threads(ctx.files(), program.pid).into_iter();
                    all_threads.filter_map(|of| of.priority).max().unwrap_or(0)
                });
                if thread.rt_priority < highest {
                    below.push(format!(
                        "{} at {} is below {} at {highest}, which has {open} open",
                        thread.label(),
                        thread.rt_priority,
                        program.label()
                    ));
                }
            }
        }
    }
    let evidence = "/proc/*/fd beside /proc/*/stat of irq/ threads";
    if below.is_empty() {
        return match seen {
            0 => not_applicable("no program has a device with an interrupt thread open", evidence),
            _ => ok_outcome("no interrupt thread is below the program that waits for it", evidence),
        }
        .conclude();
    }
    let message = format!("{} interrupt threads are below their programs", below.len());
    warning_outcome(message, join_some(&below))
        .with_fix(Fix::by_hand("chrt -f -p PRIORITY PID, with at least the program's priority"))
        .conclude()
}

/// The bytes of a thread's name (TASK_COMM_LEN without the end).
const MAX_COMM: usize = 15;

/// The names of devices that a process has open, as their drivers name their interrupts.
fn open_devices(ctx: &Context, pid: u32) -> BTreeSet<String> {
    let directory = format!("/proc/{pid}/fd");
    let files = ctx.files().list(&directory).unwrap_or_default();
    let device = |file: &String| {
        let target = ctx.files().read_link(&format!("{directory}/{file}")).ok()?;
        let name = target.strip_prefix("/dev/")?;
        let of_uio = || ctx.files().read_trimmed(&format!("/sys/class/uio/{name}/name")).ok();
        let named = name.starts_with("uio").then(of_uio).flatten();
        Some(named.unwrap_or_else(|| name.to_owned()))
    };
    files.iter().take(MAX_FILES).filter_map(device).collect()
}

/// A thread that runs for this share of its life polls; the shortest life judged, in s.
const POLLS: f64 = 0.9;
const LIFE: f64 = 10.0;

fn poller_on_cpu_0(ctx: &Context) -> Conclusion {
    let is_there = |task: &&CheckedTask| {
        let bound = task.allowed == Some(CpuSet::from_cpu(0));
        !task.kernel && task.rt_priority > 0 && (task.ran_on == Some(0) || bound)
    };
    let tasks_on_cpu0: Vec<&CheckedTask> = ctx.checked_tasks()?.iter().filter(is_there).collect();
    let good = ok_outcome(
        "no real-time task polls on CPU 0",
        "/proc/*/task/*/stat, utime and stime since starttime",
    );
    if tasks_on_cpu0.is_empty() {
        return good.conclude();
    }
    let uptime = ctx.read("/proc/uptime")?;
    let Some(now) = uptime.split_whitespace().next().and_then(|of| of.parse::<f64>().ok()) else {
        return unknown_outcome(format_evidence("/proc/uptime", uptime)).conclude();
    };
    let seconds = |ticks: u64| ticks as f64 * CpuTimes::TICK.ns() as f64 / 1e9;
    let polls = |task: &&&CheckedTask| {
        // /proc/PID/stat has the time of all threads together.
        let path = format!("/proc/{0}/task/{0}/stat", task.pid);
        let own_stat = ctx.files().read(&path).ok().and_then(|text| TaskStat::parse(&text));
        own_stat.is_some_and(|of| {
            let life = now - seconds(of.started);
            life >= LIFE && seconds(of.ran) >= POLLS * life
        })
    };
    let found: Vec<String> = tasks_on_cpu0.iter().filter(polls).map(|task| task.label()).collect();
    if found.is_empty() {
        return good.conclude();
    }
    let share = format!("ran for more than {:.0} % of the time since it began", POLLS * 100.0);
    let how = "give it a CPU of its own: `punctual isolate create CPU`, taskset -cp CPU PID";
    bad_outcome("a real-time task polls on CPU 0", format!("{} {share}", join_some(&found)))
        .with_fix(Fix::by_hand(how))
        .conclude()
}
