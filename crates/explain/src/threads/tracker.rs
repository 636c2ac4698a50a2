//! The state machine of all threads and CPUs, from events to spans.

use super::cpus::Cpus;
use super::states::{ThreadTable, Was};
use super::*;
use crate::gaps::{Gaps, LossScope};
use punctual_core::cycle::POLLS;
use punctual_core::event::{Group, Recorded, TaskName};
use punctual_core::{Event, EventKind, Names};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The time and threads that a recording covers.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    pub began: MonotonicNs,
    pub ended: MonotonicNs,
    /// Whether switches and wake-ups were recorded: without them all states are unknown.
    pub states: bool,
    /// The threads that switches were limited to; `None`: all.
    pub threads: Option<HashSet<Tid>>,
    /// The groups of kernel events that were recorded; `None` if unknown.
    pub groups: Option<Vec<Group>>,
    /// The exit latency that each idle state declares.
    pub idle_latencies: BTreeMap<u32, Nanos>,
    /// The system calls that return 0 on timeout.
    pub polls: BTreeSet<u32>,
    /// The system calls that only sleep for a time.
    pub sleeps: BTreeSet<u32>,
    /// The processes of threads, as far as known.
    pub processes: Arc<HashMap<Tid, u32>>,
    /// The threads of punctual that were not part of the measurement.
    pub observers: Arc<BTreeSet<Tid>>,
    /// The growth of the CPU's steal clock, if read.
    pub steal: Option<Nanos>,
}

impl Coverage {
    /// For all threads from one instant to another.
    pub fn from_span(began: MonotonicNs, ended: MonotonicNs) -> Coverage {
        Coverage { began, ended: ended.max(began), states: true, ..Coverage::default() }
    }

    /// For a recording. If it was limited to processes or to names of tasks, the names of the
    /// recording list their threads.
    pub fn from_recording(recorded: &Recorded, names: &Names) -> Coverage {
        let Recorded { pids, comms, .. } = recorded;
        let requested = |tid: Tid, task: &TaskName| {
            (pids.is_empty() || pids.contains(&task.process) || pids.contains(&tid.0))
                && (comms.is_empty() || comms.contains(&task.comm))
        };
        let tids =
            names.tasks.iter().filter(|(tid, task)| requested(**tid, task)).map(|(tid, _)| *tid);
        let processes = names.tasks.iter().map(|(tid, task)| (*tid, task.process));
        let limited = !pids.is_empty() || !comms.is_empty();
        let called = |all: &[&str]| -> BTreeSet<u32> {
            let is = |(_, name): &(&u32, &String)| {
                all.contains(&name.strip_suffix("_time64").unwrap_or(name))
            };
            names.syscalls.iter().filter(is).map(|(number, _)| *number).collect()
        };
        Coverage {
            states: recorded.has_group(Group::Sched),
            threads: limited.then(|| tids.collect()),
            groups: Some(recorded.groups.clone()),
            idle_latencies: names.idle_latencies.clone(),
            polls: called(&POLLS),
            sleeps: called(&["nanosleep", "clock_nanosleep"]),
            processes: Arc::new(processes.collect()),
            observers: Arc::new(names.observers.clone()),
            ..Coverage::from_span(recorded.began, recorded.ended)
        }
    }

    fn is_followed(&self, tid: Tid) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&tid))
    }
}

/// Inconsistencies in the events.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TrackerWarnings {
    /// Transitions that contradict the known state, without a known gap; the state is then unknown.
    pub contradictions: u64,
    /// Exits and ends without an entry or begin, mostly before the recording.
    pub stray: u64,
    /// Events beyond the limits on threads and nesting.
    pub untracked: u64,
}

/// Reads events in order of time and passes spans to a sink.
pub struct Tracker<S> {
    coverage: Coverage,
    gaps: Gaps,
    cpus: Cpus,
    threads: ThreadTable,
    sink: S,
    warnings: TrackerWarnings,
}

impl<S: SpanSink> Tracker<S> {
    /// An empty tracker. `gaps` are those of the recording ([`Gaps::from_events`]); without them,
    /// losses of one CPU do not affect threads that were asleep or ready meanwhile.
    pub fn new(coverage: Coverage, gaps: Gaps, sink: S) -> Tracker<S> {
        let (cpus, threads) = (Cpus::new(coverage.began), ThreadTable::new(coverage.began));
        Tracker { coverage, gaps, cpus, threads, sink, warnings: TrackerWarnings::default() }
    }

