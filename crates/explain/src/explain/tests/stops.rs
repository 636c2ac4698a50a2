//! Timer slack, stops by signals and by the freezer: each shown by its events only.

use super::*;
use std::sync::Arc;

/// A time-sharing thread whose timer was due at 100 is woken by it at `at`, on an idle CPU.
fn asleep_until(at: i64, entry: &str) -> String {
    format!(
        "50 cpu0 7 switch S -> 0
        {at} vector_entry 0xec; +2 hrtimer_entry {entry}
        +3 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        +10 switch R -> 7"
    )
}

/// A handler that wakes the thread within the slack is part of it, as in `attach`: until then the
/// kernel may defer the wake-up.
#[test]
fn a_timer_delay_up_to_the_slack_is_timer_slack() {
    for (at, slack) in [(120, 25), (150, 50), (180, 50)] {
        let explanation = explain_timer(100, at + 25, &asleep_until(at, "9 expires=100 slack=50"));
        assert_eq!(causes(&explanation)[0], format!("TimerSlack {slack}"), "{at}");
        let idle = time_of(&explanation, "IdleExit { state: None }");
        assert_eq!(idle, (at - 150).max(0) + 10, "{at}");
    }
}

/// Kernel records show it only at the start of the timer.
#[test]
fn timer_slack_is_read_from_the_start_of_the_timer() {
    for (timer, slack) in [(9, 50), (8, 0)] {
        let start = format!("40 cpu0 7 hrtimer_start {timer} expires=100 slack=50\n");
        let explanation = explain_timer(100, 175, &(start + &asleep_until(150, "9")));
        assert_eq!(time_of(&explanation, "TimerSlack"), slack, "timer {timer}");
    }
}

#[test]
fn timers_without_slack_and_waits_in_a_cycle_have_no_timer_slack() {
    let explanation = explain_timer(100, 175, &asleep_until(150, "9 expires=100"));
    assert_eq!(time_of(&explanation, "TimerSlack"), 0);
    assert_eq!(causes(&explanation)[0], "IdleExit { state: None } 50");
    // A wait in the middle of a thread's work is not a late timer.
    let explanation = explain_interval(100, 175, &asleep_until(150, "9 expires=100 slack=50"));
    assert_eq!(time_of(&explanation, "TimerSlack"), 0);
}

/// The longest part of a thread that leaves its CPU at 110 and that task 6 continues at 900.
fn stop(state: &str, before: &str, processes: &[(u32, u32)]) -> String {
    let events = events!(
        "{before}
        110 cpu0 7/19 switch {state} -> 0
        890 switch R -> 6
        900 waking 7/19; 900 wakeup 7/19
        910 switch R -> 7/19"
    );
    let processes = processes.iter().map(|(tid, process)| (Tid(*tid), *process)).collect();
    let coverage = Coverage { processes: Arc::new(processes), ..coverage() };
    let explanation = explain_with(interval(100, 920, StartKind::Interval), &coverage, &events);
    let longest = explanation.parts.iter().max_by_key(|part| part.duration()).unwrap();
    format!("{:?} {}", longest.cause, longest.duration().ns())
}

const UNKNOWN: &str = "Stopped { by: None, continued_by: Some(Tid(6)) } 790";
const BY_TASK_5: &str = "Stopped { by: Some(Tid(5)), continued_by: Some(Tid(6)) } 790";

#[test]
fn the_sender_of_the_stop_signal_is_named() {
    for (before, processes, expected) in [
        ("105 cpu1 5 signal 19 7", &[][..], BY_TASK_5),
        // To the process of the thread, by its first thread.
        ("105 cpu1 5 signal 20 2", &[(7, 2), (2, 2)], BY_TASK_5),
        // To another process.
        ("105 cpu1 5 signal 19 30", &[(7, 2), (30, 30)], UNKNOWN),
        ("105 cpu1 5 signal 19 30", &[], UNKNOWN),
        // A signal whose stop is over: the current stop is a debugger's.
        ("90 cpu1 5 signal 19 7; 95 6 signal 18 7", &[], UNKNOWN),
        // The last one counts.
        ("90 cpu1 40 signal 19 7; 105 5 signal 19 7", &[], BY_TASK_5),
        // Sent in an interrupt, regardless of the interrupted task.
        ("101 cpu1 5 vector_entry 0xec; 105 signal 19 7; 107 vector_exit 0xec", &[], UNKNOWN),
    ] {
        assert_eq!(stop("T", before, processes), expected, "{before}");
    }
}

#[test]
fn a_frozen_thread_is_stopped_by_the_task_that_froze_it() {
    const RESTART: i64 = -516;
    // The freezer wakes the thread from its system call, and suspends it on its way back.
    let frozen = |result: i64, after: &str| {
        let before = format!(
            "40 cpu0 7/19 sys_enter 230
            50 switch S -> 0
            100 cpu1 5 waking 7/19; 100 wakeup 7/19
            102 cpu0 switch R -> 7/19
            104 sys_exit 230 {result}
            {after}"
        );
        stop("S", &before, &[])
    };
    assert_eq!(frozen(RESTART, ""), BY_TASK_5);
    assert_eq!(frozen(-4, ""), BY_TASK_5);
    // Its call was not interrupted; it entered another one; it touched a page.
    for (result, after) in [(0, ""), (RESTART, "106 sys_enter 0"), (RESTART, "106 page_fault 1 2")]
    {
        assert_eq!(frozen(result, after), "Waiting { woken_by: Some(Tid(6)) } 790", "{after:?}");
    }
}

/// A recorder with BTF reports it in the state: then no task is named that no event shows.
#[test]
fn a_recorder_that_reads_the_freezer_needs_no_system_calls() {
    assert_eq!(stop("T", "", &[]), UNKNOWN);
}
