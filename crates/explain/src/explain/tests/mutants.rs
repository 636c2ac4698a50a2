//! Tests against mutants that no other test of this crate detects (docs/notes/truth.md).

use super::*;

fn longest(explanation: &Explanation) -> String {
    let part = explanation.parts.iter().max_by_key(|part| part.duration()).expect("it has parts");
    format!("{:?} {}", part.cause, part.duration().ns())
}

/// A thread that waits for a lock of task 6, which waits for the CPU of another task.
fn wait_for_a_holder_behind(hog: &str, op: &str, boost: &str) -> Explanation {
    let events = format!(
        "50 cpu0 6/60 switch R -> 7/19
        100 futex_enter {op} 64
        {boost}
        110 switch S -> {hog}
        410 switch S -> 6/60
        430 waking 7/19; 431 wakeup 7/19
        440 switch R -> 7/19
        445 futex_exit {op}"
    );
    explain_interval(100, 450, &events)
}

#[test]
fn a_task_below_the_waiter_that_preempts_the_lock_holder_is_an_inversion() {
    let inverted = longest(&wait_for_a_holder_behind("9/40", "wait", ""));
    assert_eq!(inverted, "Inversion { holder: Tid(6), by: Tid(9) } 300");
    // A task above the thread, or one of its priority, would have run before it anyway.
    for hog in ["9/0", "9/19"] {
        let lock = longest(&wait_for_a_holder_behind(hog, "wait", ""));
        assert!(lock.starts_with("Lock { holder: Some(Tid(6)), kernel: false }"), "{lock}");
    }
}

#[test]
fn the_task_that_inherits_the_priority_is_the_lock_holder() {
    let explanation = wait_for_a_holder_behind("9/40", "lock_pi", "105 setprio 6 60 -> 19");
    assert_eq!(explanation.chain[0], Tid(6), "{explanation:?}");
}

#[test]
fn a_task_that_moves_the_thread_is_no_hog() {
    // The stopper of CPU 0 removes the thread, and another CPU continues it.
    let moved = |by: &str| {
        let events = events!(
            "50 cpu0 5 switch R -> 7/19
            60 cpu1 0 switch R -> 8/0
            110 cpu0 switch R -> 12/-1
            150 {by} migrate 7 cpu0 -> cpu1
            160 cpu0 12/-1 switch S -> 5
            200 cpu1 8/0 switch S -> 7/19"
        );
        let sample = LatencyInterval { cpu: 1, ..interval(100, 210, StartKind::Interval) };
        let gaps = Gaps::from_events(events.iter().copied());
        explain_sample(sample, &events, &coverage(), &gaps)
    };
    let by_stopper = moved("cpu0 12/-1");
    assert!(has(&by_stopper, "Migration { by: Tid(12) }"), "{by_stopper:?}");
    assert!(has(&by_stopper, "Preempted { by: Tid(8), prio: 0 }"), "{by_stopper:?}");
    // Moved by another task, it was preempted by that task.
    let by_other = moved("cpu1 8/0");
    assert!(has(&by_other, "Preempted { by: Tid(12), prio: -1 }"), "{by_other:?}");
}

#[test]
fn reclaim_includes_running_and_sleeping_time() {
    let explanation = explain_interval(
        100,
        300,
        "50 cpu0 5 switch R -> 7/19
        110 reclaim_begin
        150 switch D -> 0
        250 cpu1 6 waking 7/19; 251 cpu0 6 wakeup 7/19
        260 0 switch R -> 7/19
        280 reclaim_end 32",
    );
    // 40 before the sleep, 100 asleep, 20 after it.
    assert_eq!(time_of(&explanation, "Reclaim"), 160, "{:?}", causes(&explanation));
}

#[test]
fn a_remote_wake_up_is_in_progress_until_the_target_cpu_enqueues_it() {
    let explained = |running: u32| {
        let events = format!(
            "50 cpu0 7/19 switch S -> {running}
            60 cpu1 0 switch R -> 5
            150 waking 7/19
            250 cpu0 wakeup 7/19
            260 switch R -> 7/19"
        );
        causes(&explain_interval(100, 270, &events))
    };
    let busy = explained(8);
    assert!(busy.contains(&"Wakeup { running: Some(Tid(8)) } 100".into()), "{busy:?}");
    let idle = explained(0);
    assert!(idle.contains(&"IdleExit { state: None } 110".into()), "{idle:?}");
}

/// From 100 on, the kernel's `prio` is that of time-sharing: 100 is nice −20.
#[test]
fn nice_minus_20_is_runqueue_delay_not_preemption() {
    for (own, other, cause) in [
        (120, "9/100", "Runqueue { behind: Tid(9) }"),
        (120, "9/99", "Preempted { by: Tid(9), prio: 99 }"),
        (99, "9/100", "Throttled { running: Tid(9), budget: RealTime }"),
        (100, "9/120", "Runqueue { behind: Tid(9) }"),
        (-1, "9/50", "Throttled { running: Tid(9), budget: Deadline }"),
        (0, "9/50", "Throttled { running: Tid(9), budget: RealTime }"),
        // An idle CPU leaves a thread ready: its class shows the exhausted budget.
        (99, "0", "Throttled { running: Tid(0), budget: RealTime }"),
        (100, "0", "Throttled { running: Tid(0), budget: Group }"),
        (-1, "0", "Throttled { running: Tid(0), budget: Deadline }"),
    ] {
        let events = format!(
            "50 cpu0 5 switch R -> 7/{own}; 110 switch R -> {other}; 200 switch R -> 7/{own}"
        );
        let longest = longest(&explain_interval(100, 210, &events));
        assert!(longest.starts_with(cause), "{own} {other}: {longest}");
    }
}

#[test]
fn a_page_fault_lasts_until_the_next_event_but_at_most_20_us() {
    for (after, until, taken) in [
        ("6us sys_enter 1", 90_000, 5_000),
        // No event shows its end.
        ("", 90_000, 20_000),
        // It needed pages, which take time to clear.
        ("2us page_alloc 0 1", 90_000, 21_000),
        ("2us page_alloc 3 1", 90_000, 28_000),
        // Faults on neighbouring pages follow one another directly.
        ("81us page_fault 0x2000 2", 82_000, 81_000),
        // Far away: its own work was in between.
        ("81us page_fault 0x100000000 2", 82_000, 21_000),
    ] {
        let events = format!("50 cpu0 5 switch R -> 7/19; 1us page_fault 0x1000 2; {after}");
        let explanation = explain_interval(900, until, &events);
        assert_eq!(time_of(&explanation, "PageFault"), taken, "{after}");
    }
}
