//! The causes of a latency: disjoint parts that add up to it, each with the events that prove it.
//!
//! The time between `due` and `woke` is divided at every relevant change: the state of the thread,
//! the task on its CPU, the interrupt handled there. Each piece has one [`Cause`]; time without
//! proof is [`Cause::Unknown`], never spread over the others. Reading order: `segment` divides,
//! `classify` judges, `evidence` has the events behind a piece, `parts` joins, `waits` follows.

mod cause;
mod classify;
mod culprits;
mod evidence;
mod irqs;
mod observer;
mod parts;
mod places;
#[cfg(test)]
mod properties;
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

use crate::gaps::Gaps;
use crate::threads::Coverage;
pub use cause::{Budget, Cause, CpuMode, GROUPS, device_name};
pub use culprits::{Culprit, Ranking, rank_culprits};
pub use irqs::is_enabled;
pub use places::{LongestPlace, longest_place};
use punctual_core::event::{Group, StackId, TraceMoment};
use punctual_core::{Event, EventKind, MonotonicNs, Nanos, Tid};
pub use steal::is_long_exit;
use trace_context::TraceContext;
pub use wakeups::{Packet, ReceivedPacket, Socket, WaitKind, WakeUp, Waker};

/// The latency of a sample, or any interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyInterval {
    pub tid: Tid,
    /// The CPU on which its end was seen; [`Event::NO_CPU`] if unknown.
    pub cpu: u16,
    /// When it was due, or began.
    pub due: MonotonicNs,
    pub woke: MonotonicNs,
    pub kind: StartKind,
}

/// The meaning of an interval's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartKind {
    /// The expiry of a timer that was to wake the thread at `due`: until the wake-up, the timer
    /// interrupt is delayed.
    Timer,
    /// The thread passed a test point at `due`, and may have waited since.
    Interval,
}

/// A part of a latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub cause: Cause,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The CPU concerned, if any.
    pub cpu: Option<u16>,
    /// The priority of the responsible task, as the kernel's `prio`, if a switch shows it.
    pub prio: Option<i16>,
    /// The kernel stack of the responsible task, if the recorder took it.
    pub stack: Option<StackId>,
    /// The events that prove it, as ascending indices of the given events. Empty only for
    /// [`Cause::Unknown`].
    pub evidence: Vec<usize>,
    /// For a wait for another task: that task's activity meanwhile, in parts that add up to this
    /// one.
    pub meanwhile: Vec<Part>,
}

impl Part {
    pub fn duration(&self) -> Nanos {
        self.to - self.from
    }
}

/// The breakdown of a latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    pub interval: LatencyInterval,
    /// Consecutive parts without gaps from `due` to `woke`; none for a latency of 0 or less.
    pub parts: Vec<Part>,
    /// For a wait for a lock: the holder, then the task that the holder waited for, and so on.
    pub chain: Vec<Tid>,
    /// The waker of the thread, then the waker of that, and so on: at most eight steps.
    pub wakeups: Vec<WakeUp>,
    /// The number of events missing within the interval.
    pub lost: u64,
    /// The parts that depend on an incomplete record.
    pub warnings: Vec<Warning>,
    /// Event groups that were not recorded and may show the unexplained parts.
    pub not_recorded: Vec<Group>,
    /// The moment of a trace that this is of.
    pub moment: Option<TraceMoment>,
}

/// The reason why an explanation may be wrong.
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
    /// The end of page faults, which no kernel records, was derived from the thread's next event,
    /// or from the maximum duration of such a fault.
    FaultEnds,
    /// Only the steal clock proves it, which counts in ticks: the amount, not the time.
    StealClock,
    /// An exit from idle took far longer than the idle state declares.
    LongIdleExit,
    /// The thread's CPU was inactive for long although an interrupt was due.
    Silent,
}

impl Warning {
    /// Its spelling in JSON.
    pub fn as_str(self) -> &'static str {
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

    /// Its meaning in a sentence.
    pub fn as_sentence(self) -> &'static str {
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

/// The confidence in an explanation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Events are missing or much is unknown: the named parts are proven, but may be incomplete.
    Low,
    /// Some parts are derived rather than recorded.
    Fair,
    /// Every part is proven by events, and none is missing.
    High,
}

