//! Other tasks.

use super::{Rule, RuleGroup};
use crate::check::context::Context;
use crate::check::outcome::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "user-tasks",
        group: RuleGroup::Workload,
        title: "no other process may run on real-time CPUs",
        why: "A task that is allowed on a CPU may run there at any time, and even at low priority \
              it evicts cache lines and holds locks.",
        source: "sched_setaffinity(2)",
        evaluate: user_tasks,
    },
    Rule {
        id: "kernel-threads",
        group: RuleGroup::Workload,
        title: "no kernel thread that can be moved may run on real-time CPUs",
        why: "Writeback, memory reclaim and drivers work in threads that are not bound to a CPU, \
              some of them real-time.",
        source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        evaluate: kernel_threads,
    },
    Rule {
        id: "competing-priorities",
        group: RuleGroup::Workload,
        title: "no other process holds a high real-time priority",
        why: "A task of higher priority preempts every task of lower priority.",
        source: "sched(7)",
        evaluate: competing_priorities,
    },
    Rule {
        id: "audit",
        group: RuleGroup::Workload,
        title: "system calls are not audited",
        why: "With audit rules, the kernel checks each system call against all rules, and records \
              wait for the audit daemon.",
        source: "kernel/auditsc.c",
        evaluate: check_audit,
    },
];

/// From this priority on user tasks commonly conflict: half of the range, the priority of the
/// kernel's own interrupt threads.
const HIGH: u32 = 51;

fn user_tasks(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let tasks = ctx.checked_tasks()?.iter().filter(|task| !task.kernel);
    let tasks_there: Vec<String> =
        tasks.filter(|task| task.may_run_on(cpus)).map(|task| task.label()).collect();
    if tasks_there.is_empty() {
        return ok_outcome("no process may run there", "Cpus_allowed_list of /proc/*/status")
            .conclude();
    }
    warning_outcome(
        format!("{} processes may run there", tasks_there.len()),
        format!("Cpus_allowed_list of /proc/*/status: {}", join_some(&tasks_there)),
    )
    .fix_by(ctx.isolation_fix())
    .conclude()
}

fn kernel_threads(ctx: &Context) -> Conclusion {
    let cpus = ctx.dedicated_cpus()?;
    let tasks =
        ctx.checked_tasks()?.iter().filter(|task| task.kernel && task.movable && !task.is_bound());
    let threads_there: Vec<String> =
        tasks.filter(|task| task.may_run_on(cpus)).map(|task| task.label()).collect();
    if threads_there.is_empty() {
        return ok_outcome(
            "only kernel threads that cannot be moved may run there",
            "Cpus_allowed_list of /proc/*/status",
        )
        .conclude();
    }
    let message =
        format!("{} kernel threads that could be moved may run there", threads_there.len());
    advice_outcome(
        message,
        format!("Cpus_allowed_list of /proc/*/status: {}", join_some(&threads_there)),
    )
    .fix_by(ctx.isolation_fix())
    .conclude()
}

fn competing_priorities(ctx: &Context) -> Conclusion {
    let tasks = ctx
        .checked_tasks()?
        .iter()
        .filter(|task| !task.kernel && task.rt_priority >= HIGH && task.may_run_on(&ctx.cpus));
    let high: Vec<String> =
        tasks.map(|task| format!("{} at {}", task.label(), task.rt_priority)).collect();
    if high.is_empty() {
        return ok_outcome(
            format!("no process has a priority of {HIGH} or more there"),
            "/proc/*/stat, main threads",
        )
        .conclude();
    }
    advice_outcome(
        format!("{} process(es) have a high priority there", high.len()),
        format!("/proc/*/stat, main threads: {}", join_some(&high)),
    )
    .with_fix(Fix::by_hand(
        "give them a lower priority (chrt -f -p PRIORITY PID) or other CPUs (taskset -cp LIST PID)",
    ))
    .conclude()
}

fn check_audit(ctx: &Context) -> Conclusion {
    let line = ctx.command_line()?;
    let parameter = line.last_value("audit").unwrap_or_default();
    if ["0", "off"].contains(&parameter.as_str()) {
        return ok_outcome("auditing is off", format!("/proc/cmdline has audit={parameter}"))
            .conclude();
    }
    let fix = Fix::by_hand("systemctl disable --now auditd, or boot with `audit=0`");
    if ["1", "on"].contains(&parameter.as_str()) {
        return advice_outcome(
            "every task is audited from boot",
            format!("/proc/cmdline has audit={parameter}"),
        )
        .with_fix(fix)
        .conclude();
    }
    match ctx.checked_tasks()?.iter().find(|task| task.name == "auditd") {
        Some(daemon) => {
            advice_outcome("the audit daemon runs", format!("/proc/*/stat: {}", daemon.label()))
                .with_fix(fix)
        }
        None => ok_outcome(
            "no audit daemon runs",
            "/proc/*/stat name no auditd, /proc/cmdline has no audit=1",
        ),
    }
    .conclude()
}
