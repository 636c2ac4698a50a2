//! The causes of a latency: disjoint parts that add up to it, each with the events that prove it.
//!
//! The instants between `due` and `woke` are cut at every relevant change: the state of the
//! thread, the task on its CPU, the interrupt handled there. Each piece has one [`Cause`]; what no
//! event proves is [`Cause::Unknown`], never spread over the others. Reading order: `segment`
//! cuts, `classify` judges, `evidence` has the events that a piece rests on, `parts` joins,
//! `waits` follows.

mod cause;
mod classify;
mod culprits;
mod evidence;
mod irqs;
mod observer;
mod parts;
#[cfg(test)]
mod properties;
mod search;
mod segment;
mod slack;
mod steal;
mod stops;
#[cfg(test)]
mod tests;
mod thread_timeline;
mod trace_context;
mod waits;
mod wakeups;

pub use cause::{Budget, Cause, GROUPS, Mode, device_name};
pub use culprits::{Culprit, Ranking, rank};
pub use irqs::is_enabled;
pub use steal::is_long_exit;
pub use wakeups::{Packet, Received, Socket, Wait, WakeUp, Waker};

use crate::gaps::Gaps;
use crate::threads::Coverage;
use punctual_core::event::{Group, StackId};
use punctual_core::{Event, MonotonicNs, Nanos, Tid};
use trace_context::TraceContext;

/// The latency of a sample, or any interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyInterval {
    pub tid: Tid,
    /// The CPU on which it was seen at the end; [`Event::NO_CPU`] where that is unknown.
    pub cpu: u16,
    /// When it should have come, or began.
    pub due: MonotonicNs,
    pub woke: MonotonicNs,
    pub kind: Kind,
}

/// What the beginning of an interval is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A timer was programmed to wake the thread at `due`: until its wake-up, the timer interrupt
    /// is delayed.
    Timer,
    /// The thread passed a test point at `due`, and may have waited since.
    Interval,
}

/// One piece of a latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub cause: Cause,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The CPU that it concerns, where it concerns one.
    pub cpu: Option<u16>,
    /// The priority of the responsible task, as the kernel's `prio`, if a switch shows it.
    pub prio: Option<i16>,
    /// Where in the kernel the responsible task was, where the recorder took its stack.
    pub stack: Option<StackId>,
    /// The events that prove it, as places in the events given, ascending. Empty for
    /// [`Cause::Unknown`] alone.
    pub evidence: Vec<usize>,
    /// For a wait for another task: what that one did meanwhile, in parts that add up to this one.
    pub meanwhile: Vec<Part>,
}

impl Part {
    pub fn span(&self) -> Nanos {
        self.to - self.from
    }
}

/// Where the time went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    pub interval: LatencyInterval,
    /// One after the other, without holes, from `due` to `woke`; none for a latency of 0 or less.
    pub parts: Vec<Part>,
    /// For a wait for a lock: the holder, then the task that the holder waited for, and so on.
    pub chain: Vec<Tid>,
    /// Who woke the thread, who woke that one, and so on: at most eight steps.
    pub wakeups: Vec<WakeUp>,
    /// Events that are missing within the interval.
    pub lost: u64,
    /// What of this rests on an incomplete record; empty where nothing does.
    pub warnings: Vec<Warning>,
    /// Groups of kernel events that were not recorded and may show what is not explained here.
    pub not_recorded: Vec<Group>,
}

/// Why an explanation may be wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Warning {
    /// Events are missing within the interval.
    Lost,
    Contradiction,
    /// A switch to the thread was not recorded: its next event is an upper bound of when that was.
    SwitchUnseen,
    /// The record begins after the sample was due.
    BeginsAfterDue,
    /// More than a twentieth of the latency is unknown.
    MuchUnknown,
    /// The end of page faults, which no kernel records, was taken from what the thread did next, or
    /// from how long such a fault takes at most.
    FaultEnds,
    /// Only the steal clock proves it, which counts in ticks: how much, not when.
    StealClock,
    /// An exit from idle took far longer than the idle state declares.
    LongIdleExit,
    /// The thread's CPU did nothing for long although an interrupt was due.
    Silent,
}

impl Warning {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Warning::Lost => "lost-events",
            Warning::Contradiction => "contradiction",
            Warning::SwitchUnseen => "switch-unseen",
            Warning::BeginsAfterDue => "begins-late",
            Warning::MuchUnknown => "much-unknown",
            Warning::FaultEnds => "fault-ends",
            Warning::StealClock => "steal-clock",
            Warning::LongIdleExit => "long-idle-exit",
            Warning::Silent => "silent-cpu",
        }
    }

    /// What it means, in a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Warning::Lost => "Events were lost within the interval.",
            Warning::Contradiction => "Events contradict each other.",
            Warning::SwitchUnseen => {
                "A switch to the thread was not recorded, as of an idle CPU on some kernels: until \
                 its next event it counts as ready or asleep, which is an upper bound."
            }
            Warning::BeginsAfterDue => "The record begins after the sample was due.",
            Warning::MuchUnknown => "More than 5 % of the latency is not attributed.",
            Warning::FaultEnds => {
                "The kernel records no end of a page fault: it is taken from what the thread did \
                 next."
            }
            Warning::StealClock => {
                "Steal comes from the steal clock, which counts how much was taken, not when."
            }
            Warning::LongIdleExit => {
                "An exit from idle took far longer than the declared exit latency: steal is \
                 likely, but not proven."
            }
            Warning::Silent => {
                "The CPU recorded no event for long while one of its timers was due: steal is \
                 likely, but not proven."
            }
        }
    }
}