    /// Reads one event. Instants outside of the covered time are moved to its ends.
    pub fn push(&mut self, event: &Event) {
        let at = event.at.clamp(self.coverage.began, self.coverage.ended);
        let Event { cpu, tid, what, .. } = *event;
        match what {
            EventKind::Switch { prev_prio, prev_state, next, next_prio } => {
                self.note_running(cpu, at, tid, &what);
                let mark = SwitchMark { at, cpu, prev: tid, state: prev_state, next };
                return self.on_switch(mark, prev_prio, next_prio);
            }
            EventKind::Lost { count, since } => return self.on_loss(at, cpu, tid, count, since),
            EventKind::Point { point, kind, count, values } => {
                return self.on_point(PointMark { at, tid, point, kind, values, count });
            }
            EventKind::Sample { .. } => return,
            _ => self.note_running(cpu, at, tid, &what),
        }
        match what {
            EventKind::Waking { task, .. } => self.on_waking(at, cpu, tid, task),
            EventKind::Wakeup { task, target, new, .. } => {
                self.on_wakeup(at, cpu, tid, task, target, new)
            }
            EventKind::Migrate { task, from, to } => {
                self.on_migration(MigrationMark { at, tid: task, from, to })
            }
            EventKind::Fork { child } if self.coverage.states && child != Tid::IDLE => {
                self.threads.on_fork(child, at, &self.gaps, &mut self.sink);
            }
            EventKind::IrqEntry { irq } => self.on_interrupt_entry(at, cpu, Interrupt::Hard(irq)),
            EventKind::IrqExit { irq, .. } => {
                self.on_interrupt_exit(at, cpu, tid, Interrupt::Hard(irq))
            }
            EventKind::VectorEntry { vector } => {
                self.on_interrupt_entry(at, cpu, Interrupt::Vector(vector))
            }
            EventKind::VectorExit { vector } => {
                self.on_interrupt_exit(at, cpu, tid, Interrupt::Vector(vector))
            }
            EventKind::SoftirqEntry { vector } => {
                self.on_interrupt_entry(at, cpu, Interrupt::Soft(vector))
            }
            EventKind::SoftirqExit { vector } => {
                self.on_interrupt_exit(at, cpu, tid, Interrupt::Soft(vector))
            }
            EventKind::IdleEnter { state } => self.on_idle(at, cpu, Some(state)),
            EventKind::IdleExit => self.on_idle(at, cpu, None),
            EventKind::SyscallEnter { number, .. } => self.syscall_enter(at, tid, number),
            EventKind::SyscallExit { number, result } => self.syscall_exit(at, tid, number, result),
            EventKind::Call { function, began, depth, left, argument } => {
                let from = began.clamp(self.coverage.began, at);
                self.sink.on_call_span(&CallSpan {
                    tid,
                    from,
                    to: at,
                    function,
                    depth,
                    left,
                    argument,
                });
            }
            _ => {}
        }
    }

    /// Ends the recording and all open spans.
    pub fn finish(mut self) -> (S, TrackerWarnings) {
        let ended = self.coverage.ended;
        for cpu in self.cpus.iter_mut() {
            cpu.interrupts_end(ended, cpu.tid.unwrap_or_default(), &mut self.sink);
            cpu.set_idle_state(ended, None, &mut self.sink);
            if self.coverage.states {
                cpu.turn_to(ended, true, None, &mut self.sink);
            }
        }
        self.threads.finish(ended, self.coverage.states, &self.gaps, &mut self.sink);
        self.warnings.untracked += self.threads.untracked;
        (self.sink, self.warnings)
    }

