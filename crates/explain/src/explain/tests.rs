//! Each cause from the kernel events that show it.

mod mutants;
mod observer;
mod stops;

use super::properties::check;
use super::*;
use crate::threads::Interrupt;
use punctual_core::EventKind;
use punctual_core::event::{Futex, InterfaceName, TaskState};

const THREAD: u32 = 7;
/// SCHED_FIFO 80, 99 and time-sharing, as the kernel's `prio`.
const OWN: i16 = 19;
const HIGHER: i16 = 0;
const LOWER: i16 = 120;
const TIMER: Interrupt = Interrupt::Vector(0xec);

fn event(at: i64, cpu: u16, tid: u32, what: EventKind) -> Event {
    Event { at: MonotonicNs(at), cpu, tid: Tid(tid), what }
}

fn switch(
    at: i64,
    cpu: u16,
    (prev, prev_prio): (u32, i16),
    prev_state: TaskState,
    (next, next_prio): (u32, i16),
) -> Event {
    event(at, cpu, prev, EventKind::Switch { prev_prio, prev_state, next: Tid(next), next_prio })
}

/// A local timer's interrupt at `at` that wakes the thread 5 ns later and lasts 10 ns.
fn timer(at: i64, cpu: u16, running: u32) -> [Event; 4] {
    let task = Tid(THREAD);
    [
        event(at, cpu, running, EventKind::VectorEntry { vector: 0xec }),
        event(at + 5, cpu, running, EventKind::Waking { task, prio: OWN, target: cpu }),
        event(at + 6, cpu, running, EventKind::Wakeup { task, prio: OWN, target: cpu, new: false }),
        event(at + 10, cpu, running, EventKind::VectorExit { vector: 0xec }),
    ]
}

fn interval(due: i64, woke: i64, kind: StartKind) -> LatencyInterval {
    LatencyInterval {
        tid: Tid(THREAD),
        cpu: 0,
        due: MonotonicNs(due),
        woke: MonotonicNs(woke),
        kind,
    }
}

fn explained(interval: LatencyInterval, events: &[Event]) -> Explanation {
    let coverage = Coverage::between(MonotonicNs(0), MonotonicNs(1));
    let gaps = Gaps::of(events.iter().copied());
    let explanation = explain(interval, events, &coverage, &gaps);
    check(&explanation, events);
    explanation
}

fn causes(explanation: &Explanation) -> Vec<(Cause, i64)> {
    explanation.parts.iter().map(|part| (part.cause, part.span().ns())).collect()
}

#[test]
fn disabled_interrupts_and_then_preemption_are_separate_causes() {
    let hog = (5, LOWER);
    let events = [
        vec![event(90, 0, 5, EventKind::SyscallEnter { number: 56, args: [0; 2] })],
        timer(150, 0, 5).into(),
        vec![
            switch(170, 0, hog, TaskState::Preempted, (THREAD, OWN)),
            event(176, 0, THREAD, EventKind::IdleExit),
        ],
    ]
    .concat();
    let explanation = explained(interval(100, 175, StartKind::Timer), &events);
    let (running, mode) = (Tid(5), CpuMode::Syscall(56));
    assert_eq!(
        causes(&explanation),
        [
            (Cause::TimerIrqDelay { running, mode }, 50),
            (Cause::Interrupt(TIMER), 10),
            (Cause::NonPreemptible { running, mode }, 10),
            (Cause::OwnExecution { mode: CpuMode::Unknown }, 5),
        ]
    );
    assert_eq!(explanation.warnings, []);
}

#[test]
fn an_interrupt_during_idle_exit_is_a_cause_of_its_own() {
    let events = [
        vec![
            switch(50, 0, (5, LOWER), TaskState::Sleeping, (0, LOWER)),
            event(60, 0, 0, EventKind::IdleEnter { state: 2 }),
            event(110, 0, 0, EventKind::IdleExit),
            event(112, 0, 0, EventKind::IrqEntry { irq: 9 }),
            event(118, 0, 0, EventKind::IrqExit { irq: 9, handled: true }),
        ],
        timer(118, 0, 0).into(),
        vec![switch(140, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN))],
    ]
    .concat();
    let explanation = explained(interval(100, 141, StartKind::Timer), &events);
    assert_eq!(
        causes(&explanation),
        [
            (Cause::IdleExit { state: Some(2) }, 10),
            (Cause::IdleExit { state: None }, 2),
            (Cause::Interrupt(Interrupt::Hard(9)), 6),
            (Cause::Interrupt(TIMER), 10),
            (Cause::IdleExit { state: None }, 12),
            (Cause::OwnExecution { mode: CpuMode::Unknown }, 1),
        ]
    );
}

#[test]
fn a_hidden_switch_from_idle_is_bounded_by_the_next_event_of_the_thread() {
    let task = Tid(THREAD);
    let mut events = vec![
        event(40, 0, THREAD, EventKind::SyscallEnter { number: 0, args: [0; 2] }),
        switch(50, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER)),
        event(100, 1, 5, EventKind::Waking { task, prio: OWN, target: 0 }),
        event(101, 1, 5, EventKind::Wakeup { task, prio: OWN, target: 0, new: false }),
        event(140, 0, THREAD, EventKind::SyscallExit { number: 0, result: 1 }),
        event(190, 0, THREAD, EventKind::SyscallEnter { number: 1, args: [0; 2] }),
    ];
    let of = |events: &[Event]| {
        let found = explained(interval(101, 200, StartKind::Interval), events);
        let parts: Vec<_> =
            found.parts.iter().map(|one| (one.cause.id(), one.span().ns())).collect();
        (parts, found.warnings)
    };
    let (idle, own) = (("idle-exit", 39), [("self", 50), ("self", 10)]);
    assert_eq!(of(&events), (vec![idle, own[0], own[1]], vec![Warning::SwitchUnseen]));
    events.insert(4, switch(130, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)));
    let (_, warnings) = of(&events);
    assert_eq!(warnings, [], "it was recorded");
}

