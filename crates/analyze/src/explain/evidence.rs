//! The events that prove a piece: those that began and ended what it is about.

use super::Cause;
use super::scene::{Scene, switched_to};
use crate::threads::Interrupt;
use punctual_core::event::Tid;
use punctual_core::{Event, MonotonicNs, What};

/// Their places among the scene's events, ascending. None where no event tells: then the cause is not known.
pub fn of(scene: &Scene, cause: Cause, cpu: Option<u16>, from: MonotonicNs, to: MonotonicNs) -> Vec<usize> {
    let tid = scene.late.tid;
    let on = |event: &Event| cpu == Some(event.cpu);
    let mut found = match cause {
        Cause::Interrupt(what) => around(scene, from, to, |event| on(event) && is_about(event, what)),
        Cause::IdleExit { .. } => around(scene, from, to, |event| {
            on(event) && (is_idle(event) || event.tid == Tid::IDLE || switched_to(event) == Some(Tid::IDLE))
        }),
        Cause::Itself { .. } => around(scene, from, to, |event| runs(event, tid)),
        Cause::Lock { .. } => {
            around(scene, from, to, |event| event.tid == tid && is_lock(event) || concerns(event, tid))
        }
        Cause::PageFault => around(scene, from, to, |event| {
            event.tid == tid && matches!(event.what, What::PageFault { .. }) || concerns(event, tid)
        }),
        Cause::Reclaim => around(scene, from, to, |event| {
            event.tid == tid && matches!(event.what, What::ReclaimBegin { .. } | What::ReclaimEnd { .. })
        }),
        Cause::Io { device } => around(scene, from, to, |event| {
            matches!(event.what, What::BlockComplete { device: of, .. } if of == device) || concerns(event, tid)
        }),
        Cause::Waking | Cause::Sleeping => around(scene, from, to, |event| concerns(event, tid)),
        Cause::TimerLate { running, .. }
        | Cause::NotSwitched { running, .. }
        | Cause::Throttled { running }
        | Cause::Runqueue { behind: running }
        | Cause::Migration { by: running }
        | Cause::Preempted { by: running, .. } => {
            // Both: that the thread waited, and who ran meanwhile.
            let ran = around(scene, from, to, |event| on(event) && runs(event, running));
            let waited = around(scene, from, to, |event| concerns(event, tid));
            if ran.is_empty() || waited.is_empty() { Vec::new() } else { [ran, waited].concat() }
        }
        Cause::Unknown => Vec::new(),
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// The last such event at or before the beginning, and the first at or after the end: what began it and what ended it.
fn around(scene: &Scene, from: MonotonicNs, to: MonotonicNs, is: impl Fn(&Event) -> bool) -> Vec<usize> {
    let events = scene.events;
    let begun = events.partition_point(|event| event.at <= from);
    let before = events[..begun].iter().rposition(&is);
    let ended = events.partition_point(|event| event.at < to);
    let after = events[ended..].iter().position(&is).map(|place| ended + place);
    before.into_iter().chain(after).collect()
}

fn is_about(event: &Event, what: Interrupt) -> bool {
    match (event.what, what) {
        (What::IrqEntry { irq } | What::IrqExit { irq, .. }, Interrupt::Hard(of)) => irq == of,
        (What::VectorEntry { vector } | What::VectorExit { vector }, Interrupt::Vector(of))
        | (What::SoftirqEntry { vector } | What::SoftirqExit { vector }, Interrupt::Soft(of)) => vector == of,
        _ => false,
    }
}

fn is_idle(event: &Event) -> bool {
    matches!(event.what, What::IdleEnter { .. } | What::IdleExit)
}

fn is_lock(event: &Event) -> bool {
    matches!(
        event.what,
        What::FutexEnter { .. } | What::FutexExit { .. } | What::ContentionBegin { .. } | What::ContentionEnd { .. }
    )
}

/// Whether the event shows that this task has the CPU that it comes from.
fn runs(event: &Event, tid: Tid) -> bool {
    event.cpu != Event::NO_CPU && (event.tid == tid || switched_to(event) == Some(tid))
}

/// Whether it tells what the thread does.
fn concerns(event: &Event, tid: Tid) -> bool {
    match event.what {
        What::Switch { next, .. } => next == tid || event.tid == tid,
        What::Waking { task, .. } | What::Wakeup { task, .. } | What::Migrate { task, .. } => task == tid,
        _ => false,
    }
}
