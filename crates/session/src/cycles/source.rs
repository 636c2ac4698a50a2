//! The source of a program's cycles: BPF programs, or events where these are refused or unused.

mod events;
mod without_bpf;

pub use events::EventCycles;

use super::names;
use crate::observers::Observers;
use punctual_bundle::meta::UNKNOWN_SCHEDULING;
use punctual_core::cycle::{Cycle, DelayedTask, Gap, Moment, OpenCycle, ThreadTimes, WaitingCall};
use punctual_core::{CpuSet, Fact, Finding, MonotonicNs};
use punctual_explain::cycles::Inferred;
use punctual_explain::cycles::stream::{CycleStream, ShownKinds, SyscallNumbers};
use punctual_explain::gaps::Gaps;
use punctual_record::attach::{AttachCost, Attacher, TracedThreads};
use punctual_record::unwind::UserStack;
use punctual_record::{Backend, StartError, foreign_ids};
use punctual_sys::{attributes, clock};
use std::collections::BTreeSet;

/// The facts about a thread besides its cycles.
pub struct CycleThreadFacts {
    pub scheduling: String,
    /// Whether the thread's policy is real-time.
    pub real_time: bool,
    /// The CPU affinity; empty if unknown.
    pub cpus: CpuSet,
}

/// A recorder of the cycles of threads. The methods are those of [`Attacher`].
pub struct CycleRecorder {
    source: CycleSource,
    observers: Observers,
    /// The limits of this recorder, with reasons.
    pub findings: Vec<Finding>,
}

enum CycleSource {
    Bpf(Box<Attacher>),
    Tracefs(Box<TracedThreads>, EventCycles),
    Recording(EventCycles),
}

impl CycleRecorder {
    /// Starts BPF programs, or where these are refused, events through tracefs; [`Backend::Btf`]
    /// and [`Backend::Tracefs`] use one of the two alone.
    pub fn start(
        cpus: &CpuSet,
        children: bool,
        lines: bool,
        backend: Backend,
    ) -> Result<CycleRecorder, StartError> {
        if backend == Backend::Tracefs {
            return CycleRecorder::by_events(cpus, children, None);
        }
        match Attacher::start(cpus, children, lines) {
            Ok(attacher) => {
                let findings = attacher.findings.clone();
                Ok(CycleRecorder::new(CycleSource::Bpf(Box::new(attacher)), findings))
            }
            Err(why) if backend == Backend::Btf => Err(why),
            Err(why) => match CycleRecorder::by_events(cpus, children, Some(&why)) {
                Ok(recorder) => Ok(recorder),
                Err(neither) => Err(StartError::None(vec![why, neither])),
            },
        }
    }

    /// `refused`: why there are no BPF programs, if they were tried.
    fn by_events(
        cpus: &CpuSet,
        children: bool,
        refused: Option<&StartError>,
    ) -> Result<CycleRecorder, StartError> {
        // tracefs has the ids of the initial namespace alone.
        if let Some(why) = foreign_ids() {
            return Err(StartError::Backend {
                backend: "tracefs",
                why: why.to_owned(),
                remedy: None,
            });
        }
        let traced = TracedThreads::start(cpus, children)?;
        let findings = vec![without_bpf::tracefs_finding(traced.groups(), refused)];
        let shown_kinds = ShownKinds::from_groups(traced.groups(), false);
        let calls = SyscallNumbers::from_names(&punctual_record::syscall_names());
        let cycles = EventCycles::new(CycleStream::new(calls, shown_kinds, Gaps::default()), None);
        Ok(CycleRecorder::new(CycleSource::Tracefs(Box::new(traced), cycles), findings))
    }

    /// Records from events that [`CycleRecorder::feed`] takes.
    pub fn of_recording(cycles: EventCycles, findings: Vec<Finding>) -> CycleRecorder {
        let observers = Observers::from_threads(&cycles.observers);
        CycleRecorder { observers, ..CycleRecorder::new(CycleSource::Recording(cycles), findings) }
    }

    fn new(source: CycleSource, findings: Vec<Finding>) -> CycleRecorder {
        CycleRecorder { source, observers: Observers::default(), findings }
    }

