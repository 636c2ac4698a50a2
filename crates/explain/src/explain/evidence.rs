//! The events that prove a piece: those that began and ended its subject.

use super::Cause;
use super::classify;
use super::irqs::InterruptState;
use super::segment::Segment;
use super::switched_to;
use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use super::{slack, stops};
use crate::threads::Interrupt;
use punctual_core::event::Tid;
use punctual_core::{Event, EventKind, MonotonicNs};

/// The number of events before and after a piece that are searched for its proof.
const SEARCHED_EVENTS: usize = 512;

/// The indices of the events, ascending. Empty if no event proves the cause.
pub fn of(
    context: &TraceContext,
    segment: &Segment,
    cause: Cause,
    cpu: Option<u16>,
    from: MonotonicNs,
    to: MonotonicNs,
) -> Vec<usize> {
    let (search, timeline) = (SegmentSearch { context, from, to }, segment.timeline);
    let own = |places: &[u32]| search.around(places, |_| true);
    let here = cpu.map_or(&[][..], |cpu| context.on(cpu));
    match cause {
        Cause::Steal => {
            context.hole(cpu, from).map(|hole| hole.evidence.clone()).unwrap_or_default()
        }
        Cause::Hardware => Vec::new(),
        Cause::Interrupt(what) => search.around(here, |event| is_about(event, what)),
        Cause::IdleExit { .. } => search.around(here, |event| {
            is_idle(event) || event.tid == Tid::IDLE || switched_to(event) == Some(Tid::IDLE)
        }),
        Cause::OwnExecution { .. } => own(&timeline.runs),
        Cause::Switch => {
            let begun = search.before(here, |event| switched_to(event) == Some(timeline.tid));
            begun.map_or_else(Vec::new, |begun| both(vec![begun], search.around(here, |_| true)))
        }
        Cause::Lock { .. } => both(own(&timeline.lock_events), own(&timeline.about)),
        // Without the fault event, no other proves it.
        Cause::PageFault => search
            .before(&timeline.fault_events, |_| true)
            .map_or_else(Vec::new, |fault| both(vec![fault], own(&timeline.about))),
        Cause::Reclaim => own(&timeline.reclaim_events),
        Cause::Io { device } => io(&search, timeline, device),
        Cause::Wakeup { .. } | Cause::Waiting { .. } => own(&timeline.about),
        Cause::Stopped { .. } => {
            let stopped = timeline.span(from).map(|span| span.from);
            let signal = stopped.and_then(|at| stops::signal(context, timeline, at));
            both(own(&timeline.about), signal.into_iter().collect())
        }
        Cause::Timeout { .. } | Cause::OwnSleep { .. } => {
            let returns = timeline.return_after(to).map(|place| place as usize);
            both(own(&timeline.about), returns.into_iter().collect())
        }
        Cause::TimerSlack => slack::of(context, timeline, from)
            .map_or_else(Vec::new, |slack| both(vec![slack.evidence], own(&timeline.about))),
        Cause::TimerIrqDelay { running, .. } | Cause::CpuStall { running, .. } => {
            let shown =
                match classify::interrupts(context, segment, cpu.unwrap_or_default(), running) {
                    InterruptState::Disabled(place) => vec![place],
                    InterruptState::Enabled(before, after) => {
                        std::iter::once(before).chain(after).collect()
                    }
                    InterruptState::Unknown(before) => before.into_iter().collect(),
                };
            let proof = who_ran(&search, here, running, own(&timeline.about));
            if proof.is_empty() { proof } else { both(proof, shown) }
        }
        Cause::NonPreemptible { running, .. }
        | Cause::Throttled { running, .. }
        | Cause::Runqueue { behind: running }
        | Cause::TaskNoise { by: running }
        | Cause::Migration { by: running }
        | Cause::Preempted { by: running, .. } => {
            who_ran(&search, here, running, own(&timeline.about))
        }
        // Its evidence is combined from that of the wait and of the holder's activity.
        Cause::Inversion { .. } | Cause::Observer { .. } | Cause::Unknown => Vec::new(),
    }
}

