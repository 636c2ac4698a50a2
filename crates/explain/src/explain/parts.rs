//! The pieces of a segment of a thread's time, without a relevant change inside, each with its
//! cause, joined to parts.

use super::classify::{self, ClassifiedCause};
use super::segment::Segment;
use super::trace_context::TraceContext;
use super::{Budget, Cause, Part, evidence};

/// The consecutive parts of a segment, without gaps; waits for other tasks are not followed.
pub(crate) fn segment_parts(context: &TraceContext, segment: &Segment) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (from, to) in segment.constant_pieces(context) {
        let ClassifiedCause { cause, cpu, prio } = classify::classify_cause(context, segment, from);
        let evidence = evidence::find_evidence(context, segment, cause, cpu, from, to);
        // Without a proving event, the cause is unknown.
        let proven = !evidence.is_empty();
        let (cause, cpu, prio) =
            if proven { (cause, cpu, prio) } else { (Cause::Unknown, None, None) };
        let stack = match (cause, cpu) {
            (
                Cause::TimerIrqDelay { running, .. } | Cause::NonPreemptible { running, .. },
                Some(cpu),
            ) => context.kernel_stack(cpu, running, from, to),
            _ => None,
        };
        append_part(
            &mut parts,
            Part { cause, from, to, cpu, prio, stack, evidence, meanwhile: Vec::new() },
        );
    }
    throttled_before(parts)
}

/// Only real-time tasks exhaust the budget of real-time tasks: a thread that is throttled while
/// another task runs has been so since that task got the CPU, whatever it did meanwhile.
fn throttled_before(mut parts: Vec<Part>) -> Vec<Part> {
    let mut throttler = None;
    for part in parts.iter_mut().rev() {
        match part.cause {
            Cause::Throttled { running, budget: Budget::RealTime } => {
                throttler = Some((running, part.cpu));
            }
            Cause::NonPreemptible { running, .. } if throttler == Some((running, part.cpu)) => {
                part.cause = Cause::Throttled { running, budget: Budget::RealTime };
                part.stack = None;
            }
            Cause::Interrupt(_) => {}
            _ => throttler = None,
        }
    }
    let mut joined = Vec::with_capacity(parts.len());
    parts.into_iter().for_each(|part| append_part(&mut joined, part));
    joined
}

/// Adds a part, or extends the last one.
pub fn append_part(parts: &mut Vec<Part>, part: Part) {
    match parts.last_mut().filter(|last| last.cause == part.cause && last.cpu == part.cpu) {
        Some(last) => {
            last.to = part.to;
            last.stack = part.stack.or(last.stack);
            last.evidence.extend(part.evidence);
            last.meanwhile.extend(part.meanwhile);
        }
        None => parts.push(part),
    }
}

/// Sorts its evidence without duplicates.
pub(crate) fn tidy_evidence(mut part: Part) -> Part {
    part.evidence.sort_unstable();
    part.evidence.dedup();
    part
}
