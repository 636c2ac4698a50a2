//! Each cause from the kernel events that show it.
//!
//! The thread is 7 with SCHED_FIFO 80, as the kernel's `prio` 19; SCHED_FIFO 99 is 0, and
//! time-sharing 120.

mod mutants;
mod observer;
mod stops;

use super::properties::check_explanation;
use super::*;
use crate::threads::Interrupt;
use punctual_core::event::InterfaceName;
use punctual_testing::{assert_lines, events, parse_events};

const SOFTIRQ: Waker = Waker::Interrupt(Interrupt::Soft(3));

/// A local timer's interrupt at `at` that wakes the thread 5 ns later and lasts 10 ns.
fn timer(at: i64, running: u32) -> String {
    format!(
        "{at} cpu0 {running} vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19;
        +4 vector_exit 0xec\n"
    )
}

fn interval(due: i64, woke: i64, kind: StartKind) -> LatencyInterval {
    let (due, woke) = (MonotonicNs(due), MonotonicNs(woke));
    LatencyInterval { tid: Tid(7), cpu: 0, due, woke, kind }
}

fn coverage() -> Coverage {
    Coverage::from_span(MonotonicNs(0), MonotonicNs(1))
}

fn explain_with(interval: LatencyInterval, coverage: &Coverage, events: &[Event]) -> Explanation {
    let gaps = Gaps::from_events(events.iter().copied());
    let explanation = explain_sample(interval, events, coverage, &gaps);
    check_explanation(&explanation, events);
    explanation
}

/// Of a thread whose timer was due.
fn explain_timer(due: i64, woke: i64, events: &str) -> Explanation {
    let interval = interval(due, woke, StartKind::Timer);
    explain_with(interval, &coverage(), &parse_events(events))
}

fn explain_interval(from: i64, to: i64, events: &str) -> Explanation {
    let interval = interval(from, to, StartKind::Interval);
    explain_with(interval, &coverage(), &parse_events(events))
}

/// The parts: the cause and the time in ns.
fn causes(explanation: &Explanation) -> Vec<String> {
    explanation
        .parts
        .iter()
        .map(|part| format!("{:?} {}", part.cause, part.duration().ns()))
        .collect()
}

/// The time of all causes whose text begins like this.
fn time_of(explanation: &Explanation, cause: &str) -> i64 {
    let parts = explanation.parts.iter();
    let parts = parts.filter(|part| format!("{:?}", part.cause).starts_with(cause));
    parts.map(|part| part.duration().ns()).sum()
}

fn has(explanation: &Explanation, cause: &str) -> bool {
    time_of(explanation, cause) > 0
}

#[test]
fn disabled_interrupts_and_then_preemption_are_separate_causes() {
    let explanation = explain_timer(
        100,
        175,
        "90 cpu0 5 sys_enter 56
        150 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        170 switch R -> 7/19
        176 idle_exit",
    );
    assert_eq!(
        causes(&explanation),
        [
            "TimerIrqDelay { running: Tid(5), mode: Syscall(56) } 50",
            "Interrupt(Vector(236)) 10",
            "NonPreemptible { running: Tid(5), mode: Syscall(56) } 10",
            "OwnExecution { mode: Unknown } 5",
        ]
    );
    assert_eq!(explanation.warnings, []);
}

#[test]
fn an_interrupt_during_idle_exit_is_a_cause_of_its_own() {
    let explanation = explain_timer(
        100,
        141,
        "50 cpu0 5 switch S -> 0
        60 idle_enter 2
        110 idle_exit
        112 irq_entry 9
        118 irq_exit 9
        118 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        140 switch R -> 7/19",
    );
    assert_eq!(
        causes(&explanation),
        [
            "IdleExit { state: Some(2) } 10",
            "IdleExit { state: None } 2",
            "Interrupt(Hard(9)) 6",
            "Interrupt(Vector(236)) 10",
            "IdleExit { state: None } 12",
            "OwnExecution { mode: Unknown } 1",
        ]
    );
}

