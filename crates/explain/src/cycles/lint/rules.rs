//! The table of rules.

use super::{CycleRule, DelaySum, LintViolation, OutputKind, Subject, ThreadFacts, output_kind};
use hdrhistogram::Histogram;
use punctual_core::cycle::{CallClass, CycleKind, DescriptorSet, MARKED};
use punctual_core::{Nanos, Policy, Severity};

/// All rules in the order of listing.
pub const RULES: [CycleRule; 15] = [
    CycleRule {
        id: "page-faults-in-cycle",
        severity: Severity::Warning,
        title: "page faults within cycles",
        evaluate: page_faults,
        cycles: Some(|of| of.seen.with_faults),
    },
    CycleRule {
        id: "memory-not-locked",
        severity: Severity::Advice,
        title: "a real-time thread whose memory is not locked",
        evaluate: memory_not_locked,
        cycles: None,
    },
    CycleRule {
        id: "memory-call-in-cycle",
        severity: Severity::Warning,
        title: "brk(2), mmap(2), munmap(2), madvise(2) and similar calls within cycles",
        evaluate: memory_calls,
        cycles: Some(|of| most_of(of, CallClass::Memory)),
    },
    CycleRule {
        id: "prints-in-cycle",
        severity: Severity::Warning,
        title: "writes to a terminal, to standard output or to standard error within cycles",
        evaluate: check_prints,
        cycles: Some(|of| most_written(of, OutputKind::Output)),
    },
    CycleRule {
        id: "file-call-in-cycle",
        severity: Severity::Warning,
        title: "fsync(2), open(2), write(2) to a file and similar calls within cycles",
        evaluate: file_calls,
        cycles: Some(|of| most_of(of, CallClass::File).max(most_written(of, OutputKind::File))),
    },
    CycleRule {
        id: "relative-sleep",
        severity: Severity::Warning,
        title: "cycles that begin a fixed time after the end of the previous one",
        evaluate: relative_sleep,
        cycles: None,
    },
    CycleRule {
        id: "clock-realtime",
        severity: Severity::Warning,
        title: "releases at times of CLOCK_REALTIME, which can be set",
        evaluate: clock_realtime,
        cycles: None,
    },
    CycleRule {
        id: "timer-slack",
        severity: Severity::Warning,
        title: "sleeps that the kernel may prolong by the timer slack",
        evaluate: timer_slack,
        cycles: None,
    },
    CycleRule {
        id: "periodic-time-sharing",
        severity: Severity::Warning,
        title: "a periodic thread without a real-time policy",
        evaluate: time_sharing,
        cycles: None,
    },
    CycleRule {
        id: "cpu-shared",
        severity: Severity::Warning,
        title: "other tasks ran on its CPUs while it was ready",
        evaluate: cpu_shared,
        cycles: Some(|of| of.seen.behind.cycles),
    },
    CycleRule {
        id: "lock-without-pi",
        severity: Severity::Warning,
        title: "a real-time thread that slept in FUTEX_WAIT",
        evaluate: lock_without_pi,
        cycles: Some(|of| of.seen.without_pi.cycles),
    },
    CycleRule {
        id: "waits-for-lower-priority",
        severity: Severity::Warning,
        title: "a real-time thread that waited for kernel threads of a lower priority",
        evaluate: waits_for_lower,
        cycles: Some(|of| {
            awaited_lower_threads(of).map(|(_, delay, _)| delay.cycles).max().unwrap_or(0)
        }),
    },
    CycleRule {
        id: "throttled-in-cycle",
        severity: Severity::Warning,
        title: "cycles that were throttled",
        evaluate: check_throttling,
        cycles: Some(|of| of.seen.throttled.cycles),
    },
    CycleRule {
        id: "throttling-possible",
        severity: Severity::Advice,
        title: "a real-time thread near the limit of RT throttling",
        evaluate: throttling_possible,
        cycles: None,
    },
    CycleRule {
        id: "high-resolution-timers",
        severity: Severity::Bad,
        title: "high-resolution timers are inactive",
        evaluate: coarse_timers,
        cycles: None,
    },
];

fn new_violation(message: String, evidence: String, remedy: &str) -> Option<LintViolation> {
    Some(LintViolation { message, evidence, remedy: Some(remedy.to_owned()) })
}

