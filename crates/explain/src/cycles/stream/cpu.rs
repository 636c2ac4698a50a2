//! The activity of a CPU: the running task, and the time in interrupts and softirqs so far.

use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};
use std::collections::VecDeque;

/// The number of recent changes kept, for dividing the time since a timer was due.
const CHANGES: usize = 64;
/// The maximum delay of a softirq after the interrupt that raised it. Later ones run at a task's
/// request, which raised them: it sent a packet to this machine itself.
const MAX_SOFTIRQ_DELAY: Nanos = Nanos(1_000);

/// The activity of a CPU from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamActivity {
    Task,
    Idle,
    Soft,
    Hard,
}

/// The timer with a running handler.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    pub timer: u64,
    pub due: MonotonicNs,
    pub at: MonotonicNs,
}

/// The total time in interrupts and softirqs until an instant.
#[derive(Clone, Copy, Default, Debug)]
pub struct ServedTime {
    pub hard: Nanos,
    pub soft: Nanos,
}

/// The state of a CPU from one event to the next.
#[derive(Default)]
pub struct StreamCpu {
    /// The task on it, if known; idle is 0.
    pub running: Option<u32>,
    /// Its priority, if a switch shows it.
    pub prio: Option<i16>,
    pub switched: Option<MonotonicNs>,
    /// The task that the last switch left, until an event of the next one: its own events until
    /// then are within that switch.
    pub leaving: Option<u32>,
    /// Ready threads that are to run here.
    pub waiting: Vec<u32>,
    pub expiring: Option<Expiry>,
    /// A block request was completed in the current interrupt or softirq.
    pub completed: bool,
    depth: u32,
    hard_since: MonotonicNs,
    hard_ended: MonotonicNs,
    hard: Nanos,
    /// The start of the current softirq, and the interrupt time at that instant.
    serving: Option<(MonotonicNs, Nanos)>,
    soft: Nanos,
    changes: VecDeque<(MonotonicNs, StreamActivity)>,
}

impl StreamCpu {
    pub(crate) fn served_time(&self, now: MonotonicNs) -> ServedTime {
        let open = if self.depth > 0 { clamp_to_zero(now - self.hard_since) } else { Nanos::ZERO };
        let hard = self.hard + open;
        let softirq_time = |(since, before): (MonotonicNs, Nanos)| {
            clamp_to_zero(clamp_to_zero(now - since) - clamp_to_zero(hard - before))
        };
        ServedTime { hard, soft: self.soft + self.serving.map_or(Nanos::ZERO, softirq_time) }
    }

    fn record_change(&mut self, at: MonotonicNs, activity: StreamActivity) {
        if self.changes.len() >= CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((at, activity));
    }

    /// Its activity outside of interrupts.
    fn base_activity(&self) -> Option<StreamActivity> {
        match (self.serving, self.running) {
            (Some(_), _) => Some(StreamActivity::Soft),
            (None, Some(0)) => Some(StreamActivity::Idle),
            (None, running) => running.map(|_| StreamActivity::Task),
        }
    }

    fn change_to_base(&mut self, at: MonotonicNs) {
        match self.base_activity() {
            Some(activity) => self.record_change(at, activity),
            None => self.changes.clear(),
        }
    }

    pub(crate) fn enter_hard(&mut self, at: MonotonicNs) {
        self.depth = self.depth.saturating_add(1);
        if self.depth == 1 {
            self.hard_since = at;
            self.record_change(at, StreamActivity::Hard);
        }
    }

    /// Returns the start and time of the interrupt, if the task continues.
    pub(crate) fn exit_hard(&mut self, at: MonotonicNs) -> Option<(MonotonicNs, ServedTime)> {
        self.depth = self.depth.checked_sub(1)?;
        if self.depth > 0 {
            return None;
        }
        let hard = clamp_to_zero(at - self.hard_since);
        self.hard += hard;
        self.hard_ended = at;
        self.end_of_service();
        self.change_to_base(at);
        let served = ServedTime { hard, soft: Nanos::ZERO };
        // Within a softirq it is a part of that.
        self.serving.is_none().then_some((self.hard_since, served))
    }