#[test]
fn a_hidden_switch_from_idle_is_bounded_by_the_next_event_of_the_thread() {
    let explained = |switch: &str| {
        let events = format!(
            "40 cpu0 7/19 sys_enter 0
            50 switch S -> 0
            100 cpu1 5 waking 7/19; 101 wakeup 7/19
            {switch}
            140 cpu0 7 sys_exit 0 result=1
            190 sys_enter 1"
        );
        explain_interval(101, 200, &events)
    };
    let hidden = explained("");
    assert_eq!(
        causes(&hidden),
        [
            "IdleExit { state: None } 39",
            "OwnExecution { mode: User } 50",
            "OwnExecution { mode: Syscall(1) } 10"
        ]
    );
    assert_eq!(hidden.warnings, [Warning::SwitchUnseen]);
    assert_eq!(explained("130 cpu0 0 switch R -> 7/19").warnings, [], "it was recorded");
}

#[test]
fn a_softirq_in_a_preempting_task_is_a_cause_of_its_own() {
    let explanation = explain_timer(
        100,
        210,
        "90 cpu0 5 switch R -> 9/0
        100 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        120 softirq_entry 3
        150 softirq_exit 3
        200 switch S -> 7/19",
    );
    assert_lines(
        explanation.totals_by_cause(),
        "(Preempted { by: Tid(9), prio: 0 }, 60ns)
        (Interrupt(Soft(3)), 30ns)
        (Interrupt(Vector(236)), 10ns)
        (OwnExecution { mode: Unknown }, 10ns)",
    );
}

#[test]
fn a_switch_from_a_runnable_thread_to_a_lower_priority_is_throttling() {
    let explanation = explain_interval(
        100,
        170,
        "80 cpu0 7/19 sys_enter 1
        110 switch R -> 5
        150 switch R -> 6
        160 switch R -> 7/19",
    );
    assert_eq!(
        causes(&explanation),
        [
            "OwnExecution { mode: Syscall(1) } 10",
            "Throttled { running: Tid(5), budget: RealTime } 40",
            "Throttled { running: Tid(6), budget: RealTime } 10",
            "OwnExecution { mode: Syscall(1) } 10"
        ]
    );
}

#[test]
fn a_lock_wait_names_the_holder_and_the_task_that_the_holder_awaited() {
    let explanation = explain_interval(
        100,
        200,
        "100 cpu0 7 futex_enter wait 64
        110 switch S -> 0
        150 cpu1 6 waking 5
        190 5 waking 7
        191 5 wakeup 7
        195 cpu0 switch R -> 7
        198 futex_exit wait",
    );
    assert_eq!(causes(&explanation)[1], "Lock { holder: Some(Tid(5)), kernel: false } 80");
    assert_eq!(explanation.chain, [Tid(5), Tid(6)]);
}

#[test]
fn disk_waits_and_page_faults_are_distinguished() {
    let explained = |before: &str| {
        let events = format!(
            "{before}
            110 cpu0 7 switch D -> 0
            150 cpu1 3 irq_entry 4
            152 block_complete 0xfe00 8 4096
            154 waking 7
            156 irq_exit 4
            157 cpu0 wakeup 7
            160 switch R -> 7"
        );
        causes(&explain_interval(100, 165, &events))
    };
    const IO: &str = "Io { device: 65024 } 44";
    assert_eq!(explained("100 cpu0 7 sys_enter 74")[1], IO);
    let fault = "105 cpu0 7 page_fault 1 2";
    let write = "block_issue 0xfe00 8 4096 write";
    for (activity, cause) in [
        ("".to_owned(), "PageFault 44"),
        // Directly after the fault it reads or writes the disk: only a write ends the fault.
        ("108 block_issue 0xfe00 8 4096".to_owned(), "PageFault 44"),
        (format!("108 {write}"), IO),
        // A write to reclaim memory for the page does not end it.
        (format!("106 reclaim_begin; 107 {write}; 108 reclaim_end 1"), "PageFault 44"),
    ] {
        let parts = explained(&format!("{fault}; {activity}"));
        assert!(parts.iter().any(|part| part == cause), "{activity}: {parts:?}");
    }
}

