//! Timer slack, stops by signals and by the freezer: each shown by its events only.

use super::*;
use std::num::NonZeroU32;
use std::sync::Arc;

const SLACK: u32 = 50;
const NONE: u32 = 0;
/// The task that stops, and the one that continues.
const STOPS: u32 = 5;
const GOES_ON: u32 = 6;
const NANOSLEEP: u32 = 230;
const RESTART: i64 = -516;

/// A time-sharing thread whose timer was due at 100 is woken by it at `at`, on an idle CPU.
fn asleep_until(at: i64, entry: EventKind) -> Vec<Event> {
    let [vector, waking, wakeup, exit] = timer(at, 0, NONE);
    vec![
        switch(50, 0, (THREAD, LOWER), TaskState::Sleeping, (NONE, LOWER)),
        vector,
        event(at + 2, 0, NONE, entry),
        waking,
        wakeup,
        exit,
        switch(at + 20, 0, (NONE, LOWER), TaskState::Preempted, (THREAD, LOWER)),
    ]
}

fn expiry(slack: Option<u32>) -> EventKind {
    let expires = Some(MonotonicNs(100));
    EventKind::HrtimerExpireEntry {
        timer: 9,
        now: None,
        expires,
        slack: slack.and_then(NonZeroU32::new),
    }
}

fn total(explanation: &Explanation, cause: Cause) -> i64 {
    causes(explanation).iter().filter(|(of, _)| *of == cause).map(|(_, span)| span).sum()
}

/// A handler that wakes the thread within the slack is part of it, as in `attach`: until then the
/// kernel may defer the wake-up.
#[test]
fn a_timer_delay_up_to_the_slack_is_timer_slack() {
    for (at, slack) in [(120, 25), (150, 50), (180, 50)] {
        let events = asleep_until(at, expiry(Some(SLACK)));
        let explanation = explained(interval(100, at + 25, StartKind::Timer), &events);
        assert_eq!(causes(&explanation)[0], (Cause::TimerSlack, slack), "{at}");
        let idle = total(&explanation, Cause::IdleExit { state: None });
        assert_eq!(idle, (at - 150).max(0) + 10, "{at}");
    }
}

/// Kernel records show it only at the start of the timer.
#[test]
fn timer_slack_is_read_from_the_start_of_the_timer() {
    let expires = MonotonicNs(100);
    let started = |timer, slack| {
        event(
            40,
            0,
            THREAD,
            EventKind::HrtimerStart { timer, expires, slack: NonZeroU32::new(slack) },
        )
    };
    let entry = EventKind::HrtimerExpireEntry { timer: 9, now: None, expires: None, slack: None };
    for (timer, slack) in [(9, i64::from(SLACK)), (8, 0)] {
        let mut events = asleep_until(150, entry);
        events.insert(0, started(timer, SLACK));
        let explanation = explained(interval(100, 175, StartKind::Timer), &events);
        assert_eq!(total(&explanation, Cause::TimerSlack), slack, "timer {timer}");
    }
}

#[test]
fn timers_without_slack_and_waits_in_a_cycle_have_no_timer_slack() {
    let events = asleep_until(150, expiry(None));
    let explanation = explained(interval(100, 175, StartKind::Timer), &events);
    assert_eq!(total(&explanation, Cause::TimerSlack), 0);
    assert_eq!(causes(&explanation)[0], (Cause::IdleExit { state: None }, 50));
    // A wait in the middle of a thread's work is not a late timer.
    let explanation =
        explained(interval(100, 175, StartKind::Interval), &asleep_until(150, expiry(Some(SLACK))));
    assert_eq!(total(&explanation, Cause::TimerSlack), 0);
}

/// Stopped at 110, continued at 900 by another task.
fn stopped(state: TaskState, before: &[Event]) -> Vec<Event> {
    let woken = |what| event(900, 0, GOES_ON, what);
    let mut events = before.to_vec();
    events.extend([
        switch(110, 0, (THREAD, OWN), state, (NONE, LOWER)),
        switch(890, 0, (NONE, LOWER), TaskState::Preempted, (GOES_ON, LOWER)),
        woken(EventKind::Waking { task: Tid(THREAD), prio: OWN, target: 0 }),
        woken(EventKind::Wakeup { task: Tid(THREAD), prio: OWN, target: 0, new: false }),
        switch(910, 0, (GOES_ON, LOWER), TaskState::Preempted, (THREAD, OWN)),
    ]);
    events
}

/// The events before, the threads with their processes, and the longest part.
type StopCase<'c> = (&'c [Event], &'c [(u32, u32)], (Cause, i64));