fn of_cycles(count: u64, of: &Subject<'_>) -> String {
    format!("{count} of {} cycles", of.seen.cycles)
}

fn is_real_time(of: &Subject<'_>) -> bool {
    of.facts.policy.known_value().is_some_and(|policy| policy.is_real_time())
}

fn time_of(delay: &DelaySum) -> String {
    format!("{} altogether, at most {}", delay.total.to_readable(), delay.longest.to_readable())
}

fn page_faults(of: &Subject<'_>) -> Option<LintViolation> {
    let statistics = of.seen;
    if statistics.with_faults == 0 {
        return None;
    }
    let memory = of.facts.memory.known_value();
    let lock = match memory {
        Some(memory) if memory.is_locked() => "; the memory is locked",
        Some(_) => "; the memory is not locked",
        None => "",
    };
    let sizes = memory.map_or(String::new(), |memory| {
        format!("; VmLck {} of VmSize {}", memory.locked, memory.mapped)
    });
    let remedy = match memory.is_some_and(|memory| memory.is_locked()) {
        true => {
            "touch all memory that cycles use before the first one: the stack, and what is mapped \
             later; after fork(2), and with MCL_ONFAULT, the first touch of a page is a fault"
        }
        false => {
            "call mlockall(MCL_CURRENT | MCL_FUTURE) before the first cycle, and touch the stack \
             and the heap that cycles use"
        }
    };
    new_violation(
        format!("page faults in {}{lock}", of_cycles(statistics.with_faults, of)),
        format!("{} page faults{sizes}", statistics.faults),
        remedy,
    )
}

fn memory_not_locked(of: &Subject<'_>) -> Option<LintViolation> {
    let memory = of.facts.memory.known_value().filter(|memory| !memory.is_locked())?;
    if !is_real_time(of) || of.seen.with_faults > 0 {
        return None;
    }
    new_violation(
        "the memory is not locked: any page may have to be read again".to_owned(),
        format!(
            "VmLck {} of VmSize {}; no page fault in {} cycles",
            memory.locked, memory.mapped, of.seen.cycles
        ),
        "call mlockall(MCL_CURRENT | MCL_FUTURE) before the first cycle",
    )
}

/// The calls of a class that cycles made, and the number of cycles.
fn calls_of<'a>(of: &'a Subject<'_>, class: CallClass) -> impl Iterator<Item = (&'a str, u64)> {
    let marked_calls = MARKED.iter().zip(of.seen.calls);
    marked_calls
        .filter(move |((_, one), count)| *one == class && *count > 0)
        .map(|((name, _), count)| (*name, count))
}

fn most_of(of: &Subject<'_>, class: CallClass) -> u64 {
    calls_of(of, class).map(|(_, count)| count).max().unwrap_or(0)
}

fn list_counts<N: std::fmt::Display>(counts: impl Iterator<Item = (N, u64)>) -> Vec<String> {
    let mut sorted_counts: Vec<(N, u64)> = counts.collect();
    sorted_counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted_counts.into_iter().map(|(name, count)| format!("{name} in {count}")).collect()
}

fn memory_calls(of: &Subject<'_>) -> Option<LintViolation> {
    let calls = list_counts(calls_of(of, CallClass::Memory));
    (!calls.is_empty()).then_some(())?;
    new_violation(
        format!(
            "memory is mapped or released in {}",
            of_cycles(most_of(of, CallClass::Memory), of)
        ),
        format!("{} of {} cycles", calls.join(", "), of.seen.cycles),
        "allocate before the first cycle; glibc keeps what is freed after \
         mallopt(M_TRIM_THRESHOLD, -1) and mallopt(M_MMAP_MAX, 0)",
    )
}

/// The outputs of this kind, with the number of cycles that wrote to them.
fn written_of<'a>(
    of: &'a Subject<'_>,
    sort: OutputKind,
) -> impl Iterator<Item = (String, u64)> + use<'a> {
    let (files, written) = (&of.facts.files, &of.seen.written);
    let link = |descriptor: &u32| files.get(descriptor).map(String::as_str);
    let matching_files = written.iter().filter(move |(descriptor, _)| {
        **descriptor < DescriptorSet::OTHERS && output_kind(**descriptor, link(descriptor)) == sort
    });
    matching_files.map(|(descriptor, count)| {
        let name = files.get(descriptor).map_or("?", String::as_str);
        (format!("{name} (descriptor {descriptor})"), *count)
    })
}