    /// This task runs here; if the task was unknown, it has run since then, as no switch occurred.
    fn note_running(&mut self, cpu: u16, at: MonotonicNs, tid: Tid, what: &EventKind) {
        if !self.coverage.states || !self.coverage.is_followed(tid) {
            return;
        }
        let Some(lane) = self.cpus.get(cpu) else { return };
        if let Some(ran) = lane.tid {
            if ran == tid {
                lane.seen = lane.seen.max(at);
                return;
            }
            // Functions may be probed inside of a switch, too.
            let leaves = may_be_in_switch(what) || matches!(what, EventKind::Call { .. });
            return if tid != Tid::IDLE && !leaves {
                self.comes_unseen(at, cpu, ran, tid)
            };
        }
        let since = lane.since;
        (lane.tid, lane.seen) = (Some(tid), at.max(since));
        if tid == Tid::IDLE {
            return;
        }
        let Some(thread) = self.threads.get(tid) else { return };
        match thread.doing {
            ThreadState::Running { cpu: other } if other != cpu => {
                // It cannot have run here all the time: it does from now on.
                lane.turn_to(at, false, Some((tid, None)), &mut self.sink);
                self.moves_without_a_switch(tid, at, other);
                if let Some(thread) = self.threads.get(tid) {
                    thread.doing = ThreadState::Running { cpu };
                }
            }
            _ => {
                if thread.since < since {
                    thread.end_state(tid, since, Was::Unseen, &self.gaps, &mut self.sink);
                }
                thread.doing = ThreadState::Running { cpu };
            }
        }
    }

    /// A thread is seen where `ran` ran: the switch to it was not recorded, which some kernels do
    /// where a CPU idles. If it was ready, it was so until now at the latest.
    fn comes_unseen(&mut self, at: MonotonicNs, cpu: u16, ran: Tid, tid: Tid) {
        let Some(thread) = self.threads.get(tid) else { return };
        if let ThreadState::Running { cpu: other } = thread.doing {
            self.moves_without_a_switch(tid, at, other);
        }
        if ran != Tid::IDLE {
            self.moves_without_a_switch(ran, at, cpu);
        }
        if let Some(lane) = self.cpus.get(cpu) {
            lane.interrupts_end(at, ran, &mut self.sink);
            lane.set_idle_state(at, None, &mut self.sink);
            lane.turn_to(at, ran == Tid::IDLE, Some((tid, None)), &mut self.sink);
        }
        let Some(thread) = self.threads.get(tid) else { return };
        if thread.doing == ThreadState::Waking {
            thread.doing = ThreadState::Ready { cpu: Some(cpu), preempted: false };
        }
        let is_ready = matches!(thread.doing, ThreadState::Ready { .. });
        let was = if is_ready { Was::Ready } else { Was::Unseen };
        thread.end_state(tid, at, was, &self.gaps, &mut self.sink);
        thread.doing = ThreadState::Running { cpu };
        self.sink.on_unseen_switch(tid, at);
    }

    /// A thread that should run on `cpu` is seen elsewhere, or another one there: the task of that
    /// CPU, and the state of the thread, are unknown since it was seen there last.
    fn moves_without_a_switch(&mut self, tid: Tid, at: MonotonicNs, cpu: u16) {
        self.warnings.contradictions += 1;
        let lane = self.cpus.get(cpu).filter(|lane| lane.tid == Some(tid));
        let seen_until = lane.as_ref().map(|lane| lane.seen.min(at));
        if let (Some(lane), Some(seen)) = (lane, seen_until) {
            lane.turn_to(seen, true, None, &mut self.sink);
            lane.turn_to(at, false, None, &mut self.sink);
        }
        if let Some(thread) = self.threads.get(tid) {
            if let Some(seen) = seen_until.filter(|seen| *seen > thread.since) {
                thread.end_state(tid, seen, Was::Running, &self.gaps, &mut self.sink);
            }
            thread.end_state(tid, at, Was::Unseen, &self.gaps, &mut self.sink);
            thread.doing = ThreadState::Unknown;
        }
    }

    fn on_switch(&mut self, mark: SwitchMark, prev_prio: i16, next_prio: i16) {
        if !self.coverage.states {
            return;
        }
        let SwitchMark { at, cpu, prev, state, next } = mark;
        if let Some(lane) = self.cpus.get(cpu) {
            lane.prio.get_or_insert(prev_prio);
        }
        self.on_switch_out(at, cpu, prev, state);
        self.sink.on_switch(&mark);
        let followed = self.coverage.is_followed(next);
        if next != Tid::IDLE && followed {
            self.on_switch_in(at, cpu, next);
        }
        if let Some(lane) = self.cpus.get(cpu) {
            lane.turn_to(at, true, followed.then_some((next, Some(next_prio))), &mut self.sink);
            if let Some(thread) = Some(next)
                .filter(|next| *next != Tid::IDLE && followed)
                .and_then(|n| self.threads.get(n))
            {
                lane.resume_softirqs(&mut thread.suspended, at);
            }
        }
    }

