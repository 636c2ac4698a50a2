use super::*;
use crate::cycles::tests::cycle;
use crate::cycles::{CycleFollower, Inferred, MeasuredCycle, WaitSite};
use punctual_core::cycle::{
    AwaitedWaker, CallSet, Cycle, DescriptorSet, MARKED, TaskComm, WaitingCall, WokenBy,
};
use punctual_core::{CauseKind, Split};
use std::collections::BTreeSet;

const CYCLES: usize = 400;
const PERIOD: i64 = 2_000_000;
const ABSOLUTE: (u32, u16) = (1, 1);

/// Changes a cycle by its number.
type Change = Box<dyn Fn(usize, &mut Cycle)>;

/// A thread that does everything as a real-time program should, with the changes of a case.
struct Case {
    kind: CycleKind,
    facts: ThreadFacts,
    host: HostFacts,
    change: Change,
    culprits: Vec<(String, Nanos)>,
}

fn clean() -> Case {
    let locked = ProcessMemory { mapped: Bytes::mib(10), locked: Bytes::mib(10) };
    let facts = ThreadFacts {
        policy: Fact::Known(Policy::Fifo),
        affinity: "1".parse().expect("a set"),
        timer_slack: Fact::Known(Nanos(50_000)),
        memory: Fact::Known(locked),
        realtime_timerfd: false,
        asks: Asks { for_timer: true, first: true },
        files: BTreeMap::from([
            (1, "/dev/pts/0".to_owned()),
            (5, "/var/log/loop".to_owned()),
            (6, "socket:[12]".to_owned()),
        ]),
        lower: BTreeMap::from([(38, "SCHED_FIFO 50".to_owned())]),
        waits_in: "clock_nanosleep".to_owned(),
        ..ThreadFacts::default()
    };
    let violation = |message: &str| LintViolation {
        message: message.to_owned(),
        evidence: "a file".to_owned(),
        remedy: Some("a fix".to_owned()),
    };
    let host = HostFacts { coarse_timers: None, limit: Some((0.95, violation("a limit"))) };
    Case {
        kind: CycleKind::Absolute,
        facts,
        host,
        change: Box::new(|_, _| ()),
        culprits: vec![("hog".to_owned(), Nanos(3_000_000))],
    }
}

/// The clean thread, with cycles changed.
fn changed(change: impl Fn(usize, &mut Cycle) + 'static) -> Case {
    Case { change: Box::new(change), ..clean() }
}

fn measured(case: &Case) -> Vec<MeasuredCycle> {
    let mut first = cycle(ABSOLUTE, WokenBy::Sleep, 0, PERIOD, 100_000);
    first.call.argument = 1;
    (case.change)(0, &mut first);
    let call = WaitingCall { argument: 1, ..first.call };
    let inferred = Inferred {
        kind: case.kind,
        site: WaitSite { call, by_argument: false },
        period: Some(Nanos(PERIOD)),
        confidence: 1.0,
        cycles: CYCLES,
        sleep: None,
        distance: None,
        has_others: false,
        takes_turns: false,
    };
    let mut follower = CycleFollower::new(&inferred);
    let mut all = Vec::new();
    for number in 0..CYCLES {
        let release = PERIOD * (number as i64 + 1);
        let mut one = cycle(ABSOLUTE, WokenBy::Sleep, release - PERIOD / 2, release, 100_000);
        one.call.argument = 1;
        (case.change)(number, &mut one);
        all.extend(follower.push(one));
    }
    all.extend(follower.finish());
    all
}

fn findings(case: &Case) -> Vec<Finding> {
    let mut seen = CycleStatistics::default();
    measured(case).iter().for_each(|one| seen.add(one));
    assert_eq!(seen.cycles, CYCLES as u64);
    let subject = Subject {
        kind: case.kind,
        seen: &seen,
        facts: &case.facts,
        host: &case.host,
        culprits: &case.culprits,
    };
    lint_thread("attached/loop", &subject)
}

fn ids(case: &Case) -> Vec<String> {
    findings(case).into_iter().map(|finding| finding.id).collect()
}

fn place(name: &str) -> usize {
    MARKED.iter().position(|(call, _)| *call == name).expect("a marked call")
}

fn calls(names: &'static [&'static str]) -> Case {
    changed(|_, cycle| {
        cycle.calls = CallSet(names.iter().fold(0, |set, name| set | 1 << place(name)));
    })
}

