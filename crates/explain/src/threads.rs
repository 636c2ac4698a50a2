//! The state of every thread and every CPU at every instant, from kernel events and test points in
//! order of time.
//!
//! One [`Tracker`] reads the events and passes finished spans to a [`SpanSink`]: the occupancy sums
//! them, a window keeps those within it, an export writes them. Memory grows with the number of
//! threads and CPUs, not with the recording.
//!
//! The state is [`ThreadState::Unknown`] before the first event of a thread, where events
//! contradict each other, and where events were lost. Three things are certain without an event of
//! their own: a CPU runs one task from switch to switch, so the first event on a CPU shows the task
//! that ran there since the recording began (or since a gap); a thread that is woken was
//! asleep; one that is switched to was ready. Where a thread is seen although no switch to it was,
//! it was ready until then at the latest.

mod cpus;
mod lanes;
mod states;
#[cfg(test)]
pub(crate) mod tests;
mod tracker;

pub use lanes::{CpuLane, IdleSpan, LaneWindows, ThreadLane, WindowLanes};
pub use tracker::{Coverage, Tracker, TrackerWarnings};

use punctual_core::event::{FunctionId, PointId, PointKind, TaskState};
use punctual_core::{EventKind, MonotonicNs, Nanos, Tid};

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ThreadState {
    /// Runs on this CPU, including interrupts there.
    Running {
        cpu: u16,
    },
    /// Waits for a CPU.
    Ready {
        /// The CPU of its runqueue; `None` if unknown.
        cpu: Option<u16>,
        /// Whether it lost its CPU by preemption (or sched_yield), rather than being woken.
        preempted: bool,
    },
    /// Its wake-up began (sched_waking), and it is not yet enqueued (sched_wakeup).
    Waking,
    /// Waits interruptibly: `S`.
    Sleeping,
    /// Waits uninterruptibly: `D`.
    Blocked,
    /// Waits for a lock with priority inheritance on PREEMPT_RT.
    LockWait,
    Stopped,
    /// Any other state, including that of a new thread before its first wake-up.
    Other,
    Unknown,
}

impl From<TaskState> for ThreadState {
    /// The state of a thread that left its CPU so. The dead are [`ThreadState::Other`] until their
    /// last query.
    fn from(state: TaskState) -> ThreadState {
        match state {
            TaskState::Preempted | TaskState::Yielded | TaskState::Throttled => {
                ThreadState::Ready { cpu: None, preempted: true }
            }
            TaskState::Sleeping => ThreadState::Sleeping,
            TaskState::Blocked => ThreadState::Blocked,
            TaskState::LockWait => ThreadState::LockWait,
            TaskState::Stopped => ThreadState::Stopped,
            TaskState::Dead | TaskState::Other => ThreadState::Other,
        }
    }
}

/// Whether the leaving task may cause this event within the switch, with interrupts disabled: it
/// waits for a lock, or another tracepoint shows it, or a tracer its stack. Any other event shows
/// an unrecorded switch back to it.
pub(crate) fn may_be_in_switch(what: &EventKind) -> bool {
    match what {
        EventKind::ContentionBegin { .. }
        | EventKind::ContentionEnd { .. }
        | EventKind::Stack { .. } => true,
        EventKind::Context { context, .. } => context.irqs_off != Some(false),
        _ => false,
    }
}

/// A span of one thread state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSpan {
    pub tid: Tid,
    pub from: MonotonicNs,
    /// The end; never before `from`.
    pub to: MonotonicNs,
    pub doing: ThreadState,
}

/// A span of one task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSpan {
    pub cpu: u16,
    pub from: MonotonicNs,
    /// The end; never before `from`.
    pub to: MonotonicNs,
    /// The task: [`Tid::IDLE`] if idle; `None` if unknown.
    pub tid: Option<Tid>,
    /// The kernel's priority of that task (see [`punctual_core::EventKind`]) at the switch to it,
    /// or at the switch from it if only that was seen; `None` if no switch shows it.
    pub prio: Option<i16>,
}

/// The kind of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Interrupt {
    /// A device's handler, by its number.
    Hard(u32),
    /// An interrupt vector of the CPU itself.
    Vector(u8),
    /// A softirq, by its vector.
    Soft(u8),
}

/// A served interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterruptSpan {
    pub cpu: u16,
    pub from: MonotonicNs,
    /// Its exit; if missing, the last instant at which it may still have been served.
    pub to: MonotonicNs,
    pub what: Interrupt,
    /// The number of interrupts it is nested in.
    pub depth: u8,
    /// `to - from` without nested interrupts.
    pub own: Nanos,
    /// The task that it interrupted.
    pub tid: Tid,
    /// Whether its exit was seen.
    pub whole: bool,
}

/// A system call of a thread, from entry to exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyscallSpan {
    pub tid: Tid,
    pub from: MonotonicNs,
    /// Exit, or the end of the recording.
    pub to: MonotonicNs,
    pub number: u32,
    /// The return value; `None` if the recording ended before.
    pub result: Option<i64>,
}

/// A begin and its end by one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScopeSpan {
    pub tid: Tid,
    pub from: MonotonicNs,
    /// Its end, or that of the recording.
    pub to: MonotonicNs,
    pub point: PointId,
    /// The number of open scopes of that thread around it.
    pub depth: u16,
    /// The values at its start: the first `count` are valid.
    pub values: [i64; 2],
    /// The number of values.
    pub count: u8,
    /// Whether its end was seen.
    pub whole: bool,
}

