//! Tests against mutants that no other test of this crate detects (docs/notes/truth.md).

use super::*;

fn longest(explanation: &Explanation) -> (Cause, i64) {
    causes(explanation).into_iter().max_by_key(|(_, span)| *span).expect("it has parts")
}

fn woken(at: i64, cpu: u16, by: u32, task: u32, target: u16) -> Event {
    event(at, cpu, by, EventKind::Waking { task: Tid(task), prio: OWN, target })
}

fn queued(at: i64, cpu: u16, by: u32, task: u32) -> Event {
    event(at, cpu, by, EventKind::Wakeup { task: Tid(task), prio: OWN, target: cpu, new: false })
}

/// A thread that waits for a lock of `HOLDER`, which waits for the CPU of `hog`.
fn waits_for_a_holder_behind(hog: (u32, i16), inherits: bool) -> Explanation {
    const HOLDER: u32 = 6;
    let op = if inherits { Futex::LockPi } else { Futex::Wait };
    let boost = EventKind::PiSetPrio { task: Tid(HOLDER), old: 60, new: OWN };
    let mut events = vec![
        switch(50, 0, (HOLDER, 60), TaskState::Preempted, (THREAD, OWN)),
        event(100, 0, THREAD, EventKind::FutexEnter { op, address: 64 }),
    ];
    events.extend(inherits.then(|| event(105, 0, THREAD, boost)));
    events.extend([
        switch(110, 0, (THREAD, OWN), TaskState::Sleeping, hog),
        switch(410, 0, hog, TaskState::Sleeping, (HOLDER, 60)),
        woken(430, 0, HOLDER, THREAD, 0),
        queued(431, 0, HOLDER, THREAD),
        switch(440, 0, (HOLDER, 60), TaskState::Preempted, (THREAD, OWN)),
        event(445, 0, THREAD, EventKind::FutexExit { op, result: 0 }),
    ]);
    explained(interval(100, 450, StartKind::Interval), &events)
}

#[test]
fn a_task_below_the_waiter_that_preempts_the_lock_holder_is_an_inversion() {
    let by = Tid(9);
    let inverted = longest(&waits_for_a_holder_behind((9, 40), false));
    assert_eq!(inverted, (Cause::Inversion { holder: Tid(6), by }, 300));
    // A task above the thread would have run before it anyway.
    let above = longest(&waits_for_a_holder_behind((9, HIGHER), false));
    assert_eq!(above.0, Cause::Lock { holder: Some(Tid(6)), kernel: false });
    let equal = longest(&waits_for_a_holder_behind((9, OWN), false));
    assert_eq!(equal.0, Cause::Lock { holder: Some(Tid(6)), kernel: false });
}

#[test]
fn the_task_that_inherits_the_priority_is_the_lock_holder() {
    let explanation = waits_for_a_holder_behind((9, 40), true);
    assert_eq!(explanation.chain[0], Tid(6), "{explanation:?}");
}

#[test]
fn a_task_that_moves_the_thread_is_no_hog() {
    // The stopper of CPU 0 removes the thread, and another CPU continues it.
    let (own, stopper) = ((THREAD, OWN), (12, -1));
    let moved = |by| {
        let events = [
            switch(50, 0, (5, LOWER), TaskState::Preempted, own),
            switch(60, 1, (0, LOWER), TaskState::Preempted, (8, HIGHER)),
            switch(110, 0, own, TaskState::Preempted, stopper),
            event(
                150,
                u16::from(by == 8),
                by,
                EventKind::Migrate { task: Tid(THREAD), from: 0, to: 1 },
            ),
            switch(160, 0, stopper, TaskState::Sleeping, (5, LOWER)),
            switch(200, 1, (8, HIGHER), TaskState::Sleeping, own),
        ];
        let gaps = Gaps::of(events.iter().copied());
        let coverage = Coverage::between(MonotonicNs(0), MonotonicNs(1));
        let sample = LatencyInterval { cpu: 1, ..interval(100, 210, StartKind::Interval) };
        explain(sample, &events, &coverage, &gaps)
    };
    let has = |explanation: &Explanation, is: Cause| {
        explanation.parts.iter().any(|part| part.cause == is)
    };
    let by = Tid(12);
    assert!(has(&moved(12), Cause::Migration { by }), "{:?}", causes(&moved(12)));
    assert!(has(&moved(12), Cause::Preempted { by: Tid(8), prio: HIGHER }));
    // Moved by another task, it was preempted by that task.
    assert!(has(&moved(8), Cause::Preempted { by, prio: -1 }), "{:?}", causes(&moved(8)));
}

