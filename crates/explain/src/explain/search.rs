//! Searches in spans and events by instant.

use punctual_core::{Event, EventKind, MonotonicNs, Tid};

/// The span at this instant, of spans that do not overlap and are in order of time.
pub fn covering<T>(
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
