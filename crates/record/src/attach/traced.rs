//! The events of which cycles are made, through tracefs, for kernels without BPF or who may not use
//! it.
//!
//! Two recordings: of the events of the watched threads alone, and of the timers of all CPUs, whose
//! interrupts are any task's.

use crate::recorder::Recorder;
use crate::request::{Backend, Request};
use crate::start_error::StartError;
use crate::wire::decode;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Event, EventKind, Finding, Severity};
use punctual_sys::clock;
use std::sync::{Mutex, PoisonError};

/// Of each CPU and recording: some 50,000 events between two drains.
const BUFFER: usize = 4 << 20;
/// Of the threads that are watched.
const GROUPS: [Group; 2] = [Group::Sched, Group::Syscall];

/// Threads whose events are recorded.
pub struct Traced {
    timers: Recorder,
    /// Behind a lock: whoever watches has a shared reference.
    watched: Mutex<Option<Recorder>>,
    cpus: CpuSet,
    children: bool,
    /// Events that are not older than the last round.
    later: Vec<Event>,
    lost: u64,
}

impl Traced {
    /// The groups of events that it hands over; switches are those of the watched threads.
    pub const GROUPS: [Group; 3] = [Group::Sched, Group::Syscall, Group::Hrtimer];

    /// Starts on all these CPUs; nothing is watched yet. `children`: what watched processes start
    /// is watched too.
    pub fn start(cpus: &CpuSet, children: bool) -> Result<Traced, StartError> {
        let timers = Recorder::start(Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            ..Request::new(&[Group::Hrtimer], cpus.clone())
        })?;
        Ok(Traced {
            timers,
            watched: Mutex::new(None),
            cpus: cpus.clone(),
            children,
            later: Vec::new(),
            lost: 0,
        })
    }

    /// What is not measured in this way.
    pub fn finding(why: &StartError) -> Finding {
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
    pub fn watch(&self, pid: u32, whole: bool) -> Result<(), StartError> {
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

    /// Hands over what has happened, in the order of time.
    pub fn drain(&mut self, take: &mut dyn FnMut(&Event)) {
        let until = clock::monotonic();
        let mut events = std::mem::take(&mut self.later);
        let mut read = |_: u16, bytes: &[u8]| events.extend(decode(bytes).flatten());
        self.timers.drain(&mut read);
        if let Some(recorder) = self.watched.get_mut().unwrap_or_else(PoisonError::into_inner) {
            recorder.drain(&mut read);
        }
        events.sort_by_key(|event| event.at);
        self.later = events.split_off(events.partition_point(|event| event.at < until));
        for event in &events {
            if let EventKind::Lost { count, .. } = event.what {
                self.lost += count;
            }
            take(event);
        }
    }

    /// Events that found no room: no cycle is made of what lies around them.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
