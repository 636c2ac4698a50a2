//! The parts of a sample; for waits for other tasks, the causes of those tasks meanwhile.

use super::parts;
use super::segment::Segment;
use super::trace_context::TraceContext;
use super::{Cause, Part, StartKind};
use punctual_core::{Event, Tid};

/// The maximum depth of waits that are followed.
const DEPTH: usize = 6;

/// The parts of the sample, following waits for other tasks.
pub(crate) fn sample_parts(context: &TraceContext) -> Vec<Part> {
    let interval = context.interval;
    if interval.woke <= interval.due {
        return Vec::new();
    }
    let Some(timeline) = context.thread_timeline(interval.tid) else { return Vec::new() };
    let urgency = timeline.priority_at(interval.woke);
    let (from, to, waiting) = (interval.due, interval.woke, Vec::new());
    followed_parts(
        context,
        &Segment {
            timeline: &timeline,
            kind: interval.kind,
            cpu: interval.cpu,
            from,
            to,
            waiting,
            urgency,
        },
    )
}

/// The consecutive parts of a segment, without gaps.
fn followed_parts(context: &TraceContext, segment: &Segment) -> Vec<Part> {
    let parts = follow_waits(context, segment, parts::segment_parts(context, segment));
    parts.into_iter().map(parts::tidy_evidence).collect()
}

/// Adds to each wait for a task the parts of that task meanwhile, and the resulting causes: a
/// holder that could not run due to a task of lower priority than the waiting thread, a device that
/// the other task waited for.
fn follow_waits(context: &TraceContext, segment: &Segment, parts: Vec<Part>) -> Vec<Part> {
    let mut followed = Vec::with_capacity(parts.len());
    for part in parts {
        match waited_for(&part).and_then(|tid| parts_meanwhile(context, segment, &part, tid)) {
            Some(meanwhile) => split_wait(segment, part, meanwhile, &mut followed),
            None => parts::append_part(&mut followed, part),
        }
    }
    followed
}

fn waited_for(part: &Part) -> Option<Tid> {
    match part.cause {
        Cause::Lock { holder, .. } => holder,
        Cause::Waiting { woken_by } => woken_by,
        _ => None,
    }
}

/// The parts of the task during the part; `None` for a cycle of waits, or beyond the maximum depth.
fn parts_meanwhile(
    context: &TraceContext,
    segment: &Segment,
    part: &Part,
    tid: Tid,
) -> Option<Vec<Part>> {
    let own_tid = segment.timeline.tid;
    if tid == own_tid || segment.waiting.contains(&tid) || segment.waiting.len() >= DEPTH {
        return None;
    }
    let timeline = context.thread_timeline(tid)?;
    let waiting = segment.waiting.iter().copied().chain([own_tid]).collect();
    let (kind, cpu, urgency) = (StartKind::Interval, Event::NO_CPU, segment.urgency);
    let (from, to) = (part.from, part.to);
    Some(followed_parts(
        context,
        &Segment { timeline: &timeline, kind, cpu, from, to, waiting, urgency },
    ))
}

/// The wait in pieces, each with the cause that results from the other task meanwhile.
fn split_wait(segment: &Segment, wait: Part, meanwhile: Vec<Part>, out: &mut Vec<Part>) {
    for other in meanwhile {
        let cause = resulting_cause(segment, &wait, &other);
        let foreign = cause != wait.cause;
        let evidence = if foreign {
            [&wait.evidence[..], &other.evidence[..]].concat()
        } else {
            wait.evidence.clone()
        };
        let (from, to, prio) = (other.from, other.to, if foreign { other.prio } else { wait.prio });
        let (cpu, stack) = if foreign { (other.cpu, other.stack) } else { (wait.cpu, wait.stack) };
        parts::append_part(
            out,
            Part { cause, from, to, cpu, prio, stack, evidence, meanwhile: vec![other] },
        );
    }
}

fn resulting_cause(segment: &Segment, wait: &Part, other: &Part) -> Cause {
    match (wait.cause, other.cause) {
        (_, Cause::Io { device }) if !matches!(wait.cause, Cause::Lock { .. }) => {
            Cause::Io { device }
        }
        (_, Cause::Steal) => Cause::Steal,
        (Cause::Lock { .. }, inner @ Cause::Inversion { .. }) => inner,
        (
            Cause::Lock { holder: Some(holder), .. },
            Cause::Preempted { by, .. }
            | Cause::Runqueue { behind: by }
            | Cause::NonPreemptible { running: by, .. },
        ) => {
            // Tasks of higher priority would have run before the thread anyway.
            let less_urgent =
                other.prio.zip(segment.urgency).is_some_and(|(prio, urgency)| prio > urgency);
            let stranger = by != segment.timeline.tid && !segment.waiting.contains(&by);
            if less_urgent && stranger { Cause::Inversion { holder, by } } else { wait.cause }
        }
        (cause, _) => cause,
    }
}

/// For the longest wait for a lock: the holder, then the task that the holder waited for, and so
/// on.
pub(crate) fn lock_chain(parts: &[Part]) -> Vec<Tid> {
    let mut chain = Vec::new();
    let mut level: Vec<&Part> = parts.iter().collect();
    loop {
        // The thread itself must wait for a lock; its holder may wait for anything.
        let awaited_task = |part: &Part| {
            if chain.is_empty() {
                lock_holder(part)
            } else {
                lock_holder(part).or(waited_for(part))
            }
        };
        let waits = level.into_iter().filter_map(|part| Some((part, awaited_task(part)?)));
        let Some((longest, tid)) = waits.max_by_key(|(part, _)| part.duration()) else {
            return chain;
        };
        chain.push(tid);
        level = longest.meanwhile.iter().collect();
    }
}

fn lock_holder(part: &Part) -> Option<Tid> {
    match part.cause {
        Cause::Lock { holder, .. } => holder,
        Cause::Inversion { holder, .. } => Some(holder),
        _ => None,
    }
}