#[test]
fn lost_events_are_unknown_time_and_lower_the_confidence() {
    let events = "90 cpu0 5 switch R -> 9/0
        100 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        180 0 lost 40 since=130
        200 9/0 switch S -> 7/19";
    let explanation = explain_timer(100, 210, events);
    assert_eq!(explanation.lost, 40);
    assert_eq!(explanation.warnings, [Warning::Lost, Warning::MuchUnknown]);
    assert!(causes(&explanation).contains(&"Unknown 50".into()), "{explanation:?}");
    let unknown = explain_timer(100, 200, "");
    assert_eq!(causes(&unknown), ["Unknown 100"]);
    assert_eq!(unknown.warnings, [Warning::BeginsAfterDue, Warning::MuchUnknown]);
    assert_eq!(explain_timer(200, 100, events).parts, [], "it came early");
}

#[test]
fn a_thread_that_wakes_while_the_budget_is_used_up_is_throttled() {
    let explained = |state: &str| {
        let events = format!(
            "50 cpu0 8/49 switch {state} -> 9
            100 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
            200 vector_entry 0xec; +10 vector_exit 0xec
            300 switch R -> 7/19"
        );
        explain_timer(90, 310, &events)
    };
    // A spinning real-time task was preempted by another one before the thread was due.
    let throttled = time_of(&explained("R"), "Throttled { running: Tid(9), budget: RealTime }");
    assert_eq!(throttled, 90 + 90);
    // If the task that ran gave way by waiting, no event shows why the thread was not switched to.
    assert!(has(&explained("S"), "NonPreemptible"));
}

#[test]
fn interrupt_events_identify_the_system_call_without_syscall_events() {
    // sched_waking and system calls are not recorded.
    let explained = |from: i64, before: &str, call: &str| {
        let events = format!(
            "{from} cpu0 0 switch R -> 5
            {before}
            150 vector_entry 0xec; 150 interrupted {call}; 156 wakeup 7/19; 160 vector_exit 0xec
            170 switch R -> 7/19"
        );
        causes(&explain_timer(100, 175, &events))
    };
    for (call, mode) in [("call=56", "Syscall(56)"), ("", "User")] {
        let expected = [
            format!("TimerIrqDelay {{ running: Tid(5), mode: {mode} }} 50"),
            "Interrupt(Vector(236)) 10".into(),
            format!("NonPreemptible {{ running: Tid(5), mode: {mode} }} 10"),
            "OwnExecution { mode: Unknown } 5".into(),
        ];
        assert_eq!(explained(40, "", call), expected);
    }
    // An interrupt meets a page fault just before it; an earlier one is over.
    for (at, mode) in [(140, "Fault"), (140 - 1_500_000, "Unknown"), (140 - 20_000_000, "User")] {
        let parts = explained(40.min(at - 1), &format!("{at} page_fault"), "");
        let expected = format!("TimerIrqDelay {{ running: Tid(5), mode: {mode} }} 50");
        assert_eq!(parts[0], expected, "{at}");
    }
}

/// A page fault that clears a huge page takes milliseconds: a later interrupt outside of a system
/// call did not return to user mode.
#[test]
fn a_long_page_fault_is_no_throttling() {
    let explained = |fault: i64| {
        let events = format!(
            "-30ms cpu0 5 switch S -> 9
            {fault} page_fault
            1ms vector_entry 0xec; +1 interrupted
            +4 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
            1.5ms vector_entry 0xec; +1 interrupted; +9 vector_exit 0xec
            3ms switch R -> 7/19"
        );
        explain_timer(999_990, 3_000_010, &events)
    };
    assert!(!has(&explained(50), "Throttled"));
    // A fault that began long ago is over, and a task in user mode would have been preempted.
    assert!(has(&explained(-20_000_000), "Throttled"));
}

