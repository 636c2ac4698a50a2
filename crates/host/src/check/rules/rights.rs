//! The rights of this user.

use super::{Rule, RuleGroup};
use crate::check::Capability;
use crate::check::context::{Context, as_number, require_known};
use crate::check::outcome::*;
use crate::check::rights::{Grant, find_grants};
use crate::environment::MemorySize;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "realtime-priority-limit",
        group: RuleGroup::Rights,
        title: "this user may use every real-time priority",
        why: "Without this right the kernel refuses SCHED_FIFO, and the measuring threads are not \
              real-time.",
        source: "sched(7), Privileges and resource limits",
        evaluate: realtime_priority_limit,
    },
    Rule {
        id: "memory-lock-limit",
        group: RuleGroup::Rights,
        title: "this user may lock its memory",
        why: "A program that cannot lock its memory waits for the disk at a page fault.",
        source: "mlock(2)",
        evaluate: memory_lock_limit,
    },
    Rule {
        id: "realtime-timeout",
        group: RuleGroup::Rights,
        title: "real-time tasks are not ended for running long",
        why: "RLIMIT_RTTIME sends SIGXCPU to a real-time task that runs for this long without \
              blocking; desktops and rtkit set it.",
        source: "getrlimit(2), RLIMIT_RTTIME",
        evaluate: realtime_timeout,
    },
    Rule {
        id: "timer-slack",
        group: RuleGroup::Rights,
        title: "timers of normal tasks are not deferred beyond the default",
        why: "The kernel may delay a timer of a task without real-time policy by the timer slack, \
              to group expirations.",
        source: "prctl(2), PR_SET_TIMERSLACK",
        evaluate: timer_slack,
    },
];

/// The memory of a small program with its libraries and some stacks; the kernel's default limit is
/// 8 MiB.
const MEMORY: u64 = 64 << 20;
/// 50 µs, the default of init (kernel/sched/core.c, INIT_TASK).
const DEFAULT_SLACK: i64 = 50_000;

/// Raises a limit at login: `item` and `value` of limits.conf(5), `unit` of systemd.exec(5). If a
/// line already grants it, a user named there only has to log in again.
fn limits_conf(ctx: &Context, item: &str, value: &str, unit: &str) -> Fix {
    Fix::by_hand(match find_grants(ctx.files(), item, value).first() {
        Some(Grant { path, line, .. }) => format!(
            "{path} grants it (`{line}`): log in again as a user whom this line names (id -nG \
             lists the groups); a service needs {unit} in its unit"
        ),
        None => format!(
            "echo '@realtime - {item} {value}' > /etc/security/limits.d/realtime.conf, add the \
             user to the group realtime, log in again; a service needs {unit} in its unit"
        ),
    })
}

fn realtime_priority_limit(ctx: &Context) -> Conclusion {
    if require_known(&ctx.process_facts().has_capability(Capability::SysNice)).is_ok_and(|has| *has)
    {
        return ok_outcome("this process has CAP_SYS_NICE", "/proc/self/status, CapEff").conclude();
    }
    let limit = *require_known(&ctx.process_facts().soft_limit("Max realtime priority"))?;
    match limit {
        None | Some(99..) => {
            ok_outcome("every priority may be used", "/proc/self/limits, Max realtime priority")
        }
        Some(0) => bad_outcome(
            "no real-time priority may be used",
            format_evidence("/proc/self/limits, Max realtime priority", 0),
        )
        .with_fix(limits_conf(ctx, "rtprio", "99", "LimitRTPRIO=99")),
        Some(top) => advice_outcome(
            format!("priorities up to {top} may be used"),
            format_evidence("/proc/self/limits, Max realtime priority", top),
        )
        .with_fix(limits_conf(ctx, "rtprio", "99", "LimitRTPRIO=99")),
    }
    .conclude()
}

fn memory_lock_limit(ctx: &Context) -> Conclusion {
    if require_known(&ctx.process_facts().has_capability(Capability::IpcLock)).is_ok_and(|has| *has)
    {
        return ok_outcome("this process has CAP_IPC_LOCK", "/proc/self/status, CapEff").conclude();
    }
    let name = "/proc/self/limits, Max locked memory";
    match *require_known(&ctx.process_facts().soft_limit("Max locked memory"))? {
        None => ok_outcome("all memory may be locked", name),
        Some(size) if size >= MEMORY => {
            ok_outcome(format!("{} may be locked", MemorySize(size)), format_evidence(name, size))
        }
        Some(size) => warning_outcome(
            format!("only {} may be locked", MemorySize(size)),
            format_evidence(name, size),
        )
        .with_fix(limits_conf(ctx, "memlock", "unlimited", "LimitMEMLOCK=infinity")),
    }
    .conclude()
}

fn realtime_timeout(ctx: &Context) -> Conclusion {
    let name = "/proc/self/limits, Max realtime timeout";
    match *require_known(&ctx.process_facts().soft_limit("Max realtime timeout"))? {
        None => ok_outcome("there is no limit", name),
        Some(us) => advice_outcome(
            format!("a real-time task gets SIGXCPU after {us} µs without blocking"),
            format_evidence(name, us),
        )
        .with_fix(Fix::by_hand("raise it for the program: prlimit --rttime=unlimited")),
    }
    .conclude()
}

fn timer_slack(ctx: &Context) -> Conclusion {
    let path = "/proc/self/timerslack_ns";
    let slack = as_number(path, &ctx.read(path)?)?;
    match slack <= DEFAULT_SLACK {
        true => ok_outcome(
            format!(
                "timers of normal tasks are deferred by at most {slack} ns, real-time ones not at \
                 all"
            ),
            format_evidence(path, slack),
        ),
        false => advice_outcome(
            format!("timers of normal tasks may be deferred by {slack} ns"),
            format_evidence(path, slack),
        )
        .with_fix(Fix::by_hand(
            "a parent set it: start from another shell or service (TimerSlackNSec=)",
        )),
    }
    .conclude()
}
