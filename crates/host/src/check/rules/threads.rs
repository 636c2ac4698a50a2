//! Threads of the kernel and of virtual machines.

use super::{Rule, RuleGroup};
use crate::check::context::Context;
use crate::check::outcome::*;
use crate::check::tasks::{CheckedTask, TaskStat};
use punctual_core::CpuSet;

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
];

/// Which must not be below which: the beginnings of the names, of threads of each CPU or of all.
const ORDER: [(&str, &str); 3] =
    [("irq_work/", "rcu"), ("rcu", "ksoftirqd/"), ("ktimers/", "ksoftirqd/")];

fn kernel_thread_order(ctx: &Context) -> Conclusion {
    let kernel: Vec<&CheckedTask> = ctx.tasks()?.iter().filter(|task| task.kernel).collect();
    let of = |name: &str| {
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
        return unknown("/proc/*/stat show no thread of the kernel").conclude();
    }
    let label = |task: &CheckedTask| format!("{} at {}", task.label(), task.rt_priority);
    let raised = of("ksoftirqd/").into_iter().filter(|task| task.rt_priority > 0);
    let raised: Vec<String> = raised.map(label).collect();
    let turned = ORDER.iter().filter_map(|(above, below)| {
        let least = of(above).into_iter().min_by_key(|task| task.rt_priority)?;
        let most = of(below).into_iter().max_by_key(|task| task.rt_priority)?;
        (least.rt_priority < most.rt_priority)
            .then(|| format!("{} is below {}", label(least), label(most)))
    });
    let turned: Vec<String> = turned.collect();
    let evidence = |list: &[String]| format!("/proc/*/stat: {}", join_some(list));
    if !turned.is_empty() {
        return warning("the order of the kernel's threads is turned round", evidence(&turned))
            .fix(Fix::by_hand(
                "give the upper ones at least the priority of the lower ones (chrt -f -p PRIORITY \
                 PID), or ksoftirqd none (chrt -o -p 0 PID)",
            ))
            .conclude();
    }
    if !raised.is_empty() {
        return warning("softirq threads were raised: they run above tasks", evidence(&raised))
            .fix(Fix::by_hand("chrt -o -p 0 PID for each, unless the load needs it"))
            .conclude();
    }
    ok(
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
    let cpus = ctx.dedicated()?;
    let is_qemu = |name: &str| ["qemu-", "kvm"].iter().any(|start| name.starts_with(start));
    let tasks = ctx.tasks()?.iter();
    let machines: Vec<&CheckedTask> =
        tasks.filter(|task| !task.kernel && is_qemu(&task.name)).take(MAX_MACHINES).collect();
    if machines.is_empty() {
        return not_applicable("no QEMU runs here", "/proc/*/stat").conclude();
    }
    let mut escaping = Vec::new();
    for machine in machines {
        let threads = virtual_cpus(ctx, machine.pid);
        // A machine without a virtual CPU there is none of real time.
        let here = threads.iter().any(|thread| !thread.allowed.intersection(cpus).is_empty());
        let out = threads.iter().filter(|thread| here && !thread.allowed.is_subset(cpus));
        escaping.extend(out.map(|VirtualCpu { label, allowed, ran_on }| {
            format!("{label} of {} may run on {allowed} and ran on {ran_on}", machine.label())
        }));
    }
    if escaping.is_empty() {
        let evidence = "/proc/*/task/*/status, Cpus_allowed_list, of threads named `CPU N/KVM`";
        return ok("no virtual CPU leaves the real-time CPUs", evidence).conclude();
    }
    let message = format!("{} virtual CPUs may leave the real-time CPUs", escaping.len());
    warning(message, join_some(&escaping))
        .fix(Fix::by_hand(format!("taskset -cp {cpus} THREAD for each (libvirt: virsh vcpupin)")))
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
