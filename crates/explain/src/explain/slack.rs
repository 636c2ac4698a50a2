//! The time by which the kernel may defer the timer of a thread.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};

/// The number of events before a wake-up that are searched for its timer.
const NEARBY: usize = 64;

/// The slack of a timer: the index of the event that shows it, and the bounds of the expiry.
pub(crate) struct Slack {
    pub evidence: usize,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
}

/// Whether the timer that wakes the thread was due at this instant but within its slack.
pub(crate) fn has_slack(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    at: MonotonicNs,
) -> bool {
    find_slack(context, timeline, at).is_some_and(|slack| slack.from <= at && at < slack.to)
}

/// The slack of the timer whose handler wakes the thread next; `None` if it has none, or no event
/// shows it.
pub(crate) fn find_slack(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    at: MonotonicNs,
) -> Option<Slack> {
    let wake = timeline.wake_after(at)?;
    wake.interrupt?;
    let cpu_places = context.places_on_cpu(wake.cpu);
    let end = cpu_places.partition_point(|place| context.events[*place as usize].at <= wake.at);
    let before = cpu_places[..end].iter().rev().take(NEARBY).map(|place| *place as usize);
    let mut handlers = before.map(|place| (place, &context.events[place].what));
    let (place, timer, expires, slack) = handlers.find_map(|(place, what)| match *what {
        EventKind::HrtimerExpireEntry { timer, expires, slack, .. } => {
            Some(Some((place, timer, expires, slack)))
        }
        // A wake-up outside of a timer's handler is not by a timer.
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
    // Recorders of only the kernel's own records have it from the timer's start.
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