    pub(crate) fn enter_soft(&mut self, at: MonotonicNs) {
        let served = self.served_time(at);
        self.soft = served.soft;
        self.serving = Some((at, served.hard));
        self.record_change(at, StreamActivity::Soft);
    }

    /// The same for a softirq, including interrupts within it.
    pub(crate) fn exit_soft(&mut self, at: MonotonicNs) -> Option<(MonotonicNs, ServedTime)> {
        let (since, before) = self.serving?;
        let served = self.served_time(at);
        let hard = clamp_to_zero(served.hard - before);
        let soft = clamp_to_zero(clamp_to_zero(at - since) - hard);
        self.soft = served.soft;
        self.serving = None;
        self.end_of_service();
        self.change_to_base(at);
        Some((since, ServedTime { hard, soft }))
    }

    /// Ends the served work: later wake-ups are unrelated to it.
    fn end_of_service(&mut self) {
        if self.serving.is_none() {
            (self.expiring, self.completed) = (None, false);
        }
    }

    /// The handler of a timer begins. It runs in an interrupt even if those are not recorded.
    pub(crate) fn on_timer_expiry(&mut self, expiry: Expiry) {
        if self.depth == 0 && self.serving.is_none() {
            self.record_change(expiry.at, StreamActivity::Hard);
        }
        self.expiring = Some(expiry);
    }

    pub(crate) fn on_expiry_end(&mut self, at: MonotonicNs) {
        self.expiring = None;
        if self.depth == 0 && self.serving.is_none() {
            self.change_to_base(at);
        }
    }

    /// Whether events on it are not actions of its task.
    pub(crate) fn is_serving(&self) -> bool {
        self.depth > 0 || self.serving.is_some() || self.expiring.is_some()
    }

    pub(crate) fn serves_interrupt(&self) -> bool {
        self.depth > 0
    }

    /// Whether it serves a softirq after an interrupt.
    pub(crate) fn serves_softirq(&self) -> bool {
        self.serving.is_some_and(|(since, _)| since - self.hard_ended <= MAX_SOFTIRQ_DELAY)
    }

    /// Another task gets it. The served work has ended: no switch occurs within an interrupt, and a
    /// softirq that is switched away from runs in a task (PREEMPT_RT).
    pub(crate) fn on_switch(&mut self, at: MonotonicNs, next: u32, prio: i16) {
        self.soft = self.served_time(at).soft;
        (self.depth, self.serving) = (0, None);
        self.end_of_service();
        (self.running, self.prio, self.switched) = (Some(next), Some(prio), Some(at));
        self.change_to_base(at);
    }

    /// An event shows another task than the one switched to: the time until then is unknown.
    /// `always`: with only some switches recorded, the task is assumed to have run since the last
    /// one.
    pub(crate) fn is_found_with(&mut self, at: MonotonicNs, tid: u32, always: bool) {
        let is_first = always || self.running.is_none() && self.changes.is_empty();
        (self.running, self.prio, self.switched) = (Some(tid), None, None);
        self.leaving = None;
        self.changes.clear();
        // It runs one task from switch to switch.
        let since = if is_first { MonotonicNs(i64::MIN) } else { at };
        let base = if tid == 0 { StreamActivity::Idle } else { StreamActivity::Task };
        self.record_change(since, base);
        if self.serving.is_some() {
            self.record_change(at, StreamActivity::Soft);
        }
        if self.depth > 0 {
            self.record_change(at, StreamActivity::Hard);
        }
    }

    /// The time that a timer was overdue, by the activity of the CPU.
    pub(crate) fn divide_overdue(&self, begin: MonotonicNs, now: MonotonicNs, into: &mut Split) {
        let mut end = now;
        for (at, activity) in self.changes.iter().rev() {
            let part = match activity {
                StreamActivity::Hard => CauseKind::Irq,
                StreamActivity::Soft => CauseKind::Softirq,
                StreamActivity::Idle => CauseKind::IdleExit,
                StreamActivity::Task => CauseKind::TimerIrqDelay,
            };
            let from = (*at).max(begin);
            if from < end {
                into.add(part, end - from);
                end = from;
            }
            if *at <= begin {
                break;
            }
        }
        into.add(CauseKind::Unknown, end - begin);
    }
}

pub(crate) fn clamp_to_zero(span: Nanos) -> Nanos {
    span.max(Nanos::ZERO)
}