    /// Ends the lane's span and the run of the previous task.
    fn on_switch_out(&mut self, at: MonotonicNs, cpu: u16, prev: Tid, state: TaskState) {
        let Some(lane) = self.cpus.get(cpu) else { return };
        let (ran, agrees) = (lane.tid, lane.tid == Some(prev));
        lane.set_idle_state(at, None, &mut self.sink);
        let softirqs = lane.interrupts_end(at, prev, &mut self.sink);
        if !agrees && let Some(ran) = ran.filter(|ran| *ran != Tid::IDLE) {
            self.moves_without_a_switch(ran, at, cpu);
        }
        if let Some(lane) = self.cpus.get(cpu) {
            lane.turn_to(at, agrees, None, &mut self.sink);
        }
        if prev == Tid::IDLE || !self.coverage.is_followed(prev) {
            return;
        }
        let Some(thread) = self.threads.get(prev) else { return };
        if let ThreadState::Running { cpu: other } = thread.doing
            && other != cpu
        {
            self.moves_without_a_switch(prev, at, other);
        }
        let Some(thread) = self.threads.get(prev) else { return };
        let contradicts = thread.end_state(prev, at, Was::Running, &self.gaps, &mut self.sink);
        self.warnings.contradictions += u64::from(contradicts);
        thread.suspended = softirqs;
        thread.dead = state == TaskState::Dead;
        thread.doing = match state {
            TaskState::Preempted | TaskState::Yielded | TaskState::Throttled => {
                ThreadState::Ready { cpu: Some(cpu), preempted: true }
            }
            state => state.into(),
        };
    }

    /// Ends the state of the arriving thread.
    fn on_switch_in(&mut self, at: MonotonicNs, cpu: u16, next: Tid) {
        let Some(thread) = self.threads.get(next) else { return };
        if let ThreadState::Running { cpu: other } = thread.doing {
            self.moves_without_a_switch(next, at, other);
        }
        let Some(thread) = self.threads.get(next) else { return };
        // sched_wakeup is not recorded: the wake-up cannot be separated from the time after it.
        if thread.doing == ThreadState::Waking {
            thread.doing = ThreadState::Ready { cpu: Some(cpu), preempted: false };
        }
        let contradicts = thread.end_state(next, at, Was::Ready, &self.gaps, &mut self.sink);
        self.warnings.contradictions += u64::from(contradicts);
        thread.doing = ThreadState::Running { cpu };
    }

    fn on_waking(&mut self, at: MonotonicNs, cpu: u16, waker: Tid, task: Tid) {
        let interrupt = self.cpus.get(cpu).and_then(|lane| lane.current_interrupt());
        self.sink.on_wake(&WakeMark { at, cpu, waker, interrupt, task });
        self.end_wait(at, task, ThreadState::Waking);
    }

    /// A thread that was asleep until now without a recorded sched_waking: this event implies it.
    fn on_wakeup(
        &mut self,
        at: MonotonicNs,
        cpu: u16,
        waker: Tid,
        task: Tid,
        target: u16,
        new: bool,
    ) {
        let awake = |doing: ThreadState| {
            matches!(
                doing,
                ThreadState::Waking | ThreadState::Ready { .. } | ThreadState::Running { .. }
            )
        };
        let followed = self.coverage.states && task != Tid::IDLE && self.coverage.is_followed(task);
        if followed && !new && self.threads.get(task).is_some_and(|thread| !awake(thread.doing)) {
            let interrupt = self.cpus.get(cpu).and_then(|lane| lane.current_interrupt());
            self.sink.on_wake(&WakeMark { at, cpu, waker, interrupt, task });
        }
        self.end_wait(at, task, ThreadState::Ready { cpu: Some(target), preempted: false });
    }

    /// A thread stops waiting. A running or ready thread may also be woken when it was about to
    /// sleep, which changes nothing.
    fn end_wait(&mut self, at: MonotonicNs, task: Tid, doing: ThreadState) {
        if !self.coverage.states || task == Tid::IDLE || !self.coverage.is_followed(task) {
            return;
        }
        let Some(thread) = self.threads.get(task) else { return };
        let was = match thread.doing {
            ThreadState::Waking if doing == ThreadState::Waking => return,
            ThreadState::Waking => Was::Ready,
            ThreadState::Running { .. } => return,
            // It may have run and slept again within the gap.
            ThreadState::Ready { .. }
                if self.gaps.gap_within(LossScope::AnyCpu, thread.since, at).is_none() =>
            {
                return;
            }
            _ => Was::Asleep,
        };
        thread.end_state(task, at, was, &self.gaps, &mut self.sink);
        thread.doing = doing;
    }