/// How far an explanation can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Events are missing or much is unknown: the parts that are named are proven, and may not be
    /// all.
    Low,
    /// Something is deduced rather than recorded.
    Fair,
    /// Every part is proven by events, and none is missing.
    High,
}

impl Confidence {
    /// As terminal and JSON write it.
    pub fn word(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Fair => "fair",
            Confidence::High => "high",
        }
    }
}

impl Explanation {
    pub fn latency(&self) -> Nanos {
        Nanos((self.interval.woke - self.interval.due).ns().max(0))
    }

    /// The time by cause, the longest first.
    pub fn totals(&self) -> Vec<(Cause, Nanos)> {
        let mut totals: std::collections::BTreeMap<Cause, Nanos> = Default::default();
        self.parts.iter().for_each(|part| *totals.entry(part.cause).or_default() += part.span());
        let mut totals: Vec<(Cause, Nanos)> = totals.into_iter().collect();
        totals.sort_by_key(|(cause, span)| (std::cmp::Reverse(*span), *cause));
        totals
    }

    /// The time that punctual itself took.
    pub fn observed(&self) -> Nanos {
        let own = self.parts.iter().filter(|part| matches!(part.cause, Cause::Observer { .. }));
        own.fold(Nanos::ZERO, |sum, part| sum + part.span())
    }

    /// The time that no event explains.
    pub fn unknown(&self) -> Nanos {
        let unknown = self.parts.iter().filter(|part| part.cause == Cause::Unknown);
        unknown.fold(Nanos::ZERO, |sum, part| sum + part.span())
    }

    /// Whether the parts add up to the latency: they always do, and whoever shows an explanation
    /// may ask.
    pub fn adds_up(&self) -> bool {
        self.parts.iter().fold(Nanos::ZERO, |sum, part| sum + part.span()) == self.latency()
    }

    /// How far it can be trusted.
    pub fn confidence(&self) -> Confidence {
        let weight = |warning: &Warning| match warning {
            Warning::Lost | Warning::MuchUnknown | Warning::LongIdleExit | Warning::Silent => {
                Confidence::Low
            }
            Warning::Contradiction
            | Warning::SwitchUnseen
            | Warning::BeginsAfterDue
            | Warning::FaultEnds
            | Warning::StealClock => Confidence::Fair,
        };
        self.warnings.iter().map(weight).min().unwrap_or(Confidence::High)
    }
}

/// Explains one sample from the events around it, in the order of time: those from a little before
/// `due` (so that it is known who ran then) to `woke`. `coverage` is what was recorded; its
/// instants are ignored. Events after `woke` only end parts.
pub fn explain(
    interval: LatencyInterval,
    events: &[Event],
    coverage: &Coverage,
    gaps: &Gaps,
) -> Explanation {
    let context = TraceContext::of(interval, events, coverage, gaps);
    let (parts, of_steal) = steal::judge(&context, waits::of(&context));
    let parts = observer::judge(&context, parts);
    let (chain, lost) = (waits::chain(&parts), context.lost());
    let mut explanation = Explanation {
        interval,
        chain,
        wakeups: wakeups::chain(&context),
        parts,
        lost,
        warnings: Vec::new(),
        not_recorded: Vec::new(),
    };
    explanation.warnings = warnings(&context, &explanation);
    explanation.warnings.extend(of_steal);
    explanation.not_recorded = not_recorded(&context, &explanation);
    explanation
}

/// The inverse of the share of the latency from which on missing groups of events are reported.
const WORTH: i64 = 20;

/// The groups that show such waits, as far as they were not recorded: of what takes a twentieth at
/// least.
fn not_recorded(context: &TraceContext, explanation: &Explanation) -> Vec<Group> {
    let Some(recorded) = &context.coverage.groups else { return Vec::new() };
    let takes = |is: fn(Cause) -> bool| {
        let parts = explanation.parts.iter().filter(|part| is(part.cause));
        parts.fold(0, |sum, part| sum + part.span().ns()) * WORTH > explanation.latency().ns()
    };
    let mut groups: Vec<Group> = Vec::new();
    if takes(|cause| matches!(cause, Cause::Waiting { .. })) {
        groups.extend([Group::Futex, Group::Lock, Group::Block, Group::Syscall]);
    }
    if takes(|cause| matches!(cause, Cause::IdleExit { state: None })) {
        groups.push(Group::Idle);
    }
    groups.retain(|group| !recorded.contains(group));
    groups
}

fn warnings(context: &TraceContext, explanation: &Explanation) -> Vec<Warning> {
    let faults = explanation.parts.iter().any(|part| part.cause == Cause::PageFault);
    let all = [
        (explanation.lost > 0, Warning::Lost),
        (context.contradictions > 0, Warning::Contradiction),
        (context.is_switch_unseen(), Warning::SwitchUnseen),
        (context.begins_after_due(), Warning::BeginsAfterDue),
        (explanation.unknown() * 20 > explanation.latency(), Warning::MuchUnknown),
        (faults, Warning::FaultEnds),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
}
