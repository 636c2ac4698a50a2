//! The events for cycles through tracefs, for kernels without BPF or users without access to it.
//!
//! Two recordings: switches, interrupts and timer expiries on all CPUs; system calls and page
//! faults of the watched threads only, as other threads have most of those.

use crate::merge::Merged;
use crate::recorder::Recorder;
use crate::request::{Backend, Request};
use crate::start_error::StartError;
use crate::tracefs::Tracefs;
use crate::tracepoints;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Event, EventKind};
use std::sync::{Mutex, PoisonError};

/// The buffer of each CPU and recording: some 50,000 events between two drains.
const BUFFER: usize = 4 << 20;
/// On all CPUs: any task or interrupt may delay a watched thread.
const OF_ALL: [Group; 6] =
    [Group::Sched, Group::Irq, Group::Vectors, Group::Softirq, Group::Hrtimer, Group::Block];
/// For the watched threads.
const OF_WATCHED: [Group; 3] = [Group::Syscall, Group::Fault, Group::Page];

/// The threads with recorded events.
pub struct TracedThreads {
    machine: Recorder,
    /// Behind a lock, as watching takes a shared reference.
    watched: Mutex<Option<Recorder>>,
    cpus: CpuSet,
    children: bool,
    groups: Vec<Group>,
    merged: Merged,
    lost: u64,
}

impl TracedThreads {
    /// Starts on all these CPUs; no thread is watched yet. With `children`, children of watched
    /// processes are watched too.
    pub fn start(cpus: &CpuSet, children: bool) -> Result<TracedThreads, StartError> {
        let machine = Recorder::start(Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            ..Request::new(&OF_ALL, cpus.clone())
        })?;
        let mut groups = machine.coverage_so_far().groups;
        groups.extend(OF_WATCHED.into_iter().filter(|group| has_tracepoint_of(*group)));
        let (scheduler, calls) = (Group::Sched, Group::Syscall);
        if !groups.contains(&scheduler) || !groups.contains(&calls) {
            return Err(StartError::Backend {
                backend: "tracefs",
                why: "the kernel has no events of system calls or of the scheduler".to_owned(),
                remedy: Some("use a kernel with CONFIG_FTRACE_SYSCALLS=y".to_owned()),
            });
        }
        Ok(TracedThreads {
            machine,
            watched: Mutex::new(None),
            cpus: cpus.clone(),
            children,
            groups,
            merged: Merged::default(),
            lost: 0,
        })
    }

    /// The groups of events that it returns: system calls, page faults and reclaim of the watched
    /// threads, all others of the whole machine.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Watches these threads, or all of a process.
    pub fn watch_task(&self, pid: u32, whole: bool) -> Result<(), StartError> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *watched {
            Some(recorder) => recorder.follow_task(pid, whole),
            None => {
                let wanted = OF_WATCHED.into_iter().filter(|group| self.groups.contains(group));
                let recorder = Recorder::start(Request {
                    buffer: BUFFER,
                    backend: Backend::Tracefs,
                    pids: vec![pid],
                    follow_children: self.children,
                    threads_alone: !whole,
                    ..Request::new(&wanted.collect::<Vec<_>>(), self.cpus.clone())
                })?;
                *watched = Some(recorder);
                Ok(())
            }
        }
    }

    /// Returns the new events in order of time.
    pub fn drain_events(&mut self, take: &mut dyn FnMut(&Event)) {
        let watched = self.watched.get_mut().unwrap_or_else(PoisonError::into_inner);
        let events = self.merged.take_events([&mut self.machine].into_iter().chain(watched));
        for event in &events {
            if let EventKind::Lost { count, .. } = event.what {
                self.lost += count;
            }
            take(event);
        }
    }

    /// The number of events lost for lack of space: no cycle is made around them.
    pub fn lost_events(&self) -> u64 {
        self.lost
    }
}

/// Whether the kernel has any tracepoint of a group.
fn has_tracepoint_of(group: Group) -> bool {
    let Ok(tracefs) = Tracefs::open() else { return false };
    let mut group_tracepoints = tracepoints::of_groups(std::slice::from_ref(&group));
    group_tracepoints
        .any(|tracepoint| tracefs.tracepoint_format(tracepoint.system, tracepoint.name).is_ok())
}