fn stop(events: &[Event], processes: &[(u32, u32)]) -> (Cause, i64) {
    let processes = processes.iter().map(|(tid, process)| (Tid(*tid), *process)).collect();
    let coverage = Coverage {
        processes: Arc::new(processes),
        ..Coverage::between(MonotonicNs(0), MonotonicNs(1))
    };
    let gaps = Gaps::of(events.iter().copied());
    let explanation = explain(interval(100, 920, StartKind::Interval), events, &coverage, &gaps);
    check(&explanation, events);
    let longest = explanation.parts.iter().max_by_key(|part| part.span()).unwrap();
    (longest.cause, longest.span().ns())
}

fn signal(at: i64, by: u32, task: u32, signal: u8) -> Event {
    event(at, 1, by, EventKind::Signal { task: Tid(task), signal })
}

#[test]
fn the_sender_of_the_stop_signal_is_named() {
    let known = |by| (Cause::Stopped { by: Some(Tid(by)), continued_by: Some(Tid(GOES_ON)) }, 790);
    let unknown = (Cause::Stopped { by: None, continued_by: Some(Tid(GOES_ON)) }, 790);
    let (other, leader) = (30, 2);
    let cases: [StopCase; 6] = [
        (&[signal(105, STOPS, THREAD, 19)], &[], known(STOPS)),
        // To the process of the thread, by its first thread.
        (&[signal(105, STOPS, leader, 20)], &[(THREAD, leader), (leader, leader)], known(STOPS)),
        // To another process.
        (&[signal(105, STOPS, other, 19)], &[(THREAD, leader), (other, other)], unknown),
        (&[signal(105, STOPS, other, 19)], &[], unknown),
        // A signal whose stop is over: the current stop is a debugger's.
        (&[signal(90, STOPS, THREAD, 19), signal(95, GOES_ON, THREAD, 18)], &[], unknown),
        // The last one counts.
        (&[signal(90, 40, THREAD, 19), signal(105, STOPS, THREAD, 19)], &[], known(STOPS)),
    ];
    for (place, (before, processes, expected)) in cases.into_iter().enumerate() {
        let events = stopped(TaskState::Stopped, before);
        assert_eq!(stop(&events, processes), expected, "case {place}");
    }
    // Sent in an interrupt, regardless of the interrupted task.
    let interrupted = [
        event(101, 1, STOPS, EventKind::VectorEntry { vector: 0xec }),
        signal(105, STOPS, THREAD, 19),
        event(107, 1, STOPS, EventKind::VectorExit { vector: 0xec }),
    ];
    assert_eq!(stop(&stopped(TaskState::Stopped, &interrupted), &[]), unknown);
}

/// The freezer wakes the thread from its system call, and suspends it on its way back.
fn frozen(result: i64, after: Option<EventKind>) -> Vec<Event> {
    let woken = |what| event(100, 1, STOPS, what);
    let mut before = vec![
        event(40, 0, THREAD, EventKind::SyscallEnter { number: NANOSLEEP, args: [0; 2] }),
        switch(50, 0, (THREAD, OWN), TaskState::Sleeping, (NONE, LOWER)),
        woken(EventKind::Waking { task: Tid(THREAD), prio: OWN, target: 0 }),
        woken(EventKind::Wakeup { task: Tid(THREAD), prio: OWN, target: 0, new: false }),
        switch(102, 0, (NONE, LOWER), TaskState::Preempted, (THREAD, OWN)),
        event(104, 0, THREAD, EventKind::SyscallExit { number: NANOSLEEP, result }),
    ];
    before.extend(after.map(|what| event(106, 0, THREAD, what)));
    stopped(TaskState::Sleeping, &before)
}

#[test]
fn a_frozen_thread_is_stopped_by_the_task_that_froze_it() {
    let (by, continued_by) = (Some(Tid(STOPS)), Some(Tid(GOES_ON)));
    assert_eq!(stop(&frozen(RESTART, None), &[]), (Cause::Stopped { by, continued_by }, 790));
    assert_eq!(stop(&frozen(-4, None), &[]), (Cause::Stopped { by, continued_by }, 790));
    // Its call was not interrupted; it entered another one; it touched a page.
    let call = EventKind::SyscallEnter { number: 0, args: [0; 2] };
    let fault = EventKind::PageFault { address: 1, ip: 2, user: true };
    for (result, after) in [(0, None), (RESTART, Some(call)), (RESTART, Some(fault))] {
        let (cause, span) = stop(&frozen(result, after), &[]);
        assert_eq!((cause, span), (Cause::Waiting { woken_by: continued_by }, 790), "{after:?}");
    }
}

/// A recorder with BTF reports it in the state: then no task is named that no event shows.
#[test]
fn a_recorder_that_reads_the_freezer_needs_no_system_calls() {
    let expected = (Cause::Stopped { by: None, continued_by: Some(Tid(GOES_ON)) }, 790);
    assert_eq!(stop(&stopped(TaskState::Stopped, &[]), &[]), expected);
}