fn most_written(of: &Subject<'_>, sort: OutputKind) -> u64 {
    written_of(of, sort).map(|(_, count)| count).max().unwrap_or(0)
}

fn check_prints(of: &Subject<'_>) -> Option<LintViolation> {
    let into = list_counts(written_of(of, OutputKind::Output));
    (!into.is_empty()).then_some(())?;
    new_violation(
        format!("it prints in {}", of_cycles(most_written(of, OutputKind::Output), of)),
        format!("writes into {} of {} cycles", into.join(", "), of.seen.cycles),
        "pass the text through shared memory to a thread without real-time priority that prints it",
    )
}

fn file_calls(of: &Subject<'_>) -> Option<LintViolation> {
    let mut calls = list_counts(calls_of(of, CallClass::File));
    let into = list_counts(written_of(of, OutputKind::File));
    calls.extend(into.into_iter().map(|one| format!("write into {one}")));
    (!calls.is_empty()).then_some(())?;
    let most_cycles = most_of(of, CallClass::File).max(most_written(of, OutputKind::File));
    new_violation(
        format!("system calls for files in {}", of_cycles(most_cycles, of)),
        format!("{} of {} cycles", calls.join(", "), of.seen.cycles),
        "open files before the first cycle; pass data through shared memory to a thread without \
         real-time priority that writes it",
    )
}

fn relative_sleep(of: &Subject<'_>) -> Option<LintViolation> {
    if of.kind != CycleKind::Relative {
        return None;
    }
    let median = |all: &Histogram<u64>| {
        let middle = || all.median_equivalent(all.value_at_quantile(0.5));
        (!all.is_empty()).then(|| Nanos(middle() as i64).to_readable())
    };
    let (slept, period) = (median(&of.seen.slept)?, median(&of.seen.periods)?);
    new_violation(
        "it uses relative sleeps: the duration of each cycle delays the next one".to_owned(),
        format!(
            "it sleeps for {slept} and its cycles come every {period} (medians of {} cycles)",
            of.seen.slept.len()
        ),
        sleep_absolutely(of.facts),
    )
}

fn sleep_absolutely(facts: &ThreadFacts) -> &'static str {
    let is_of_events = ["poll", "select"].iter().any(|word| facts.waits_in.contains(word));
    match &facts.runtime {
        Some(name) if name.starts_with("py") => {
            "add the period to the time of the last release, and sleep for what is left until \
             then: asyncio's loop.call_at(), or a sleep of `release - time.monotonic()`"
        }
        Some(_) => {
            "add the period to the time of the last release, and sleep until that time, not for \
             the period"
        }
        None if is_of_events => {
            "wait for a timerfd with TFD_TIMER_ABSTIME beside the other descriptors, and add the \
             period to its time in each cycle"
        }
        None => {
            "use absolute sleeps: clock_nanosleep(2) on CLOCK_MONOTONIC with TIMER_ABSTIME, and \
             add the period to the time in each cycle"
        }
    }
}

fn clock_realtime(of: &Subject<'_>) -> Option<LintViolation> {
    let evidence = match (of.seen.realtime, of.facts.realtime_timerfd) {
        (0, false) => return None,
        (0, true) => "clockid 0 and TFD_TIMER_ABSTIME in /proc/PID/fdinfo".to_owned(),
        (count, _) => {
            format!("clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME) in {}", of_cycles(count, of))
        }
    };
    new_violation(
        "releases are times of CLOCK_REALTIME: they move when the clock is set".to_owned(),
        evidence,
        "use CLOCK_MONOTONIC for the period",
    )
}

/// The minimum that a thread can request (prctl(2)).
const LEAST_SLACK: Nanos = Nanos(1);

