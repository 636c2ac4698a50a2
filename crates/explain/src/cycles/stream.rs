//! The cycles of threads from a stream of kernel events of any recorder: the equivalent of the BPF
//! programs of `record::attach` for systems on which none can run or none did.
//!
//! The activity of a thread is divided at its waiting system calls or, without a record of calls,
//! at its sleeps. The due time, start and end of a cycle are defined as there. Its time is
//! attributed as far as events show it ([`ShownKinds`]), and unknown otherwise. Events come in
//! order of time; memory grows with threads and CPUs, up to a bound.

mod calls;
mod cpu;
mod shown;
#[cfg(test)]
mod tests;
mod thread;

pub use calls::SyscallNumbers;
pub use shown::{ShownKinds, missing_properties};

use crate::gaps::{Gaps, LossScope};
use crate::threads::may_be_in_switch;
use cpu::{Expiry, StreamCpu};
use punctual_core::cycle::{
    CallClass, Cycle, DescriptorSet, FILES_END, Gap, Moment, MomentKind, OpenCycle, TaskComm,
    ThreadTimes, WaitingCall, WokenBy,
};
use punctual_core::event::{Futex, TaskState, signal};
use punctual_core::{CauseKind, Event, EventKind, MAX_RT_PRIO, MonotonicNs};
use std::collections::HashMap;
use thread::{Readiness, Release, StreamPhase, StreamThread, StreamThreadState, WaitWaker};

/// The maximum number of timers with known expiry: far more than are ever started at once.
const TIMERS: usize = 1 << 16;
/// The maximum number of threads and CPUs followed.
const THREADS: usize = 1 << 14;
const CPUS: u16 = 4_096;
/// The maximum number of threads waiting for one CPU.
const WAITING: usize = 64;

/// A result of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are cycles, handed on one by one
pub enum StreamResult {
    Cycle(Cycle),
    /// The position of a thread in its cycle, before that ends.
    Moment(Moment),
    /// A polling thread lost its CPU for a while.
    Gap(Gap),
    /// The time that an ended thread spent in each state.
    Times(u32, ThreadTimes),
    /// Events, and possibly cycles, are missing.
    Lost,
}

/// Cycles from events in order of time.
pub struct CycleStream {
    calls: SyscallNumbers,
    shown: ShownKinds,
    gaps: Gaps,
    now: MonotonicNs,
    cpus: HashMap<u16, StreamCpu>,
    threads: HashMap<u32, StreamThread>,
    /// The last priorities of threads that ended: their cycles are judged later.
    ended: HashMap<u32, i16>,
    selections: HashMap<u32, Option<(WaitingCall, bool)>>,
    /// The expiry of started timers.
    timers: HashMap<u64, MonotonicNs>,
    /// The threads released by timers.
    owners: HashMap<u64, u32>,
    untracked: u64,
}

impl CycleStream {
    /// An empty stream. `gaps` are those of a complete recording: recorders report a loss only
    /// after events of other CPUs within it.
    pub fn new(calls: SyscallNumbers, shown: ShownKinds, gaps: Gaps) -> CycleStream {
        CycleStream {
            calls,
            shown,
            gaps,
            now: MonotonicNs(i64::MIN),
            cpus: HashMap::new(),
            threads: HashMap::new(),
            ended: HashMap::new(),
            selections: HashMap::new(),
            timers: HashMap::new(),
            owners: HashMap::new(),
            untracked: 0,
        }
    }

    /// From now on a cycle of this thread ends at its wait in this call; with `true` only for the
    /// same file or address. `None` ends its cycles.
    pub fn select_wait(&mut self, tid: u32, call: Option<(WaitingCall, bool)>) {
        self.selections.insert(tid, call);
    }

    /// The wait of a thread, or the cycle after it, at the last event; `None` if events are missing
    /// since its wait began.
    pub fn open_cycle(&self, tid: u32) -> Option<OpenCycle> {
        let thread = self.threads.get(&tid)?;
        // Its own timer is among those started in the call; interrupts start others.
        let sleeps = thread.call.is_some_and(|(call, _)| self.calls.is_sleep(call));
        let due = thread.started.iter().map(|(_, due)| *due).max();
        let next_entry = thread.call.filter(|(call, _)| self.ends_cycle(tid, *call));
        let due = due.filter(|due| sleeps && *due < self.now);
        let open = thread.open_cycle(due, next_entry.map(|(_, entered)| entered))?;
        let is_whole = self.gaps.gap_within(LossScope::AnyCpu, open.entered, self.now).is_none();
        is_whole.then_some(open)
    }

