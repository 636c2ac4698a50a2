//! What a CPU does: who runs, and how long it has served interrupts and softirqs so far.

use punctual_core::{MainPart, MonotonicNs, Nanos, Split};
use std::collections::VecDeque;

/// The last changes of what it does, by which the time is divided since a timer was due.
const CHANGES: usize = 64;
/// A softirq that an interrupt left follows it at once. Others run where a task lets them, which
/// has raised them: it has sent a packet to this machine itself.
const AT_ONCE: Nanos = Nanos(1_000);

/// What a CPU does from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Activity {
    Task,
    Idle,
    Soft,
    Hard,
}

/// The timer whose handler runs.
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    pub timer: u64,
    pub due: MonotonicNs,
    pub at: MonotonicNs,
}

/// How long interrupts and softirqs were served at an instant, altogether.
#[derive(Clone, Copy, Default, Debug)]
pub struct Served {
    pub hard: Nanos,
    pub soft: Nanos,
}

/// A CPU, from one event to the next.
#[derive(Default)]
pub struct Cpu {
    /// The task on it, where that is known; idle is 0.
    pub running: Option<u32>,
    /// Its priority, where a switch shows it.
    pub prio: Option<i16>,
    pub switched: Option<MonotonicNs>,
    /// The task that the last switch left, until the one that it chose is seen to do something:
    /// what is seen of it is inside of the switch.
    pub leaving: Option<u32>,
    /// Ready threads that shall run here.
    pub waiting: Vec<u32>,
    pub expiring: Option<Expiry>,
    /// A block request was completed in what is served now.
    pub completed: bool,
    depth: u32,
    hard_since: MonotonicNs,
    hard_ended: MonotonicNs,
    hard: Nanos,
    /// Since when a softirq is served, and the time of interrupts then.
    serving: Option<(MonotonicNs, Nanos)>,
    soft: Nanos,
    changes: VecDeque<(MonotonicNs, Activity)>,
}

impl Cpu {
    pub fn served(&self, now: MonotonicNs) -> Served {
        let open = if self.depth > 0 { positive(now - self.hard_since) } else { Nanos::ZERO };
        let hard = self.hard + open;
        let within = |(since, before): (MonotonicNs, Nanos)| {
            positive(positive(now - since) - positive(hard - before))
        };
        Served { hard, soft: self.soft + self.serving.map_or(Nanos::ZERO, within) }
    }

    fn change(&mut self, at: MonotonicNs, activity: Activity) {
        if self.changes.len() >= CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((at, activity));
    }

    /// What it does outside of interrupts.
    fn base(&self) -> Option<Activity> {
        match (self.serving, self.running) {
            (Some(_), _) => Some(Activity::Soft),
            (None, Some(0)) => Some(Activity::Idle),
            (None, running) => running.map(|_| Activity::Task),
        }
    }

    fn change_to_base(&mut self, at: MonotonicNs) {
        match self.base() {
            Some(activity) => self.change(at, activity),
            None => self.changes.clear(),
        }
    }

    pub fn enter_hard(&mut self, at: MonotonicNs) {
        self.depth = self.depth.saturating_add(1);
        if self.depth == 1 {
            self.hard_since = at;
            self.change(at, Activity::Hard);
        }
    }

    /// Since when, and how long, where the task goes on.
    pub fn exit_hard(&mut self, at: MonotonicNs) -> Option<(MonotonicNs, Served)> {
        self.depth = self.depth.checked_sub(1)?;
        if self.depth > 0 {
            return None;
        }
        let hard = positive(at - self.hard_since);
        self.hard += hard;
        self.hard_ended = at;
        self.end_of_service();
        self.change_to_base(at);
        let served = Served { hard, soft: Nanos::ZERO };
        // Within a softirq it is a part of that.
        self.serving.is_none().then_some((self.hard_since, served))
    }

    pub fn enter_soft(&mut self, at: MonotonicNs) {
        let served = self.served(at);
        self.soft = served.soft;
        self.serving = Some((at, served.hard));
        self.change(at, Activity::Soft);
    }

    /// The same of a softirq, with the interrupts in it.
    pub fn exit_soft(&mut self, at: MonotonicNs) -> Option<(MonotonicNs, Served)> {
        let (since, before) = self.serving?;
        let served = self.served(at);
        let hard = positive(served.hard - before);
        let soft = positive(positive(at - since) - hard);
        self.soft = served.soft;
        self.serving = None;
        self.end_of_service();
        self.change_to_base(at);
        Some((since, Served { hard, soft }))
    }

    /// Whatever is woken afterwards was woken for nothing that was served.
    fn end_of_service(&mut self) {
        if self.serving.is_none() {
            (self.expiring, self.completed) = (None, false);
        }
    }

    /// The handler of a timer begins. It runs in an interrupt also where those are not shown.
    pub fn expires(&mut self, expiry: Expiry) {
        if self.depth == 0 && self.serving.is_none() {
            self.change(expiry.at, Activity::Hard);
        }
        self.expiring = Some(expiry);
    }

    pub fn has_expired(&mut self, at: MonotonicNs) {
        self.expiring = None;
        if self.depth == 0 && self.serving.is_none() {
            self.change_to_base(at);
        }
    }

    /// What happens is not the activity of the task on it.
    pub fn serves(&self) -> bool {
        self.depth > 0 || self.serving.is_some() || self.expiring.is_some()
    }

    pub fn serves_interrupt(&self) -> bool {
        self.depth > 0
    }

    /// A softirq, which an interrupt left.
    pub fn serves_softirq(&self) -> bool {
        self.serving.is_some_and(|(since, _)| since - self.hard_ended <= AT_ONCE)
    }

    /// Another task gets it. What was served has ended: nothing is switched within an interrupt,
    /// and a softirq that is switched away from belongs to a task (PREEMPT_RT).
    pub fn switches(&mut self, at: MonotonicNs, next: u32, prio: i16) {
        self.soft = self.served(at).soft;
        (self.depth, self.serving) = (0, None);
        self.end_of_service();
        (self.running, self.prio, self.switched) = (Some(next), Some(prio), Some(at));
        self.change_to_base(at);
    }

    /// An event shows another task than the one that was switched to: what happened until then is
    /// not known.
    /// `always`: where only some switches are shown, it is taken to have run since the last one.
    pub fn is_found_with(&mut self, at: MonotonicNs, tid: u32, always: bool) {
        let is_first = always || self.running.is_none() && self.changes.is_empty();
        (self.running, self.prio, self.switched) = (Some(tid), None, None);
        self.leaving = None;
        self.changes.clear();
        // From switch to switch it runs one task.
        let since = if is_first { MonotonicNs(i64::MIN) } else { at };
        let base = if tid == 0 { Activity::Idle } else { Activity::Task };
        self.change(since, base);
        if self.serving.is_some() {
            self.change(at, Activity::Soft);
        }
        if self.depth > 0 {
            self.change(at, Activity::Hard);
        }
    }

    /// The time in which a timer was overdue, by what the CPU did.
    pub fn divide_overdue(&self, begin: MonotonicNs, now: MonotonicNs, into: &mut Split) {
        let mut end = now;
        for (at, activity) in self.changes.iter().rev() {
            let part = match activity {
                Activity::Hard => MainPart::Irq,
                Activity::Soft => MainPart::Softirq,
                Activity::Idle => MainPart::IdleExit,
                Activity::Task => MainPart::TimerIrqDelay,
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
        into.add(MainPart::Unknown, end - begin);
    }
}

pub fn positive(span: Nanos) -> Nanos {
    span.max(Nanos::ZERO)
}
