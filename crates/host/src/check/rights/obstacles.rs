//! The rights of a process, and what refuses a real-time policy, in the order of the kernel: the
//! seccomp filter, then limit and capability, then the budget of the control group.

use super::answer::{Obstacle, ObstacleKind, RefusedCall, Right, RightKind, RightVerdict};
use super::group;
use super::subject::{MEMLOCK, RTPRIO, Subject};
use crate::check::outcome::format_evidence;
use crate::environment::MemorySize;
use crate::files::Files;
use punctual_core::Fact;
use punctual_sys::rights::Capability;
use punctual_sys::status;

pub(super) fn find_obstacles(
    files: &dyn Files,
    subject: &Subject,
    refused: &[RefusedCall],
) -> (Vec<Right>, Vec<Obstacle>) {
    let mut obstacles: Vec<Obstacle> = filter_obstacle(subject, refused).into_iter().collect();
    let (mut policy, obstacle) = judge_policy(subject);
    obstacles.extend(obstacle);
    match group::without_budget(files, subject) {
        Ok(None) => {}
        Ok(Some(group)) => obstacles.push(Obstacle {
            kind: ObstacleKind::GroupBudget,
            message: group.message,
            evidence: group.evidence,
        }),
        Err(why) if policy.verdict != RightVerdict::Refused => {
            policy.verdict = RightVerdict::Unknown;
            policy.evidence = why;
        }
        Err(_) => {}
    }
    if let Some(first) = obstacles.first() {
        policy.verdict = RightVerdict::Refused;
        policy.message.clone_from(&first.message);
        policy.evidence.clone_from(&first.evidence);
    }
    (vec![policy, judge_memory(subject), judge_nice(subject)], obstacles)
}

/// A refusal by a filter is seen as a call that ends and did not begin (kernel/entry/common.c,
/// syscall_trace_enter).
fn filter_obstacle(subject: &Subject, refused: &[RefusedCall]) -> Option<Obstacle> {
    let call = refused.iter().find(|call| call.without_entry)?;
    let evidence = match subject.has_filter() {
        true => format_evidence(&format!("/proc/{}/status, Seccomp", subject.own.pid), 2),
        false => "its filter was seen by the refusal alone".to_owned(),
    };
    Some(Obstacle {
        kind: ObstacleKind::Seccomp,
        message: format!("a seccomp filter refuses {}: the call ends before it begins", call.call),
        evidence,
    })
}

/// Whether a capability counts for the scheduler and for mlock, both of which ask for it in the
/// first user namespace (kernel/sched/syscalls.c, user_check_sched_setscheduler; mm/mlock.c).
fn capability_counts(subject: &Subject, capability: Capability) -> Fact<bool> {
    match subject.own.facts.has_capability(capability) {
        Fact::Known(true) => subject.first_namespace.clone(),
        other => other,
    }
}

fn new_right(
    right: RightKind,
    verdict: RightVerdict,
    message: impl Into<String>,
    evidence: impl Into<String>,
) -> Right {
    Right { right, verdict, message: message.into(), evidence: evidence.into() }
}

fn unknown_right(kind: RightKind, why: &Fact<impl Sized>) -> Right {
    let reason = match why {
        Fact::Unavailable(why) => why.as_str(),
        _ => "not asked",
    };
    new_right(kind, RightVerdict::Unknown, "not known", reason)
}

fn judge_policy(subject: &Subject) -> (Right, Option<Obstacle>) {
    use RightVerdict::{Granted, Limited, Refused, Unknown};
    let kind = RightKind::RealTimePolicy;
    let pid = subject.own.pid;
    let of_status = format!("/proc/{pid}/status, CapEff");
    let of_limits = format!("/proc/{pid}/limits, {RTPRIO}");
    let capability = capability_counts(subject, Capability::SysNice);
    if capability == Fact::Known(true) {
        return (new_right(kind, Granted, "every priority, by CAP_SYS_NICE", of_status), None);
    }
    let soft = subject.own.facts.soft_limit(RTPRIO);
    let granted = match soft {
        Fact::Known(None | Some(99..)) => {
            new_right(kind, Granted, "every priority, by RLIMIT_RTPRIO", of_limits)
        }
        Fact::Known(Some(0)) => match capability {
            Fact::Known(_) => {
                let obstacle = no_priority(subject, &of_limits);
                let refused = new_right(kind, Refused, &*obstacle.message, &*obstacle.evidence);
                return (refused, Some(obstacle));
            }
            ref other => unknown_right(kind, other),
        },
        Fact::Known(Some(top)) => {
            let message = format!("priorities up to {top}, by RLIMIT_RTPRIO");
            new_right(kind, Limited, message, format_evidence(&of_limits, top))
        }
        ref other => Right { verdict: Unknown, ..unknown_right(kind, other) },
    };
    (granted, None)
}