    fn on_migration(&mut self, mark: MigrationMark) {
        self.sink.on_migration(&mark);
        if !self.coverage.states || mark.tid == Tid::IDLE || !self.coverage.is_followed(mark.tid) {
            return;
        }
        let Some(thread) = self.threads.get(mark.tid) else { return };
        if let ThreadState::Ready { preempted, .. } = thread.doing {
            thread.end_state(mark.tid, mark.at, Was::Ready, &self.gaps, &mut self.sink);
            thread.doing = ThreadState::Ready { cpu: Some(mark.to), preempted };
        }
    }

    fn on_interrupt_entry(&mut self, at: MonotonicNs, cpu: u16, what: Interrupt) {
        let entered = self.cpus.get(cpu).is_some_and(|lane| lane.enter_interrupt(what, at));
        self.warnings.untracked += u64::from(!entered);
    }

    fn on_interrupt_exit(&mut self, at: MonotonicNs, cpu: u16, tid: Tid, what: Interrupt) {
        let left = self
            .cpus
            .get(cpu)
            .is_some_and(|lane| lane.exit_interrupt(what, at, tid, &mut self.sink));
        self.warnings.stray += u64::from(!left);
    }

    fn on_idle(&mut self, at: MonotonicNs, cpu: u16, state: Option<u32>) {
        if let Some(lane) = self.cpus.get(cpu) {
            lane.set_idle_state(at, state, &mut self.sink);
        }
    }

    fn syscall_enter(&mut self, at: MonotonicNs, tid: Tid, number: u32) {
        let Some(thread) = self.threads.thread_without_state(tid) else { return };
        thread.syscall = Some((number, at));
    }

    /// Some system calls return twice (fork) or not at all (exit): only the exit of the entered one
    /// counts.
    fn syscall_exit(&mut self, at: MonotonicNs, tid: Tid, number: u32, result: i64) {
        let Some(thread) = self.threads.thread_without_state(tid) else { return };
        match thread.syscall.take() {
            Some((entered, from)) if entered == number => {
                let to = at.max(from);
                self.sink.on_syscall_span(&SyscallSpan {
                    tid,
                    from,
                    to,
                    number,
                    result: Some(result),
                });
            }
            _ => self.warnings.stray += 1,
        }
    }

    fn on_point(&mut self, mark: PointMark) {
        self.sink.on_point(&mark);
        let PointMark { at, tid, point, kind, values, count } = mark;
        if kind == PointKind::Point {
            return;
        }
        let Some(thread) = self.threads.thread_without_state(tid) else { return };
        match kind {
            PointKind::Begin => {
                self.warnings.untracked += u64::from(!thread.begin_scope(point, at, values, count))
            }
            _ => {
                self.warnings.stray += u64::from(!thread.end_scope(tid, point, at, &mut self.sink))
            }
        }
    }

    /// Events are missing: that CPU is unknown until its next event with a task.
    fn on_loss(&mut self, at: MonotonicNs, cpu: u16, tid: Tid, count: u64, since: MonotonicNs) {
        let from = since.clamp(self.coverage.began, at);
        let of_cpu = cpu != Event::NO_CPU;
        let mark = GapMark {
            cpu: of_cpu.then_some(cpu),
            tid: (!of_cpu).then_some(tid),
            from,
            to: at,
            count,
        };
        self.sink.on_gap(&mark);
        let Some(lane) = self.cpus.get(cpu) else { return };
        let ran = lane.tid;
        lane.interrupts_end(from, ran.unwrap_or_default(), &mut self.sink);
        lane.set_idle_state(from, None, &mut self.sink);
        if !self.coverage.states {
            return;
        }
        lane.turn_to(from, true, None, &mut self.sink);
        lane.turn_to(at, false, None, &mut self.sink);
        let Some(ran) = ran.filter(|ran| *ran != Tid::IDLE) else { return };
        let Some(thread) =
            self.threads.get(ran).filter(|thread| thread.doing == ThreadState::Running { cpu })
        else {
            return;
        };
        thread.end_state(ran, from, Was::Running, &self.gaps, &mut self.sink);
        thread.doing = ThreadState::Unknown;
    }
}