#[test]
fn a_softirq_in_a_preempting_task_is_a_cause_of_its_own() {
    let hog = (9, HIGHER);
    let events = [
        vec![switch(90, 0, (5, LOWER), TaskState::Preempted, hog)],
        timer(100, 0, 9).into(),
        vec![
            event(120, 0, 9, EventKind::SoftirqEntry { vector: 3 }),
            event(150, 0, 9, EventKind::SoftirqExit { vector: 3 }),
            switch(200, 0, hog, TaskState::Sleeping, (THREAD, OWN)),
        ],
    ]
    .concat();
    let explanation = explained(interval(100, 210, StartKind::Timer), &events);
    let preempted = Cause::Preempted { by: Tid(9), prio: HIGHER };
    assert_eq!(
        explanation.totals(),
        [
            (preempted, Nanos(60)),
            (Cause::Interrupt(Interrupt::Soft(3)), Nanos(30)),
            (Cause::Interrupt(TIMER), Nanos(10)),
            (Cause::OwnExecution { mode: CpuMode::Unknown }, Nanos(10)),
        ]
    );
}

#[test]
fn a_switch_from_a_runnable_thread_to_a_lower_priority_is_throttling() {
    let events = [
        vec![event(80, 0, THREAD, EventKind::SyscallEnter { number: 1, args: [0; 2] })],
        vec![switch(110, 0, (THREAD, OWN), TaskState::Preempted, (5, LOWER))],
        vec![switch(150, 0, (5, LOWER), TaskState::Preempted, (6, LOWER))],
        vec![switch(160, 0, (6, LOWER), TaskState::Preempted, (THREAD, OWN))],
    ]
    .concat();
    let explanation = explained(interval(100, 170, StartKind::Interval), &events);
    let own = Cause::OwnExecution { mode: CpuMode::Syscall(1) };
    let throttled = |tid| Cause::Throttled { running: Tid(tid), budget: Budget::RealTime };
    assert_eq!(
        causes(&explanation),
        [(own, 10), (throttled(5), 40), (throttled(6), 10), (own, 10)]
    );
}

#[test]
fn a_lock_wait_names_the_holder_and_the_task_that_the_holder_awaited() {
    let wakes = |at, cpu, tid, task| {
        event(at, cpu, tid, EventKind::Waking { task: Tid(task), prio: LOWER, target: 0 })
    };
    let events = [
        event(100, 0, THREAD, EventKind::FutexEnter { op: Futex::Wait, address: 64 }),
        switch(110, 0, (THREAD, LOWER), TaskState::Sleeping, (0, LOWER)),
        wakes(150, 1, 6, 5),
        wakes(190, 1, 5, THREAD),
        event(
            191,
            1,
            5,
            EventKind::Wakeup { task: Tid(THREAD), prio: LOWER, target: 0, new: false },
        ),
        switch(195, 0, (0, LOWER), TaskState::Preempted, (THREAD, LOWER)),
        event(198, 0, THREAD, EventKind::FutexExit { op: Futex::Wait, result: 0 }),
    ];
    let explanation = explained(interval(100, 200, StartKind::Interval), &events);
    assert_eq!(causes(&explanation)[1], (Cause::Lock { holder: Some(Tid(5)), kernel: false }, 80));
    assert_eq!(explanation.chain, [Tid(5), Tid(6)]);
}

#[test]
fn disk_waits_and_page_faults_are_distinguished() {
    let blocks = |at| switch(at, 0, (THREAD, LOWER), TaskState::Blocked, (0, LOWER));
    let disk = [
        event(150, 1, 3, EventKind::IrqEntry { irq: 4 }),
        event(
            152,
            1,
            3,
            EventKind::BlockComplete { device: 0xfe00, sector: 8, bytes: 4096, error: 0 },
        ),
        event(154, 1, 3, EventKind::Waking { task: Tid(THREAD), prio: LOWER, target: 0 }),
        event(156, 1, 3, EventKind::IrqExit { irq: 4, handled: true }),
        event(
            157,
            0,
            0,
            EventKind::Wakeup { task: Tid(THREAD), prio: LOWER, target: 0, new: false },
        ),
        switch(160, 0, (0, LOWER), TaskState::Preempted, (THREAD, LOWER)),
    ];
    let events = [
        vec![
            event(100, 0, THREAD, EventKind::SyscallEnter { number: 74, args: [0; 2] }),
            blocks(110),
        ],
        disk.into(),
    ];
    let explanation = explained(interval(100, 165, StartKind::Interval), &events.concat());
    assert_eq!(causes(&explanation)[1], (Cause::Io { device: 0xfe00 }, 44));
    let fault = event(105, 0, THREAD, EventKind::PageFault { address: 1, ip: 2, user: true });
    let events = [vec![fault, blocks(110)], disk.into()].concat();
    let explanation = explained(interval(100, 165, StartKind::Interval), &events);
    assert!(causes(&explanation).contains(&(Cause::PageFault, 44)), "{explanation:?}");
    // Directly after the fault it reads or writes the disk: only a write ends the fault.
    for (write, cause) in [(false, Cause::PageFault), (true, Cause::Io { device: 0xfe00 })] {
        let issue = EventKind::BlockIssue { device: 0xfe00, sector: 8, bytes: 4096, write };
        let before = vec![fault, event(108, 0, THREAD, issue), blocks(110)];
        let explanation =
            explained(interval(100, 165, StartKind::Interval), &[before, disk.into()].concat());
        assert!(causes(&explanation).contains(&(cause, 44)), "{explanation:?}");
    }
    // A write to reclaim memory for the page does not end it.
    let issue = EventKind::BlockIssue { device: 0xfe00, sector: 8, bytes: 4096, write: true };
    let does =
        [EventKind::ReclaimBegin { order: 0 }, issue, EventKind::ReclaimEnd { reclaimed: 1 }];
    let does = (106..).zip(does).map(|(at, what)| event(at, 0, THREAD, what)).collect();
    let events = [vec![fault], does, vec![blocks(110)], disk.into()].concat();
    let explanation = explained(interval(100, 165, StartKind::Interval), &events);
    assert!(causes(&explanation).contains(&(Cause::PageFault, 44)), "{explanation:?}");
}