/// Neither limit nor capability.
fn no_priority(subject: &Subject, of_limits: &str) -> Obstacle {
    let pid = subject.own.pid;
    let limit = format_evidence(of_limits, 0);
    if subject.own.has_sys_nice() == Some(true) {
        return Obstacle {
            kind: ObstacleKind::UserNamespace,
            message: "it is in a user namespace: its CAP_SYS_NICE does not count for the \
                      scheduler, and RLIMIT_RTPRIO is 0"
                .to_owned(),
            evidence: format!("/proc/{pid}/uid_map is not the whole range; {limit}"),
        };
    }
    let hard = subject.own.facts.hard_limit(RTPRIO).known_value().copied().flatten();
    let message = match hard {
        Some(top) if top > 0 => {
            format!(
                "RLIMIT_RTPRIO is 0 (it may raise that to {top} itself), and it lacks CAP_SYS_NICE"
            )
        }
        _ => "RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE".to_owned(),
    };
    Obstacle { kind: ObstacleKind::Limit, message, evidence: limit }
}

fn judge_memory(subject: &Subject) -> Right {
    use RightVerdict::{Granted, Limited, Refused};
    let kind = RightKind::LockedMemory;
    let pid = subject.own.pid;
    if capability_counts(subject, Capability::IpcLock) == Fact::Known(true) {
        let evidence = format!("/proc/{pid}/status, CapEff");
        return new_right(kind, Granted, "all memory, by CAP_IPC_LOCK", evidence);
    }
    let path = format!("/proc/{pid}/limits, {MEMLOCK}");
    let mapped =
        status::parse_kib(&subject.own.status, "VmSize").map(|kib| kib.saturating_mul(1024));
    match subject.own.facts.soft_limit(MEMLOCK) {
        Fact::Known(None) => new_right(kind, Granted, "all memory, by RLIMIT_MEMLOCK", path),
        Fact::Known(Some(0)) => {
            let message = "RLIMIT_MEMLOCK is 0: mlockall is refused (EPERM)";
            new_right(kind, Refused, message, format_evidence(&path, 0))
        }
        Fact::Known(Some(limit)) => {
            let evidence = format_evidence(&path, limit);
            match mapped.filter(|mapped| *mapped > limit).map(MemorySize) {
                Some(mapped) => {
                    let size = MemorySize(limit);
                    let message =
                        format!("{size} of {mapped} mapped: mlockall is refused (ENOMEM)");
                    new_right(kind, Refused, message, evidence)
                }
                None => new_right(kind, Limited, format!("{}", MemorySize(limit)), evidence),
            }
        }
        ref other => unknown_right(kind, other),
    }
}

/// RLIMIT_NICE holds 20 minus the lowest nice value (getrlimit(2)).
fn judge_nice(subject: &Subject) -> Right {
    let kind = RightKind::Nice;
    let pid = subject.own.pid;
    if capability_counts(subject, Capability::SysNice) == Fact::Known(true) {
        let evidence = format!("/proc/{pid}/status, CapEff");
        return new_right(kind, RightVerdict::Granted, "every value, by CAP_SYS_NICE", evidence);
    }
    let name = "Max nice priority";
    let path = format!("/proc/{pid}/limits, {name}");
    match subject.own.facts.soft_limit(name) {
        Fact::Known(None | Some(40..)) => {
            new_right(kind, RightVerdict::Granted, "every value, by RLIMIT_NICE", path)
        }
        Fact::Known(Some(limit @ 21..)) => {
            let lowest_nice = 20 - i64::try_from(limit).unwrap_or(40);
            let evidence = format_evidence(&path, limit);
            new_right(
                kind,
                RightVerdict::Limited,
                format!("values from {lowest_nice} on"),
                evidence,
            )
        }
        Fact::Known(Some(limit)) => {
            let message = "no value below 0";
            new_right(kind, RightVerdict::Refused, message, format_evidence(&path, limit))
        }
        ref other => unknown_right(kind, other),
    }
}
