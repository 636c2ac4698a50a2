//! The cause of a piece of a thread's time, from the state at one of its instants.

use super::irqs::{self, InterruptState};
use super::segment::Segment;
use super::slack::has_slack;
use super::stops::{find_stop, stopped_by};
use super::switched_to;
use super::thread_timeline::ThreadTimeline;
use super::trace_context::TraceContext;
use super::wakeups::packet_sender;
use super::{Budget, Cause, CpuMode, StartKind};
use crate::threads::{CpuSpan, ThreadSpan, ThreadState};
use punctual_core::cycle::has_timed_out;
use punctual_core::event::{Group, TaskState, Tid};
use punctual_core::{Event, EventKind, MAX_RT_PRIO, MonotonicNs};

/// The stopper thread (migration/N), which runs only for a migration. Another task that moves the
/// thread had the CPU for itself before (load balancing in a tick, or at a switch).
const STOPPER: i16 = 0;
/// The number of events before a wake-up that are searched for a completed request.
const NEARBY: usize = 64;
/// The number of events of a CPU that are searched for the running task's arrival.
const SEARCHED_EVENTS: usize = 512;

/// A cause, the CPU concerned, and the priority of the responsible task.
pub(crate) struct ClassifiedCause {
    pub cause: Cause,
    pub cpu: Option<u16>,
    pub prio: Option<i16>,
}

impl ClassifiedCause {
    fn with_cpu(cpu: u16, cause: Cause) -> ClassifiedCause {
        ClassifiedCause { cause, cpu: Some(cpu), prio: None }
    }
    fn without_cpu(cause: Cause) -> ClassifiedCause {
        ClassifiedCause { cause, cpu: None, prio: None }
    }
}

/// The cause at an instant.
pub(crate) fn classify_cause(
    context: &TraceContext,
    segment: &Segment,
    at: MonotonicNs,
) -> ClassifiedCause {
    let (doing, cpu) = match segment.thread_state(context, at) {
        doing @ (ThreadState::Running { cpu } | ThreadState::Ready { cpu: Some(cpu), .. }) => {
            (doing, cpu)
        }
        doing => (doing, segment.waking_cpu(at)),
    };
    if let Some(hole) = context.hole_at(Some(cpu), at) {
        return ClassifiedCause { cause: Cause::Steal, cpu: hole.cpu, prio: None };
    }
    if cpu == Event::NO_CPU && !is_waiting(doing) || context.is_lost(cpu, at) {
        return ClassifiedCause::without_cpu(Cause::Unknown);
    }
    if let Some(stop) = find_stop(context, segment.timeline, at) {
        let stopper = stopped_by(context, segment.timeline, stop);
        let continued_by = woken_by(context, segment, at);
        return ClassifiedCause::without_cpu(Cause::Stopped { by: stopper, continued_by });
    }
    match doing {
        ThreadState::Running { .. } => classify_running(context, segment, cpu, at),
        ThreadState::Ready { preempted, .. } => {
            classify_ready(context, segment, cpu, preempted, at)
        }
        ThreadState::Waking => classify_waking(context, segment, cpu, at),
        ThreadState::Sleeping | ThreadState::Blocked | ThreadState::LockWait => {
            classify_waiting(context, segment, doing, cpu, at)
        }
        ThreadState::Stopped | ThreadState::Other | ThreadState::Unknown => {
            ClassifiedCause::without_cpu(Cause::Unknown)
        }
    }
}

fn is_waiting(doing: ThreadState) -> bool {
    matches!(doing, ThreadState::Sleeping | ThreadState::Blocked | ThreadState::LockWait)
}

/// It had the CPU: interrupts took it, or it used the time itself.
fn classify_running(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    at: MonotonicNs,
) -> ClassifiedCause {
    let timeline = segment.timeline;
    let cause = if let Some(interrupt) = context.interrupt_at(cpu, at) {
        Cause::Interrupt(interrupt)
    } else if timeline.is_in_switch(at) {
        Cause::Switch
    } else if timeline.reclaims_at(at) {
        Cause::Reclaim
    } else if let Some(cause) = spin_cause(segment, at) {
        cause
    } else if timeline.faults_at(at) {
        Cause::PageFault
    } else {
        Cause::OwnExecution { mode: context.own_mode(timeline.tid, cpu, at) }
    };
    ClassifiedCause::with_cpu(cpu, cause)
}