fn writes(descriptor: u32) -> Case {
    changed(move |_, cycle| {
        cycle.calls = CallSet(1 << place("write"));
        cycle.written = DescriptorSet(1 << descriptor);
    })
}

fn takes(part: CauseKind, ns: i64) -> Case {
    changed(move |_, cycle| {
        let mut wake = Split::default();
        wake.add(part, Nanos(ns));
        cycle.wake = wake;
        cycle.returned = cycle.release + Nanos(ns);
        cycle.again = cycle.returned + Nanos(100_000);
    })
}

#[track_caller]
fn only(case: &Case, id: &str, message: &str, evidence: &str) -> Finding {
    let all = findings(case);
    assert_eq!(ids(case), [id], "{all:#?}");
    let finding = all.into_iter().next().expect("one");
    assert_eq!(finding.message, message);
    assert_eq!(finding.evidence.as_deref(), Some(evidence));
    assert!(finding.remedy.is_some() && finding.subject == "attached/loop");
    finding
}

#[test]
fn a_clean_thread_has_no_findings() {
    assert!(ids(&clean()).is_empty(), "{:#?}", findings(&clean()));
    assert!(ids(&writes(6)).is_empty(), "a socket is no file");
    assert!(ids(&calls(&["write"])).is_empty(), "into what is not known");
    let policy = Fact::Known(Policy::Other);
    let event =
        Case { kind: CycleKind::Event, facts: ThreadFacts { policy, ..clean().facts }, ..clean() };
    assert!(ids(&event).is_empty(), "{:#?}", findings(&event));
}

#[test]
fn page_faults() {
    let mut case = changed(|number, cycle| cycle.faults = if number % 2 == 0 { 3 } else { 0 });
    let evidence = "600 page faults; VmLck 10MiB of VmSize 10MiB";
    only(
        &case,
        "page-faults-in-cycle",
        "page faults in 200 of 400 cycles; the memory is locked",
        evidence,
    );
    let memory = ProcessMemory { mapped: Bytes::mib(10), locked: Bytes(0) };
    case.facts.memory = Fact::Known(memory);
    let message = "page faults in 200 of 400 cycles; the memory is not locked";
    let evidence = "600 page faults; VmLck 0B of VmSize 10MiB";
    let found = only(&case, "page-faults-in-cycle", message, evidence);
    assert!(found.remedy.is_some_and(|remedy| remedy.contains("mlockall")));
}

#[test]
fn memory_that_is_not_locked() {
    let mut case = clean();
    case.facts.memory = Fact::Known(ProcessMemory { mapped: Bytes::mib(10), locked: Bytes(0) });
    let evidence = "VmLck 0B of VmSize 10MiB; no page fault in 400 cycles";
    let message = "the memory is not locked: any page may have to be read again";
    only(&case, "memory-not-locked", message, evidence);
    case.facts.memory = Fact::NotAsked;
    assert!(ids(&case).is_empty());
}

#[test]
fn memory_calls_in_a_cycle_are_reported() {
    let evidence = "brk in 400, munmap in 400 of 400 cycles";
    let message = "memory is mapped or released in 400 of 400 cycles";
    only(&calls(&["brk", "munmap"]), "memory-call-in-cycle", message, evidence);
}

#[test]
fn printing() {
    let evidence = "writes into /dev/pts/0 (descriptor 1) in 400 of 400 cycles";
    only(&writes(1), "prints-in-cycle", "it prints in 400 of 400 cycles", evidence);
}

#[test]
fn files() {
    let message = "system calls for files in 400 of 400 cycles";
    let evidence = "write into /var/log/loop (descriptor 5) in 400 of 400 cycles";
    only(&writes(5), "file-call-in-cycle", message, evidence);
    let evidence = "openat in 400, fsync in 400 of 400 cycles";
    only(&calls(&["openat", "fsync"]), "file-call-in-cycle", message, evidence);
}

#[test]
fn a_relative_sleep_in_a_loop_is_reported() {
    let case = Case { kind: CycleKind::Relative, ..clean() };
    let message = "it uses relative sleeps: the duration of each cycle delays the next one";
    let evidence = "it sleeps for 1 ms and its cycles come every 2 ms (medians of 400 cycles)";
    only(&case, "relative-sleep", message, evidence);
}

