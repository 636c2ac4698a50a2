//! What punctual itself took: its controller and its recorders ran where the thread was to run.

use super::trace_context::TraceContext;
use super::{Cause, Part, parts};

/// The parts, those of punctual's own threads as its own. What the measurement consists of, such as
/// the other thread of a pair, is no observer.
pub fn judge(context: &TraceContext, all: Vec<Part>) -> Vec<Part> {
    let mut judged: Vec<Part> = Vec::with_capacity(all.len());
    for mut part in all {
        let ran = match part.cause {
            Cause::TimerIrqDelay { .. }
            | Cause::NonPreemptible { .. }
            | Cause::Preempted { .. }
            | Cause::Runqueue { .. }
            | Cause::Inversion { .. } => part.cause.task(),
            _ => None,
        };
        if let Some(task) = ran.filter(|task| context.coverage.observers.contains(task)) {
            part.cause = Cause::Observer { task };
        }
        parts::join(&mut judged, part);
    }
    judged.into_iter().map(parts::tidy).collect()
}