/// Spinning also waits for locks inside the kernel, and for those with priority inheritance.
fn spin_cause(segment: &Segment, at: MonotonicNs) -> Option<Cause> {
    let lock = segment.timeline.lock_wait_at(at)?;
    let holder = segment.timeline.lent_to(lock.from, at);
    let spins = lock.kernel || lock.pi && holder.is_some();
    spins.then_some(Cause::Lock { holder, kernel: lock.kernel })
}

/// It was enqueued on a CPU with another activity.
fn classify_ready(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    preempted: bool,
    at: MonotonicNs,
) -> ClassifiedCause {
    if let Some(interrupt) = context.interrupt_at(cpu, at) {
        return ClassifiedCause::with_cpu(cpu, Cause::Interrupt(interrupt));
    }
    let timeline = segment.timeline;
    let throttling_task = timeline.held_at(at);
    let Some(CpuSpan { tid: Some(running), prio, from, .. }) = context.on_cpu(cpu, at).copied()
    else {
        let cause =
            throttling_task.map(|running| Cause::Throttled { running, budget: Budget::Group });
        return cause.map_or(ClassifiedCause::without_cpu(Cause::Unknown), |cause| {
            ClassifiedCause::with_cpu(cpu, cause)
        });
    };
    let own_prio = timeline.priority_at(at);
    // A switch while the thread was in this queue, or that took the CPU from it, is a scheduling
    // decision against it.
    let queued = queued_since(segment, cpu, at);
    let decided = queued.is_some_and(|since| from > since || preempted && from == since);
    if decided && running == Tid::IDLE && is_moved_unseen(context, timeline, cpu, at) {
        return ClassifiedCause::without_cpu(Cause::Unknown);
    }
    let budget = match own_prio {
        Some(own) if own < 0 => Budget::Deadline,
        Some(own) if own < MAX_RT_PRIO => Budget::RealTime,
        _ => Budget::Group,
    };
    let cause = if throttling_task.is_some() {
        Cause::Throttled { running, budget: Budget::Group }
    } else if running == Tid::IDLE && decided {
        Cause::Throttled { running, budget }
    } else if running == Tid::IDLE {
        Cause::IdleExit { state: context.idle_state(cpu, at) }
    } else if prio.is_some_and(|prio| prio <= STOPPER) && context.is_moved_by(timeline, running, at)
    {
        Cause::Migration { by: running }
    } else {
        match (own_prio, prio) {
            (Some(own), Some(prio)) if prio < own && prio < MAX_RT_PRIO => {
                Cause::Preempted { by: running, prio }
            }
            (Some(own), Some(prio)) if prio > own && own < MAX_RT_PRIO && decided => {
                Cause::Throttled { running, budget }
            }
            (Some(own), Some(prio))
                if prio > own
                    && own < MAX_RT_PRIO
                    && is_withheld(context, segment, cpu, running, at) =>
            {
                Cause::Throttled { running, budget: Budget::RealTime }
            }
            (Some(own), Some(prio)) if prio > own && own < MAX_RT_PRIO => {
                Cause::NonPreemptible { running, mode: context.mode_at(running, cpu, at) }
            }
            // Among time-sharing tasks, priorities do not decide which one runs.
            _ => Cause::Runqueue { behind: running },
        }
    };
    ClassifiedCause { cause, cpu: Some(cpu), prio }
}

/// Whether real-time tasks are throttled: another task got the CPU from one that was still
/// runnable, which only happens when a budget is exhausted (kernel/sched/rt.c, and the fair server
/// in kernel/sched/deadline.c), or it is back in user mode from an interrupt, where preemption
/// cannot be disabled.
fn is_withheld(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    running: Tid,
    at: MonotonicNs,
) -> bool {
    let places = context.places_on_cpu(cpu);
    let end = places.partition_point(|place| context.events[*place as usize].at <= at);
    let before = places[..end]
        .iter()
        .rev()
        .take(SEARCHED_EVENTS)
        .map(|place| &context.events[*place as usize]);
    let switches = before.filter_map(|event| match event.what {
        EventKind::Switch { prev_prio, prev_state, next_prio, .. } => {
            Some((prev_prio, prev_state, next_prio))
        }
        _ => None,
    });
    let mut of_others = switches.take_while(|(_, _, next)| *next >= MAX_RT_PRIO);
    let is_cpu_taken = of_others
        .find(|(prev, ..)| *prev < MAX_RT_PRIO)
        .is_some_and(|(_, state, _)| state == TaskState::Preempted);
    let returned = || {
        let served = context.served_interrupts(cpu);
        let last = served[..served.partition_point(|(_, to, _)| *to <= at)].last();
        last.zip(queued_since(segment, cpu, at)).is_some_and(|((from, ..), since)| *from > since)
    };
    is_cpu_taken || context.mode_at(running, cpu, at) == CpuMode::User && returned()
}

