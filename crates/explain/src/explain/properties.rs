//! For arbitrary events: parts add up, and every cause is proven by events.

use super::*;
use crate::threads::Interrupt;
use crate::threads::tests::{any_event, any_event_of};
use proptest::prelude::*;
use punctual_core::EventKind;
use punctual_core::event::CpuContext;

/// The properties of every explanation.
pub(crate) fn check_explanation(explanation: &Explanation, events: &[Event]) {
    let LatencyInterval { due, woke, .. } = explanation.interval;
    assert!(explanation.adds_up(), "{explanation:?}");
    assert_eq!(
        explanation.totals_by_cause().iter().map(|(_, span)| span.ns()).sum::<i64>(),
        explanation.latency().ns()
    );
    check_parts(&explanation.parts, events);
    check_wakeups(&explanation.wakeups, events);
    if let (Some(first), Some(last)) = (explanation.parts.first(), explanation.parts.last()) {
        assert_eq!((first.from, last.to), (due, woke));
    }
    assert_eq!(explanation.confidence() == Confidence::High, explanation.warnings.is_empty());
}

/// Each step is proven by its event, and precedes the one it led to.
fn check_wakeups(wakeups: &[WakeUp], events: &[Event]) {
    assert!(wakeups.len() <= wakeups::STEPS);
    for wake_up in wakeups {
        let event = &events[wake_up.evidence];
        assert_eq!((event.at, event.cpu), (wake_up.at, wake_up.cpu));
        if let Waker::Task(waker) = wake_up.by {
            assert_eq!(event.tid, waker);
        }
        assert!(wake_up.waited.is_none_or(|waited| waited > Nanos::ZERO), "{wake_up:?}");
    }
    for pair in wakeups.windows(2) {
        assert_eq!(pair[0].by, Waker::Task(pair[1].task));
        assert!(pair[1].at < pair[0].at, "{wakeups:?}");
    }
}

fn check_parts(parts: &[Part], events: &[Event]) {
    assert!(parts.windows(2).all(|pair| pair[0].to == pair[1].from), "{parts:?}");
    for part in parts {
        assert!(part.duration() > Nanos::ZERO);
        assert_eq!(part.evidence.is_empty(), part.cause == Cause::Unknown, "{part:?}");
        assert!(part.evidence.is_sorted());
        let evidence: Vec<&Event> = part.evidence.iter().map(|place| &events[*place]).collect();
        assert!(is_proven(part.cause, &evidence), "{part:?} by {evidence:?}");
        if let (Some(first), Some(last)) = (part.meanwhile.first(), part.meanwhile.last()) {
            assert_eq!((first.from, last.to), (part.from, part.to), "{part:?}");
            check_parts(&part.meanwhile, events);
        }
    }
}

/// Whether events of the kind that a cause claims are among its evidence.
fn is_proven(cause: Cause, evidence: &[&Event]) -> bool {
    let has = |is: &dyn Fn(&Event) -> bool| evidence.iter().any(|event| is(event));
    let ran = |tid: Tid| has(&|event| event.tid == tid || super::switched_to(event) == Some(tid));
    match cause {
        Cause::Interrupt(what) => has(&|event| match (event.what, what) {
            (EventKind::IrqEntry { irq } | EventKind::IrqExit { irq, .. }, Interrupt::Hard(of)) => {
                irq == of
            }
            (
                EventKind::VectorEntry { vector } | EventKind::VectorExit { vector },
                Interrupt::Vector(of),
            ) => vector == of,
            (
                EventKind::SoftirqEntry { vector } | EventKind::SoftirqExit { vector },
                Interrupt::Soft(of),
            ) => vector == of,
            _ => false,
        }),
        Cause::TimerIrqDelay { running, .. }
        | Cause::CpuStall { running, .. }
        | Cause::NonPreemptible { running, .. }
        | Cause::Throttled { running, .. } => ran(running),
        Cause::Preempted { by, .. } | Cause::Runqueue { behind: by } | Cause::Migration { by } => {
            ran(by)
        }
        Cause::TaskNoise { by } | Cause::Inversion { by, .. } | Cause::Observer { task: by } => {
            ran(by)
        }
        Cause::Io { device } => has(&|event| match event.what {
            EventKind::BlockComplete { device: of, .. } => of == device,
            _ => false,
        }),
        Cause::PageFault => has(&|event| matches!(event.what, EventKind::PageFault { .. })),
        Cause::Reclaim => has(&|event| {
            matches!(event.what, EventKind::ReclaimBegin { .. } | EventKind::ReclaimEnd { .. })
        }),
        Cause::Timeout { call } | Cause::OwnSleep { call } => has(&|event| match event.what {
            EventKind::SyscallExit { number, .. } => number == call,
            _ => false,
        }),
        Cause::Steal => has(&|event| matches!(event.what, EventKind::HrtimerExpireEntry { .. })),
        Cause::Switch => has(&|event| super::switched_to(event).is_some()),
        Cause::Hardware
        | Cause::Wakeup { .. }
        | Cause::Waiting { .. }
        | Cause::Stopped { .. }
        | Cause::TimerSlack
        | Cause::Lock { .. }
        | Cause::IdleExit { .. } => !evidence.is_empty(),
        Cause::OwnExecution { .. } => !evidence.is_empty(),
        Cause::Unknown => evidence.is_empty(),
    }
}