#[test]
fn reclaim_includes_running_and_sleeping_time() {
    let events = [
        switch(50, 0, (5, LOWER), TaskState::Preempted, (THREAD, OWN)),
        event(110, 0, THREAD, EventKind::ReclaimBegin { order: 0 }),
        switch(150, 0, (THREAD, OWN), TaskState::Blocked, (0, LOWER)),
        woken(250, 1, 6, THREAD, 0),
        queued(251, 0, 6, THREAD),
        switch(260, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)),
        event(280, 0, THREAD, EventKind::ReclaimEnd { reclaimed: 32 }),
    ];
    let explanation = explained(interval(100, 300, StartKind::Interval), &events);
    let sum = explanation.totals().into_iter().find(|(cause, _)| *cause == Cause::Reclaim);
    // 40 before the sleep, 100 asleep, 20 after it.
    assert_eq!(sum.map(|(_, span)| span.ns()), Some(160), "{:?}", causes(&explanation));
}

#[test]
fn a_remote_wake_up_is_in_progress_until_the_target_cpu_enqueues_it() {
    let explained = |running: (u32, i16)| {
        let events = [
            switch(50, 0, (THREAD, OWN), TaskState::Sleeping, running),
            switch(60, 1, (0, LOWER), TaskState::Preempted, (5, LOWER)),
            woken(150, 1, 5, THREAD, 0),
            queued(250, 0, running.0, THREAD),
            switch(260, 0, running, TaskState::Preempted, (THREAD, OWN)),
        ];
        explained(interval(100, 270, StartKind::Interval), &events)
    };
    let busy = causes(&explained((8, LOWER)));
    assert!(busy.contains(&(Cause::Wakeup { running: Some(Tid(8)) }, 100)), "{busy:?}");
    let idle = causes(&explained((0, LOWER)));
    assert!(idle.contains(&(Cause::IdleExit { state: None }, 110)), "{idle:?}");
}

/// From 100 on, the kernel's `prio` is that of time-sharing: 100 is nice −20.
#[test]
fn nice_minus_20_is_runqueue_delay_not_preemption() {
    let ready = |own: i16, other: i16| {
        let (own, other) = ((THREAD, own), (9, other));
        let events = [
            switch(50, 0, (5, LOWER), TaskState::Preempted, own),
            switch(110, 0, own, TaskState::Preempted, other),
            switch(200, 0, other, TaskState::Preempted, own),
        ];
        longest(&explained(interval(100, 210, StartKind::Interval), &events)).0
    };
    let by = Tid(9);
    assert_eq!(ready(LOWER, 100), Cause::Runqueue { behind: by });
    assert_eq!(ready(LOWER, 99), Cause::Preempted { by, prio: 99 });
    assert_eq!(ready(99, 100), Cause::Throttled { running: by, budget: Budget::RealTime });
    assert_eq!(ready(100, LOWER), Cause::Runqueue { behind: by });
    assert_eq!(ready(-1, 50), Cause::Throttled { running: by, budget: Budget::Deadline });
    assert_eq!(ready(0, 50), Cause::Throttled { running: by, budget: Budget::RealTime });
    // An idle CPU leaves a thread ready: its class shows the exhausted budget.
    let idle = |own: i16| {
        let own = (THREAD, own);
        let events = [
            switch(50, 0, (5, LOWER), TaskState::Preempted, own),
            switch(110, 0, own, TaskState::Preempted, (0, LOWER)),
            switch(200, 0, (0, LOWER), TaskState::Preempted, own),
        ];
        longest(&explained(interval(100, 210, StartKind::Interval), &events)).0
    };
    let running = Tid::IDLE;
    assert_eq!(idle(99), Cause::Throttled { running, budget: Budget::RealTime });
    assert_eq!(idle(100), Cause::Throttled { running, budget: Budget::Group });
    assert_eq!(idle(-1), Cause::Throttled { running, budget: Budget::Deadline });
}

#[test]
fn a_page_fault_lasts_until_the_next_event_but_at_most_20_us() {
    let fault = |at: i64, page: u64| {
        event(at, 0, THREAD, EventKind::PageFault { address: page << 12, ip: 2, user: true })
    };
    let taken = |more: &[Event], until: i64| {
        let mut events =
            vec![switch(50, 0, (5, LOWER), TaskState::Preempted, (THREAD, OWN)), fault(1_000, 1)];
        events.extend_from_slice(more);
        let explanation = explained(interval(900, until, StartKind::Interval), &events);
        let faults = explanation.totals().into_iter().find(|(cause, _)| *cause == Cause::PageFault);
        faults.map_or(0, |(_, span)| span.ns())
    };
    let enter = |at| event(at, 0, THREAD, EventKind::SyscallEnter { number: 1, args: [0; 2] });
    assert_eq!(taken(&[enter(6_000)], 90_000), 5_000);
    // No event shows its end.
    assert_eq!(taken(&[], 90_000), 20_000);
    // It needed pages, which take time to clear.
    let pages = |order| event(2_000, 0, THREAD, EventKind::PageAlloc { order, page: 1 });
    assert_eq!(taken(&[pages(0)], 90_000), 21_000);
    assert_eq!(taken(&[pages(3)], 90_000), 28_000);
    // Faults on neighbouring pages follow one another directly.
    assert_eq!(taken(&[fault(81_000, 2)], 82_000), 81_000);
    // Far away: its own work was in between.
    assert_eq!(taken(&[fault(81_000, 1 << 20)], 82_000), 21_000);
}