impl Confidence {
    /// Its spelling in terminal and JSON.
    pub fn as_str(self) -> &'static str {
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
    pub fn totals_by_cause(&self) -> Vec<(Cause, Nanos)> {
        let mut totals: std::collections::BTreeMap<Cause, Nanos> = Default::default();
        self.parts
            .iter()
            .for_each(|part| *totals.entry(part.cause).or_default() += part.duration());
        let mut totals: Vec<(Cause, Nanos)> = totals.into_iter().collect();
        totals.sort_by_key(|(cause, span)| (std::cmp::Reverse(*span), *cause));
        totals
    }

    /// The time taken by punctual itself.
    pub fn observer_time(&self) -> Nanos {
        let observer_parts =
            self.parts.iter().filter(|part| matches!(part.cause, Cause::Observer { .. }));
        observer_parts.fold(Nanos::ZERO, |sum, part| sum + part.duration())
    }

    /// The time without proven cause.
    pub(crate) fn unknown_time(&self) -> Nanos {
        let unknown = self.parts.iter().filter(|part| part.cause == Cause::Unknown);
        unknown.fold(Nanos::ZERO, |sum, part| sum + part.duration())
    }

    /// Whether the parts add up to the latency: they always do, and displays may check it.
    pub fn adds_up(&self) -> bool {
        self.parts.iter().fold(Nanos::ZERO, |sum, part| sum + part.duration()) == self.latency()
    }

    /// The confidence in it.
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

/// Explains one sample from the events around it in order of time: from a little before `due` (so
/// that the running tasks are known) to `woke`. `coverage` describes the recording; its instants
/// are ignored. Events after `woke` only end parts.
pub fn explain_sample(
    interval: LatencyInterval,
    events: &[Event],
    coverage: &Coverage,
    gaps: &Gaps,
) -> Explanation {
    let context = TraceContext::from_events(interval, events, coverage, gaps);
    let (parts, of_steal) = steal::judge_steal(&context, waits::sample_parts(&context));
    let parts = observer::mark_observers(&context, parts);
    let (chain, lost) = (waits::lock_chain(&parts), context.lost_count());
    let mut explanation = Explanation {
        interval,
        chain,
        wakeups: wakeups::wakeup_chain(&context),
        parts,
        lost,
        warnings: Vec::new(),
        not_recorded: Vec::new(),
        moment: None,
    };
    explanation.warnings = collect_warnings(&context, &explanation);
    explanation.warnings.extend(of_steal);
    explanation.not_recorded = not_recorded(&context, &explanation);
    explanation
}

/// The reciprocal of the share of the latency from which missing groups of events are reported.
const WORTH: i64 = 20;

/// The groups that would show such waits and were not recorded, for parts of at least a twentieth.
fn not_recorded(context: &TraceContext, explanation: &Explanation) -> Vec<Group> {
    let Some(recorded) = &context.coverage.groups else { return Vec::new() };
    let takes = |is: fn(Cause) -> bool| {
        let parts = explanation.parts.iter().filter(|part| is(part.cause));
        parts.fold(0, |sum, part| sum + part.duration().ns()) * WORTH > explanation.latency().ns()
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

fn collect_warnings(context: &TraceContext, explanation: &Explanation) -> Vec<Warning> {
    let faults = explanation.parts.iter().any(|part| part.cause == Cause::PageFault);
    let conditions = [
        (explanation.lost > 0, Warning::Lost),
        (context.contradictions > 0, Warning::Contradiction),
        (context.is_switch_unseen(), Warning::SwitchUnseen),
        (context.begins_after_due(), Warning::BeginsAfterDue),
        (explanation.unknown_time() * 20 > explanation.latency(), Warning::MuchUnknown),
        (faults, Warning::FaultEnds),
    ];
    conditions.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
}

/// The span at this instant, of spans that do not overlap and are in order of time.
pub(crate) fn find_covering<T>(
    spans: &[T],
    at: MonotonicNs,
    ends: impl Fn(&T) -> (MonotonicNs, MonotonicNs),
) -> Option<&T> {
    let place = spans.partition_point(|span| ends(span).1 <= at);
    spans.get(place).filter(|span| ends(span).0 <= at)
}

/// The task switched to by this event.
pub(crate) fn switched_to(event: &Event) -> Option<Tid> {
    match event.what {
        EventKind::Switch { next, .. } => Some(next),
        _ => None,
    }
}
