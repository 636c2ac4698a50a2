//! Cycles from a stream of events, with the names of their tasks.

use super::CycleThreadFacts;
use punctual_bundle::meta::UNKNOWN_SCHEDULING;
use punctual_core::cycle::{
    Cycle, CycleKind, Gap, Moment, MomentKind, OpenCycle, TaskComm, ThreadTimes, WaitingCall,
};
use punctual_core::event::Names;
use punctual_core::{CpuSet, Event, EventKind, MAX_RT_PRIO, MonotonicNs, Tid};
use punctual_explain::cycles::Inferred;
use punctual_explain::cycles::stream::{CycleStream, StreamResult};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of task names.
const NAMES: usize = 4_096;
/// Names of kernel threads, which events do not identify.
const KERNEL_THREADS: [&str; 18] = [
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "jbd2/",
    "kcompactd",
    "kdamond",
    "khugepaged",
    "khungtaskd",
    "ksoftirqd/",
    "kswapd",
    "kthreadd",
    "ktimers/",
    "kworker/",
    "migration/",
    "oom_reaper",
    "rcu",
    "stopper/",
    "watchdog",
];
/// The maximum number of moments within cycles kept until taken.
const MOMENTS: usize = 1 << 16;

/// Takes events, and hands over cycles.
pub struct EventCycles {
    stream: CycleStream,
    names: TaskNames,
    pub observers: BTreeSet<Tid>,
    pub now: MonotonicNs,
    cycles: Vec<Cycle>,
    moments: Vec<Moment>,
    breaks: Vec<MonotonicNs>,
    gaps: Vec<Gap>,
    times: Vec<(u32, ThreadTimes)>,
    pub lost: u64,
}

impl EventCycles {
    /// Takes the names of a recording; without them, the current names of tasks.
    pub fn new(stream: CycleStream, names: Option<&Names>) -> EventCycles {
        EventCycles {
            stream,
            names: names.map_or_else(TaskNames::default, TaskNames::from_names),
            observers: names.map(|names| names.observers.clone()).unwrap_or_default(),
            now: MonotonicNs(i64::MIN),
            cycles: Vec::new(),
            moments: Vec::new(),
            breaks: Vec::new(),
            gaps: Vec::new(),
            times: Vec::new(),
            lost: 0,
        }
    }

    pub fn push(&mut self, event: &Event) {
        self.now = self.now.max(event.at);
        if let EventKind::Lost { count, .. } = event.what {
            self.lost = self.lost.saturating_add(count);
        }
        let EventCycles { stream, names, cycles, moments, breaks, gaps, times, now, .. } = self;
        stream.push(event, &mut |found| match found {
            StreamResult::Cycle(mut cycle) => {
                names.fill_names(&mut cycle);
                cycles.push(cycle);
            }
            StreamResult::Moment(mut moment) if moments.len() < MOMENTS => {
                match &mut moment.what {
                    MomentKind::Preempted { by, name } => *name = names.of_task(*by),
                    MomentKind::Exit { name, .. } => *name = names.of_task(moment.tid),
                    _ => {}
                }
                moments.push(moment);
            }
            StreamResult::Gap(mut gap) if gaps.len() < MOMENTS => {
                if let Some(culprit) = &mut gap.culprit {
                    culprit.name = names.of_task(culprit.tid);
                }
                gaps.push(gap);
            }
            StreamResult::Times(tid, of) if times.len() < MOMENTS => times.push((tid, of)),
            StreamResult::Moment(_) | StreamResult::Gap(_) | StreamResult::Times(..) => {}
            StreamResult::Lost => breaks.push(*now),
        });
    }

    /// The gaps of threads that poll since the last call.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    /// How long threads were in each state: those that have ended since the last call, and with
    /// `living` the present ones.
    pub fn take_times(&mut self, living: bool) -> Vec<(u32, ThreadTimes)> {
        let mut all_times = std::mem::take(&mut self.times);
        if living {
            all_times.extend(self.stream.thread_times());
        }
        all_times
    }

    /// Whether to show a polling thread that no option names: one with a real-time priority. Any
    /// load polls.
    pub(super) fn shows_poller(&self, tid: u32) -> bool {
        self.stream.thread_priority(tid).is_some_and(|prio| prio < MAX_RT_PRIO)
    }