/// When the thread joined the queue it is in at an instant: earlier choices of the CPU were not
/// against it.
fn queued_since(segment: &Segment, cpu: u16, at: MonotonicNs) -> Option<MonotonicNs> {
    let spans = &segment.timeline.spans;
    let place = spans.partition_point(|span| span.to <= at);
    let before = spans.get(..=place)?;
    let queued = |of| of == Some(cpu);
    let is_queued =
        |span: &&ThreadSpan| matches!(span.doing, ThreadState::Ready { cpu: of, .. } if queued(of));
    before.iter().rev().take_while(is_queued).last().map(|span| span.from)
}

/// Whether the thread left the queue of this CPU at an unknown instant: it runs on another CPU
/// next, without a recorded migration.
fn is_moved_unseen(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    cpu: u16,
    at: MonotonicNs,
) -> bool {
    let runs = |place: &&u32| {
        let event = &context.events[**place as usize];
        event.at > at && switched_to(event) == Some(timeline.tid)
    };
    let next = timeline.runs.iter().find(runs).map(|place| &context.events[*place as usize]);
    next.is_some_and(|next| {
        next.cpu != cpu && !timeline.moves.iter().any(|(_, when, _)| *when > at && *when <= next.at)
    })
}

/// The wake-up began. If it is to another CPU, that CPU must handle an IPI first
/// (kernel/sched/core.c: ttwu_queue_wakelist).
fn classify_waking(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    at: MonotonicNs,
) -> ClassifiedCause {
    let waker_cpu =
        segment.timeline.wakes.iter().rev().find(|wake| wake.at <= at).map_or(cpu, |wake| wake.cpu);
    let target = segment
        .timeline
        .enqueued_after(at)
        .filter(|target| *target != waker_cpu && *target != Event::NO_CPU);
    let Some(target) = target else {
        return ClassifiedCause::with_cpu(
            waker_cpu,
            context
                .interrupt_at(waker_cpu, at)
                .map_or(Cause::Wakeup { running: None }, Cause::Interrupt),
        );
    };
    if let Some(interrupt) = context.interrupt_at(target, at) {
        return ClassifiedCause::with_cpu(target, Cause::Interrupt(interrupt));
    }
    let span = context.on_cpu(target, at);
    let cause = match span.and_then(|span| span.tid) {
        Some(Tid::IDLE) => Cause::IdleExit { state: context.idle_state(target, at) },
        running => Cause::Wakeup { running },
    };
    ClassifiedCause { cause, cpu: Some(target), prio: span.and_then(|span| span.prio) }
}

