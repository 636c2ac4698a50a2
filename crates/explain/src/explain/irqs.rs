//! Whether a CPU took interrupts while one of its timers was late.

use super::switched_to;
use super::trace_context::TraceContext;
use punctual_core::event::CpuContext;
use punctual_core::{Event, EventKind, MonotonicNs, Tid};

/// The number of events of a CPU that are searched for the state of its interrupts.
const SEARCHED_EVENTS: usize = 512;

/// The state of a CPU's interrupts when a timer was due, with the indices of the events that show
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InterruptState {
    /// They were disabled here and not enabled again until then.
    Disabled(usize),
    /// They were enabled: before and after the due time, or no section with interrupts disabled was
    /// open where such sections are recorded.
    Enabled(usize, Option<usize>),
    /// Unknown; this event shows when they were last enabled.
    Unknown(Option<usize>),
}

/// The state for a timer of this CPU that was due at `due` and served at `served`, while the task
/// ran.
pub(crate) fn shown_state(
    context: &TraceContext,
    cpu: u16,
    running: Tid,
    due: MonotonicNs,
    served: MonotonicNs,
) -> InterruptState {
    let cpu_places = context.places_on_cpu(cpu);
    let event = |place: &u32| &context.events[*place as usize];
    let (before, after) =
        cpu_places.split_at(cpu_places.partition_point(|place| event(place).at <= due));
    let before = || before.iter().rev().take(SEARCHED_EVENTS);
    let section = before().find_map(|place| match event(place).what {
        EventKind::Context { context, section: true, .. } => Some((*place as usize, context)),
        _ => None,
    });
    match section {
        Some((place, CpuContext { irqs_off: Some(true), .. })) => {
            return InterruptState::Disabled(place);
        }
        Some((place, _)) => return InterruptState::Enabled(place, None),
        None => {}
    }
    let is_same = |place: &&u32| event(place).tid == running && switched_to(event(place)).is_none();
    let enabled = |place: &u32| is_enabled(event(place)).then_some(*place as usize);
    let last = before().take_while(is_same).find_map(enabled);
    // Between a system call's ends and a switch, its mode does not change.
    let is_before_service = |place: &&u32| {
        let candidate = event(place);
        let ends = matches!(
            candidate.what,
            EventKind::SyscallEnter { .. } | EventKind::SyscallExit { .. }
        );
        is_same(place) && !ends && candidate.at < served
    };
    let by_record =
        |place: &usize| matches!(context.events[*place].what, EventKind::Context { .. });
    let next = after.iter().take(SEARCHED_EVENTS).take_while(is_before_service).find_map(enabled);
    match (last.filter(by_record), next) {
        (Some(last), Some(next)) => InterruptState::Enabled(last, Some(next)),
        _ => InterruptState::Unknown(last),
    }
}

/// Whether the event shows that the CPU takes interrupts.
pub fn is_enabled(event: &Event) -> bool {
    match event.what {
        EventKind::Context { context, .. } => context.irqs_off == Some(false) && !context.hardirq,
        EventKind::SyscallEnter { .. } | EventKind::SyscallExit { .. } => true,
        _ => false,
    }
}
