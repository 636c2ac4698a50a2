//! The time by which the kernel might let the timer of a thread expire later than asked for.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};

/// This many events before a wake-up are searched for the timer that did it.
const NEARBY: usize = 64;

/// The slack of a timer: the place of the event that shows it, and the instants between which the
/// timer may expire.
pub struct Slack {
    pub evidence: usize,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
}

/// Whether at this instant the timer that wakes the thread was due, and might still wait.
pub fn has_slack(context: &TraceContext, timeline: &ThreadTimeline, at: MonotonicNs) -> bool {
    of(context, timeline, at).is_some_and(|slack| slack.from <= at && at < slack.to)
}

/// The slack of the timer whose handler wakes the thread next; `None` where it has none, or where
/// no event shows it.
pub fn of(context: &TraceContext, timeline: &ThreadTimeline, at: MonotonicNs) -> Option<Slack> {
    let wake = timeline.wake_after(at)?;
    wake.interrupt?;
    let here = context.on(wake.cpu);
    let end = here.partition_point(|place| context.events[*place as usize].at <= wake.at);
    let before = here[..end].iter().rev().take(NEARBY).map(|place| *place as usize);
    let mut handlers = before.map(|place| (place, &context.events[place].what));
    let (place, timer, expires, slack) = handlers.find_map(|(place, what)| match *what {
        EventKind::HrtimerExpireEntry { timer, expires, slack, .. } => {
            Some(Some((place, timer, expires, slack)))
        }
        // What wakes outside of a timer's handler is no timer.
        EventKind::HrtimerExpireExit { .. }
        | EventKind::BlockComplete { .. }
        | EventKind::IrqEntry { .. }
        | EventKind::VectorEntry { .. }
        | EventKind::SoftirqEntry { .. } => Some(None),
        _ => None,
    })??;
    if let (Some(from), Some(slack)) = (expires, slack) {
        return Some(Slack { evidence: place, from, to: from + Nanos(slack.get().into()) });
    }
    // Recorders that see the kernel's own records alone have it of its start.
    let is_start = |event: &Event| match event.what {
        EventKind::HrtimerStart { timer: of, .. } => of == timer,
        _ => false,
    };
    let start = context.events[..place].iter().rposition(is_start)?;
    let EventKind::HrtimerStart { expires: from, slack, .. } = context.events[start].what else {
        return None;
    };
    Some(Slack { evidence: start, from, to: from + Nanos(slack?.get().into()) })
}