#[test]
fn lost_events_are_unknown_time_and_lower_the_confidence() {
    let events = [
        vec![switch(90, 0, (5, LOWER), TaskState::Preempted, (9, HIGHER))],
        timer(100, 0, 9).into(),
        vec![event(180, 0, 0, EventKind::Lost { count: 40, since: MonotonicNs(130) })],
        vec![switch(200, 0, (9, HIGHER), TaskState::Sleeping, (THREAD, OWN))],
    ]
    .concat();
    let explanation = explained(interval(100, 210, StartKind::Timer), &events);
    assert_eq!(
        (explanation.lost, explanation.warnings.clone()),
        (40, vec![Warning::Lost, Warning::MuchUnknown])
    );
    assert!(causes(&explanation).contains(&(Cause::Unknown, 50)), "{explanation:?}");
    let unknown = explained(interval(100, 200, StartKind::Timer), &[]);
    assert_eq!(causes(&unknown), [(Cause::Unknown, 100)]);
    assert_eq!(unknown.warnings, [Warning::BeginsAfterDue, Warning::MuchUnknown]);
    assert_eq!(explained(interval(200, 100, StartKind::Timer), &events).parts, [], "it came early");
}

#[test]
fn a_thread_that_wakes_while_the_budget_is_used_up_is_throttled() {
    // A spinning real-time task was preempted by another one before the thread was due.
    let mut events = vec![switch(50, 0, (8, 49), TaskState::Preempted, (9, LOWER))];
    events.extend(timer(100, 0, 9));
    events.extend(timer(200, 0, 9).into_iter().filter(|event| {
        matches!(event.what, EventKind::VectorEntry { .. } | EventKind::VectorExit { .. })
    }));
    events.push(switch(300, 0, (9, LOWER), TaskState::Preempted, (THREAD, OWN)));
    let throttled = Cause::Throttled { running: Tid(9), budget: Budget::RealTime };
    let explanation = explained(interval(90, 310, StartKind::Timer), &events);
    let sum = explanation
        .totals()
        .iter()
        .find(|(cause, _)| *cause == throttled)
        .map(|(_, span)| span.ns());
    assert_eq!(sum, Some(90 + 90), "{:?}", causes(&explanation));
    // If the task that ran gave way by waiting, no event shows why the thread was not switched to.
    events[0] = switch(50, 0, (8, 49), TaskState::Sleeping, (9, LOWER));
    let explanation = explained(interval(90, 310, StartKind::Timer), &events);
    assert!(
        explanation.parts.iter().any(|part| matches!(part.cause, Cause::NonPreemptible { .. })),
        "{:?}",
        causes(&explanation)
    );
}

#[test]
fn interrupt_events_identify_the_system_call_without_syscall_events() {
    let hog = (5, LOWER);
    let found = |at, call| event(at, 0, 5, EventKind::Interrupted { call });
    // sched_waking and system calls are not recorded.
    let lean = |call| {
        let [entry, _, wakeup, exit] = timer(150, 0, 5);
        vec![
            switch(40, 0, (0, LOWER), TaskState::Preempted, hog),
            entry,
            found(150, call),
            wakeup,
            exit,
            switch(170, 0, hog, TaskState::Preempted, (THREAD, OWN)),
        ]
    };
    for (call, mode) in [(Some(56), CpuMode::Syscall(56)), (None, CpuMode::User)] {
        let explanation = explained(interval(100, 175, StartKind::Timer), &lean(call));
        let running = Tid(5);
        let after = Cause::NonPreemptible { running, mode };
        let own = Cause::OwnExecution { mode: CpuMode::Unknown };
        let expected = [
            (Cause::TimerIrqDelay { running, mode }, 50),
            (Cause::Interrupt(TIMER), 10),
            (after, 10),
            (own, 5),
        ];
        assert_eq!(causes(&explanation), expected);
    }
    // An interrupt meets a page fault just before it; an earlier one is over.
    for (at, mode) in [
        (140, CpuMode::Fault),
        (140 - 1_500_000, CpuMode::Unknown),
        (140 - 20_000_000, CpuMode::User),
    ] {
        let fault = event(at, 0, 5, EventKind::PageFault { address: 0, ip: 0, user: true });
        let mut events = lean(None);
        events[0].at = MonotonicNs(40.min(at - 1));
        events.insert(1, fault);
        let explanation = explained(interval(100, 175, StartKind::Timer), &events);
        assert_eq!(
            causes(&explanation)[0],
            (Cause::TimerIrqDelay { running: Tid(5), mode }, 50),
            "{at}"
        );
    }
}

/// A page fault that clears a huge page takes milliseconds: a later interrupt outside of a system
/// call did not return to user mode.
#[test]
fn a_long_page_fault_is_no_throttling() {
    let met = |at| event(at, 0, 9, EventKind::Interrupted { call: None });
    let explained = |fault: i64| {
        let mut events = vec![
            switch(-30_000_000, 0, (5, LOWER), TaskState::Sleeping, (9, LOWER)),
            event(fault, 0, 9, EventKind::PageFault { address: 0, ip: 0, user: true }),
        ];
        for at in [1_000_000, 1_500_000] {
            let [entry, waking, wakeup, exit] = timer(at, 0, 9);
            let woken = [waking, wakeup].into_iter().filter(|_| at == 1_000_000);
            events.extend([entry, met(at + 1)].into_iter().chain(woken).chain([exit]));
        }
        events.push(switch(3_000_000, 0, (9, LOWER), TaskState::Preempted, (THREAD, OWN)));
        explained(interval(999_990, 3_000_010, StartKind::Timer), &events)
    };
    let is_throttled = |explanation: &Explanation| {
        explanation.parts.iter().any(|part| matches!(part.cause, Cause::Throttled { .. }))
    };
    assert!(!is_throttled(&explained(50)), "{:?}", causes(&explained(50)));
    // A fault that began long ago is over, and a task in user mode would have been preempted.
    let long_ago = explained(-20_000_000);
    assert!(is_throttled(&long_ago), "{:?}", causes(&long_ago));
}