/// The evidence for the wait of the thread and for the running task.
fn who_ran(search: &SegmentSearch, here: &[u32], running: Tid, waited: Vec<usize>) -> Vec<usize> {
    let is_of = |event: &Event| event.tid == running || switched_to(event) == Some(running);
    let ran = search.around(here, is_of);
    if ran.is_empty() || waited.is_empty() { Vec::new() } else { both(ran, waited) }
}

fn both(mut one: Vec<usize>, other: Vec<usize>) -> Vec<usize> {
    one.extend(other);
    one
}

/// A segment within the trace context.
struct SegmentSearch<'s, 'e> {
    context: &'s TraceContext<'e>,
    from: MonotonicNs,
    to: MonotonicNs,
}

impl SegmentSearch<'_, '_> {
    /// The last such event at or before the start, and the first at or after the end.
    fn around(&self, places: &[u32], is: impl Fn(&Event) -> bool) -> Vec<usize> {
        let begun = self.before(places, &is);
        let ended = places.partition_point(|place| self.event(place).at < self.to);
        let after =
            places[ended..].iter().take(SEARCHED_EVENTS).find(|place| is(self.event(place)));
        begun.into_iter().chain(after.map(|place| *place as usize)).collect()
    }

    /// The last such event at or before the beginning.
    fn before(&self, places: &[u32], is: impl Fn(&Event) -> bool) -> Option<usize> {
        let begun = places.partition_point(|place| self.event(place).at <= self.from);
        let before =
            places[..begun].iter().rev().take(SEARCHED_EVENTS).find(|place| is(self.event(place)));
        before.map(|place| *place as usize)
    }

    fn event(&self, place: &u32) -> &Event {
        &self.context.events[*place as usize]
    }
}

/// The request: its issue, completion, and the following wake-up.
fn io(search: &SegmentSearch, timeline: &ThreadTimeline, device: u32) -> Vec<usize> {
    let Some(wake) = timeline.wake_after(search.from) else { return Vec::new() };
    let places = search.context.on(wake.cpu);
    let end = places.partition_point(|place| search.event(place).at <= wake.at);
    let is_end = |place: &&u32| {
        let what = search.event(place).what;
        matches!(what, EventKind::BlockComplete { device: of, .. } if of == device)
    };
    let Some(complete) = places[..end].iter().rev().take(SEARCHED_EVENTS).find(is_end) else {
        return Vec::new();
    };
    let complete = *complete as usize;
    let sector = match search.context.events[complete].what {
        EventKind::BlockComplete { sector, .. } => sector,
        _ => 0,
    };
    let first = complete.saturating_sub(SEARCHED_EVENTS);
    let issue = search.context.events[first..complete].iter().rposition(|event| {
        matches!(event.what, EventKind::BlockIssue { device: of, sector: at, .. }
            if of == device && at == sector)
    });
    let about = search.around(&timeline.about, |_| true);
    issue.map(|place| first + place).into_iter().chain([complete]).chain(about).collect()
}

fn is_about(event: &Event, what: Interrupt) -> bool {
    match (event.what, what) {
        (EventKind::IrqEntry { irq } | EventKind::IrqExit { irq, .. }, Interrupt::Hard(of)) => {
            irq == of
        }
        (
            EventKind::VectorEntry { vector } | EventKind::VectorExit { vector },
            Interrupt::Vector(of),
        )
        | (
            EventKind::SoftirqEntry { vector } | EventKind::SoftirqExit { vector },
            Interrupt::Soft(of),
        ) => vector == of,
        _ => false,
    }
}

fn is_idle(event: &Event) -> bool {
    matches!(event.what, EventKind::IdleEnter { .. } | EventKind::IdleExit)
}