    /// The priority of a thread by its last events, as the kernel's `prio`.
    pub fn thread_priority(&self, tid: u32) -> Option<i16> {
        let thread = self.threads.get(&tid).and_then(|thread| thread.prio);
        thread.or_else(|| self.ended.get(&tid).copied())
    }

    pub fn push(&mut self, event: &Event, take: &mut dyn FnMut(StreamResult)) {
        if event.what.group().is_none() {
            match event.what {
                EventKind::Context { .. } if self.is_inside_switch(event) => {
                    self.extend_switch(event)
                }
                EventKind::Lost { .. } if event.cpu != Event::NO_CPU => self.on_loss(take),
                EventKind::Unthrottled { .. } => self.on_unthrottled(event),
                _ => {}
            }
            return;
        }
        if event.cpu >= CPUS {
            self.untracked += 1;
            return;
        }
        self.now = self.now.max(event.at);
        let event = &Event { at: self.now, ..*event };
        if self.is_inside_switch(event) {
            return self.extend_switch(event);
        }
        self.note_running_task(event, take);
        self.note_end_of_sleep(event, take);
        let (at, tid) = (event.at, event.tid.0);
        match event.what {
            EventKind::IrqEntry { .. } | EventKind::VectorEntry { .. } => {
                self.cpu_mut(event.cpu).enter_hard(at);
            }
            EventKind::IrqExit { .. } | EventKind::VectorExit { .. } => {
                let served = self.cpu_mut(event.cpu).exit_hard(at);
                self.on_service_end(event, served, take);
            }
            EventKind::SoftirqEntry { .. } => self.cpu_mut(event.cpu).enter_soft(at),
            EventKind::SoftirqExit { .. } => {
                let served = self.cpu_mut(event.cpu).exit_soft(at);
                self.on_service_end(event, served, take);
            }
            EventKind::BlockComplete { .. } => self.cpu_mut(event.cpu).completed = true,
            EventKind::HrtimerStart { timer, expires, .. } => {
                self.on_timer_start(event, timer, expires)
            }
            EventKind::HrtimerExpireEntry { timer, now, expires, .. } => {
                let known_expiry = self.timers.get(&timer).copied();
                self.on_timer_expiry(event, timer, known_expiry.or(expires).or(now).unwrap_or(at));
            }
            EventKind::HrtimerExpireExit { .. } => self.cpu_mut(event.cpu).on_expiry_end(at),
            EventKind::SyscallEnter { number, args } => self.on_syscall_enter(event, number, args),
            EventKind::SyscallExit { result, .. } => self.on_syscall_exit(event, result, take),
            EventKind::FutexEnter { op: Futex::LockPi, .. } if !self.shown.calls => {
                self.waits_for_lock(tid, true);
            }
            EventKind::FutexExit { .. } if !self.shown.calls => self.waits_for_lock(tid, false),
            EventKind::Switch { .. } => self.on_switch(event, take),
            EventKind::Waking { task, prio, target } => {
                self.on_wakeup(event, task.0, (target, prio), false);
            }
            EventKind::Wakeup { task, prio, target, new: false } => {
                self.on_wakeup(event, task.0, (target, prio), true);
            }
            EventKind::Migrate { task, to, .. } => self.on_migration(at, task.0, to),
            EventKind::PiSetPrio { task, new, .. } => {
                self.update_thread(task.0, |thread| thread.prio = Some(new));
                self.update_thread(tid, |thread| {
                    thread.lent_to = Some(task.0).filter(|of| *of != tid)
                });
            }
            EventKind::PageFault { .. } => self.update_thread(tid, |thread| {
                thread.faulted = true;
                thread.cycle.faults = thread.cycle.faults.saturating_add(1);
            }),
            // A fault only reads, except for writes to reclaim memory: another write shows that it
            // is over, and what follows is I/O.
            EventKind::BlockIssue { write: true, .. } => {
                self.update_thread(tid, |thread| thread.faulted &= thread.reclaims);
            }
            EventKind::ReclaimBegin { .. } => self.set_reclaiming(event, true),
            EventKind::ReclaimEnd { .. } => self.set_reclaiming(event, false),
            // The kernel has already woken the task that a signal continues.
            EventKind::Signal { task, signal } => {
                let stopper = Some(tid).filter(|by| *by != 0 && signal::STOP.contains(&signal));
                self.update_thread(task.0, |thread| thread.stopped_by = stopper);
            }
            EventKind::Exit => {
                // Another thread may reuse its id.
                let final_times = self.threads.get(&tid).map(|thread| thread.state_times(at));
                final_times.iter().for_each(|times| take(StreamResult::Times(tid, *times)));
                let is_known = final_times.is_some();
                self.forget_thread(tid);
                let what = MomentKind::Exit { name: TaskComm::default(), status: None };
                is_known.then(|| take(StreamResult::Moment(Moment::new(tid, at, what))));
            }
            EventKind::Exec => {
                self.forget_thread(tid);
                let what = MomentKind::Exec;
                take(StreamResult::Moment(Moment::new(tid, at, what)));
            }
            _ => {}
        }
    }