/// Its timer was due while it was stopped or frozen: no timer is late then.
#[test]
fn a_stopped_thread_waited_for_the_task_that_continued_it() {
    let woken = |what| event(900, 0, 5, what);
    for state in [TaskState::Stopped, TaskState::Sleeping] {
        let events = [
            switch(50, 0, (THREAD, OWN), state, (0, LOWER)),
            switch(890, 0, (0, LOWER), TaskState::Preempted, (5, LOWER)),
            woken(EventKind::Waking { task: Tid(THREAD), prio: OWN, target: 0 }),
            woken(EventKind::Wakeup { task: Tid(THREAD), prio: OWN, target: 0, new: false }),
            switch(910, 0, (5, LOWER), TaskState::Preempted, (THREAD, OWN)),
        ];
        let mut coverage = Coverage::between(MonotonicNs(0), MonotonicNs(1));
        coverage.groups = Some(vec![Group::Sched, Group::Vectors, Group::Irq, Group::Softirq]);
        let gaps = Gaps::of(events.iter().copied());
        let explained = |coverage: &Coverage| {
            explain(interval(100, 920, StartKind::Timer), &events, coverage, &gaps)
        };
        let cause = match state {
            TaskState::Stopped => Cause::Stopped { by: None, continued_by: Some(Tid(5)) },
            _ => Cause::Waiting { woken_by: Some(Tid(5)) },
        };
        let waiting = (cause, 800);
        assert_eq!(causes(&explained(&coverage))[0], waiting, "{state:?}");
        // Without events of interrupts, the timer may have interrupted the task.
        coverage.groups = Some(vec![Group::Sched]);
        let is_the_same = causes(&explained(&coverage))[0] == waiting;
        assert_eq!(is_the_same, state == TaskState::Stopped);
    }
}

/// A program that its timer woke in time, and that then waits for another timer.
#[test]
fn only_the_first_wait_is_for_the_timer() {
    let mut events = vec![switch(50, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER))];
    for at in [100, 900] {
        events.extend(timer(at, 0, 0));
        events.push(switch(at + 20, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)));
        let sleeps = switch(at + 30, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER));
        events.extend((at == 100).then_some(sleeps));
    }
    let explanation = explained(interval(90, 930, StartKind::Timer), &events);
    let all = causes(&explanation);
    assert_eq!(all[0], (Cause::IdleExit { state: None }, 10), "{all:?}");
    assert!(all.contains(&(Cause::Waiting { woken_by: None }, 775)), "{all:?}");
}

/// A program that its timer woke in time, and that then waits for an answer that does not come.
#[test]
fn a_wait_that_ends_by_its_timeout_is_one() {
    const POLL: u32 = 7;
    let explained = |number, result| {
        let mut events = vec![switch(50, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER))];
        events.extend(timer(100, 0, 0));
        events.extend([
            switch(120, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)),
            event(122, 0, THREAD, EventKind::SyscallExit { number: 230, result: 0 }),
            event(125, 0, THREAD, EventKind::SyscallEnter { number, args: [0; 2] }),
            switch(130, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER)),
        ]);
        events.extend(timer(900, 0, 0));
        events.extend([
            switch(920, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)),
            event(925, 0, THREAD, EventKind::SyscallExit { number, result }),
        ]);
        let mut coverage = Coverage::between(MonotonicNs(0), MonotonicNs(1));
        coverage.polls = [POLL].into();
        let gaps = Gaps::of(events.iter().copied());
        let explanation = explain(interval(90, 930, StartKind::Timer), &events, &coverage, &gaps);
        check(&explanation, &events);
        causes(&explanation).into_iter().find(|(_, span)| *span == 775).map(|(cause, _)| cause)
    };
    let waiting = Some(Cause::Waiting { woken_by: None });
    for (number, result, call) in
        [(POLL, 0, Some(POLL)), (POLL, 1, None), (45, -11, Some(45)), (45, 0, None)]
    {
        let expected = call.map_or(waiting, |call| Some(Cause::Timeout { call }));
        assert_eq!(explained(number, result), expected, "{number} returned {result}");
    }
}

/// Page faults of the running task hide that it is in user mode: but while it runs, no other task
/// can use up the budget.
#[test]
fn throttling_extends_back_to_the_switch_to_the_other_task() {
    let met = |at| event(at, 0, 9, EventKind::Interrupted { call: None });
    let explained = |ats: &[i64]| {
        let mut events = vec![switch(-30_000_000, 0, (5, LOWER), TaskState::Sleeping, (9, LOWER))];
        for at in ats.iter().copied() {
            let fault = EventKind::PageFault { address: 0, ip: 0, user: true };
            events.extend((at < 6_000_000).then(|| event(at - 100_000, 0, 9, fault)));
            let [entry, waking, wakeup, exit] = timer(at, 0, 9);
            let woken = [waking, wakeup].into_iter().filter(|_| at == 1_000_000);
            events.extend([entry, met(at + 1)].into_iter().chain(woken).chain([exit]));
        }
        events.push(switch(7_000_000, 0, (9, LOWER), TaskState::Preempted, (THREAD, OWN)));
        explained(interval(999_990, 7_000_010, StartKind::Timer), &events)
    };
    let takes = |explanation: &Explanation, is: fn(&Cause) -> bool| -> i64 {
        let parts = explanation.parts.iter().filter(|part| is(&part.cause));
        parts.map(|part| part.span().ns()).sum()
    };
    let throttled = |cause: &Cause| matches!(cause, Cause::Throttled { .. });
    let held = |cause: &Cause| matches!(cause, Cause::NonPreemptible { .. });
    let all = explained(&[1_000_000, 2_000_000, 6_000_000]);
    assert_eq!(takes(&all, held), 0, "{:?}", causes(&all));
    assert!(takes(&all, throttled) > 5_900_000, "{:?}", causes(&all));
    // Without the last interrupt, nothing shows that the task was in user mode.
    let faults = explained(&[1_000_000, 2_000_000]);
    assert_eq!(takes(&faults, throttled), 0, "{:?}", causes(&faults));
}