/// A remedy names calls that the thread can make.
#[test]
fn the_remedy_for_a_sleep_names_a_call_of_its_runtime() {
    let remedy = |waits_in: &str, runtime: Option<&str>| {
        let mut case = Case { kind: CycleKind::Relative, ..clean() };
        case.facts.waits_in = waits_in.to_owned();
        case.facts.runtime = runtime.map(str::to_owned);
        findings(&case)[0].remedy.clone().expect("a remedy")
    };
    let cases = [
        ("nanosleep", None, "clock_nanosleep(2)"),
        ("", None, "clock_nanosleep(2)"),
        ("epoll_wait", None, "timerfd"),
        ("pselect6", None, "timerfd"),
        ("epoll_wait", Some("python3.13"), "loop.call_at()"),
        ("clock_nanosleep", Some("pypy3"), "time.monotonic()"),
        ("futex", Some("java"), "sleep until that time"),
    ];
    for (waits_in, runtime, part) in cases {
        let remedy = remedy(waits_in, runtime);
        assert!(remedy.contains(part), "{waits_in} {runtime:?}: {remedy}");
        let is_of_c = remedy.contains("clock_nanosleep") || remedy.contains("timerfd");
        assert!(!(runtime.is_some() && is_of_c), "{remedy}");
    }
}

/// As examples of a control thread beside four peers, whose policy was refused.
#[test]
fn a_refused_policy_is_reported_instead_of_advised() {
    let mut case = takes(CauseKind::Runqueue, 10_000);
    case.facts.policy = Fact::Known(Policy::Other);
    let peers = ["vr-server", "ik-loop", "diag", "ik-spill"];
    case.culprits = peers.map(|name| (name.to_owned(), Nanos(1_000_000))).to_vec();
    let texts = |case: &Case| {
        let all = findings(case).into_iter();
        let text = |one: Finding| (one.id, one.evidence.unwrap_or_default(), one.remedy);
        all.map(text)
            .map(|(id, evidence, remedy)| (id, evidence + " | " + &remedy.unwrap_or_default()))
            .collect::<BTreeMap<String, String>>()
    };
    let allowed = texts(&case);
    assert!(allowed["periodic-time-sharing"].contains("| give it SCHED_FIFO"), "{allowed:?}");
    assert!(allowed["cpu-shared"].contains("ik-spill") && !allowed["cpu-shared"].contains("more"));
    case.culprits.push(("fifth".to_owned(), Nanos(1)));
    case.facts.refused = Some(LintViolation {
        message: "RLIMIT_RTPRIO is 0".to_owned(),
        evidence: "its login calls no pam_limits".to_owned(),
        remedy: Some("log in through sshd".to_owned()),
    });
    let refused = texts(&case);
    let text = "(EPERM): RLIMIT_RTPRIO is 0; its login calls no pam_limits | log in through sshd";
    assert!(refused["periodic-time-sharing"].contains(text), "{refused:?}");
    assert!(refused["timer-slack"].contains("| call prctl("), "{refused:?}");
    assert!(refused["cpu-shared"].contains("and 1 more | give it a CPU"), "{refused:?}");
    let advised = |text: &String| text.contains("| give it a real-time policy");
    assert!(!refused.values().any(advised), "{refused:?}");
}

#[test]
fn the_clock_that_can_be_set() {
    let message = "releases are times of CLOCK_REALTIME: they move when the clock is set";
    let evidence = "clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME) in 400 of 400 cycles";
    only(&changed(|_, cycle| cycle.call.argument = 0), "clock-realtime", message, evidence);
    let mut timerfd = Case { kind: CycleKind::Timerfd, ..clean() };
    timerfd.facts.realtime_timerfd = true;
    let evidence = "clockid 0 and TFD_TIMER_ABSTIME in /proc/PID/fdinfo";
    only(&timerfd, "clock-realtime", message, evidence);
    // A relative sleep does not move with the clock, whatever its cycles look like.
    let to_relative = |_, cycle: &mut Cycle| {
        (cycle.call.argument, cycle.call.operation) = (0, 0);
    };
    let relative = Case { kind: CycleKind::Relative, ..changed(to_relative) };
    assert_eq!(ids(&relative), ["relative-sleep"]);
    assert!(ids(&changed(to_relative)).is_empty(), "sleep_until() of a steady clock");
    // The same for another call with such an argument.
    let woken = |_, cycle: &mut Cycle| {
        (cycle.call.argument, cycle.by) = (0, WokenBy::Timer);
    };
    assert!(ids(&changed(woken)).is_empty());
}