    fn cpu_mut(&mut self, number: u16) -> &mut StreamCpu {
        self.cpus.entry(number).or_default()
    }

    /// An interrupt or a softirq is over: the interrupted thread may be a polling one.
    fn on_service_end(
        &mut self,
        event: &Event,
        served: Option<(MonotonicNs, cpu::ServedTime)>,
        take: &mut dyn FnMut(StreamResult),
    ) {
        let thread = self.threads.get(&event.tid.0);
        let gap = |thread: &StreamThread| thread.gap_of_service(event.cpu, served?, event.at);
        if let Some(gap) = thread.and_then(gap) {
            take(StreamResult::Gap(gap));
        }
    }

    /// The time that the living threads spent in each state.
    pub fn thread_times(&self) -> Vec<(u32, ThreadTimes)> {
        let living_threads = self.threads.iter().filter(|(tid, _)| **tid != 0);
        living_threads.map(|(tid, thread)| (*tid, thread.state_times(self.now))).collect()
    }

    fn update_thread(&mut self, tid: u32, change: impl FnOnce(&mut StreamThread)) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            change(thread);
        }
    }

    fn forget_thread(&mut self, tid: u32) {
        let prio = self.threads.remove(&tid).and_then(|thread| thread.prio);
        if let Some(prio) = prio.filter(|_| self.ended.len() < THREADS) {
            self.ended.insert(tid, prio);
        }
        self.selections.remove(&tid);
        self.owners.retain(|_, owner| *owner != tid);
    }

    /// Handles a gap: the time within it is unknown.
    fn on_loss(&mut self, take: &mut dyn FnMut(StreamResult)) {
        self.threads.clear();
        self.cpus.clear();
        take(StreamResult::Lost);
    }

    fn on_unthrottled(&mut self, event: &Event) {
        let EventKind::Unthrottled { task } = event.what else { return };
        let (Some(thread), Some(cpu)) = (self.threads.get_mut(&task.0), self.cpus.get(&event.cpu))
        else {
            return;
        };
        if thread.state == StreamThreadState::Ready(Readiness::Held) {
            thread.attribute_wait(cpu, event.at, self.shown.interrupts);
            thread.state = StreamThreadState::Ready(Readiness::ByCpu);
            thread.enqueued = Some(event.at);
        }
    }

    /// Whether an event is from the task that the CPU's last switch left, and so within that
    /// switch.
    fn is_inside_switch(&self, event: &Event) -> bool {
        let cpu = self.cpus.get(&event.cpu);
        cpu.is_some_and(|cpu| cpu.leaving == Some(event.tid.0)) && may_be_in_switch(&event.what)
    }

    fn extend_switch(&mut self, event: &Event) {
        let at = self.now.max(event.at);
        let CycleStream { cpus, threads, .. } = self;
        let Some(cpu) = cpus.get(&event.cpu) else { return };
        let next = cpu.running.and_then(|tid| threads.get_mut(&tid));
        if let Some(thread) = next.filter(|thread| thread.state == StreamThreadState::Running) {
            thread.attribute_switch(cpu, at);
        }
    }

    /// A CPU runs one task from switch to switch: an event of another task shows an unrecorded
    /// switch.
    fn note_running_task(&mut self, event: &Event, take: &mut dyn FnMut(StreamResult)) {
        let Event { at, cpu: number, tid: seen, .. } = *event;
        let limited = self.shown.some_threads;
        let cpu = self.cpu_mut(number);
        if cpu.running == Some(seen.0) {
            cpu.leaving = None;
            return;
        }
        // Some kernels hide the switch from idle: it was ready until now at the latest.
        let comes = !limited && cpu.running == Some(0) && cpu.waiting.contains(&seen.0);
        let prio = self.threads.get(&seen.0).and_then(|thread| thread.prio);
        if let Some(prio) = prio.filter(|_| comes) {
            self.update_thread(seen.0, |thread| {
                thread.cycle.hidden = thread.cycle.hidden.saturating_add(1);
            });
            self.on_switch_in(event, seen.0, prio, take);
            self.cpu_mut(number).waiting.retain(|tid| *tid != seen.0);
        }
        let CycleStream { cpus, threads, .. } = self;
        let cpu = cpus.entry(number).or_default();
        for tid in &cpu.waiting {
            if let Some(thread) = threads.get_mut(tid)
                && cpu.running.is_some()
                && !limited
            {
                thread.loses_sight(at);
                thread.follow_cpu(cpu, at);
            }
        }
        cpu.is_found_with(at, seen.0, limited);
    }

    /// Some kernels show neither the wake-up on an idle CPU nor the switch from the idle task: the
    /// first event of a thread that slept ends its wake-up, and is an upper bound of it.
    fn note_end_of_sleep(&mut self, event: &Event, take: &mut dyn FnMut(StreamResult)) {
        let Some(thread) = self.threads.get_mut(&event.tid.0) else { return };
        let sleeps = matches!(thread.state, StreamThreadState::Asleep(_))
            && thread.phase == StreamPhase::Waiting;
        if self.shown.calls || !sleeps || event.at <= thread.slept_at() {
            return;
        }
        thread.cycle.hidden = thread.cycle.hidden.saturating_add(1);
        let prio = thread.prio.unwrap_or(MAX_RT_PRIO);
        self.on_switch_in(event, event.tid.0, prio, take);
    }

    fn on_timer_start(&mut self, event: &Event, timer: u64, expires: MonotonicNs) {
        if self.timers.len() >= TIMERS {
            self.timers.clear();
        }
        self.timers.insert(timer, expires);
        // A handler starts some, in any interrupted task.
        let served = self.cpus.get(&event.cpu).is_some_and(StreamCpu::is_serving);
        let calls = self.shown.calls;
        if !served && !calls {
            self.track_thread(event.tid.0, event.cpu, event.at);
        }
        if !served {
            self.update_thread(event.tid.0, |thread| {
                if thread.call.is_some() || !calls {
                    thread.note_timer_start(timer, expires);
                }
            });
        }
    }

    fn on_timer_expiry(&mut self, event: &Event, timer: u64, due: MonotonicNs) {
        let (at, due) = (event.at, due.min(event.at));
        self.cpu_mut(event.cpu).on_timer_expiry(Expiry { timer, due, at });
        if let Some(owner) = self.owners.get(&timer)
            && let Some(thread) = self.threads.get_mut(owner)
            && let Some(own) = thread.own_timer(timer)
        {
            own.expired.get_or_insert(due);
        }
    }

    fn waits_for_lock(&mut self, tid: u32, waits: bool) {
        self.update_thread(tid, |thread| thread.locks = waits);
    }

    fn set_reclaiming(&mut self, event: &Event, reclaims: bool) {
        let (Some(thread), Some(cpu)) =
            (self.threads.get_mut(&event.tid.0), self.cpus.get(&event.cpu))
        else {
            return;
        };
        thread.note_running(event.cpu, cpu, event.at);
        thread.reclaims = reclaims;
    }

    fn ends_cycle(&self, tid: u32, call: WaitingCall) -> bool {
        match self.selections.get(&tid) {
            Some(None) => false,
            _ if call.number == WaitingCall::NOT_RECORDED => true,
            None => self.calls.may_begin(call),
            Some(Some((of, by_argument))) => {
                of.is_same_call(&call) && (!by_argument || of.has_object_of(&call))
            }
        }
    }

    fn track_thread(&mut self, tid: u32, cpu: u16, at: MonotonicNs) -> Option<&mut StreamThread> {
        if tid == 0 {
            return None;
        }
        if self.threads.len() >= THREADS && !self.threads.contains_key(&tid) {
            self.untracked += 1;
            return None;
        }
        Some(self.threads.entry(tid).or_insert_with(|| StreamThread::new(tid, cpu, at)))
    }

    fn on_syscall_enter(&mut self, event: &Event, number: u32, args: [u64; 2]) {
        let (at, tid) = (event.at, event.tid.0);
        let mut call = self.calls.reduce_call(number, args);
        let restarts = self.calls.is_restart(number);
        let mark = self.calls.mark_of_call(number);
        if self.track_thread(tid, event.cpu, at).is_none() {
            return;
        }
        let (Some(thread), Some(cpu)) = (self.threads.get_mut(&tid), self.cpus.get(&event.cpu))
        else {
            return;
        };
        thread.note_running(event.cpu, cpu, at);
        if restarts && thread.phase == StreamPhase::Interrupted {
            call = thread.cycle.call;
        }
        thread.call = Some((call, at));
        thread.has_called = true;
        thread.in_call = Default::default();
        thread.started.clear();
        (thread.early, thread.slept, thread.lent_to) = (None, false, None);
        (thread.reclaims, thread.faulted) = (false, false);
        let cycle = &mut thread.cycle;
        cycle.syscalls = cycle.syscalls.saturating_add(1);
        if let Some((place, class)) = mark {
            cycle.calls.0 |= 1 << place;
            if class == CallClass::Write {
                cycle.written.0 |= 1 << args[0].min(DescriptorSet::OTHERS.into());
            }
        }
    }

    fn on_switch(&mut self, event: &Event, take: &mut dyn FnMut(StreamResult)) {
        let EventKind::Switch { prev_prio, prev_state, next, next_prio } = event.what else {
            return;
        };
        let (at, number) = (event.at, event.cpu);
        let interrupts = self.shown.interrupts;
        let CycleStream { cpus, threads, .. } = self;
        let cpu = cpus.entry(number).or_default();
        cpu.prio.get_or_insert(prev_prio);
        let mut waiting = std::mem::take(&mut cpu.waiting);
        waiting.retain(|tid| {
            let thread = threads.get_mut(tid).filter(|thread| thread.cpu == number);
            let Some(thread) = thread else { return false };
            if *tid != next.0 {
                thread.attribute_wait(cpu, at, interrupts);
            }
            *tid != next.0 && matches!(thread.state, StreamThreadState::Ready(_))
        });
        cpu.waiting = waiting;
        let part = match next_prio {
            _ if next.0 == 0 => CauseKind::Throttled,
            prio if prio > prev_prio && prev_prio < MAX_RT_PRIO => CauseKind::Throttled,
            prio if prio < prev_prio && prio < MAX_RT_PRIO => CauseKind::Preempted,
            _ => CauseKind::Runqueue,
        };
        self.on_switch_out(event, prev_state, prev_prio, (part, next.0), take);
        self.on_switch_in(event, next.0, next_prio, take);
        let cpu = self.cpu_mut(number);
        cpu.on_switch(at, next.0, next_prio);
        cpu.leaving = Some(event.tid.0).filter(|leaves| *leaves != next.0 && next.0 != 0);
        if let Some(thread) = self.threads.get_mut(&event.tid.0)
            && matches!(thread.state, StreamThreadState::Ready(Readiness::ByCpu))
        {
            let cpu = self.cpus.entry(number).or_default();
            thread.follow_cpu(cpu, at);
            takes_place(cpu, thread, event.tid.0);
        }
        let cpu = self.cpus.entry(number).or_default();
        if let Some(thread) = self.threads.get_mut(&next.0) {
            thread.follow_cpu(cpu, at);
        }
    }

    /// The task of the event gives up its CPU.
    fn on_switch_out(
        &mut self,
        event: &Event,
        state: TaskState,
        prio: i16,
        (part, by): (CauseKind, u32),
        take: &mut dyn FnMut(StreamResult),
    ) {
        let (at, tid) = (event.at, event.tid.0);
        if !self.shown.calls && self.track_thread(tid, event.cpu, at).is_none() {
            return;
        }
        let limited = self.shown.some_threads;
        let (Some(thread), Some(cpu)) = (self.threads.get_mut(&tid), self.cpus.get(&event.cpu))
        else {
            return;
        };
        thread.note_running(event.cpu, cpu, at);
        // A program may give up its real-time policy before it ends.
        if state != TaskState::Dead || thread.prio.is_none() {
            thread.prio = Some(prio);
        }
        match state {
            TaskState::Throttled => {
                thread.note_cpu_loss(at);
                return thread.on_preemption(at, Readiness::Held, by);
            }
            TaskState::Preempted | TaskState::Yielded => {
                // Within a call it may give it up.
                if state == TaskState::Preempted || thread.call.is_none() {
                    thread.note_cpu_loss(at);
                }
                let readiness = if limited { Readiness::For(part, by) } else { Readiness::ByCpu };
                return thread.on_preemption(at, readiness, by);
            }
            TaskState::Dead => return self.forget_thread(tid),
            _ => {}
        }
        let wait = match thread.call {
            Some(call) => Some(call),
            None if self.shown.calls || thread.locks => None,
            None => Some((WaitingCall::UNRECORDED, at)),
        };
        let sleep_part = match (state, thread.call) {
            (TaskState::LockWait, _) => CauseKind::Lock,
            (TaskState::Stopped, _) => CauseKind::Stopped,
            _ if thread.reclaims => CauseKind::Reclaim,
            (_, Some((call, _))) => self.calls.part_of_sleep(call, state),
            (TaskState::Blocked, None) if thread.faulted => CauseKind::PageFault,
            // The freezer of its control group suspends it so on its way to user mode.
            (TaskState::Sleeping, None)
                if self.shown.calls && thread.has_called && !thread.faulted =>
            {
                CauseKind::Stopped
            }
            (_, None) if self.shown.calls && thread.has_called => CauseKind::PageFault,
            (_, None) if thread.locks => CauseKind::Lock,
            _ => CauseKind::Waiting,
        };
        thread.cycle.slept_without_pi |= sleep_part == CauseKind::Lock
            && thread.call.is_some_and(|(call, _)| call.operation == 0);
        let ends =
            wait.filter(|(call, _)| state == TaskState::Sleeping && self.ends_cycle(tid, *call));
        let selected = self.selections.get(&tid).copied().flatten();
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        match ends {
            // After a wake-up it continues to wait in the same call: it was not a release.
            Some(_) if thread.phase == StreamPhase::Woken => thread.phase = StreamPhase::Waiting,
            Some((call, entered)) => {
                let ended = thread.next_cycle(call, entered, sleep_part);
                thread.phase = StreamPhase::Waiting;
                self.report_cycle(ended, take);
            }
            None => {
                // Another file is clearly something else.
                let is_elsewhere = |(call, _): (WaitingCall, _)| {
                    selected.is_some_and(|(of, by_argument)| {
                        let is_of_file = by_argument && of.argument < FILES_END;
                        of.is_same_call(&call) && (!is_of_file || of.argument == call.argument)
                    })
                };
                thread.cycle.elsewhere += u32::from(wait.is_some_and(is_elsewhere));
                thread.begin_pause(at, sleep_part);
            }
        }
        let blocked = state == TaskState::Blocked;
        self.update_thread(tid, |thread| thread.on_sleep(at, sleep_part, blocked));
    }

    /// Reports an ended cycle, except around missing events.
    fn report_cycle(&self, cycle: Option<Cycle>, take: &mut dyn FnMut(StreamResult)) {
        let Some(cycle) = cycle else { return };
        let gap =
            self.gaps.gap_within(LossScope::AnyCpu, cycle.entered.min(cycle.release), cycle.again);
        take(if gap.is_some() { StreamResult::Lost } else { StreamResult::Cycle(cycle) });
    }

    /// A task gets a CPU.
    fn on_switch_in(
        &mut self,
        event: &Event,
        tid: u32,
        prio: i16,
        take: &mut dyn FnMut(StreamResult),
    ) {
        let (at, number) = (event.at, event.cpu);
        if !self.shown.calls && self.track_thread(tid, number, at).is_none() {
            return;
        }
        let (calls, interrupts) = (self.shown.calls, self.shown.interrupts);
        let (Some(thread), Some(cpu)) = (self.threads.get_mut(&tid), self.cpus.get(&number)) else {
            return;
        };
        if matches!(thread.state, StreamThreadState::Ready(_)) && thread.cpu == number {
            thread.attribute_wait(cpu, at, interrupts);
        }
        thread.prio = Some(prio);
        thread.runs_on(number);
        let woken = thread.is_woken && matches!(thread.state, StreamThreadState::Ready(_));
        thread.note_running(number, cpu, at);
        thread.returns_from = woken.then_some(at);
        if let Some(moment) = thread.end_moment(at) {
            take(StreamResult::Moment(moment));
        }
        if let Some(gap) = thread.end_gap(at) {
            take(StreamResult::Gap(gap));
        }
        if calls {
            return;
        }
        if thread.phase == StreamPhase::Waiting {
            thread.on_unseen_release(at);
        }
        if thread.phase == StreamPhase::Woken {
            thread.end_wakeup(at);
        }
        // Timers that it starts from now on are for its next sleep.
        thread.started.clear();
        (thread.faulted, thread.early) = (false, None);
    }

    /// The waker of this event, with the timer.
    fn release_by_event(&self, event: &Event, thread: &StreamThread) -> Release {
        let (at, tid) = (event.at, event.tid.0);
        let cpu = self.cpus.get(&event.cpu);
        let expiring = cpu.and_then(|cpu| cpu.expiring);
        let is_all_shown = self.shown.interrupts && self.shown.softirqs && !self.shown.some_threads;
        let woken_by = match (expiring, cpu) {
            (Some(expiry), _) => {
                let is_own_timer = thread.started.iter().any(|(timer, _)| *timer == expiry.timer);
                if is_own_timer { WokenBy::Sleep } else { WokenBy::Timer }
            }
            (None, Some(cpu)) if cpu.serves_interrupt() => WokenBy::Irq,
            (None, Some(cpu)) if cpu.serves_softirq() => WokenBy::Softirq,
            // The idle task wakes no thread: it was interrupted.
            _ if tid == 0 => WokenBy::Irq,
            _ if is_all_shown => WokenBy::Task,
            _ => WokenBy::Unknown,
        };
        let due = expiring.map_or(at, |expiry| expiry.due.min(at));
        let timer = expiring.map_or(0, |expiry| expiry.timer);
        Release { due, woken: at, waker: WaitWaker { by: woken_by, tid }, timer }
    }

    /// A thread is woken, or enqueued.
    fn on_wakeup(&mut self, event: &Event, task: u32, (target, prio): (u16, i16), enqueued: bool) {
        let at = event.at;
        let Some(thread) = self.threads.get(&task) else { return };
        let mut release = self.release_by_event(event, thread);
        let limited = self.shown.some_threads;
        let Some(thread) = self.threads.get_mut(&task) else { return };
        thread.prio = Some(prio);
        match thread.state {
            StreamThreadState::Ready(_) => {
                if enqueued {
                    thread.enqueued.get_or_insert(at);
                    if thread.cpu != target {
                        self.moves_to(at, task, target);
                    }
                }
                return;
            }
            StreamThreadState::Running | StreamThreadState::Unseen => {
                if !enqueued && (thread.call.is_some() || !self.shown.calls) {
                    thread.early = Some(release);
                }
                return;
            }
            StreamThreadState::Asleep(_) => {}
        }
        // The wake-up began before it slept.
        if let Some(early) = thread.early.take().filter(|_| enqueued) {
            release = Release { woken: at, ..early };
        }
        let waking_cpu = self.cpus.get(&event.cpu);
        if thread.phase == StreamPhase::Waiting {
            thread.on_release(release, waking_cpu);
        } else {
            let completed = waking_cpu.is_some_and(|cpu| cpu.completed);
            let io = completed && thread.is_blocked() && !thread.needs_memory();
            thread.ends_pause(at, io.then_some(CauseKind::Io), release.waker);
        }
        if release.waker.by == WokenBy::Timer
            && let Some((site, _)) = thread.call
        {
            thread.keep_timer(release.timer, site);
            if self.owners.len() >= TIMERS {
                self.owners.clear();
            }
            self.owners.insert(release.timer, task);
        }
        let readiness =
            if limited { Readiness::For(CauseKind::Unknown, 0) } else { Readiness::ByCpu };
        thread.becomes_ready(at, target, readiness, enqueued);
        if target < CPUS {
            let cpu = self.cpus.entry(target).or_default();
            thread.follow_cpu(cpu, at);
            takes_place(cpu, thread, task);
        }
    }

    fn on_migration(&mut self, at: MonotonicNs, task: u32, to: u16) {
        let Some(thread) = self.threads.get_mut(&task) else { return };
        thread.on_migration();
        if matches!(thread.state, StreamThreadState::Ready(_)) && thread.cpu != to {
            self.moves_to(at, task, to);
        }
    }

    /// A ready thread is moved to another CPU, which delays it from now on.
    fn moves_to(&mut self, at: MonotonicNs, task: u32, to: u16) {
        let interrupts = self.shown.interrupts;
        let CycleStream { cpus, threads, .. } = self;
        let Some(thread) = threads.get_mut(&task) else { return };
        if let Some(from) = cpus.get_mut(&thread.cpu) {
            thread.attribute_wait(from, at, interrupts);
            from.waiting.retain(|tid| *tid != task);
        }
        thread.cpu = to;
        thread.enqueued = thread.enqueued.map(|_| at);
        if to < CPUS {
            let cpu = cpus.entry(to).or_default();
            thread.follow_cpu(cpu, at);
            takes_place(cpu, thread, task);
        }
    }

    fn on_syscall_exit(&mut self, event: &Event, result: i64, take: &mut dyn FnMut(StreamResult)) {
        let (at, tid) = (event.at, event.tid.0);
        let site = self.threads.get(&tid).and_then(|thread| thread.call);
        let ends = site.is_some_and(|(call, _)| self.ends_cycle(tid, call));
        let (Some(thread), Some(cpu)) = (self.threads.get_mut(&tid), self.cpus.get(&event.cpu))
        else {
            return;
        };
        if thread.returns_from.is_some() {
            thread.attribute_switch(cpu, at);
        }
        thread.note_running(event.cpu, cpu, at);
        let Some((call, entered)) = thread.call else { return };
        if matches!(thread.phase, StreamPhase::Waiting | StreamPhase::Woken)
            && self.calls.is_interrupted_wait(call, result, thread.cycle.by)
        {
            (thread.phase, thread.call) = (StreamPhase::Interrupted, None);
            return;
        }
        if thread.phase == StreamPhase::Waiting {
            thread.on_unseen_release(at);
        } else if ends && !thread.slept && thread.phase != StreamPhase::Woken {
            let past_release =
                thread.release_before_call(call, at, result, self.calls.is_sleep(call));
            if let Some(release) = past_release.or(thread.early) {
                let sleep_part = self.calls.part_of_sleep(call, TaskState::Sleeping);
                let ended = thread.next_cycle(call, entered, sleep_part);
                thread.on_early_release(release, at);
                self.report_cycle(ended, take);
            }
        }
        let timed_out = self.calls.timed_out(call, result);
        self.update_thread(tid, |thread| {
            if timed_out && thread.slept {
                thread.note_timeout();
            }
            thread.on_call_return(call, entered, at);
        });
    }
}

/// It waits for this CPU. Beyond the limit of waiters, the reason is unknown.
fn takes_place(cpu: &mut StreamCpu, thread: &mut StreamThread, tid: u32) {
    if cpu.waiting.contains(&tid) {
        return;
    }
    if cpu.waiting.len() < WAITING {
        cpu.waiting.push(tid);
    } else if thread.state == StreamThreadState::Ready(Readiness::ByCpu) {
        thread.state = StreamThreadState::Ready(Readiness::For(CauseKind::Unknown, 0));
    }
}