#[test]
fn group_throttling_ends_with_the_unthrottle_event() {
    let (own, other) = ((THREAD, LOWER), (5, LOWER));
    let events = [
        switch(100, 0, (9, LOWER), TaskState::Preempted, own),
        switch(120, 0, own, TaskState::Throttled, other),
        switch(150, 0, other, TaskState::Preempted, (6, LOWER)),
        event(180, 0, 6, EventKind::Unthrottled { task: Tid(8) }),
        switch(180, 0, (6, LOWER), TaskState::Preempted, other),
        switch(200, 0, other, TaskState::Preempted, own),
    ];
    let explanation = explained(interval(110, 205, StartKind::Interval), &events);
    let throttled = |running| Cause::Throttled { running: Tid(running), budget: Budget::Group };
    let own = Cause::OwnExecution { mode: CpuMode::Unknown };
    assert_eq!(
        causes(&explanation),
        [
            (own, 10),
            (throttled(5), 30),
            (throttled(6), 30),
            (Cause::Runqueue { behind: Tid(5) }, 20),
            (own, 5)
        ]
    );
}

/// An idle CPU whose timer is due at 1 ms and served 9.55 ms later; the thread's sample ends 5 µs
/// after that.
fn long_exit(steal: Option<Nanos>, more: &[Event]) -> Explanation {
    slow_switch(steal, Nanos(20), more)
}

/// The same; the CPU selects the thread `switched` after it served the timer.
fn slow_switch(steal: Option<Nanos>, switched: Nanos, more: &[Event]) -> Explanation {
    let (due, served) = (1_000_000, 10_550_000);
    let chosen = served + switched.ns();
    let expiry = EventKind::HrtimerExpireEntry {
        timer: 1,
        now: None,
        expires: Some(MonotonicNs(due)),
        slack: None,
    };
    let mut events = vec![
        switch(50, 0, (5, LOWER), TaskState::Sleeping, (0, LOWER)),
        event(60, 0, 0, EventKind::IdleEnter { state: 0 }),
        event(served, 0, 0, expiry),
    ];
    events.extend(timer(served, 0, 0));
    events.push(switch(chosen, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)));
    events.extend(more.iter().copied());
    events.sort_by_key(|event| event.at);
    let gaps = Gaps::of(events.iter().copied());
    let idle_latencies = [(0, Nanos::ZERO)].into();
    let coverage =
        Coverage { steal, idle_latencies, ..Coverage::between(MonotonicNs(0), MonotonicNs(1)) };
    let explanation =
        explain(interval(due, chosen + 4_980, StartKind::Timer), &events, &coverage, &gaps);
    assert!(explanation.adds_up());
    explanation
}

#[test]
fn an_exit_from_idle_far_beyond_the_declared_latency_is_steal_or_has_a_warning() {
    let (exit, span) = (Cause::IdleExit { state: Some(0) }, 9_550_000);
    for steal in [None, Some(Nanos::ZERO), Some(Nanos::from_millis(5))] {
        let unproven = long_exit(steal, &[]);
        assert_eq!(
            (causes(&unproven)[0], unproven.confidence()),
            ((exit, span), Confidence::Low),
            "it keeps its name"
        );
        assert_eq!(unproven.warnings, [Warning::LongIdleExit]);
    }
    let stolen_time = long_exit(Some(Nanos::from_millis(10)), &[]);
    assert_eq!(
        (causes(&stolen_time)[0], stolen_time.confidence()),
        ((Cause::Steal, span), Confidence::Fair)
    );
    assert_eq!(
        (stolen_time.warnings, stolen_time.parts[0].cpu),
        (vec![Warning::StealClock], Some(0))
    );
    // CPU 1 is taken and returns together with it, while CPU 2 continues: not the whole machine was
    // silent.
    let expires = Some(MonotonicNs(2_000_000));
    let mut others: Vec<Event> =
        (0..30).map(|k| event(k * 400_000, 2, 0, EventKind::IdleEnter { state: 0 })).collect();
    others.extend([
        event(70, 1, 0, EventKind::IdleEnter { state: 0 }),
        event(
            10_600_000,
            1,
            0,
            EventKind::HrtimerExpireEntry { timer: 2, now: None, expires, slack: None },
        ),
    ]);
    let proven = long_exit(None, &others);
    assert_eq!((causes(&proven)[0], proven.warnings.clone()), ((Cause::Steal, span), vec![]));
}

/// The steal clock's count for one exit is not available for the next.
#[test]
fn the_steal_clock_covers_no_more_than_it_counted() {
    let (first, second) = (9_550_000, 10_000_000);
    let of = |steal| {
        let both = slow_switch(Some(Nanos(steal)), Nanos(second), &[]);
        let is_steal = |least: i64| {
            let mut long = both.parts.iter().filter(|part| part.span() > Nanos::MILLI);
            long.any(|part| part.span().ns() >= least && part.cause == Cause::Steal)
        };
        let stolen = both.parts.iter().filter(|part| part.cause == Cause::Steal);
        (stolen.map(|part| part.span().ns()).sum::<i64>(), is_steal(first), both.warnings)
    };
    let (whole, is_steal, warnings) = of(first + second);
    assert!(whole > second && is_steal, "{whole}");
    assert_eq!(warnings, [Warning::StealClock]);
    let (one, is_steal, warnings) = of(second + 1_000_000);
    assert!(one > 0 && one <= second && is_steal, "{one}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.contains(&Warning::LongIdleExit) && warnings.contains(&Warning::StealClock));
}

#[test]
fn a_cpu_silent_past_its_timer_lowers_the_confidence() {
    let expiry = EventKind::HrtimerExpireEntry {
        timer: 1,
        now: None,
        expires: Some(MonotonicNs(1_000_000)),
        slack: None,
    };
    let events = [
        switch(100, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)),
        event(9_000_000, 0, THREAD, expiry),
        event(9_000_100, 0, THREAD, EventKind::VectorEntry { vector: 0xec }),
    ];
    let explanation = explained(interval(200, 9_000_050, StartKind::Interval), &events);
    assert_eq!(explanation.warnings, [Warning::Silent]);
    assert_eq!(explanation.confidence(), Confidence::Low);
}

