//! Every backend of the recorder on the running kernel, as root.

use crate::kernel::common::{a_cpu, gettid, online, record, start, switches};
use punctual_core::event::{Event, EventKind, Futex, Group, TaskState, Tid};
use punctual_record::{Backend, Recorder, Request};
use punctual_sys::clock;
use std::process::Command;
use std::time::Duration;

macro_rules! on_every_backend {
    ($($name:ident,)*) => {
        mod btf { $(#[test] fn $name() { super::$name(punctual_record::Backend::Btf) })* }
        mod tracepoint {
            $(#[test] fn $name() { super::$name(punctual_record::Backend::Tracepoint) })*
        }
        mod tracefs { $(#[test] fn $name() { super::$name(punctual_record::Backend::Tracefs) })* }
    };
}

on_every_backend! {
    switches_are_those_that_the_kernel_counts,
    system_calls_are_those_that_were_made,
    only_the_wanted_tasks_and_cpus_are_recorded,
    children_are_followed_and_have_names,
    a_stalled_reader_loses_a_known_number,
    every_group_is_recorded_or_said_not_to_be,
}

fn request(groups: &[Group], backend: Backend) -> Request {
    Request { backend, ..Request::new(groups, online()) }
}

fn of(events: &[Event], tid: Tid, wanted: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|event| event.tid == tid && wanted(&event.what)).count()
}

fn switches_are_those_that_the_kernel_counts(backend: Backend) {
    let me = gettid();
    let (mut kernel, mut measured) = ((0, 0), (clock::monotonic_now(), clock::monotonic_now()));
    let mut wanted = request(&[Group::Sched], backend);
    wanted.pids = vec![me.0];
    let Some((events, stopped)) = record(wanted, || {
        measured.0 = clock::monotonic_now();
        let before = switches();
        for _ in 0..300 {
            std::thread::sleep(Duration::from_micros(20));
        }
        let after = switches();
        measured.1 = clock::monotonic_now();
        kernel = (after.0 - before.0, after.1 - before.1);
    }) else {
        return;
    };
    assert_eq!(stopped.recorded.lost_count(), 0);
    let mine = |preempted| {
        let is = |event: &&Event| match event.what {
            EventKind::Switch { prev_state, .. } => {
                (prev_state == TaskState::Preempted) == preempted
            }
            _ => false,
        };
        let meanwhile = |event: &&Event| event.at >= measured.0 && event.at <= measured.1;
        events.iter().filter(|event| event.tid == me).filter(meanwhile).filter(is).count()
    };
    // Reading the counters may switch too.
    let (voluntary, preempted) = (mine(false), mine(true));
    assert!((kernel.0..kernel.0 + 10).contains(&voluntary), "{voluntary} of {kernel:?}");
    assert!((kernel.1..kernel.1 + 10).contains(&preempted), "{preempted} of {kernel:?}");
    let recorded: u64 = stopped.recorded.sources.iter().map(|source| source.recorded).sum();
    assert_eq!(recorded, events.len() as u64);
    assert!(stopped.names.tasks.contains_key(&me));
    // A thread that waited was woken; or the event occurred while a program was running on that
    // CPU, and is counted as missed.
    let missed = stopped.recorded.findings.iter().any(|finding| finding.id == "events-missed");
    let waking = events
        .iter()
        .filter(|event| matches!(event.what, EventKind::Waking { task, .. } if task == me))
        .count();
    assert!(waking >= kernel.0 || missed, "{waking} of {kernel:?}");
}

fn system_calls_are_those_that_were_made(backend: Backend) {
    let me = gettid();
    let mut wanted = request(&[Group::Syscall, Group::Futex], backend);
    wanted.syscalls = vec![libc::SYS_getppid as u32];
    wanted.pids = vec![std::process::id()];
    let word = 7u32;
    let Some((events, _)) = record(wanted, || {
        for _ in 0..1000 {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::getppid() };
        }
        for _ in 0..10 {
            // SAFETY: the word lives through the call, which returns at once: it wakes no thread.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    &word,
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                )
            };
        }
    }) else {
        return;
    };
    assert_eq!(of(&events, me, |what| matches!(what, EventKind::SyscallEnter { .. })), 1000);
    assert_eq!(
        of(
            &events,
            me,
            |what| matches!(what, EventKind::SyscallExit { result, .. } if *result > 0)
        ),
        1000
    );
    let at = &raw const word as u64;
    let wake = EventKind::FutexEnter { op: Futex::Wake, address: at };
    assert_eq!(of(&events, me, |what| *what == wake), 10);
    let number = libc::SYS_getppid as u32;
    let other = |what: &EventKind| match what {
        EventKind::SyscallEnter { number: n, .. } => *n != number,
        _ => false,
    };
    assert!(!events.iter().any(|event| other(&event.what)));
}

fn only_the_wanted_tasks_and_cpus_are_recorded(backend: Backend) {
    let cpu = a_cpu();
    let mut wanted = Request::new(&[Group::Sched], punctual_core::CpuSet::from_cpu(cpu));
    wanted.backend = backend;
    wanted.comms = vec!["wanted-one".to_owned()];
    let Some((events, stopped)) = record(wanted, || {
        for name in ["wanted-one", "another-one"] {
            crate::kernel::common::named_thread_on(cpu, name, || {
                for _ in 0..20 {
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
    }) else {
        return;
    };
    assert!(events.iter().all(|event| usize::from(event.cpu) == cpu));
    let name = |tid: Tid| stopped.names.task_name(tid);
    let concerned = |event: &Event| match event.what {
        EventKind::Switch { next, .. } => {
            name(event.tid) == "wanted-one" || name(next) == "wanted-one"
        }
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. } => {
            name(event.tid) == "wanted-one" || name(task) == "wanted-one"
        }
        _ => true,
    };
    assert!(events.iter().all(concerned), "{events:?}");
    let leaving = events.iter().filter(|event| {
        matches!(event.what, EventKind::Switch { .. }) && name(event.tid) == "wanted-one"
    });
    assert!(leaving.count() >= 20);
}

fn children_are_followed_and_have_names(backend: Backend) {
    let mut wanted = request(&[Group::Sched], backend);
    wanted.pids = vec![std::process::id()];
    wanted.follow_children = true;
    let Some((events, stopped)) = record(wanted, || {
        Command::new("sh").args(["-c", "sleep 0.01; true"]).status().unwrap();
    }) else {
        return;
    };
    let execs: Vec<String> = events
        .iter()
        .filter(|event| event.what == EventKind::Exec)
        .map(|event| stopped.names.task_name(event.tid))
        .collect();
    assert!(
        execs.iter().any(|name| name == "sh") && execs.iter().any(|name| name == "sleep"),
        "{execs:?}"
    );
    let forked = |event: &&Event| matches!(event.what, EventKind::Fork { .. });
    assert!(events.iter().filter(forked).count() >= 2);
}

fn a_stalled_reader_loses_a_known_number(backend: Backend) {
    let cpu = a_cpu();
    let mut wanted = Request::new(&[Group::Syscall], punctual_core::CpuSet::from_cpu(cpu));
    wanted.backend = backend;
    wanted.syscalls = vec![libc::SYS_getppid as u32];
    // Other tests make system calls meanwhile.
    let name = format!("caller-{backend:?}");
    wanted.comms = vec![name.chars().take(15).collect()];
    wanted.buffer = 64 << 10;
    const CALLS: usize = 20_000;
    let Some(mut recorder) = start(wanted) else { return };
    let mut bytes = Vec::new();
    let mut tid = Tid(0);
    let mut call = |times: usize| {
        crate::kernel::common::named_thread_on(cpu, &name[..name.len().min(15)], || {
            tid = gettid();
            for _ in 0..times {
                // SAFETY: takes nothing, cannot fail.
                unsafe { libc::getppid() };
            }
        });
    };
    call(CALLS);
    let lost_before = if backend == Backend::Tracefs { 0 } else { recorder.losses_by_cpu()[0].1 };
    recorder.drain(&mut |_, more| bytes.extend_from_slice(more));
    call(10);
    let stopped = recorder.stop(&mut |_, more| bytes.extend_from_slice(more));
    let events: Vec<Event> = punctual_record::wire::decode(&bytes).map(Result::unwrap).collect();
    let report: u64 = events
        .iter()
        .filter_map(
            |event| if let EventKind::Lost { count, .. } = event.what { Some(count) } else { None },
        )
        .sum();
    assert!(report > 0 && report >= lost_before);
    assert_eq!(report, stopped.recorded.lost_count());
    let calls = events
        .iter()
        .filter(|event| {
            matches!(event.what, EventKind::SyscallEnter { .. } | EventKind::SyscallExit { .. })
        })
        .count();
    assert_eq!(calls as u64 + report, 2 * (CALLS as u64 + 10), "told {report}");
    // The losses are at the right position among the CPU's events.
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].at <= pair[1].at || matches!(pair[1].what, EventKind::Lost { .. }))
    );
}

fn every_group_is_recorded_or_said_not_to_be(backend: Backend) {
    let mut wanted = request(Group::ALL, backend);
    wanted.pids = vec![std::process::id()];
    let Some((events, stopped)) = record(wanted, || {
        Command::new("true").status().unwrap();
    }) else {
        return;
    };
    assert!(!events.is_empty());
    let findings: Vec<&str> =
        stopped.recorded.findings.iter().map(|finding| finding.message.as_str()).collect();
    for group in Group::ALL {
        let said = findings
            .iter()
            .any(|message| message.contains(&format!("the group {} is not", group.word())));
        assert_eq!(stopped.recorded.has_group(*group), !said, "{group:?}: {findings:?}");
    }
    for group in [Group::Sched, Group::Syscall, Group::Softirq, Group::Irq, Group::Hrtimer] {
        assert!(stopped.recorded.has_group(group), "{findings:?}");
    }
    // Refusals of the verifier would be our errors.
    let evidence: Vec<&str> = stopped
        .recorded
        .findings
        .iter()
        .filter_map(|finding| finding.evidence.as_deref())
        .collect();
    assert!(!evidence.iter().any(|why| why.contains("refused the program")), "{evidence:?}");
}

#[test]
fn strange_names_are_filtered_for_or_refused() {
    let mut wanted = request(&[Group::Sched], Backend::Tracefs);
    wanted.comms = vec!["a\" || \"\\".to_owned()];
    assert!(Recorder::start(wanted.clone()).is_err());
    wanted.backend = Backend::Btf;
    let Some((events, _)) = record(wanted, || std::thread::sleep(Duration::from_millis(5))) else {
        return;
    };
    assert!(!events.iter().any(|event| matches!(event.what, EventKind::Switch { .. })));
}

#[test]
fn contradictory_requests_are_refused() {
    let refused = |change: fn(&mut Request)| {
        let mut request = Request::new(&[Group::Sched], online());
        change(&mut request);
        Recorder::start(request).map(drop).unwrap_err().to_string()
    };
    assert_eq!(refused(|request| request.groups.clear()), "no group of events to record");
    assert_eq!(refused(|request| request.cpus = Default::default()), "no CPU to record on");
    assert_eq!(
        refused(|request| request.comms = vec!["x".repeat(16)]),
        "a task name has 1 to 15 bytes, `xxxxxxxxxxxxxxxx` has 16"
    );
    assert_eq!(refused(|request| request.syscalls = vec![5000]), "there is no system call 5000");
}