fn timer_slack(of: &Subject<'_>) -> Option<LintViolation> {
    let slack = *of.facts.timer_slack.known_value()?;
    let own_sleep = matches!(of.kind, CycleKind::Absolute | CycleKind::Relative);
    let policy = of.facts.policy.known_value().filter(|policy| !policy.is_real_time())?;
    if !own_sleep || slack <= LEAST_SLACK {
        return None;
    }
    new_violation(
        format!("the kernel may end its sleeps up to {} after the release", slack.to_readable()),
        format!("timerslack_ns {}, policy {policy}", slack.ns()),
        match of.facts.refused {
            None => {
                "give it a real-time policy, which has no timer slack, or call \
                 prctl(PR_SET_TIMERSLACK, 1)"
            }
            Some(_) => "call prctl(PR_SET_TIMERSLACK, 1): it may not use a real-time policy",
        },
    )
}

fn time_sharing(of: &Subject<'_>) -> Option<LintViolation> {
    let policy: &Policy = of.facts.policy.known_value().filter(|policy| !policy.is_real_time())?;
    if of.kind == CycleKind::Event {
        return None;
    }
    new_violation(
        "it is periodic, and has no real-time policy: any task may run before it".to_owned(),
        match &of.facts.refused {
            None => format!("policy {policy}"),
            Some(LintViolation { message, evidence, .. }) => format!(
                "policy {policy}; SCHED_FIFO is refused to it (EPERM): {message}; {evidence}"
            ),
        },
        match &of.facts.refused {
            None => "give it SCHED_FIFO: pthread_setschedparam(3), or `chrt -f -p PRIORITY TID`",
            Some(refused) => refused.remedy.as_deref().unwrap_or("grant it CAP_SYS_NICE"),
        },
    )
}

/// Tasks that are named.
const CULPRITS: usize = 4;
/// The share of its response times from which others disturb it, or a time as long as a response:
/// the owner of a lock with its priority is switched away from in less.
const SHARED: f64 = 0.01;

fn cpu_shared(of: &Subject<'_>) -> Option<LintViolation> {
    let queued_delay = &of.seen.behind;
    let (response, cycles) = (of.seen.response.ns() as f64, of.seen.cycles as f64);
    let is_much = queued_delay.total.ns() as f64 >= SHARED * response;
    let long = queued_delay.longest.ns() as f64 >= response / cycles;
    if queued_delay.cycles == 0 || !(is_much || long) {
        return None;
    }
    let who = of.culprits.iter().take(CULPRITS);
    let mut who: Vec<String> =
        who.map(|(name, time)| format!("{name} {}", time.to_readable())).collect();
    let hidden_culprits = of.culprits.len().saturating_sub(CULPRITS);
    who.extend((hidden_culprits > 0).then(|| format!("and {hidden_culprits} more")));
    let who = if who.is_empty() { String::new() } else { format!("; {}", who.join(", ")) };
    let remedy = match of.facts.policy.known_value() {
        Some(Policy::Deadline) => {
            "give it a CPU of its own (`punctual isolate create CPU`), or a shorter relative \
             deadline than the tasks named"
        }
        Some(policy) if policy.is_real_time() => {
            "give it a CPU of its own (`punctual isolate create CPU`), or a higher priority than \
             the tasks named"
        }
        _ if of.facts.refused.is_some() => {
            "give it a CPU of its own (`punctual isolate create CPU`): it may not use \
             a real-time policy"
        }
        _ => "give it a real-time policy, and a CPU of its own (`punctual isolate create CPU`)",
    };
    new_violation(
        format!(
            "in {} other tasks ran on its CPUs while it was ready",
            of_cycles(queued_delay.cycles, of)
        ),
        format!("CPUs {}: {}{who}", of.facts.affinity, time_of(queued_delay)),
        remedy,
    )
}

fn lock_without_pi(of: &Subject<'_>) -> Option<LintViolation> {
    let delay = &of.seen.without_pi;
    if delay.cycles == 0 || !is_real_time(of) {
        return None;
    }
    new_violation(
        format!(
            "in {} it waited for a lock without priority inheritance",
            of_cycles(delay.cycles, of)
        ),
        format!("asleep in FUTEX_WAIT: {}", time_of(delay)),
        match of.facts.runtime {
            None => {
                "use a mutex with priority inheritance (FUTEX_LOCK_PI): \
                 pthread_mutexattr_setprotocol(3) with PTHREAD_PRIO_INHERIT"
            }
            Some(_) => {
                "share no lock with other threads in a cycle: those of the runtime inherit no \
                 priority"
            }
        },
    )
}

