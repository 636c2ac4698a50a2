//! The cycles of threads through tracefs, for kernels without BPF or who may not use it.
//!
//! Two recordings: of the events of the watched threads alone, and of the timers of all CPUs, whose
//! interrupts are any task's.

use super::tracker::{Calls, Tracker};
use super::{FILES, WAITS};
use crate::recorder::Recorder;
use crate::request::{Backend, Request};
use crate::start_error::StartError;
use crate::wire::decode;
use punctual_core::cycle::{Cycle, Moment, MomentKind, TaskName, WaitingCall};
use punctual_core::event::Group;
use punctual_core::{CpuSet, Event, EventKind, Finding, MonotonicNs, Severity};
use punctual_sys::clock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Of each CPU and recording: some 50,000 events between two drains.
const BUFFER: usize = 4 << 20;
/// Of the threads that are watched.
const GROUPS: [Group; 2] = [Group::Sched, Group::Syscall];
/// Names of tasks that are kept.
const NAMES: usize = 4096;

/// Threads whose cycles are made from recorded events.
pub(super) struct Traced {
    timers: Recorder,
    /// Behind a lock: whoever watches has a shared reference.
    watched: Mutex<Option<Recorder>>,
    tracker: Mutex<Tracker>,
    cpus: CpuSet,
    children: bool,
    /// Events that are not older than the last round.
    later: Vec<Event>,
    moments: Vec<Moment>,
    names: BTreeMap<u32, TaskName>,
    lost: u64,
}

impl Traced {
    pub(super) fn start(cpus: &CpuSet, children: bool) -> Result<Traced, StartError> {
        let timers = Recorder::start(Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            ..Request::new(&[Group::Hrtimer], cpus.clone())
        })?;
        let set = |names: &[&str]| -> BTreeSet<u32> {
            names.iter().filter_map(|name| crate::syscall_number(name)).collect()
        };
        let clock_nanosleep = crate::syscall_number("clock_nanosleep").unwrap_or(u32::MAX);
        let calls = Calls { waits: set(&WAITS), files: set(&FILES), clock_nanosleep };
        Ok(Traced {
            timers,
            watched: Mutex::new(None),
            tracker: Mutex::new(Tracker::new(calls)),
            cpus: cpus.clone(),
            children,
            later: Vec::new(),
            moments: Vec::new(),
            names: BTreeMap::new(),
            lost: 0,
        })
    }

    /// What is not measured in this way.
    pub(super) fn finding(why: &StartError) -> Finding {
        let message = format!(
            "cycles are measured through tracefs, without BPF ({why}): releases, wake-up latency, \
             response, execution and period are whole, but who delayed a wake-up, interrupts \
             within a cycle, holders of locks, page faults and user stacks are not known, and that \
             time is not attributed"
        );
        Finding::new("cycles-without-bpf", Severity::Warning, "attach", message).remedy(
            "run as root, or with CAP_BPF and CAP_PERFMON, on a kernel with \
             CONFIG_DEBUG_INFO_BTF=y",
        )
    }

    /// Watches these threads, or all of a process.
    pub(super) fn watch(&self, pid: u32, whole: bool) -> Result<(), StartError> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *watched {
            Some(recorder) => recorder.follow(pid, whole),
            None => {
                let recorder = Recorder::start(Request {
                    buffer: BUFFER,
                    backend: Backend::Tracefs,
                    pids: vec![pid],
                    follow_children: self.children,
                    threads_alone: !whole,
                    ..Request::new(&GROUPS, self.cpus.clone())
                })?;
                if !GROUPS.iter().all(|group| recorder.recorded().groups.contains(group)) {
                    let why = "the kernel has no events of system calls or of the scheduler";
                    return Err(StartError::Backend {
                        backend: "tracefs",
                        why: why.to_owned(),
                        remedy: Some("use a kernel with CONFIG_FTRACE_SYSCALLS=y".to_owned()),
                    });
                }
                *watched = Some(recorder);
                Ok(())
            }
        }
    }

    pub(super) fn select(&self, tid: u32, call: Option<(WaitingCall, bool)>) {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner).select(tid, call);
    }

    /// Hands over the cycles that have ended, in the order of time.
    pub(super) fn drain(&mut self, take: &mut dyn FnMut(Cycle)) {
        let until = clock::monotonic();
        let mut events = std::mem::take(&mut self.later);
        let mut read = |_: u16, bytes: &[u8]| events.extend(decode(bytes).flatten());
        self.timers.drain(&mut read);
        if let Some(recorder) = self.watched.get_mut().unwrap_or_else(PoisonError::into_inner) {
            recorder.drain(&mut read);
        }
        events.sort_by_key(|event| event.at);
        self.later = events.split_off(events.partition_point(|event| event.at < until));
        let tracker = self.tracker.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in &events {
            if let EventKind::Lost { count, .. } = event.what {
                self.lost += count;
            }
            if event.what == EventKind::Exec {
                self.moments.push(exec(event.tid.0, event.at));
            }
            let names = &mut self.names;
            tracker.push(event, &mut |mut cycle| {
                if let Some(culprit) = &mut cycle.culprit {
                    culprit.name = name_of(names, culprit.tid);
                }
                take(cycle);
            });
        }
    }

    pub(super) fn take_moments(&mut self) -> Vec<Moment> {
        std::mem::take(&mut self.moments)
    }

    /// Events that found no room: no cycle is made of what lies around them.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

fn exec(tid: u32, at: MonotonicNs) -> Moment {
    Moment { tid, begin: at, end: at, what: MomentKind::Exec, call: None, stack: None }
}

/// The name that a task has by now; empty if it has ended.
fn name_of(names: &mut BTreeMap<u32, TaskName>, tid: u32) -> TaskName {
    if names.len() >= NAMES {
        names.clear();
    }
    let read = || {
        let comm = std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
        let mut name = TaskName::default();
        let text = comm.trim_ascii_end();
        let length = text.len().min(name.0.len());
        name.0[..length].copy_from_slice(&text[..length]);
        name
    };
    *names.entry(tid).or_insert_with(read)
}