fn classify_waiting(
    context: &TraceContext,
    segment: &Segment,
    doing: ThreadState,
    cpu: u16,
    at: MonotonicNs,
) -> ClassifiedCause {
    let timeline = segment.timeline;
    let woken_by = woken_by(context, segment, at);
    let lock = timeline.lock_wait_at(at);
    if lock.is_some() || doing == ThreadState::LockWait {
        let kernel = lock.is_none_or(|lock| lock.kernel);
        let lent = lock.and_then(|lock| timeline.lent_to(lock.from, at));
        return ClassifiedCause::without_cpu(Cause::Lock { holder: lent.or(woken_by), kernel });
    }
    if timeline.reclaims_at(at) {
        return ClassifiedCause::without_cpu(Cause::Reclaim);
    }
    if doing == ThreadState::Blocked && timeline.faults_at(at) {
        return ClassifiedCause::without_cpu(Cause::PageFault);
    }
    let by_timer = !shows_another_waker(context, segment, at);
    // The state in a wait that began before the record is unknown.
    if (doing == ThreadState::Blocked || !by_timer && segment.is_unseen(at))
        && let Some((_, device)) = completed_request(context, segment, at)
    {
        return ClassifiedCause::without_cpu(Cause::Io { device });
    }
    match segment.kind {
        // No timer woke it: for example, it was interrupted in its sleep and then frozen, or was
        // still in a wait of its previous cycle. Or one did before, and this is a wait within its
        // cycle.
        StartKind::Timer
            if woken_by.is_some() && shows_interrupts(context)
                || !by_timer
                || has_woken(context, timeline, at) =>
        {
            ClassifiedCause::without_cpu(wait_cause(context, timeline, woken_by, at))
        }
        StartKind::Timer if doing == ThreadState::Sleeping && has_slack(context, timeline, at) => {
            ClassifiedCause::with_cpu(cpu, Cause::TimerSlack)
        }
        StartKind::Timer if doing == ThreadState::Sleeping && cpu != Event::NO_CPU => {
            behind_the_softirq(context, segment, at)
                .unwrap_or_else(|| before_the_timer(context, segment, cpu, at))
        }
        StartKind::Timer if doing == ThreadState::Sleeping => {
            ClassifiedCause::without_cpu(Cause::Unknown)
        }
        _ => ClassifiedCause::without_cpu(wait_cause(context, timeline, woken_by, at)),
    }
}

/// A wait for an event that came, or did not come in time.
fn wait_cause(
    context: &TraceContext,
    timeline: &ThreadTimeline,
    woken_by: Option<Tid>,
    at: MonotonicNs,
) -> Cause {
    let place = timeline.wake_after(at).and_then(|wake| timeline.return_after(wake.at));
    match place.map(|place| context.events[place as usize].what) {
        Some(EventKind::SyscallExit { number, result })
            if has_timed_out(result, context.coverage.polls.contains(&number)) =>
        {
            Cause::Timeout { call: number }
        }
        Some(EventKind::SyscallExit { number, result: 0 })
            if context.coverage.sleeps.contains(&number) =>
        {
            Cause::OwnSleep { call: number }
        }
        _ => Cause::Waiting { woken_by },
    }
}

/// Whether the thread was woken before this instant, after it was due.
fn has_woken(context: &TraceContext, timeline: &ThreadTimeline, at: MonotonicNs) -> bool {
    let first = timeline.wakes.partition_point(|wake| wake.at < context.interval.due);
    timeline.wakes.get(first).is_some_and(|wake| wake.at <= at)
}

/// The task that wakes the thread next, unless an interrupt does; for a packet, its sender.
fn woken_by(context: &TraceContext, segment: &Segment, at: MonotonicNs) -> Option<Tid> {
    let timeline = segment.timeline;
    let wake = timeline.wake_after(at)?;
    if wake.interrupt.is_some() {
        return packet_sender(context, wake);
    }
    Some(wake.waker).filter(|tid| *tid != Tid::IDLE && *tid != timeline.tid)
}

/// Whether the next wake-up is known not to be by a timer: outside of any timer handler, or in one
/// that completed a request (as null_blk does).
fn shows_another_waker(context: &TraceContext, segment: &Segment, at: MonotonicNs) -> bool {
    let groups = context.coverage.groups.as_deref().unwrap_or_default();
    if !groups.contains(&Group::Hrtimer) || !shows_interrupts(context) {
        return false;
    }
    let timeline = segment.timeline;
    let Some(wake) = timeline.wake_after(at) else { return false };
    let places = context.places_on_cpu(wake.cpu);
    let event = |place: &u32| &context.events[*place as usize];
    let (before, since) =
        places.split_at(places.partition_point(|place| event(place).at < wake.at));
    // Without sched_waking, only the activity of the woken CPU after an IPI is known.
    let mut same = since.iter().map(event).take_while(|event| event.at == wake.at);
    if !same
        .any(|event| matches!(event.what, EventKind::Waking { task, .. } if task == timeline.tid))
    {
        return false;
    }
    let mut before = before.iter().rev().take(NEARBY).map(event);
    let shows = before.find_map(|event| match event.what {
        EventKind::BlockComplete { .. }
        | EventKind::HrtimerExpireExit { .. }
        | EventKind::IrqEntry { .. }
        | EventKind::VectorEntry { .. }
        | EventKind::SoftirqEntry { .. } => Some(true),
        // An interrupt may have occurred within a timer's handler and, with PREEMPT_RT, a switch.
        EventKind::HrtimerExpireEntry { .. }
        | EventKind::IrqExit { .. }
        | EventKind::VectorExit { .. }
        | EventKind::SoftirqExit { .. }
        | EventKind::Switch { .. } => Some(false),
        _ => None,
    });
    shows.unwrap_or(false)
}

