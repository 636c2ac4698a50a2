//! The pieces of a stretch of a thread's time in which nothing that matters changes, each with its cause, joined to parts.

use super::classify::{self, Judged};
use super::scene::Scene;
use super::subject::Subject;
use super::{Cause, Kind, Part, evidence, waits};
use crate::threads::Doing;
use punctual_core::{Event, MonotonicNs, Tid};

/// Waits upon waits are followed so far.
pub const DEPTH: usize = 6;

/// A stretch of a thread's time, and those who wait for it.
pub struct Stretch<'s> {
    pub subject: &'s Subject,
    pub kind: Kind,
    /// The CPU on which it was seen at the end; [`Event::NO_CPU`] where that is not known.
    pub cpu: u16,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The threads that wait for this one, the one that was late first.
    pub waiting: Vec<Tid>,
    /// The priority of the one that was late.
    pub urgency: Option<i16>,
}

/// The parts of the scene's sample.
pub fn of(scene: &Scene) -> Vec<Part> {
    let late = scene.late;
    if late.woke <= late.due {
        return Vec::new();
    }
    let Some(subject) = scene.subject(late.tid) else { return Vec::new() };
    let urgency = subject.prio(late.woke);
    let (from, to, waiting) = (late.due, late.woke, Vec::new());
    between(scene, &Stretch { subject: &subject, kind: late.kind, cpu: late.cpu, from, to, waiting, urgency })
}

/// The parts of a stretch, one after the other, without holes.
pub fn between(scene: &Scene, stretch: &Stretch) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (from, to) in pieces(scene, stretch) {
        let Judged { cause, cpu, prio } = classify::cause(scene, stretch, from);
        let evidence = evidence::of(scene, stretch.subject, cause, cpu, from, to);
        // What no event proves is not known.
        let proven = !evidence.is_empty();
        let (cause, cpu, prio) = if proven { (cause, cpu, prio) } else { (Cause::Unknown, None, None) };
        let stack = match (cause, cpu) {
            (Cause::TimerLate { running, .. } | Cause::NotSwitched { running, .. }, Some(cpu)) => {
                scene.stack(cpu, running, from, to)
            }
            _ => None,
        };
        join(&mut parts, Part { cause, from, to, cpu, prio, stack, evidence, meanwhile: Vec::new() });
    }
    let parts = waits::follow(scene, stretch, parts);
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

/// The pieces between the stretch's ends in which nothing changes, without holes.
fn pieces(scene: &Scene, stretch: &Stretch) -> Vec<(MonotonicNs, MonotonicNs)> {
    let Stretch { subject, from, to, .. } = stretch;
    let (from, to) = (*from, *to);
    let mut cuts = vec![from, to];
    let ends = |span: &(MonotonicNs, MonotonicNs)| *span;
    within(&subject.spans, from, to, |span| (span.from, span.to), &mut cuts);
    within(&subject.reclaims, from, to, ends, &mut cuts);
    within(&subject.held, from, to, |(from, to, _)| (*from, *to), &mut cuts);
    within(&subject.faults, from, to, ends, &mut cuts);
    within(&scene.holes, from, to, |hole| (hole.from, hole.to), &mut cuts);
    if let Some(lane) = scene.lanes.threads.get(&subject.tid) {
        within(&lane.syscalls, from, to, |span| (span.from, span.to), &mut cuts);
    }
    // These may overlap each other.
    cuts.extend(subject.locks.iter().flat_map(|wait| [wait.from, wait.to]));
    cuts.extend(scene.lanes.gaps.iter().flat_map(|gap| [gap.from, gap.to]));
    cuts.extend(subject.changes_of_priority());
    cuts.extend(subject.wakes.iter().map(|wake| wake.at));
    cuts.retain(|at| (from..=to).contains(at));
    cuts.sort_unstable();
    cuts.dedup();
    // Between these the thread does one thing: its CPU's changes matter.
    let mut all = cuts.clone();
    for pair in cuts.windows(2) {
        for cpu in cpus(scene, stretch, pair[0]) {
            of_cpu(scene, cpu, pair[0], pair[1], &mut all);
        }
    }
    all.sort_unstable();
    all.dedup();
    all.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn of_cpu(scene: &Scene, cpu: u16, from: MonotonicNs, to: MonotonicNs, cuts: &mut Vec<MonotonicNs>) {
    let Some(lane) = scene.lanes.cpus.get(&cpu) else { return };
    let first = cuts.len();
    within(&lane.ran, from, to, |span| (span.from, span.to), cuts);
    within(&lane.idle, from, to, |span| (span.from, span.to), cuts);
    within(scene.served(cpu), from, to, |(from, to, _)| (*from, *to), cuts);
    let mut place = 0;
    cuts.retain(|at| {
        place += 1;
        place <= first || (from..=to).contains(at)
    });
}

/// The CPUs that matter to what the thread does at an instant.
fn cpus(scene: &Scene, stretch: &Stretch, at: MonotonicNs) -> impl Iterator<Item = u16> {
    let doing = classify::doing(scene, stretch, at);
    let (one, other) = match doing {
        Doing::Running { cpu } | Doing::Ready { cpu: Some(cpu), .. } => (cpu, None),
        Doing::Waking => (classify::waking_cpu(stretch, at), stretch.subject.enqueued_after(at)),
        _ => (classify::waking_cpu(stretch, at), None),
    };
    [Some(one), other].into_iter().flatten().filter(|cpu| *cpu != Event::NO_CPU)
}

/// The ends of those spans that share an instant with `from..=to`; the spans stand in the order of time and do not overlap.
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