    /// Watches all threads of a process.
    pub fn watch_process(&self, process: u32) -> Result<(), StartError> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.watch_process(process),
            CycleSource::Tracefs(traced, _) => traced.watch_task(process, true),
            CycleSource::Recording(_) => Ok(()),
        }
    }

    pub fn watch_thread(&self, tid: u32) -> Result<(), StartError> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.watch_thread(tid),
            CycleSource::Tracefs(traced, _) => traced.watch_task(tid, false),
            CycleSource::Recording(_) => Ok(()),
        }
    }

    /// The wait that begins the cycles of a thread; `None`: it has none.
    pub fn select_wait(
        &mut self,
        tid: u32,
        call: Option<(WaitingCall, bool)>,
    ) -> Result<(), StartError> {
        match &mut self.source {
            CycleSource::Bpf(bpf) => return bpf.select_wait(tid, call),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => {
                cycles.select_wait(tid, call)
            }
        }
        Ok(())
    }

    /// Whether the threads are those of this machine, now.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.source, CycleSource::Recording(_))
    }

    /// The name of a thread.
    pub(crate) fn thread_comm(&self, tid: u32) -> Option<String> {
        match &self.source {
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => names::read_comm(tid),
            CycleSource::Recording(cycles) => cycles.thread_comm(tid),
        }
    }

    /// The facts about a thread besides its cycles.
    pub(crate) fn thread_facts(&self, tid: u32) -> CycleThreadFacts {
        match &self.source {
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => {
                let scheduling = attributes::read_scheduling(tid as i32).ok();
                CycleThreadFacts {
                    real_time: scheduling.as_ref().is_some_and(|of| of.policy.is_real_time()),
                    scheduling: scheduling
                        .map_or_else(|| UNKNOWN_SCHEDULING.to_owned(), |of| of.to_string()),
                    cpus: attributes::read_affinity(tid as i32).unwrap_or_default(),
                }
            }
            CycleSource::Recording(cycles) => cycles.thread_facts(tid),
        }
    }

    /// Whether to show the cycles of a thread that no option names: of an attached program always;
    /// of a recording, those of threads with real-time priority and those that timers release.
    pub(crate) fn is_thread_shown(&self, tid: u32, inferred: &Inferred) -> bool {
        match &self.source {
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => true,
            CycleSource::Recording(cycles) => cycles.is_thread_shown(tid, inferred),
        }
    }

    /// The events of the recording, if it is one.
    pub(crate) fn recording_events(&mut self) -> Option<&mut EventCycles> {
        match &mut self.source {
            CycleSource::Recording(cycles) => Some(cycles),
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => None,
        }
    }

    /// Hands over the ended cycles, of each CPU in the order of time.
    pub fn drain(&mut self, take: &mut dyn FnMut(Cycle)) {
        if self.is_live() {
            self.observers.find_new();
        }
        let CycleRecorder { source, observers, .. } = self;
        let take: &mut dyn FnMut(Cycle) = &mut |cycle| take(observers.mark_cycle(cycle));
        match source {
            CycleSource::Bpf(bpf) => bpf.drain_cycles(take),
            CycleSource::Tracefs(traced, cycles) => {
                traced.drain_events(&mut |event| cycles.push(event));
                cycles.take_cycles().into_iter().for_each(take);
            }
            CycleSource::Recording(cycles) => cycles.take_cycles().into_iter().for_each(take),
        }
    }

    /// The wait of a thread, or the cycle after it: newer than the cycles handed over.
    pub fn open_cycle(&self, tid: u32) -> Option<OpenCycle> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.open_cycle(tid),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => {
                cycles.open_cycle(tid)
            }
        }
    }

    /// The instant until which everything was handed over.
    pub(crate) fn current_time(&self) -> MonotonicNs {
        match &self.source {
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => clock::monotonic_now(),
            CycleSource::Recording(cycles) => cycles.now,
        }
    }

    /// Moments of threads within their cycles.
    pub fn take_moments(&mut self) -> Vec<Moment> {
        match &mut self.source {
            CycleSource::Bpf(bpf) => bpf.take_moments(),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => {
                cycles.take_moments()
            }
        }
    }

    /// The gaps of threads that poll.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        let CycleRecorder { source, observers, .. } = self;
        let gaps = match source {
            CycleSource::Bpf(bpf) => bpf.take_gaps(),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => cycles.take_gaps(),
        };
        gaps.into_iter().map(|gap| observers.mark_gap(gap)).collect()
    }

    /// How long threads were in each state: those that have ended since the last call, and with
    /// `living` the present ones.
    pub fn take_times(&mut self, living: bool) -> Vec<(u32, ThreadTimes)> {
        match &mut self.source {
            CycleSource::Bpf(bpf) => bpf.take_times(living),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => {
                cycles.take_times(living)
            }
        }
    }

    /// The times of the present threads, with what was lost of each; none if only events are
    /// recorded, whose losses belong to no thread.
    pub(crate) fn living_times(&self) -> Vec<(u32, ThreadTimes)> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.living_times(),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => Vec::new(),
        }
    }

    /// The tasks that threads delayed; none if only events are recorded.
    pub(crate) fn delayed_tasks(&self) -> Vec<DelayedTask> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.delayed_tasks(),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => Vec::new(),
        }
    }

    /// Whether to show a polling thread that no option names.
    pub(crate) fn shows_poller(&self, tid: u32) -> bool {
        match &self.source {
            CycleSource::Bpf(_) | CycleSource::Tracefs(..) => true,
            CycleSource::Recording(cycles) => cycles.shows_poller(tid),
        }
    }

    /// The gaps in the events of the last hand-over.
    pub(crate) fn take_breaks(&mut self) -> Vec<MonotonicNs> {
        match &mut self.source {
            CycleSource::Bpf(bpf) => bpf.take_breaks(),
            CycleSource::Tracefs(_, cycles) | CycleSource::Recording(cycles) => {
                cycles.take_breaks()
            }
        }
    }

    /// The user stack at an instant; none if only events are recorded.
    pub fn user_stack(&self, moment: &Moment) -> Option<UserStack> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.user_stack(moment),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => Some(UserStack::default()),
        }
    }

    /// The functions at a place where a thread waits; none if only events are recorded.
    pub(crate) fn wait_stack(&self, place: u64) -> Option<UserStack> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.wait_stack(place),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => None,
        }
    }

    /// The user stack with this number, of another task than the delayed thread.
    pub(crate) fn copied_stack(&self, number: u32) -> Option<UserStack> {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.copied_stack(number),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => None,
        }
    }

    /// Makes room for further stacks.
    pub fn free_stacks(&mut self, needed: impl FnOnce() -> BTreeSet<u32>) {
        if let CycleSource::Bpf(bpf) = &mut self.source {
            bpf.free_stacks(needed);
        }
    }

    /// Stacks that found no room.
    pub fn lost_stacks(&self) -> u64 {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.lost_stacks(),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => 0,
        }
    }

    /// Moments within cycles that found no room.
    pub fn lost_moments(&self) -> u64 {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.lost_moments(),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => 0,
        }
    }

    /// Whether losses are those of cycles, each of a known thread.
    pub(crate) fn counts_by_thread(&self) -> bool {
        matches!(self.source, CycleSource::Bpf(_))
    }

    /// Cycles or events that found no room.
    pub fn lost_records(&self) -> u64 {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.lost_cycles(),
            CycleSource::Tracefs(traced, _) => traced.lost_events(),
            CycleSource::Recording(cycles) => cycles.lost,
        }
    }

    /// Events that the kernel did not show.
    pub(crate) fn unseen_events(&self) -> u64 {
        match &self.source {
            CycleSource::Bpf(bpf) => bpf.missed_events(),
            CycleSource::Tracefs(..) | CycleSource::Recording(_) => 0,
        }
    }

    pub(crate) fn attach_cost(&mut self) -> Fact<AttachCost> {
        match &mut self.source {
            CycleSource::Bpf(bpf) => bpf.measure_cost(),
            CycleSource::Tracefs(..) => {
                Fact::Unavailable("it is not measured through tracefs".to_owned())
            }
            CycleSource::Recording(_) => Fact::NotAsked,
        }
    }
}
