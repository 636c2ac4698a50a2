//! Which cause a piece of a latency has, from what is known of one of its instants.

use super::scene::Scene;
use super::{Cause, Kind};
use crate::threads::{CpuSpan, Doing};
use punctual_core::event::{TaskState, Tid};
use punctual_core::{Event, MonotonicNs, What};

/// Kernel priorities below this are real-time (include/linux/sched/prio.h: MAX_RT_PRIO); deadline tasks have −1.
const REAL_TIME: i16 = 100;
/// So many events before a wake-up are looked through for a completed request.
const NEARBY: usize = 64;

/// The cause at an instant, and the CPU that it concerns.
pub fn cause(scene: &Scene, at: MonotonicNs) -> (Cause, Option<u16>) {
    let (doing, cpu) = match scene.doing(at) {
        Doing::Running { cpu } => (Doing::Running { cpu }, cpu),
        Doing::Ready { cpu: Some(cpu), preempted } => (Doing::Ready { cpu: Some(cpu), preempted }, cpu),
        doing => (doing, scene.waking_cpu(at)),
    };
    if cpu == Event::NO_CPU && !is_waiting(doing) || scene.is_lost(cpu, at) {
        return (Cause::Unknown, None);
    }
    match doing {
        Doing::Running { .. } => (running(scene, cpu, at), Some(cpu)),
        Doing::Ready { preempted, .. } => (ready(scene, cpu, preempted, at), Some(cpu)),
        Doing::Waking => (waking(scene, cpu, at), Some(cpu)),
        Doing::Sleeping | Doing::Blocked | Doing::LockWait => waiting(scene, doing, cpu, at),
        Doing::Stopped | Doing::Other | Doing::Unknown => (Cause::Unknown, None),
    }
}

fn is_waiting(doing: Doing) -> bool {
    matches!(doing, Doing::Sleeping | Doing::Blocked | Doing::LockWait)
}

/// It had the CPU: interrupts took it, or it used the time itself.
fn running(scene: &Scene, cpu: u16, at: MonotonicNs) -> Cause {
    if let Some(interrupt) = scene.interrupt(cpu, at) {
        return Cause::Interrupt(interrupt);
    }
    if scene.reclaims(at) {
        return Cause::Reclaim;
    }
    match scene.lock(at).filter(|lock| lock.kernel) {
        // A lock inside the kernel is waited for by spinning, too.
        Some(_) => Cause::Lock { released_by: None, kernel: true },
        None => Cause::Itself { syscall: scene.syscall(scene.late.tid, at) },
    }
}

/// It was on the runqueue of a CPU that did something else.
fn ready(scene: &Scene, cpu: u16, preempted: bool, at: MonotonicNs) -> Cause {
    if let Some(interrupt) = scene.interrupt(cpu, at) {
        return Cause::Interrupt(interrupt);
    }
    let Some(CpuSpan { tid: Some(running), prio, from, .. }) = scene.on_cpu(cpu, at).copied() else {
        return Cause::Unknown;
    };
    let own = scene.prio(at);
    // A switch that happened while the thread was ready, or took the CPU from it, is a decision of the scheduler against it.
    let decided = scene.ready_since(at).is_some_and(|since| from > since || preempted && from == since);
    let decided = decided && from > scene.late.due;
    let real_time = own.is_some_and(|own| own < REAL_TIME);
    if running == Tid::IDLE {
        let state = scene.idle_state(cpu, at);
        return if decided && real_time { Cause::Throttled { running } } else { Cause::IdleExit { state } };
    }
    if scene.is_moved_by(running, at) {
        return Cause::Migration { by: running };
    }
    match (own, prio) {
        (Some(own), Some(prio)) if prio < own && prio < REAL_TIME => Cause::Preempted { by: running, prio },
        (Some(own), Some(prio)) if prio > own && own < REAL_TIME && decided => Cause::Throttled { running },
        (Some(own), Some(prio)) if prio > own && own < REAL_TIME => {
            Cause::NotSwitched { running, syscall: scene.syscall(running, at) }
        }
        // Among time-sharing tasks numbers do not decide who runs.
        _ => Cause::Runqueue { behind: running },
    }
}

/// Somebody decided to wake it; what the CPU of that somebody does delays it.
fn waking(scene: &Scene, cpu: u16, at: MonotonicNs) -> Cause {
    scene.interrupt(cpu, at).map_or(Cause::Waking, Cause::Interrupt)
}

/// It waited for something.
fn waiting(scene: &Scene, doing: Doing, cpu: u16, at: MonotonicNs) -> (Cause, Option<u16>) {
    let wake = scene.wake_after(at);
    if let Some(lock) = scene.lock(at) {
        let released_by = wake.filter(|wake| wake.interrupt.is_none()).map(|wake| wake.waker);
        return (Cause::Lock { released_by: released_by.filter(|tid| *tid != Tid::IDLE), kernel: lock.kernel }, None);
    }
    if doing == Doing::LockWait {
        let released_by = wake.map(|wake| wake.waker).filter(|tid| *tid != Tid::IDLE);
        return (Cause::Lock { released_by, kernel: true }, None);
    }
    if scene.reclaims(at) {
        return (Cause::Reclaim, None);
    }
    if doing == Doing::Blocked {
        if faulted(scene, at) {
            return (Cause::PageFault, None);
        }
        if let Some(device) = completed(scene, at) {
            return (Cause::Io { device }, None);
        }
    }
    match scene.late.kind {
        Kind::Timer if cpu != Event::NO_CPU => (before_the_timer(scene, cpu, at), Some(cpu)),
        Kind::Timer => (Cause::Unknown, None),
        Kind::Interval => (Cause::Sleeping, None),
    }
}

/// The timer should have fired, and nobody was woken yet.
fn before_the_timer(scene: &Scene, cpu: u16, at: MonotonicNs) -> Cause {
    if let Some(interrupt) = scene.interrupt(cpu, at) {
        return Cause::Interrupt(interrupt);
    }
    match scene.on_cpu(cpu, at).and_then(|span| span.tid) {
        Some(Tid::IDLE) => Cause::IdleExit { state: scene.idle_state(cpu, at) },
        Some(running) => Cause::TimerLate { running, syscall: scene.syscall(running, at) },
        None => Cause::Unknown,
    }
}

/// Whether a page fault was the last that is heard of the thread before it waited.
fn faulted(scene: &Scene, at: MonotonicNs) -> bool {
    let end = scene.events.partition_point(|event| event.at <= at);
    let mut before = scene.events[..end].iter().rev().filter(|event| event.tid == scene.late.tid);
    let told = |event: &&Event| match event.what {
        What::PageFault { .. } => true,
        // The switch itself, and requests that the fault caused.
        What::Switch { prev_state, .. } => prev_state == TaskState::Preempted,
        What::BlockIssue { .. } | What::PageAlloc { .. } | What::CacheAlloc { .. } | What::Kmalloc { .. } => false,
        _ => true,
    };
    before.find(told).is_some_and(|event| matches!(event.what, What::PageFault { .. }))
}

/// The device whose completed request woke the thread.
fn completed(scene: &Scene, at: MonotonicNs) -> Option<u32> {
    let wake = scene.wake_after(at)?;
    let end = scene.events.partition_point(|event| event.at <= wake.at);
    let before = scene.events.get(..end)?.iter().rev().filter(|event| event.cpu == wake.cpu).take(NEARBY);
    let mut before = before.take_while(|event| !matches!(event.what, What::Switch { .. }));
    before.find_map(|event| match event.what {
        What::BlockComplete { device, .. } => Some(device),
        _ => None,
    })
}