/// Its timer was due while it was stopped or frozen: no timer is late then.
#[test]
fn a_stopped_thread_waited_for_the_task_that_continued_it() {
    for (state, waiting) in [
        ("T", "Stopped { by: None, continued_by: Some(Tid(5)) } 800"),
        ("S", "Waiting { woken_by: Some(Tid(5)) } 800"),
    ] {
        let events = events!(
            "50 cpu0 7/19 switch {state} -> 0
            890 switch R -> 5
            900 waking 7/19; 900 wakeup 7/19
            910 switch R -> 7/19"
        );
        let explained = |groups: &[Group]| {
            let coverage = Coverage { groups: Some(groups.to_vec()), ..coverage() };
            let explanation =
                explain_with(interval(100, 920, StartKind::Timer), &coverage, &events);
            causes(&explanation).remove(0)
        };
        let interrupts = [Group::Sched, Group::Vectors, Group::Irq, Group::Softirq];
        assert_eq!(explained(&interrupts), waiting);
        // Without events of interrupts, the timer may have interrupted the task.
        assert_eq!(explained(&[Group::Sched]) == waiting, state == "T");
    }
}

/// A program that its timer woke in time, and that then waits for another timer.
#[test]
fn only_the_first_wait_is_for_the_timer() {
    let explanation = explain_timer(
        90,
        930,
        "50 cpu0 7/19 switch S -> 0
        100 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        120 switch R -> 7/19
        130 switch S -> 0
        900 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        920 switch R -> 7/19",
    );
    let parts = causes(&explanation);
    assert_eq!(parts[0], "IdleExit { state: None } 10", "{parts:?}");
    assert!(parts.contains(&"Waiting { woken_by: None } 775".into()), "{parts:?}");
}

/// A program that its timer woke in time, and that then waits for an answer that does not come.
#[test]
fn a_wait_that_ends_by_its_timeout_is_one() {
    const POLL: u32 = 7;
    for (number, result, cause) in [
        (POLL, 0, "Timeout { call: 7 }"),
        (POLL, 1, "Waiting { woken_by: None }"),
        (45, -11, "Timeout { call: 45 }"),
        (45, 0, "Waiting { woken_by: None }"),
    ] {
        let events = events!(
            "50 cpu0 7/19 switch S -> 0
            100 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
            120 switch R -> 7/19
            122 sys_exit 230
            125 sys_enter {number}
            130 switch S -> 0
            900 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
            920 switch R -> 7/19
            925 sys_exit {number} {result}"
        );
        let coverage = Coverage { polls: [POLL].into(), ..coverage() };
        let explanation = explain_with(interval(90, 930, StartKind::Timer), &coverage, &events);
        let parts = causes(&explanation);
        assert!(parts.contains(&format!("{cause} 775")), "{number} returned {result}: {parts:?}");
    }
}

/// Page faults of the running task hide that it is in user mode: but while it runs, no other task
/// can use up the budget.
#[test]
fn throttling_extends_back_to_the_switch_to_the_other_task() {
    let explained = |last: &str| {
        let events = format!(
            "-30ms cpu0 5 switch S -> 9
            0.9ms page_fault
            1ms vector_entry 0xec; +1 interrupted
            +4 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
            1.9ms page_fault
            2ms vector_entry 0xec; +1 interrupted; +9 vector_exit 0xec
            {last}
            7ms switch R -> 7/19"
        );
        explain_timer(999_990, 7_000_010, &events)
    };
    let user_mode = explained("6ms vector_entry 0xec; +1 interrupted; +9 vector_exit 0xec");
    assert_eq!(time_of(&user_mode, "NonPreemptible"), 0, "{user_mode:?}");
    assert!(time_of(&user_mode, "Throttled") > 5_900_000, "{user_mode:?}");
    // Without the last interrupt, nothing shows that the task was in user mode.
    assert_eq!(time_of(&explained(""), "Throttled"), 0);
}