#[test]
fn unrecorded_event_groups_that_could_explain_a_wait_are_named() {
    let events = [
        switch(110, 0, (THREAD, LOWER), TaskState::Sleeping, (0, LOWER)),
        event(190, 1, 5, EventKind::Waking { task: Tid(THREAD), prio: LOWER, target: 0 }),
        switch(195, 0, (0, LOWER), TaskState::Preempted, (THREAD, LOWER)),
    ];
    let not_recorded = |groups: &[Group]| {
        let coverage = Coverage {
            groups: Some(groups.to_vec()),
            ..Coverage::between(MonotonicNs(0), MonotonicNs(1))
        };
        explain(interval(100, 200, StartKind::Interval), &events, &coverage, &Gaps::default())
            .not_recorded
    };
    assert_eq!(
        not_recorded(&[Group::Sched]),
        [Group::Futex, Group::Lock, Group::Block, Group::Syscall]
    );
    assert_eq!(
        not_recorded(&[Group::Sched, Group::Futex, Group::Block]),
        [Group::Lock, Group::Syscall]
    );
}

#[test]
fn a_chain_of_wake_ups_is_followed_back_to_an_interrupt() {
    let (first, second, idle) = (8, 9, 0);
    let woken = |task| EventKind::Waking { task: Tid(task), prio: LOWER, target: 0 };
    let events = [
        // All three sleep; only a wait for a lock is recorded.
        switch(10, 0, (THREAD, OWN), TaskState::Sleeping, (first, LOWER)),
        switch(20, 0, (first, LOWER), TaskState::Blocked, (second, LOWER)),
        switch(30, 0, (second, LOWER), TaskState::Sleeping, (idle, LOWER)),
        event(200, 0, idle, EventKind::VectorEntry { vector: 0xec }),
        event(205, 0, idle, woken(second)),
        event(210, 0, idle, EventKind::VectorExit { vector: 0xec }),
        switch(220, 0, (idle, LOWER), TaskState::Preempted, (second, LOWER)),
        event(230, 0, second, woken(first)),
        switch(240, 0, (second, LOWER), TaskState::Sleeping, (first, LOWER)),
        event(250, 0, first, woken(THREAD)),
        switch(260, 0, (first, LOWER), TaskState::Preempted, (THREAD, OWN)),
    ];
    let explanation = explained(interval(100, 270, StartKind::Interval), &events);
    let steps: Vec<_> = explanation
        .wakeups
        .iter()
        .map(|step| (step.task.0, step.wait, step.waited.map(Nanos::ns), step.by, step.evidence))
        .collect();
    assert_eq!(
        steps,
        [
            // If the record begins with the sleep, its start is not proven.
            (THREAD, WaitKind::Sleep, None, Waker::Task(Tid(first)), 9),
            (first, WaitKind::Uninterruptible, Some(210), Waker::Task(Tid(second)), 7),
            (second, WaitKind::Sleep, Some(175), Waker::Interrupt(TIMER), 4),
        ]
    );
}

#[test]
fn a_packet_is_followed_to_the_interrupt_of_its_device() {
    const DEVICE: u32 = 27;
    let begins = EventKind::SoftirqEntry { vector: 3 };
    let ends = EventKind::SoftirqExit { vector: 3 };
    let waking = EventKind::Waking { task: Tid(THREAD), prio: OWN, target: 0 };
    let wakeup = EventKind::Wakeup { task: Tid(THREAD), prio: OWN, target: 0, new: false };
    let delivered = |irq: bool| {
        let mut events = vec![
            switch(10, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER)),
            // The previous packet, which is for another task.
            event(20, 0, 0, EventKind::IrqEntry { irq: 9 }),
            event(22, 0, 0, EventKind::IrqExit { irq: 9, handled: true }),
            event(23, 0, 0, begins),
            event(25, 0, 0, ends),
        ];
        if irq {
            events.push(event(200, 0, 0, EventKind::IrqEntry { irq: DEVICE }));
            events.push(event(204, 0, 0, EventKind::IrqExit { irq: DEVICE, handled: true }));
        }
        events.extend([
            event(210, 0, 0, begins),
            event(230, 0, 0, waking),
            event(231, 0, 0, wakeup),
        ]);
        let poll = event(235, 0, 0, EventKind::NapiPoll { work: 3, budget: 64 });
        events.extend(irq.then_some(poll));
        events.extend([
            event(240, 0, 0, ends),
            // A poll of another softirq.
            event(245, 0, 0, EventKind::NapiPoll { work: 9, budget: 64 }),
            switch(250, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)),
        ]);
        explained(interval(100, 260, StartKind::Interval), &events).wakeups
    };
    let [from_device] = delivered(true)[..] else { panic!("one step") };
    assert_eq!(from_device.by, Waker::Interrupt(Interrupt::Soft(3)));
    let delivery = Some(MonotonicNs(210));
    let irq = Some((DEVICE, MonotonicNs(200)));
    let unseen = Packet { irq: None, delivery, received: None, socket: None, poll: None };
    let poll = Some((MonotonicNs(235), 3));
    assert_eq!(from_device.packet, Some(Packet { irq, poll, ..unseen }));
    let [local] = delivered(false)[..] else { panic!("one step") };
    assert_eq!(local.packet, Some(unseen));
    assert_eq!(local.by, Waker::Interrupt(Interrupt::Soft(3)), "nobody is seen to have sent it");
}

