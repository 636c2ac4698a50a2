//! The time taken by punctual itself: its controller and recorders ran where the thread was to run.

use super::trace_context::TraceContext;
use super::{Cause, Part, parts};

/// The parts, with those of punctual's own threads marked as the observer's. A thread of the
/// measurement, such as the other thread of a pair, is not an observer.
pub(crate) fn mark_observers(context: &TraceContext, all: Vec<Part>) -> Vec<Part> {
    let mut judged: Vec<Part> = Vec::with_capacity(all.len());
    for mut part in all {
        let ran = match part.cause {
            Cause::TimerIrqDelay { .. }
            | Cause::NonPreemptible { .. }
            | Cause::Preempted { .. }
            | Cause::Runqueue { .. }
            | Cause::Inversion { .. } => part.cause.responsible_task(),
            _ => None,
        };
        if let Some(task) = ran.filter(|task| context.coverage.observers.contains(task)) {
            part.cause = Cause::Observer { task };
        }
        parts::append_part(&mut judged, part);
    }
    judged.into_iter().map(parts::tidy_evidence).collect()
}