#[test]
fn a_time_sharing_thread_has_slack() {
    let mut case = clean();
    case.facts.policy = Fact::Known(Policy::Other);
    assert_eq!(ids(&case), ["timer-slack", "periodic-time-sharing"]);
    let evidence = |case: &Case| {
        findings(case).into_iter().map(|finding| finding.evidence.expect("evidence")).collect()
    };
    let both: Vec<String> = evidence(&case);
    assert_eq!(both, ["timerslack_ns 50000, policy SCHED_OTHER", "policy SCHED_OTHER"]);
    case.facts.timer_slack = Fact::Known(Nanos(1));
    assert_eq!(ids(&case), ["periodic-time-sharing"]);
    // The kernel applies slack to sleeps, not to timerfds.
    case.facts.timer_slack = Fact::Known(Nanos(50_000));
    case.kind = CycleKind::Timerfd;
    assert_eq!(ids(&case), ["periodic-time-sharing"]);
}

#[test]
fn tasks_that_share_the_cpus_of_a_thread_are_reported() {
    let message = "in 400 of 400 cycles other tasks ran on its CPUs while it was ready";
    let evidence = "CPUs 1: 4 ms altogether, at most 10 us; hog 3 ms";
    only(&takes(CauseKind::Preempted, 10_000), "cpu-shared", message, evidence);
    only(&takes(CauseKind::Runqueue, 10_000), "cpu-shared", message, evidence);
    assert!(ids(&takes(CauseKind::Runqueue, 500)).is_empty(), "too short");
    let once = changed(|number, cycle| {
        if number == 7 {
            cycle.run.add(CauseKind::Preempted, Nanos(200_000));
            cycle.again = cycle.again + Nanos(200_000);
        }
    });
    assert_eq!(findings(&once)[0].severity, Severity::Advice, "long, and rare");
    // Switching away from a task of lower priority takes time, too.
    assert!(ids(&takes(CauseKind::NonPreemptible, 10_000)).is_empty());
}

#[test]
fn a_lock_without_priority_inheritance() {
    let lock = |pi: bool| {
        changed(move |number, cycle| {
            if number % 4 == 0 {
                cycle.run.add(CauseKind::Lock, Nanos(50_000));
                cycle.again = cycle.again + Nanos(50_000);
                cycle.slept_without_pi = !pi;
            }
        })
    };
    let message = "in 100 of 400 cycles it waited for a lock without priority inheritance";
    let evidence = "asleep in FUTEX_WAIT: 5 ms altogether, at most 50 us";
    let found = only(&lock(false), "lock-without-pi", message, evidence);
    assert!(found.remedy.is_some_and(|remedy| remedy.contains("PTHREAD_PRIO_INHERIT")));
    let mut java = lock(false);
    java.facts.runtime = Some("java".to_owned());
    let found = only(&java, "lock-without-pi", message, evidence);
    assert!(!found.remedy.is_some_and(|remedy| remedy.contains("PTHREAD")));
    assert!(ids(&lock(true)).is_empty());
}

#[test]
fn recorded_and_possible_throttling_are_reported() {
    let evidence = "queued while a task of lower priority ran: 200 ms altogether, at most 500 us";
    // A wake-up on another CPU may take this long.
    assert!(ids(&takes(CauseKind::Throttled, 50_000)).is_empty());
    let case = takes(CauseKind::Throttled, 500_000);
    let found =
        only(&case, "throttled-in-cycle", "it was throttled in 400 of 400 cycles", evidence);
    assert_eq!(found.remedy.as_deref(), Some("a fix"));
    // The limit of real-time threads affects no other threads.
    let by_policy = |policy| {
        let mut case = takes(CauseKind::Throttled, 500_000);
        case.facts.policy = Fact::Known(policy);
        let all = findings(&case);
        let found = all.into_iter().find(|one| one.id == "throttled-in-cycle").expect("found");
        (found.evidence.expect("evidence"), found.remedy.expect("a remedy"))
    };
    let (evidence, remedy) = by_policy(Policy::Other);
    assert!(evidence.starts_with("the quota of its control group"), "{evidence}");
    assert_eq!(remedy, "raise cpu.max of its control group");
    let (evidence, remedy) = by_policy(Policy::Deadline);
    assert!(evidence.starts_with("its runtime was used up"), "{evidence}");
    assert!(remedy.contains("runtime in each period"), "{remedy}");
    let busy = || {
        changed(|_, cycle| {
            cycle.run.add(CauseKind::OwnExecution, Nanos(1_600_000));
            cycle.again = cycle.again + Nanos(1_600_000);
        })
    };
    let all = findings(&busy());
    assert_eq!(ids(&busy()), ["throttling-possible"], "{all:#?}");
    let message = &all[0].message;
    assert!(message.ends_with("of a CPU, and RT throttling allows 95.0 %"), "{message}");
    let unlimited = Case { host: HostFacts::default(), ..busy() };
    assert!(ids(&unlimited).is_empty());
}