/// The kernel threads of lower priority that it waited for, with their scheduling.
fn awaited_lower_threads<'a>(
    of: &Subject<'a>,
) -> impl Iterator<Item = (String, &'a DelaySum, &'a String)> + use<'a> {
    let (facts, seen) = (of.facts, of.seen);
    let awaited_thread = |(tid, words)| {
        let (name, delay) = seen.awaited.get(tid)?;
        Some((format!("{name}-{tid}"), delay, words))
    };
    facts.lower.iter().filter_map(awaited_thread)
}

fn waits_for_lower(of: &Subject<'_>) -> Option<LintViolation> {
    let mut lower_waits: Vec<_> = awaited_lower_threads(of).collect();
    lower_waits.sort_by_key(|(_, delay, _)| std::cmp::Reverse(delay.total));
    let most_cycles = lower_waits.iter().map(|(_, delay, _)| delay.cycles).max()?;
    let words = |(name, delay, scheduling): &(String, &DelaySum, &String)| {
        format!("{name} ({scheduling}): {}", time_of(delay))
    };
    let words: Vec<String> = lower_waits.iter().take(3).map(words).collect();
    new_violation(
        format!(
            "in {} it waited for a kernel thread of a lower priority, before which others may run",
            of_cycles(most_cycles, of)
        ),
        words.join("; "),
        "do not wait for it in a cycle, or give it a priority above the tasks that may run before \
         it: `chrt -f -p PRIORITY TID`",
    )
}

/// A CPU may select a task of lower priority once more while another CPU is about to enqueue the
/// thread. Throttling lasts longer.
const ABOUT_TO_BE_QUEUED: Nanos = Nanos(100_000);

fn was_throttled(of: &Subject<'_>) -> bool {
    of.seen.throttled.longest >= ABOUT_TO_BE_QUEUED
}

fn check_throttling(of: &Subject<'_>) -> Option<LintViolation> {
    let delay = &of.seen.throttled;
    if !was_throttled(of) {
        return None;
    }
    let took = time_of(delay);
    let (evidence, remedy) = match of.facts.policy.known_value() {
        Some(Policy::Deadline) => (
            format!("its runtime was used up: {took}"),
            "give it more runtime in each period (sched_setattr(2)), or less work".to_owned(),
        ),
        Some(policy) if policy.is_real_time() => {
            let limit = of.host.limit.as_ref().and_then(|(_, limit)| limit.remedy.clone());
            let default_remedy = "check the limits: sched_rt_runtime_us, the fair server";
            (
                format!("queued while a task of lower priority ran: {took}"),
                limit.unwrap_or_else(|| default_remedy.to_owned()),
            )
        }
        Some(_) => (
            format!("the quota of its control group was used up: {took}"),
            "raise cpu.max of its control group".to_owned(),
        ),
        None => {
            (took, "check the limits of its policy, and cpu.max of its control group".to_owned())
        }
    };
    Some(LintViolation {
        message: format!("it was throttled in {}", of_cycles(delay.cycles, of)),
        evidence,
        remedy: Some(remedy),
    })
}

/// The share of the limit from which one more thread can reach it.
const NEAR: f64 = 0.8;

fn throttling_possible(of: &Subject<'_>) -> Option<LintViolation> {
    let (share, limit) = of.host.limit.as_ref()?;
    let used = of.seen.executed.ns() as f64 / of.seen.span.ns().max(1) as f64;
    let is_limited = of.facts.policy.known_value().is_some_and(|policy| policy.has_priority());
    if !is_limited || was_throttled(of) || used < NEAR * share {
        return None;
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    Some(LintViolation {
        message: format!(
            "it used {} of a CPU, and RT throttling allows {}",
            percent(used),
            percent(*share)
        ),
        evidence: format!("{}: {}", limit.message, limit.evidence),
        remedy: limit.remedy.clone(),
    })
}

fn coarse_timers(of: &Subject<'_>) -> Option<LintViolation> {
    if of.kind == CycleKind::Event { None } else { of.host.coarse_timers.clone() }
}
