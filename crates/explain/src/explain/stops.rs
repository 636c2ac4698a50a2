//! Whether a thread was stopped, and by whom.

use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use crate::threads::{ThreadSpan, ThreadState};
use punctual_core::cycle::is_interrupted;
use punctual_core::event::{Tid, signal};
use punctual_core::{Event, EventKind, MonotonicNs};

/// The number of events of a thread that are searched for the system call interrupted by the
/// freezer.
const SEARCHED_EVENTS: usize = 64;

/// The stop at this instant: by a signal or a debugger, shown by the state, or by the freezer.
pub fn find_stop<'t>(
    context: &TraceContext,
    timeline: &'t ThreadTimeline,
    at: MonotonicNs,
) -> Option<&'t ThreadSpan> {
    let span = timeline.span_at(at)?;
    match span.doing {
        ThreadState::Stopped => Some(span),
        ThreadState::Sleeping => is_frozen(context, timeline, span).then_some(span),
        _ => None,
    }
}

/// Whether the freezer of a control group suspends the thread on its way back to user mode
/// (kernel/signal.c: do_freezer_trap), in no system call and in no page fault. This requires
/// recorded system calls.
fn is_frozen(context: &TraceContext, timeline: &ThreadTimeline, span: &ThreadSpan) -> bool {
    interrupted_call(context, timeline, span.from).is_some() && !timeline.faults_at(span.from)
}

/// The end of the last system call before this instant, if a signal had ended it and no later event
/// of the thread is known.
fn interrupted_call(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    at: MonotonicNs,
) -> Option<MonotonicNs> {
    let end = timeline.runs.partition_point(|place| context.events[*place as usize].at <= at);
    let before = timeline.runs.get(..end)?.iter().rev().take(SEARCHED_EVENTS);
    let run_events = before.map(|place| &context.events[*place as usize]);
    let mut own_events = run_events.filter(|event| event.tid == timeline.tid);
    own_events
        .find_map(|event| match event.what {
            EventKind::SyscallExit { result, .. } => Some((event.at, is_interrupted(result))),
            EventKind::SyscallEnter { .. }
            | EventKind::PageFault { .. }
            | EventKind::Point { .. } => Some((event.at, false)),
            _ => None,
        })
        .and_then(|(at, interrupted)| interrupted.then_some(at))
}

/// The task that stopped the thread: the sender of the last signal that stops it or its process or,
/// for the freezer, the task that woke it from the interrupted wait.
pub(crate) fn stopped_by(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    stop: &ThreadSpan,
) -> Option<Tid> {
    if stop.doing == ThreadState::Stopped
        && let Some(place) = stop_signal(context, timeline, stop.from)
    {
        return signal_sender(context, &context.events[place]);
    }
    let returned = interrupted_call(context, timeline, stop.from)?;
    let end = timeline.wakes.partition_point(|wake| wake.at <= returned);
    let wake = timeline.wakes.get(..end)?.last()?;
    let is_task = wake.interrupt.is_none() && wake.waker != Tid::IDLE && wake.waker != timeline.tid;
    is_task.then_some(wake.waker)
}

/// The index of the signal that stopped the thread.
pub(crate) fn stop_signal(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    stopped: MonotonicNs,
) -> Option<usize> {
    let process = |tid: Tid| context.coverage.processes.get(&tid);
    let to_it = |task: Tid| {
        task == timeline.tid || process(task).is_some_and(|of| Some(of) == process(timeline.tid))
    };
    let end = context.signals.partition_point(|place| context.events[*place].at <= stopped);
    context.signals[..end]
        .iter()
        .rev()
        .copied()
        .find(|place| {
            let what = context.events[*place].what;
            matches!(what, EventKind::Signal { task, .. } if to_it(task))
        })
        // If it was continued since, the current stop has another reason.
        .filter(|place| {
            let what = context.events[*place].what;
            matches!(what, EventKind::Signal { signal, .. } if signal::STOP.contains(&signal))
        })
}

/// The running task, unless in an interrupt.
fn signal_sender(context: &TraceContext, event: &Event) -> Option<Tid> {
    let by_interrupt = context.interrupt_at(event.cpu, event.at).is_some();
    (event.tid != Tid::IDLE && !by_interrupt).then_some(event.tid)
}