#[test]
fn coarse_timers() {
    let mut case = clean();
    case.host.coarse_timers = Some(LintViolation {
        message: "timers fire at ticks only".to_owned(),
        evidence: "/proc/cmdline has highres=off".to_owned(),
        remedy: Some("remove it".to_owned()),
    });
    let evidence = "/proc/cmdline has highres=off";
    let found = only(&case, "high-resolution-timers", "timers fire at ticks only", evidence);
    assert_eq!(found.severity, Severity::Bad);
    case.kind = CycleKind::Event;
    assert!(ids(&case).is_empty(), "no timer releases its cycles");
}

#[test]
fn a_rare_problem_is_advice_instead_of_a_warning() {
    let faults =
        |every: usize| changed(move |number, cycle| cycle.faults = u32::from(number % every == 0));
    let severity = |case: &Case| findings(case)[0].severity;
    assert_eq!(severity(&faults(100)), Severity::Warning);
    assert_eq!(severity(&faults(200)), Severity::Advice);
}

#[test]
fn helpers_are_judged_only_without_a_real_time_thread() {
    let asks = Asks { for_timer: true, first: true };
    let judged = |kind, policy, deadline, others| {
        is_meant_real_time(kind, Some(policy), deadline, others, asks)
    };
    use CycleKind::*;
    assert!(judged(Event, Policy::Fifo, false, true));
    assert!(judged(Absolute, Policy::Other, false, true));
    assert!(judged(Relative, Policy::Other, false, false));
    assert!(!judged(Relative, Policy::Other, false, true));
    assert!(!judged(Event, Policy::Other, false, false));
    assert!(judged(Event, Policy::Other, true, true));
    assert!(!is_meant_real_time(Event, None, false, false, asks));
    // A thread of a runtime: Go's monitor, which sleeps; one of a JVM, which waits with a timeout.
    let other = Some(Policy::Other);
    let helper = Asks { first: false, ..asks };
    assert!(!is_meant_real_time(Relative, other, false, false, helper));
    let timeout = Asks { for_timer: false, ..asks };
    assert!(!is_meant_real_time(Absolute, other, false, false, timeout));
    assert!(!is_meant_real_time(Relative, other, false, false, timeout));
    assert!(is_meant_real_time(Absolute, other, true, false, timeout));
    assert!(is_meant_real_time(Absolute, Some(Policy::Fifo), false, false, timeout));
}

#[test]
fn waiting_for_a_kernel_thread_of_lower_priority_is_reported() {
    let waits_for = |by, tid| {
        changed(move |_, cycle| {
            let name = TaskComm(*b"irq/38-eth0\0\0\0\0\0");
            cycle.awaited = Some(AwaitedWaker { by, tid, name, time: Nanos(5_000) });
        })
    };
    let message = "in 400 of 400 cycles it waited for a kernel thread of a lower priority, before \
                   which others may run";
    let evidence = "irq/38-eth0-38 (SCHED_FIFO 50): 2 ms altogether, at most 5 us";
    only(&waits_for(WokenBy::Task, 38), "waits-for-lower-priority", message, evidence);
    // A waker with a higher priority, and one that was only interrupted.
    assert!(ids(&waits_for(WokenBy::Task, 39)).is_empty());
    assert!(ids(&waits_for(WokenBy::Irq, 38)).is_empty());
}

#[test]
fn lint_ids_are_unique_and_documented() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    let text = include_str!("../../../../../docs/reference/attach.md");
    for rule in &RULES {
        let row = format!("| `{}` | {} |", rule.id, rule.title);
        assert!(text.contains(&row), "docs/reference/attach.md lacks: {row}");
    }
}