/// Whether a wake-up by a timer would be recognisable.
fn shows_interrupts(context: &TraceContext) -> bool {
    let groups = context.coverage.groups.as_deref().unwrap_or_default();
    [Group::Vectors, Group::Irq, Group::Softirq].iter().all(|group| groups.contains(group))
}

/// With PREEMPT_RT, the timers of threads without real-time policy expire in a softirq thread
/// (kernel/time/hrtimer.c: hrtimer_run_softirq; kernel/softirq.c): a delay of that thread delays
/// the timer.
fn behind_the_softirq(
    context: &TraceContext,
    segment: &Segment,
    at: MonotonicNs,
) -> Option<ClassifiedCause> {
    let timeline = segment.softirq_thread(context, at)?;
    let ThreadState::Ready { cpu: Some(cpu), preempted } = timeline.span_at(at)?.doing else {
        return None;
    };
    let waiting = segment.waiting.iter().copied().chain([segment.timeline.tid]).collect();
    let Segment { from, to, urgency, .. } = *segment;
    let waker =
        Segment { timeline: &timeline, kind: StartKind::Interval, cpu, from, to, waiting, urgency };
    let judged = classify_ready(context, &waker, cpu, preempted, at);
    // A task queued with that thread may have a higher priority than the sleeper.
    let own_prio = segment.timeline.priority_at(at);
    Some(match (judged.cause, judged.prio, own_prio) {
        (Cause::Runqueue { behind: by }, Some(prio), Some(own))
            if prio < own && prio < MAX_RT_PRIO =>
        {
            ClassifiedCause { cause: Cause::Preempted { by, prio }, ..judged }
        }
        _ => judged,
    })
}

/// The timer should have expired, but no thread was woken yet.
fn before_the_timer(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    at: MonotonicNs,
) -> ClassifiedCause {
    if let Some(interrupt) = context.interrupt_at(cpu, at) {
        return ClassifiedCause::with_cpu(cpu, Cause::Interrupt(interrupt));
    }
    let span = context.on_cpu(cpu, at);
    let cause = match span.and_then(|span| span.tid) {
        Some(Tid::IDLE) => Cause::IdleExit { state: context.idle_state(cpu, at) },
        Some(running) => {
            let mode = context.mode_until_interrupt(running, cpu, at);
            match interrupt_state(context, segment, cpu, running) {
                InterruptState::Enabled(..) if mode != CpuMode::User => {
                    Cause::CpuStall { running, mode }
                }
                _ => Cause::TimerIrqDelay { running, mode },
            }
        }
        None => return ClassifiedCause::without_cpu(Cause::Unknown),
    };
    ClassifiedCause { cause, cpu: Some(cpu), prio: span.and_then(|span| span.prio) }
}

/// The state of interrupts on this CPU when the timer of the segment was due.
pub(crate) fn interrupt_state(
    context: &TraceContext,
    segment: &Segment,
    cpu: u16,
    running: Tid,
) -> InterruptState {
    let wake = segment.timeline.wake_after(segment.from);
    let served = wake.map_or(segment.to, |wake| wake.at);
    irqs::shown_state(context, cpu, running, segment.from, served)
}

/// The completed request that woke the thread: its event's index, and its device.
pub(crate) fn completed_request(
    context: &TraceContext,
    segment: &Segment,
    at: MonotonicNs,
) -> Option<(usize, u32)> {
    let wake = segment.timeline.wake_after(at)?;
    let places = context.places_on_cpu(wake.cpu);
    let event = |place: &u32| (*place as usize, &context.events[*place as usize]);
    let end = places.partition_point(|place| event(place).1.at <= wake.at);
    let before = places.get(..end)?.iter().rev().take(NEARBY).map(event);
    let before = before.take_while(|(_, event)| switched_to(event).is_none() && event.at > at);
    before
        .filter_map(|(place, event)| match event.what {
            EventKind::BlockComplete { device, .. } => Some((place, device)),
            _ => None,
        })
        .next()
}