/// The path to the socket: in a softirq, and in the thread of the device's NAPI.
#[test]
fn a_packet_is_traced_from_the_device_to_the_socket() {
    const NAPI: u32 = 9;
    let device = InterfaceName::of(b"eth0");
    let waking = |task| EventKind::Waking { task: Tid(task), prio: OWN, target: 0 };
    let receives = EventKind::PacketReceived { device, bytes: 60 };
    let ready = |protocol| EventKind::SocketReady { family: 2, protocol };
    let way = |threaded: bool, between: Option<EventKind>| {
        let mut events = vec![
            switch(5, 0, (NAPI, LOWER), TaskState::Sleeping, (THREAD, OWN)),
            switch(10, 0, (THREAD, OWN), TaskState::Sleeping, (0, LOWER)),
            event(200, 0, 0, EventKind::IrqEntry { irq: 27 }),
        ];
        if threaded {
            events.push(event(201, 0, 0, waking(NAPI)));
        }
        events.push(event(204, 0, 0, EventKind::IrqExit { irq: 27, handled: true }));
        let (by, end) = match threaded {
            true => {
                events.push(switch(208, 0, (0, LOWER), TaskState::Preempted, (NAPI, LOWER)));
                (NAPI, switch(240, 0, (NAPI, LOWER), TaskState::Sleeping, (THREAD, OWN)))
            }
            false => {
                events.push(event(208, 0, 0, EventKind::SoftirqEntry { vector: 3 }));
                events.push(event(240, 0, 0, EventKind::SoftirqExit { vector: 3 }));
                (0, switch(250, 0, (0, LOWER), TaskState::Preempted, (THREAD, OWN)))
            }
        };
        events.extend([
            event(210, 0, by, receives),
            event(212, 0, by, ready(6)),
            event(213, 0, by, waking(77)),
            event(215, 0, by, EventKind::PacketReceived { device, bytes: 84 }),
            event(225, 0, by, ready(17)),
        ]);
        events.extend(between.map(|what| event(228, 0, by, what)));
        events.extend([
            event(230, 0, by, waking(THREAD)),
            event(235, 0, by, EventKind::NapiPoll { work: 2, budget: 64 }),
            end,
        ]);
        events.sort_by_key(|event| event.at);
        explained(interval(100, 260, StartKind::Interval), &events).wakeups
    };
    let received = Some(ReceivedPacket { at: MonotonicNs(215), device, bytes: 84 });
    let socket = Some(Socket { at: MonotonicNs(225), family: 2, protocol: 17 });
    let poll = Some((MonotonicNs(235), 2));
    let [step] = way(false, None)[..] else { panic!("one step") };
    let (irq, delivery) = (Some((27, MonotonicNs(200))), Some(MonotonicNs(208)));
    assert_eq!(step.packet, Some(Packet { irq, delivery, received, socket, poll }));
    let [step, before] = way(true, None)[..] else { panic!("two steps") };
    assert_eq!(step.by, Waker::Task(Tid(NAPI)));
    assert_eq!(step.packet, Some(Packet { irq: None, delivery: None, received, socket, poll }));
    assert_eq!(before.by, Waker::Interrupt(Interrupt::Hard(27)));
    assert_eq!(before.packet, None);
    // Another event precedes the wake-up: that socket had no waiter.
    let other = EventKind::SyscallEnter { number: 1, args: [0; 2] };
    let [step, _] = way(true, Some(other))[..] else { panic!("two steps") };
    assert_eq!(step.packet, None);
}

#[test]
fn a_packet_of_this_machine_comes_from_the_thread_that_sent_it() {
    const PEER: u32 = 9;
    let vector = 3;
    let waking = EventKind::Waking { task: Tid(THREAD), prio: OWN, target: 0 };
    let wakeup = EventKind::Wakeup { task: Tid(THREAD), prio: OWN, target: 0, new: false };
    let explained = |in_interrupt: bool| {
        let mut events = vec![
            switch(10, 0, (THREAD, OWN), TaskState::Sleeping, (PEER, LOWER)),
            event(20, 0, PEER, EventKind::SoftirqEntry { vector }),
            event(25, 0, PEER, EventKind::SoftirqExit { vector }),
        ];
        if in_interrupt {
            events.push(event(195, 0, PEER, EventKind::VectorEntry { vector: 0xfb }));
        }
        events.push(event(200, 0, PEER, EventKind::SoftirqRaise { vector }));
        if in_interrupt {
            events.push(event(205, 0, PEER, EventKind::VectorExit { vector: 0xfb }));
        }
        events.extend([
            event(210, 0, PEER, EventKind::SoftirqEntry { vector }),
            event(230, 0, PEER, waking),
            event(231, 0, PEER, wakeup),
            event(240, 0, PEER, EventKind::SoftirqExit { vector }),
            switch(250, 0, (PEER, LOWER), TaskState::Preempted, (THREAD, OWN)),
        ]);
        explained(interval(100, 260, StartKind::Interval), &events)
    };
    let sent = explained(false);
    assert_eq!(causes(&sent)[0], (Cause::Waiting { woken_by: Some(Tid(PEER)) }, 130), "{sent:?}");
    assert_eq!(sent.wakeups[0].by, Waker::Task(Tid(PEER)));
    // From another machine: an interrupt of that CPU announced it.
    let received = explained(true);
    assert_eq!(causes(&received)[0], (Cause::Waiting { woken_by: None }, 130), "{received:?}");
    assert_eq!(received.wakeups[0].by, Waker::Interrupt(Interrupt::Soft(3)));
}

/// The interrupt of a disk does not announce the packet that a thread sends after it.
#[test]
fn the_interrupt_that_raised_the_softirq_announced_the_packet() {
    const PEER: u32 = 9;
    let waking = |task| EventKind::Waking { task: Tid(task), prio: OWN, target: 0 };
    let way = |raised_at: i64, thread: u32| {
        let mut events = vec![
            switch(10, 0, (THREAD, OWN), TaskState::Sleeping, (PEER, LOWER)),
            event(195, 0, PEER, EventKind::IrqEntry { irq: 36 }),
            event(198, 0, PEER, EventKind::IrqExit { irq: 36, handled: true }),
            event(199, 0, PEER, waking(thread)),
            event(raised_at, 0, PEER, EventKind::SoftirqRaise { vector: 3 }),
            event(210, 0, PEER, EventKind::SoftirqEntry { vector: 3 }),
            event(230, 0, PEER, waking(THREAD)),
            event(240, 0, PEER, EventKind::SoftirqExit { vector: 3 }),
            switch(250, 0, (PEER, LOWER), TaskState::Preempted, (THREAD, OWN)),
        ];
        events.sort_by_key(|event| event.at);
        let [step] = explained(interval(100, 260, StartKind::Interval), &events).wakeups[..] else {
            panic!("one step")
        };
        (step.by, step.packet.and_then(|packet| packet.irq).map(|(irq, _)| irq))
    };
    let device = Waker::Interrupt(Interrupt::Soft(3));
    assert_eq!(way(196, 77), (device, Some(36)), "in its handler");
    assert_eq!(way(205, PEER), (device, Some(36)), "in the thread that it woke");
    assert_eq!(way(205, 77), (Waker::Task(Tid(PEER)), None), "by a thread that it did not wake");
}