/// Events of waits, pages, devices and timers, besides those of all recordings.
fn any_wait() -> impl Strategy<Value = Event> {
    let kinds = "futex_enter wait $n; futex_enter lock_pi $n; futex_enter wake $n
        futex_enter unlock_pi $n; futex_exit wait; futex_exit wait; futex_exit wait
        contention_begin $n; contention_end $n; setprio $t 120 -> $p; page_fault $i; page_fault $n
        page_alloc $n 1; page_alloc 9 1; reclaim_begin; reclaim_end 1; block_issue $n 1 512 write
        block_complete $n 1 512; block_complete $n 1 512; signal 18 $t; signal 19 $t
        sys_exit 1 0; sys_exit 1 -4; sys_exit 1 -516
        hrtimer_entry 1 expires=$i; hrtimer_entry 1 expires=$i slack=300
        vector_entry $n; vector_exit $n; interrupted; interrupted call=$n; unthrottled $t
        stack $n; wakeup $t/$p cpu$n";
    let context = (0u32..64, 0u64..2, any::<bool>()).prop_map(|(bits, site, section)| {
        EventKind::Context { context: CpuContext::of_bits(bits), site, section }
    });
    let context = proptest::option::weighted(0.1, context);
    (any_event_of(kinds, 3_000_000), context)
        .prop_map(|(event, context)| Event { what: context.unwrap_or(event.what), ..event })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn parts_add_up_for_any_events(
        mut events in proptest::collection::vec(prop_oneof![any_event(), any_wait()], 0..200),
        sorted: bool,
        recorded_gaps: bool,
        due in -100i64..1_200,
        span in -100i64..600,
        cpu in 0u16..5,
        timer: bool,
        (step, by) in (
            0usize..200,
            prop_oneof![3 => Just(0i64), 1 => -2_000i64..2_000, 1 => Just(2_500_000)],
        ),
        tid in 1u32..6,
    ) {
        if sorted {
            events.sort_by_key(|event| event.at);
        }
        // The clock steps: all later events have another time.
        events.iter_mut().skip(step).for_each(|event| event.at = event.at + Nanos(by));
        let woke = due + span + if by > 2_000 { by } else { 0 };
        let cpu = if cpu == 4 { Event::NO_CPU } else { cpu };
        let kind = if timer { StartKind::Timer } else { StartKind::Interval };
        let interval = LatencyInterval {
            tid: Tid(tid),
            cpu,
            due: MonotonicNs(due),
            woke: MonotonicNs(woke),
            kind,
        };
        let gaps = if recorded_gaps { Gaps::from_events(events.iter().copied()) } else {
            Gaps::default() };
        let explanation =
            explain_sample(interval, &events, &Coverage::from_span(MonotonicNs(0),
                MonotonicNs(0)), &gaps);
        check_explanation(&explanation, &events);
        prop_assert_eq!(explanation.lost > 0, explanation.warnings.contains(&Warning::Lost));
        prop_assert_eq!(
            rank_culprits([&explanation], &Default::default(), Nanos::ZERO).latency,
            explanation.latency()
        );
    }
}
