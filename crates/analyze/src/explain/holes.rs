//! When the whole machine stood still: the hypervisor gave its CPUs to others or stopped it, or the firmware took them all.
//!
//! One silent CPU proves nothing: interrupts may have been off there. All of them silent, while on two or more something was due
//! that nothing in the kernel could have held back on both at once, does.

use super::scene::Scene;
use super::{Kind, Late};
use punctual_core::{Event, MonotonicNs, Nanos, Tid, What};

/// A shorter silence is not looked at: an idle exit takes as long.
const SILENT: Nanos = Nanos(500_000);
/// A CPU that runs a task shows a tick in this time (HZ is 100 at least), twice over.
const TICKS: Nanos = Nanos(20_000_000);
/// So much before the end of a silence something must have been due to be overdue: a timer's usual lateness is not a stop.
const OVERDUE: Nanos = Nanos(250_000);
/// At most so many silences of one scene are looked into, the longest ones.
const LOOKED_INTO: usize = 64;
/// The first events of a CPU after a silence, among which an overdue one is looked for.
const AFTER: usize = 64;

/// The machine stood still.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hole {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The last event before it, the first one after it, and those that were overdue.
    pub evidence: Vec<usize>,
}

/// Those within the sample, in the order of time.
pub fn of(scene: &Scene) -> Vec<Hole> {
    let Late { due, woke, .. } = scene.late;
    let kernel = || scene.events.iter().enumerate().filter(|(_, event)| event.cpu != Event::NO_CPU);
    let mut silences: Vec<(usize, usize)> = kernel()
        .zip(kernel().skip(1))
        .filter(|((_, one), (_, other))| other.at - one.at >= SILENT && other.at > due && one.at < woke)
        .map(|((one, _), (other, _))| (one, other))
        .collect();
    silences.sort_by_key(|(one, other)| std::cmp::Reverse(scene.events[*other].at - scene.events[*one].at));
    silences.truncate(LOOKED_INTO);
    let mut holes: Vec<Hole> = silences.into_iter().filter_map(|(one, other)| hole(scene, one, other)).collect();
    holes.sort_by_key(|hole| hole.from);
    holes
}

fn hole(scene: &Scene, before: usize, after: usize) -> Option<Hole> {
    let (from, to) = (scene.events[before].at, scene.events[after].at);
    if scene.lanes.gaps.iter().any(|gap| gap.from < to && gap.to > from) {
        return None;
    }
    let mut evidence = vec![before, after];
    let mut overdue = 0;
    for (cpu, places) in scene.cpus() {
        let proof = proof(scene, cpu, places, from, to);
        overdue += usize::from(proof.is_some());
        evidence.extend(proof);
    }
    evidence.sort_unstable();
    evidence.dedup();
    (overdue >= 2).then_some(Hole { from, to, evidence })
}

/// The event that shows that something was due on this CPU in the silence.
fn proof(scene: &Scene, cpu: u16, places: &[u32], from: MonotonicNs, to: MonotonicNs) -> Option<usize> {
    let event = |place: &u32| &scene.events[*place as usize];
    let was_due = |due: MonotonicNs| due >= from && due + OVERDUE <= to;
    let first = places.partition_point(|place| event(place).at < to);
    let after = places.get(first..)?;
    let overdue = |place: &&u32| match event(place).what {
        What::HrtimerExpireEntry { expires: Some(expires), .. } => was_due(expires),
        What::Sample { due, .. } => was_due(due),
        _ => false,
    };
    if let Some(place) = after.iter().take(AFTER).find(overdue) {
        return Some(*place as usize);
    }
    let first = after.first().map(|place| *place as usize)?;
    let is_interrupt = matches!(scene.events[first].what, What::VectorEntry { .. } | What::IrqEntry { .. });
    let Late { due, kind, cpu: of, .. } = scene.late;
    let own_timer = kind == Kind::Timer && of == cpu && was_due(due);
    let running = scene.on_cpu(cpu, from).and_then(|span| span.tid).is_some_and(|tid| tid != Tid::IDLE);
    (is_interrupt && (own_timer || running && to - from > TICKS)).then_some(first)
}