#[test]
fn a_circular_chain_of_wake_ups_ends_at_its_first_repetition() {
    let other = 8;
    let woken = |task| EventKind::Waking { task: Tid(task), prio: LOWER, target: 0 };
    let mut events = Vec::new();
    for round in 0..20 {
        let at = round * 100;
        events.extend([
            switch(at + 10, 0, (THREAD, OWN), TaskState::Sleeping, (other, LOWER)),
            event(at + 40, 0, other, woken(THREAD)),
            switch(at + 50, 0, (other, LOWER), TaskState::Sleeping, (THREAD, OWN)),
            event(at + 60, 0, THREAD, woken(other)),
        ]);
    }
    let explanation = explained(interval(1_920, 1_955, StartKind::Interval), &events);
    let tasks: Vec<u32> = explanation.wakeups.iter().map(|step| step.task.0).collect();
    assert_eq!(tasks, [THREAD, other]);
}

/// PREEMPT_RT: the timer's interrupt raises a softirq, whose thread waits for a real-time task.
#[test]
fn a_timer_waits_for_the_thread_of_its_softirq() {
    const SOFTIRQS: u32 = 15;
    let (own, hog) = ((THREAD, LOWER), (5, 98));
    for (prio, is_queued) in [(LOWER, false), (98, true)] {
        let task = Tid(SOFTIRQS);
        let woken = EventKind::Wakeup { task, prio, target: 0, new: false };
        let thread = EventKind::Wakeup { task: Tid(THREAD), prio: LOWER, target: 0, new: false };
        let waking = EventKind::Waking { task: Tid(THREAD), prio: LOWER, target: 0 };
        let events = [
            switch(50, 0, own, TaskState::Sleeping, hog),
            event(101, 0, 5, EventKind::VectorEntry { vector: 0xec }),
            event(103, 0, 5, EventKind::VectorExit { vector: 0xec }),
            // irq_exit() wakes it, after the end of the interrupt's tracepoint.
            event(105, 0, 5, EventKind::Waking { task, prio, target: 0 }),
            event(106, 0, 5, woken),
            switch(500, 0, hog, TaskState::Sleeping, (SOFTIRQS, prio)),
            event(510, 0, SOFTIRQS, EventKind::SoftirqEntry { vector: 8 }),
            event(515, 0, SOFTIRQS, waking),
            event(516, 0, SOFTIRQS, thread),
            event(520, 0, SOFTIRQS, EventKind::SoftirqExit { vector: 8 }),
            switch(530, 0, (SOFTIRQS, prio), TaskState::Sleeping, own),
        ];
        let explanation = explained(interval(100, 540, StartKind::Timer), &events);
        let preempted = Cause::Preempted { by: Tid(5), prio: 98 };
        let longest = causes(&explanation).into_iter().max_by_key(|(_, span)| *span);
        assert_eq!(longest, Some((preempted, 394)), "{is_queued}: {explanation:#?}");
    }
}

/// The wait of the previous cycle began before the record and lasts until after the next due time:
/// no timer is armed, so none is late.
#[test]
fn a_cycle_due_during_the_previous_wait_has_no_timer_delay() {
    use Group::{Block, Hrtimer, Irq, Sched, Softirq, Vectors};
    const FLIGHT: (u32, i16) = (5, 98);
    const KSOFTIRQD: (u32, i16) = (3, LOWER);
    let task = Tid(THREAD);
    let expires = event(
        500,
        0,
        0,
        EventKind::HrtimerExpireEntry { timer: 1, now: None, expires: None, slack: None },
    );
    let completes = event(
        510,
        0,
        KSOFTIRQD.0,
        EventKind::BlockComplete { device: 0xfe00, sector: 8, bytes: 4096, error: 0 },
    );
    let explained = |vector, first: Option<Event>, groups: &[Group]| {
        let by = KSOFTIRQD.0;
        let mut events = vec![
            event(90, 0, FLIGHT.0, EventKind::PageFault { address: 1, ip: 2, user: false }),
            event(200, 0, FLIGHT.0, EventKind::VectorEntry { vector: 0xec }),
            event(210, 0, FLIGHT.0, EventKind::VectorExit { vector: 0xec }),
            switch(400, 0, FLIGHT, TaskState::Sleeping, KSOFTIRQD),
            event(450, 0, by, EventKind::SoftirqEntry { vector }),
        ];
        events.extend(first.map(|event| Event { tid: Tid(by), ..event }));
        events.extend([
            event(520, 0, by, EventKind::Waking { task, prio: OWN, target: 0 }),
            event(521, 0, by, EventKind::Wakeup { task, prio: OWN, target: 0, new: false }),
            switch(540, 0, KSOFTIRQD, TaskState::Preempted, (THREAD, OWN)),
        ]);
        let mut coverage = Coverage::between(MonotonicNs(0), MonotonicNs(1));
        coverage.groups = Some(groups.to_vec());
        let gaps = Gaps::of(events.iter().copied());
        let explanation = explain(interval(100, 550, StartKind::Timer), &events, &coverage, &gaps);
        check(&explanation, &events);
        explanation
    };
    let all = [Sched, Vectors, Irq, Softirq, Hrtimer, Block];
    let late = |explanation: &Explanation| {
        let mut parts = explanation.parts.iter();
        parts.any(|part| matches!(part.cause, Cause::TimerIrqDelay { .. }))
    };
    // Softirq 4 is that of disks (linux/interrupt.h), 3 that of a network interface, 8 that of
    // timers.
    let disk = explained(4, Some(completes), &all);
    assert_eq!(causes(&disk)[0], (Cause::Io { device: 0xfe00 }, 420), "{disk:?}");
    assert!(!late(&disk), "{disk:?}");
    let net = explained(3, None, &all);
    assert_eq!(causes(&net)[0], (Cause::Waiting { woken_by: None }, 420), "{net:?}");
    // With a timer: its interrupt, or the thread of its softirq, was delayed.
    let timer = explained(8, Some(expires), &all);
    assert!(causes(&timer).iter().all(|(cause, _)| !matches!(cause, Cause::Waiting { .. })));
    assert!(late(&timer), "{timer:?}");
    // Without timer events, it may have been one.
    let unknown = explained(3, None, &all[..4]);
    assert!(late(&unknown), "{unknown:?}");
}