    /// Sets the wait that begins the cycles of a thread.
    pub fn select_wait(&mut self, tid: u32, call: Option<(WaitingCall, bool)>) {
        self.stream.select_wait(tid, call);
    }

    pub(super) fn open_cycle(&self, tid: u32) -> Option<OpenCycle> {
        self.stream.open_cycle(tid)
    }

    pub(super) fn thread_comm(&self, tid: u32) -> Option<String> {
        self.names.comms.get(&tid).cloned().filter(|comm| !comm.is_empty())
    }

    pub(super) fn thread_facts(&self, tid: u32) -> CycleThreadFacts {
        let prio = self.stream.thread_priority(tid);
        let words = self.names.scheduling.get(&tid).cloned().or_else(|| match prio? {
            prio if prio < 0 => Some("SCHED_DEADLINE".to_owned()),
            prio if prio < MAX_RT_PRIO => {
                Some(format!("real-time priority {}", MAX_RT_PRIO - 1 - prio))
            }
            _ => Some("time-sharing".to_owned()),
        });
        CycleThreadFacts {
            scheduling: words.unwrap_or_else(|| UNKNOWN_SCHEDULING.to_owned()),
            real_time: prio.is_some_and(|prio| prio < MAX_RT_PRIO),
            cpus: CpuSet::new(),
        }
    }

    pub(super) fn is_thread_shown(&self, tid: u32, inferred: &Inferred) -> bool {
        let comm = self.names.comms.get(&tid).map_or("", String::as_str);
        let is_kernel = KERNEL_THREADS.iter().any(|name| comm.starts_with(name));
        let is_timed = inferred.kind != CycleKind::Event || inferred.period.is_some();
        !is_kernel
            && (is_timed || self.stream.thread_priority(tid).is_some_and(|prio| prio < MAX_RT_PRIO))
    }

    pub(super) fn take_cycles(&mut self) -> Vec<Cycle> {
        std::mem::take(&mut self.cycles)
    }

    pub(super) fn take_moments(&mut self) -> Vec<Moment> {
        std::mem::take(&mut self.moments)
    }

    pub(super) fn take_breaks(&mut self) -> Vec<MonotonicNs> {
        std::mem::take(&mut self.breaks)
    }
}

/// The names of tasks.
#[derive(Default)]
struct TaskNames {
    known: BTreeMap<u32, TaskComm>,
    comms: BTreeMap<u32, String>,
    scheduling: BTreeMap<u32, String>,
    /// Whether the names are complete.
    is_recorded: bool,
}

impl TaskNames {
    fn from_names(names: &Names) -> TaskNames {
        let tasks = || names.tasks.iter();
        TaskNames {
            known: tasks().map(|(tid, of)| (tid.0, task_name(of.comm.as_bytes()))).collect(),
            comms: tasks().map(|(tid, of)| (tid.0, of.comm.clone())).collect(),
            scheduling: tasks()
                .filter_map(|(tid, of)| Some((tid.0, of.scheduling.clone()?)))
                .collect(),
            is_recorded: true,
        }
    }

    /// The name of a task; empty if it has ended, or was not recorded.
    fn of_task(&mut self, tid: u32) -> TaskComm {
        if self.is_recorded {
            return self.known.get(&tid).copied().unwrap_or_default();
        }
        if self.known.len() >= NAMES {
            self.known.clear();
        }
        let read = || task_name(&std::fs::read(format!("/proc/{tid}/comm")).unwrap_or_default());
        *self.known.entry(tid).or_insert_with(read)
    }

    fn fill_names(&mut self, cycle: &mut Cycle) {
        if let Some(culprit) = &mut cycle.culprit {
            culprit.name = self.of_task(culprit.tid);
        }
        if let Some(holder) = &mut cycle.holder {
            holder.name = self.of_task(holder.tid);
        }
        if let Some(awaited) = &mut cycle.awaited {
            awaited.name = self.of_task(awaited.tid);
        }
        cycle.waker_name = self.of_task(cycle.waker);
    }
}

fn task_name(comm: &[u8]) -> TaskComm {
    let mut name = TaskComm::default();
    let text = comm.trim_ascii_end();
    let length = text.len().min(name.0.len());
    name.0[..length].copy_from_slice(&text[..length]);
    name
}