#[test]
fn group_throttling_ends_with_the_unthrottle_event() {
    let explanation = explain_interval(
        110,
        205,
        "100 cpu0 9 switch R -> 7
        120 switch Q -> 5
        150 switch R -> 6
        180 unthrottled 8
        180 switch R -> 5
        200 switch R -> 7",
    );
    assert_eq!(
        causes(&explanation),
        [
            "OwnExecution { mode: Unknown } 10",
            "Throttled { running: Tid(5), budget: Group } 30",
            "Throttled { running: Tid(6), budget: Group } 30",
            "Runqueue { behind: Tid(5) } 20",
            "OwnExecution { mode: Unknown } 5",
        ]
    );
}

/// An idle CPU whose timer is due at 1 ms and served 9.55 ms later; the thread's sample ends 5 µs
/// after that.
fn long_exit(steal: Option<Nanos>, others: &str) -> Explanation {
    slow_switch(steal, Nanos(20), others)
}

/// The same; the CPU selects the thread `switched` after it served the timer.
fn slow_switch(steal: Option<Nanos>, switched: Nanos, others: &str) -> Explanation {
    let (due, served) = (1_000_000, 10_550_000);
    let chosen = served + switched.ns();
    let mut events = events!(
        "50 cpu0 5 switch S -> 0
        60 idle_enter 0
        {served} hrtimer_entry 1 expires={due}
        {}
        {chosen} switch R -> 7/19
        {others}",
        timer(served, 0)
    );
    events.sort_by_key(|event| event.at);
    let gaps = Gaps::from_events(events.iter().copied());
    let coverage = Coverage { steal, idle_latencies: [(0, Nanos::ZERO)].into(), ..coverage() };
    let explanation =
        explain_sample(interval(due, chosen + 4_980, StartKind::Timer), &events, &coverage, &gaps);
    assert!(explanation.adds_up());
    explanation
}

#[test]
fn an_exit_from_idle_far_beyond_the_declared_latency_is_steal_or_has_a_warning() {
    for steal in [None, Some(Nanos::ZERO), Some(Nanos::from_millis(5))] {
        let unproven = long_exit(steal, "");
        assert_eq!(
            causes(&unproven)[0],
            "IdleExit { state: Some(0) } 9550000",
            "it keeps its name"
        );
        assert_eq!(unproven.confidence(), Confidence::Low);
        assert_eq!(unproven.warnings, [Warning::LongIdleExit]);
    }
    let stolen_time = long_exit(Some(Nanos::from_millis(10)), "");
    assert_eq!(causes(&stolen_time)[0], "Steal 9550000");
    assert_eq!(stolen_time.confidence(), Confidence::Fair);
    assert_eq!(stolen_time.warnings, [Warning::StealClock]);
    assert_eq!(stolen_time.parts[0].cpu, Some(0));
    // CPU 1 is taken and returns together with it, while CPU 2 continues: not the whole machine was
    // silent.
    let others = format!(
        "70 cpu1 0 idle_enter; 10_600us hrtimer_entry 2 expires=2ms
        0 cpu2 {}",
        ["idle_enter"; 30].join("; +400us ")
    );
    let proven = long_exit(None, &others);
    assert_eq!(causes(&proven)[0], "Steal 9550000");
    assert_eq!(proven.warnings, []);
}

