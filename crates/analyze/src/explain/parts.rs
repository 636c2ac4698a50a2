//! The pieces of a segment of a thread's time, without a relevant change inside, each with its
//! cause, joined to parts.

use super::classify::{self, Judged};
use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use super::{Cause, Kind, Part, evidence, waits};
use crate::threads::ThreadState;
use punctual_core::{Event, MonotonicNs, Tid};

/// Waits upon waits are followed so far.
pub const DEPTH: usize = 6;

/// A segment of a thread's time, and the threads that wait for it.
pub struct Segment<'s> {
    pub timeline: &'s ThreadTimeline,
    pub kind: Kind,
    /// The CPU on which it was seen at the end; [`Event::NO_CPU`] where that is unknown.
    pub cpu: u16,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The threads that wait for this one, beginning with that of the sample.
    pub waiting: Vec<Tid>,
    /// The priority of the thread of the sample.
    pub urgency: Option<i16>,
}

/// The parts of the sample.
pub fn of(context: &TraceContext) -> Vec<Part> {
    let interval = context.interval;
    if interval.woke <= interval.due {
        return Vec::new();
    }
    let Some(timeline) = context.timeline(interval.tid) else { return Vec::new() };
    let urgency = timeline.prio(interval.woke);
    let (from, to, waiting) = (interval.due, interval.woke, Vec::new());
    between(
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

/// The parts of a segment, one after the other, without holes.
pub fn between(context: &TraceContext, segment: &Segment) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (from, to) in pieces(context, segment) {
        let Judged { cause, cpu, prio } = classify::cause(context, segment, from);
        let evidence = evidence::of(context, segment.timeline, cause, cpu, from, to);
        // What no event proves is unknown.
        let proven = !evidence.is_empty();
        let (cause, cpu, prio) =
            if proven { (cause, cpu, prio) } else { (Cause::Unknown, None, None) };
        let stack = match (cause, cpu) {
            (
                Cause::TimerIrqDelay { running, .. } | Cause::NonPreemptible { running, .. },
                Some(cpu),
            ) => context.stack(cpu, running, from, to),
            _ => None,
        };
        join(
            &mut parts,
            Part { cause, from, to, cpu, prio, stack, evidence, meanwhile: Vec::new() },
        );
    }
    let parts = waits::follow(context, segment, parts);
    parts.into_iter().map(tidy).collect()
}

/// Adds a part, or makes the last one longer.
pub fn join(parts: &mut Vec<Part>, part: Part) {
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

/// With its evidence in order, each piece once.
pub fn tidy(mut part: Part) -> Part {
    part.evidence.sort_unstable();
    part.evidence.dedup();
    part
}

/// The pieces between the segment's ends in which nothing changes, without holes.
fn pieces(context: &TraceContext, segment: &Segment) -> Vec<(MonotonicNs, MonotonicNs)> {
    let Segment { timeline, from, to, .. } = segment;
    let (from, to) = (*from, *to);
    let mut cuts = vec![from, to];
    let ends = |span: &(MonotonicNs, MonotonicNs)| *span;
    within(&timeline.spans, from, to, |span| (span.from, span.to), &mut cuts);
    within(&timeline.reclaims, from, to, ends, &mut cuts);
    within(&timeline.held, from, to, |(from, to, _)| (*from, *to), &mut cuts);
    within(&timeline.faults, from, to, ends, &mut cuts);
    within(&context.holes, from, to, |hole| (hole.from, hole.to), &mut cuts);
    if let Some(lane) = context.lanes.threads.get(&timeline.tid) {
        within(&lane.syscalls, from, to, |span| (span.from, span.to), &mut cuts);
    }
    // These may overlap each other.
    cuts.extend(timeline.locks.iter().flat_map(|wait| [wait.from, wait.to]));
    cuts.extend(context.lanes.gaps.iter().flat_map(|gap| [gap.from, gap.to]));
    cuts.extend(timeline.changes_of_priority());
    cuts.extend(timeline.wakes.iter().map(|wake| wake.at));
    cuts.retain(|at| (from..=to).contains(at));
    cuts.sort_unstable();
    cuts.dedup();
    // Between these the thread does one thing: its CPU's changes matter.
    let mut all = cuts.clone();
    for pair in cuts.windows(2) {
        for cpu in cpus(context, segment, pair[0]) {
            of_cpu(context, cpu, pair[0], pair[1], &mut all);
        }
    }
    all.sort_unstable();
    all.dedup();
    all.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn of_cpu(
    context: &TraceContext,
    cpu: u16,
    from: MonotonicNs,
    to: MonotonicNs,
    cuts: &mut Vec<MonotonicNs>,
) {
    let Some(lane) = context.lanes.cpus.get(&cpu) else { return };
    let first = cuts.len();
    within(&lane.ran, from, to, |span| (span.from, span.to), cuts);
    within(&lane.idle, from, to, |span| (span.from, span.to), cuts);
    within(context.served(cpu), from, to, |(from, to, _)| (*from, *to), cuts);
    let mut place = 0;
    cuts.retain(|at| {
        place += 1;
        place <= first || (from..=to).contains(at)
    });
}

/// The CPUs that matter to what the thread does at an instant.
fn cpus(context: &TraceContext, segment: &Segment, at: MonotonicNs) -> impl Iterator<Item = u16> {
    let doing = classify::doing(context, segment, at);
    let (one, other) = match doing {
        ThreadState::Running { cpu } | ThreadState::Ready { cpu: Some(cpu), .. } => (cpu, None),
        ThreadState::Waking => {
            (classify::waking_cpu(segment, at), segment.timeline.enqueued_after(at))
        }
        _ => (classify::waking_cpu(segment, at), None),
    };
    [Some(one), other].into_iter().flatten().filter(|cpu| *cpu != Event::NO_CPU)
}

/// The ends of those spans that share an instant with `from..=to`; the spans stand in the order of
/// time and do not overlap.
fn within<T>(
    spans: &[T],
    from: MonotonicNs,
    to: MonotonicNs,
    ends: impl Fn(&T) -> (MonotonicNs, MonotonicNs),
    cuts: &mut Vec<MonotonicNs>,
) {
    let first = spans.partition_point(|span| ends(span).1 < from);
    let end = spans.partition_point(|span| ends(span).0 <= to);
    let shared = spans.get(first..end).unwrap_or_default();
    cuts.extend(shared.iter().map(&ends).flat_map(|(from, to)| [from, to]));
}
