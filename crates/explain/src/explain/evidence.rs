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
pub fn find_evidence(
    context: &TraceContext,
    segment: &Segment,
    cause: Cause,
    cpu: Option<u16>,
    from: MonotonicNs,
    to: MonotonicNs,
) -> Vec<usize> {
    let (search, timeline) = (SegmentSearch { context, from, to }, segment.timeline);
    let events_among = |places: &[u32]| search.events_around(places, |_| true);
    let cpu_places = cpu.map_or(&[][..], |cpu| context.places_on_cpu(cpu));
    match cause {
        Cause::Steal => {
            context.hole_at(cpu, from).map(|hole| hole.evidence.clone()).unwrap_or_default()
        }
        Cause::Hardware => Vec::new(),
        Cause::Interrupt(what) => search.events_around(cpu_places, |event| is_about(event, what)),
        Cause::IdleExit { .. } => search.events_around(cpu_places, |event| {
            is_idle(event) || event.tid == Tid::IDLE || switched_to(event) == Some(Tid::IDLE)
        }),
        Cause::OwnExecution { .. } => events_among(&timeline.runs),
        Cause::Switch => {
            let begun =
                search.event_before(cpu_places, |event| switched_to(event) == Some(timeline.tid));
            begun.map_or_else(Vec::new, |begun| {
                join_places(vec![begun], search.events_around(cpu_places, |_| true))
            })
        }
        Cause::Lock { .. } => {
            join_places(events_among(&timeline.lock_events), events_among(&timeline.about))
        }
        // Without the fault event, no other proves it.
        Cause::PageFault => search
            .event_before(&timeline.fault_events, |_| true)
            .map_or_else(Vec::new, |fault| join_places(vec![fault], events_among(&timeline.about))),
        Cause::Reclaim => events_among(&timeline.reclaim_events),
        Cause::Io { device } => io_evidence(&search, timeline, device),
        Cause::Wakeup { .. } | Cause::Waiting { .. } => events_among(&timeline.about),
        Cause::Stopped { .. } => {
            let stopped = timeline.span_at(from).map(|span| span.from);
            let signal = stopped.and_then(|at| stops::stop_signal(context, timeline, at));
            join_places(events_among(&timeline.about), signal.into_iter().collect())
        }
        Cause::Timeout { .. } | Cause::OwnSleep { .. } => {
            let returns = timeline.return_after(to).map(|place| place as usize);
            join_places(events_among(&timeline.about), returns.into_iter().collect())
        }
        Cause::TimerSlack => slack::find_slack(context, timeline, from)
            .map_or_else(Vec::new, |slack| {
                join_places(vec![slack.evidence], events_among(&timeline.about))
            }),
        Cause::TimerIrqDelay { running, .. } | Cause::CpuStall { running, .. } => {
            let state_places =
                match classify::interrupt_state(context, segment, cpu.unwrap_or_default(), running)
                {
                    InterruptState::Disabled(place) => vec![place],
                    InterruptState::Enabled(before, after) => {
                        std::iter::once(before).chain(after).collect()
                    }
                    InterruptState::Unknown(before) => before.into_iter().collect(),
                };
            let proof = who_ran(&search, cpu_places, running, events_among(&timeline.about));
            if proof.is_empty() { proof } else { join_places(proof, state_places) }
        }
        Cause::NonPreemptible { running, .. }
        | Cause::Throttled { running, .. }
        | Cause::Runqueue { behind: running }
        | Cause::TaskNoise { by: running }
        | Cause::Migration { by: running }
        | Cause::Preempted { by: running, .. } => {
            who_ran(&search, cpu_places, running, events_among(&timeline.about))
        }
        // Its evidence is combined from that of the wait and of the holder's activity.
        Cause::Inversion { .. } | Cause::Observer { .. } | Cause::Unknown => Vec::new(),
    }
}

/// The evidence for the wait of the thread and for the running task.
fn who_ran(search: &SegmentSearch, here: &[u32], running: Tid, waited: Vec<usize>) -> Vec<usize> {
    let is_of = |event: &Event| event.tid == running || switched_to(event) == Some(running);
    let ran = search.events_around(here, is_of);
    if ran.is_empty() || waited.is_empty() { Vec::new() } else { join_places(ran, waited) }
}

fn join_places(mut one: Vec<usize>, other: Vec<usize>) -> Vec<usize> {
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
    fn events_around(&self, places: &[u32], is: impl Fn(&Event) -> bool) -> Vec<usize> {
        let begun = self.event_before(places, &is);
        let ended = places.partition_point(|place| self.event_at(place).at < self.to);
        let after =
            places[ended..].iter().take(SEARCHED_EVENTS).find(|place| is(self.event_at(place)));
        begun.into_iter().chain(after.map(|place| *place as usize)).collect()
    }

    /// The last such event at or before the beginning.
    fn event_before(&self, places: &[u32], is: impl Fn(&Event) -> bool) -> Option<usize> {
        let begun = places.partition_point(|place| self.event_at(place).at <= self.from);
        let before = places[..begun]
            .iter()
            .rev()
            .take(SEARCHED_EVENTS)
            .find(|place| is(self.event_at(place)));
        before.map(|place| *place as usize)
    }

    fn event_at(&self, place: &u32) -> &Event {
        &self.context.events[*place as usize]
    }
}

/// The request: its issue, completion, and the following wake-up.
fn io_evidence(search: &SegmentSearch, timeline: &ThreadTimeline, device: u32) -> Vec<usize> {
    let Some(wake) = timeline.wake_after(search.from) else { return Vec::new() };
    let places = search.context.places_on_cpu(wake.cpu);
    let end = places.partition_point(|place| search.event_at(place).at <= wake.at);
    let is_end = |place: &&u32| {
        let what = search.event_at(place).what;
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
    let about = search.events_around(&timeline.about, |_| true);
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