/// A passed test point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointMark {
    pub at: MonotonicNs,
    /// The thread that passed it.
    pub tid: Tid,
    pub point: PointId,
    /// An instant, a begin or an end.
    pub kind: PointKind,
    /// Its values: the first `count` are valid.
    pub values: [i64; 2],
    /// The number of values.
    pub count: u8,
}

/// A call of a probed function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallSpan {
    pub tid: Tid,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    pub function: FunctionId,
    /// The recorder's depth of this call.
    pub depth: u16,
    /// Whether it was left without a return.
    pub left: bool,
    /// Its argument, if requested.
    pub argument: Option<u64>,
}

/// A wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeMark {
    /// The instant (sched_waking; sched_wakeup if that is missing).
    pub at: MonotonicNs,
    /// The CPU of the waker.
    pub cpu: u16,
    /// The waker, or the interrupted task.
    pub waker: Tid,
    /// The interrupt that woke it, if one was being served.
    pub interrupt: Option<Interrupt>,
    /// The woken thread.
    pub task: Tid,
}

/// A switch on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchMark {
    pub at: MonotonicNs,
    pub cpu: u16,
    pub prev: Tid,
    pub state: TaskState,
    pub next: Tid,
}

/// A migration to another CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MigrationMark {
    pub at: MonotonicNs,
    pub tid: Tid,
    pub from: u16,
    pub to: u16,
}

/// A gap in the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GapMark {
    /// The CPU; `None` for test points.
    pub cpu: Option<u16>,
    /// For test points: the thread.
    pub tid: Option<Tid>,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    pub count: u64,
}

/// Takes the output of a [`Tracker`]: each span at its end. Spans of zero length are dropped,
/// except for interrupts, system calls, scopes and functions.
pub trait SpanSink {
    /// A span of a thread state.
    fn on_thread_span(&mut self, _span: &ThreadSpan) {}
    /// A span of a task on a CPU.
    fn on_cpu_span(&mut self, _span: &CpuSpan) {}
    fn on_interrupt_span(&mut self, _span: &InterruptSpan) {}
    /// A span of an idle state, by its number.
    fn on_idle_span(&mut self, _cpu: u16, _from: MonotonicNs, _to: MonotonicNs, _state: u32) {}
    /// A system call of a thread.
    fn on_syscall_span(&mut self, _span: &SyscallSpan) {}
    /// A begin and its end.
    fn on_scope_span(&mut self, _span: &ScopeSpan) {}
    /// A test point of any kind.
    fn on_point(&mut self, _mark: &PointMark) {}
    fn on_call_span(&mut self, _span: &CallSpan) {}
    fn on_wake(&mut self, _mark: &WakeMark) {}
    /// A switch of a CPU.
    fn on_switch(&mut self, _mark: &SwitchMark) {}
    /// A migration of a thread.
    fn on_migration(&mut self, _mark: &MigrationMark) {}
    /// Called where a thread is seen on a CPU without a switch to it.
    fn on_unseen_switch(&mut self, _tid: Tid, _at: MonotonicNs) {}
    /// A gap in the events.
    fn on_gap(&mut self, _mark: &GapMark) {}
}

/// Two sinks for one pass.
impl<A: SpanSink, B: SpanSink> SpanSink for (A, B) {
    fn on_thread_span(&mut self, span: &ThreadSpan) {
        self.0.on_thread_span(span);
        self.1.on_thread_span(span);
    }
    fn on_cpu_span(&mut self, span: &CpuSpan) {
        self.0.on_cpu_span(span);
        self.1.on_cpu_span(span);
    }
    fn on_interrupt_span(&mut self, span: &InterruptSpan) {
        self.0.on_interrupt_span(span);
        self.1.on_interrupt_span(span);
    }
    fn on_idle_span(&mut self, cpu: u16, from: MonotonicNs, to: MonotonicNs, state: u32) {
        self.0.on_idle_span(cpu, from, to, state);
        self.1.on_idle_span(cpu, from, to, state);
    }
    fn on_syscall_span(&mut self, span: &SyscallSpan) {
        self.0.on_syscall_span(span);
        self.1.on_syscall_span(span);
    }
    fn on_scope_span(&mut self, span: &ScopeSpan) {
        self.0.on_scope_span(span);
        self.1.on_scope_span(span);
    }
    fn on_point(&mut self, mark: &PointMark) {
        self.0.on_point(mark);
        self.1.on_point(mark);
    }
    fn on_call_span(&mut self, span: &CallSpan) {
        self.0.on_call_span(span);
        self.1.on_call_span(span);
    }
    fn on_wake(&mut self, mark: &WakeMark) {
        self.0.on_wake(mark);
        self.1.on_wake(mark);
    }
    fn on_switch(&mut self, mark: &SwitchMark) {
        self.0.on_switch(mark);
        self.1.on_switch(mark);
    }
    fn on_migration(&mut self, mark: &MigrationMark) {
        self.0.on_migration(mark);
        self.1.on_migration(mark);
    }
    fn on_unseen_switch(&mut self, tid: Tid, at: MonotonicNs) {
        self.0.on_unseen_switch(tid, at);
        self.1.on_unseen_switch(tid, at);
    }
    fn on_gap(&mut self, mark: &GapMark) {
        self.0.on_gap(mark);
        self.1.on_gap(mark);
    }
}