/// The steal clock's count for one exit is not available for the next.
#[test]
fn the_steal_clock_covers_no_more_than_it_counted() {
    let (first, second) = (9_550_000, 10_000_000);
    let steal_of = |steal| {
        let both = slow_switch(Some(Nanos(steal)), Nanos(second), "");
        let is_steal = both.parts.iter().any(|part| {
            part.cause == Cause::Steal
                && part.duration() > Nanos::MILLI
                && part.duration().ns() >= first
        });
        (time_of(&both, "Steal"), is_steal, both.warnings)
    };
    let (whole, is_steal, warnings) = steal_of(first + second);
    assert!(whole > second && is_steal, "{whole}");
    assert_eq!(warnings, [Warning::StealClock]);
    let (one, is_steal, warnings) = steal_of(second + 1_000_000);
    assert!(one > 0 && one <= second && is_steal, "{one}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.contains(&Warning::LongIdleExit) && warnings.contains(&Warning::StealClock));
}

#[test]
fn a_cpu_silent_past_its_timer_lowers_the_confidence() {
    let explanation = explain_interval(
        200,
        9_000_050,
        "100 cpu0 0 switch R -> 7/19; 9ms hrtimer_entry 1 expires=1ms; +100 vector_entry 0xec",
    );
    assert_eq!(explanation.warnings, [Warning::Silent]);
    assert_eq!(explanation.confidence(), Confidence::Low);
}

#[test]
fn unrecorded_event_groups_that_could_explain_a_wait_are_named() {
    use Group::{Block, Futex, Lock, Sched, Syscall};
    let events = events!(
        "110 cpu0 7 switch S -> 0
        190 cpu1 5 waking 7
        195 cpu0 switch R -> 7"
    );
    let not_recorded = |groups: &[Group]| {
        let coverage = Coverage { groups: Some(groups.to_vec()), ..coverage() };
        explain_with(interval(100, 200, StartKind::Interval), &coverage, &events).not_recorded
    };
    assert_eq!(not_recorded(&[Sched]), [Futex, Lock, Block, Syscall]);
    assert_eq!(not_recorded(&[Sched, Futex, Block]), [Lock, Syscall]);
}

#[test]
fn a_chain_of_wake_ups_is_followed_back_to_an_interrupt() {
    // All three sleep; only a wait for a lock is recorded.
    let explanation = explain_interval(
        100,
        270,
        "10 cpu0 7/19 switch S -> 8
        20 switch D -> 9
        30 switch S -> 0
        200 vector_entry 0xec
        205 waking 9
        210 vector_exit 0xec
        220 switch R -> 9
        230 waking 8
        240 switch S -> 8
        250 waking 7
        260 switch R -> 7/19",
    );
    let steps = explanation.wakeups.iter();
    // If the record begins with the sleep, its start is not proven.
    assert_lines(
        steps.map(|step| (step.task, step.wait, step.waited, step.by, step.evidence)),
        "(Tid(7), Sleep, None, Task(Tid(8)), 9)
        (Tid(8), Uninterruptible, Some(210ns), Task(Tid(9)), 7)
        (Tid(9), Sleep, Some(175ns), Interrupt(Vector(236)), 4)",
    );
}

#[test]
fn a_packet_is_followed_to_the_interrupt_of_its_device() {
    let delivered = |irq: &str, poll: &str| {
        // The first packet is for another task, and the last poll is of another softirq.
        let events = format!(
            "10 cpu0 7/19 switch S -> 0
            20 irq_entry 9; 22 irq_exit 9
            23 softirq_entry 3; 25 softirq_exit 3
            {irq}
            210 softirq_entry 3
            230 waking 7/19; 231 wakeup 7/19
            {poll}
            240 softirq_exit 3
            245 napi_poll 9 64
            250 switch R -> 7/19"
        );
        explain_interval(100, 260, &events).wakeups
    };
    let from_device = delivered("200 irq_entry 27; 204 irq_exit 27", "235 napi_poll 3 64");
    let [from_device] = from_device[..] else { panic!("one step") };
    assert_eq!(from_device.by, SOFTIRQ);
    let delivery = Some(MonotonicNs(210));
    let irq = Some((27, MonotonicNs(200)));
    let unseen = Packet { delivery, ..Packet::default() };
    let poll = Some((MonotonicNs(235), 3));
    assert_eq!(from_device.packet, Some(Packet { irq, poll, ..unseen }));
    let [local] = delivered("", "")[..] else { panic!("one step") };
    assert_eq!(local.packet, Some(unseen));
    assert_eq!(local.by, SOFTIRQ, "nobody is seen to have sent it");
}

/// The path to the socket: in a softirq, and in the thread of the device's NAPI.
#[test]
fn a_packet_is_traced_from_the_device_to_the_socket() {
    let explained = |irq: &str, next: &str, last: &str| {
        let events = format!(
            "5 cpu0 9 switch S -> 7/19
            10 switch S -> 0
            200 irq_entry 27
            {irq}
            204 irq_exit 27
            208 {next}
            210 packet eth0 60
            212 socket 2 6
            213 waking 77/19
            215 packet eth0 84
            225 socket 2 17
            {last}"
        );
        let [step, ref before @ ..] = explain_interval(100, 260, &events).wakeups[..] else {
            panic!("no step")
        };
        (step, before.to_vec())
    };
    let woken = "230 waking 7/19; 235 napi_poll 2 64; 240";
    let (step, before) =
        explained("", "softirq_entry 3", &format!("{woken} softirq_exit 3; 250 switch R -> 7/19"));
    let device = InterfaceName::from_bytes(b"eth0");
    let received = Some(ReceivedPacket { at: MonotonicNs(215), device, bytes: 84 });
    let socket = Some(Socket { at: MonotonicNs(225), family: 2, protocol: 17 });
    let poll = Some((MonotonicNs(235), 2));
    let (irq, delivery) = (Some((27, MonotonicNs(200))), Some(MonotonicNs(208)));
    let packet = Packet { irq, delivery, received, socket, poll };
    assert_eq!(step.packet, Some(packet));
    assert_eq!(before, []);
    let in_thread = |between: &str| {
        let last = format!("{between}; {woken} switch S -> 7/19");
        explained("201 waking 9/19", "switch R -> 9", &last)
    };
    let (threaded, before) = in_thread("");
    assert_eq!(threaded.by, Waker::Task(Tid(9)));
    assert_eq!(threaded.packet, Some(Packet { irq: None, delivery: None, ..packet }));
    let [before] = before[..] else { panic!("two steps") };
    assert_eq!(before.by, Waker::Interrupt(Interrupt::Hard(27)));
    assert_eq!(before.packet, None);
    // Another event precedes the wake-up: that socket had no waiter.
    let (step, before) = in_thread("228 sys_enter 1");
    assert_eq!((step.packet, before.len()), (None, 1));
}

#[test]
fn a_packet_of_this_machine_comes_from_the_thread_that_sent_it() {
    let explained = |before: &str, after: &str| {
        let events = format!(
            "10 cpu0 7/19 switch S -> 9
            20 softirq_entry 3; 25 softirq_exit 3
            {before}; 200 softirq_raise 3; {after}
            210 softirq_entry 3
            230 waking 7/19; 231 wakeup 7/19
            240 softirq_exit 3
            250 switch R -> 7/19"
        );
        explain_interval(100, 260, &events)
    };
    let sent = explained("", "");
    assert_eq!(causes(&sent)[0], "Waiting { woken_by: Some(Tid(9)) } 130", "{sent:?}");
    assert_eq!(sent.wakeups[0].by, Waker::Task(Tid(9)));
    // From another machine: an interrupt of that CPU announced it.
    let received = explained("195 vector_entry 0xfb", "205 vector_exit 0xfb");
    assert_eq!(causes(&received)[0], "Waiting { woken_by: None } 130", "{received:?}");
    assert_eq!(received.wakeups[0].by, SOFTIRQ);
}

/// The interrupt of a disk does not announce the packet that a thread sends after it.
#[test]
fn the_interrupt_that_raised_the_softirq_announced_the_packet() {
    let explained = |raised_at: i64, thread: u32| {
        let mut events = events!(
            "10 cpu0 7/19 switch S -> 9
            195 irq_entry 36; 198 irq_exit 36
            199 waking {thread}/19
            {raised_at} softirq_raise 3
            210 softirq_entry 3
            230 waking 7/19
            240 softirq_exit 3
            250 switch R -> 7/19"
        );
        events.sort_by_key(|event| event.at);
        let interval = interval(100, 260, StartKind::Interval);
        let [step] = explain_with(interval, &coverage(), &events).wakeups[..] else {
            panic!("one step")
        };
        (step.by, step.packet.and_then(|packet| packet.irq).map(|(irq, _)| irq))
    };
    assert_eq!(explained(196, 77), (SOFTIRQ, Some(36)), "in its handler");
    assert_eq!(explained(205, 9), (SOFTIRQ, Some(36)), "in the thread that it woke");
    let unrelated = explained(205, 77);
    assert_eq!(unrelated, (Waker::Task(Tid(9)), None), "by a thread that it did not wake");
}

#[test]
fn a_circular_chain_of_wake_ups_ends_at_its_first_repetition() {
    let round = "switch S -> 8; +30 waking 7; +10 switch S -> 7/19; +10 waking 8";
    let events = format!("10 cpu0 7/19 {}", [round; 20].join("; +50 "));
    let explanation = explain_interval(1_920, 1_955, &events);
    let tasks: Vec<u32> = explanation.wakeups.iter().map(|step| step.task.0).collect();
    assert_eq!(tasks, [7, 8]);
}

/// PREEMPT_RT: the timer's interrupt raises a softirq, whose thread waits for a real-time task.
#[test]
fn a_timer_waits_for_the_thread_of_its_softirq() {
    for prio in [120, 98] {
        // irq_exit() wakes the thread of softirqs, after the end of the interrupt's tracepoint.
        let events = format!(
            "50 cpu0 7 switch S -> hog:5/98
            101 vector_entry 0xec; 103 vector_exit 0xec
            105 waking ksoftirqd:15/{prio}; 106 wakeup 15/{prio}
            500 switch S -> 15/{prio}
            510 softirq_entry 8
            515 waking 7; 516 wakeup 7
            520 softirq_exit 8
            530 switch S -> 7"
        );
        let explanation = explain_timer(100, 540, &events);
        let longest = explanation.parts.iter().max_by_key(|part| part.duration()).expect("parts");
        assert_eq!(longest.cause, Cause::Preempted { by: Tid(5), prio: 98 }, "{explanation:#?}");
        assert_eq!(longest.duration(), Nanos(394));
    }
}

/// The wait of the previous cycle began before the record and lasts until after the next due time:
/// no timer is armed, so none is late.
#[test]
fn a_cycle_due_during_the_previous_wait_has_no_timer_delay() {
    use Group::{Block, Hrtimer, Irq, Sched, Softirq, Vectors};
    let explained = |vector: u8, first: &str, groups: &[Group]| {
        let events = events!(
            "90 cpu0 5/98 page_fault 1 2 kernel
            200 vector_entry 0xec; 210 vector_exit 0xec
            400 switch S -> ksoftirqd:3
            450 softirq_entry {vector}
            {first}
            520 waking 7/19; 521 wakeup 7/19
            540 switch R -> 7/19"
        );
        let coverage = Coverage { groups: Some(groups.to_vec()), ..coverage() };
        explain_with(interval(100, 550, StartKind::Timer), &coverage, &events)
    };
    let groups = [Sched, Vectors, Irq, Softirq, Hrtimer, Block];
    // Softirq 4 is that of disks (linux/interrupt.h), 3 that of a network interface, 8 that of
    // timers.
    let disk = explained(4, "510 block_complete 0xfe00 8 4096", &groups);
    assert_eq!(causes(&disk)[0], "Io { device: 65024 } 420", "{disk:?}");
    assert!(!has(&disk, "TimerIrqDelay"), "{disk:?}");
    let net = explained(3, "", &groups);
    assert_eq!(causes(&net)[0], "Waiting { woken_by: None } 420", "{net:?}");
    // With a timer: its interrupt, or the thread of its softirq, was delayed.
    let timer = explained(8, "500 hrtimer_entry 1", &groups);
    assert!(!has(&timer, "Waiting") && has(&timer, "TimerIrqDelay"), "{timer:?}");
    // Without timer events, it may have been one.
    let unknown = explained(3, "", &groups[..4]);
    assert!(has(&unknown, "TimerIrqDelay"), "{unknown:?}");
}
