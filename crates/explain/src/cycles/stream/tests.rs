use super::*;
use crate::cycles::find_delay;
use punctual_core::event::Group;
use punctual_core::{Nanos, Split};
use punctual_testing::{assert_lines, events, parse_events};

const NANOSLEEP: u32 = 230;
const READ: u32 = 0;
const FSYNC: u32 = 74;
const FUTEX: u32 = 202;
const POLL: u32 = 7;
const TIMER: u64 = 0xaaaa;
const THREAD: u32 = 7;
const OTHER: u32 = 9;
const SLEEP: WaitingCall = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1, place: 0 };

/// A stream with its results. The thread is 7 with the priority 20.
struct Run {
    stream: CycleStream,
    cycles: Vec<Cycle>,
    moments: Vec<Moment>,
    gaps: Vec<Gap>,
    times: Vec<(u32, ThreadTimes)>,
    lost: u64,
}

impl Run {
    /// The recording of `attach` through tracefs: the events of some threads, and timers.
    fn new() -> Run {
        Run::of(&[Group::Sched, Group::Syscall, Group::Hrtimer], true)
    }

    fn of(groups: &[Group], some_threads: bool) -> Run {
        let names = [
            (NANOSLEEP, "clock_nanosleep"),
            (READ, "read"),
            (FSYNC, "fsync"),
            (FUTEX, "futex"),
            (1, "write"),
            (POLL, "poll"),
        ];
        let names = names.map(|(number, name)| (number, name.to_owned())).into();
        let shown = ShownKinds::from_groups(groups, some_threads);
        let stream = CycleStream::new(SyscallNumbers::from_names(&names), shown, Gaps::default());
        let (gaps, times) = (Vec::new(), Vec::new());
        Run { stream, cycles: Vec::new(), moments: Vec::new(), gaps, times, lost: 0 }
    }

    fn push(&mut self, events: &str) -> &mut Run {
        parse_events(events).iter().for_each(|event| self.push_event(event));
        self
    }

    fn push_event(&mut self, event: &Event) {
        let Run { stream, cycles, moments, gaps, times, lost } = self;
        stream.push(event, &mut |found| match found {
            StreamResult::Cycle(cycle) => cycles.push(cycle),
            StreamResult::Moment(moment) => moments.push(moment),
            StreamResult::Gap(gap) => gaps.push(gap),
            StreamResult::Times(tid, of) => times.push((tid, of)),
            StreamResult::Lost => *lost += 1,
        });
    }

    /// Sleeps from `us` until `due`, and is back `late` µs later.
    fn sleep(&mut self, us: i64, due: i64, late: i64) -> &mut Run {
        self.push(&sleep(us, due, late))
    }

    /// Sleeps until `due` with an idle CPU, `late` µs from there to the interrupt, and is back 10
    /// µs after that.
    fn idle_sleep(&mut self, us: i64, due: i64, late: i64) -> &mut Run {
        self.push(&format!(
            "{us}us cpu0 7/20 sys_enter 230 1 1
            +1us hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 0
            {}us vector_entry 0xec
            +1us hrtimer_entry 0xaaaa
            +1us waking 7/20
            +1us wakeup 7/20
            +1us hrtimer_exit 0xaaaa
            +1us vector_exit 0xec
            +2us switch R -> 7/20
            +3us sys_exit 230",
            due + late
        ))
    }
}

/// The events of [`Run::sleep`].
fn sleep(us: i64, due: i64, late: i64) -> String {
    format!(
        "{us}us cpu0 7/20 sys_enter 230 1 1
        +1us hrtimer_start 0xaaaa expires={due}us
        +1us switch S -> 9
        {}us hrtimer_entry 0xaaaa
        +1us waking 7/20
        +1us hrtimer_exit 0xaaaa
        +1us switch R -> 7/20
        +1us sys_exit 230\n",
        due + late - 4
    )
}

fn us(span: Nanos) -> i64 {
    span.ns() / 1_000
}

/// The parts in µs.
fn parts(split: &Split) -> String {
    let parts = CauseKind::ALL.iter().map(|kind| (kind.id(), us(split.time_of(*kind))));
    let parts: Vec<String> =
        parts.filter(|(_, us)| *us != 0).map(|(id, us)| format!("{id} {us}")).collect();
    parts.join(", ")
}

/// It never waits: each loss of its CPU is a gap with a known split.
#[test]
fn a_thread_that_polls_has_gaps() {
    let mut run = Run::of(&[Group::Sched, Group::Syscall, Group::Irq, Group::Softirq], true);
    // At last, it gives up its CPU, and waits.
    run.push(
        "0us cpu0 7/20 sys_enter 0 3; 10us sys_exit 0 1
        100us irq_entry 9; 103us irq_exit 9
        103us softirq_entry 1; 108us softirq_exit 1
        1000us switch R -> 9/10; 1400us switch R -> 7/20
        2000us switch T -> 9; 2500us waking 7/20; 2510us switch R -> 7/20
        3000us sys_enter 7; 3010us switch Y -> 9; 3020us switch R -> 7/20; 3030us sys_exit 7
        4000us switch D -> 9; 4300us waking 7/20; 4310us switch R -> 7/20
        5000us exit",
    );
    assert_lines(
        run.gaps.iter().map(|gap| (us(gap.end - gap.begin), gap.split.longest_part())),
        "(3, Some(Irq))
        (5, Some(Softirq))
        (400, Some(Preempted))
        (510, Some(Stopped))",
    );
    assert_eq!(run.gaps[2].culprit.map(|of| (of.tid, us(of.time))), Some((OTHER, 400)));
    let [(THREAD, times)] = run.times[..] else { panic!("{:?}", run.times) };
    let times = [times.ran, times.ready, times.waited, times.stopped].map(us);
    assert_eq!(times, [5_000 - 430 - 800, 430, 300, 500]);
    assert!(run.cycles.is_empty());
}

#[test]
fn a_cycle_reaches_from_its_release_to_the_next_wait() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    // 100 µs of its own work, a call of 50 µs, 200 µs of a higher priority, 40 µs for the disk.
    run.push(
        "1110us cpu0 7/20 sys_enter 0 3; 1160us sys_exit 0 1
        1200us switch R -> 9/10; 1400us switch R -> 7/20
        1410us sys_enter 74 4; 1420us switch D -> 9
        1460us waking 7/20; 1463us switch R -> 7/20; 1465us sys_exit 74",
    );
    run.sleep(1_500, 2_000, 10).sleep(2_100, 3_000, 10);
    let [first, second] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.returned.ns()), (1_000_000, 1_010_000));
    assert_eq!((first.by, first.call.number, first.call.operation), (WokenBy::Sleep, NANOSLEEP, 1));
    assert_eq!((us(first.wakeup_latency()), us(first.response_time())), (10, 500));
    // From the wake-ups to the switches, no event shows the running task.
    assert_eq!(
        parts(&first.total_split()),
        "timer-irq-delay 6, irq 1, preempted 200, switch 1, io 40, system-call 62, self 185, \
         unknown 5"
    );
    assert_eq!(first.total_split().total_time(), first.response_time());
    assert_eq!(first.culprit.map(|culprit| (culprit.tid, us(culprit.time))), Some((OTHER, 200)));
    assert_eq!((first.blocks, us(first.blocked), first.syscalls), (1, 40, 3));
    assert_eq!(first.longest_call, Some((FSYNC, Nanos::from_micros(55))));
    assert_eq!(
        (us(second.response_time()), second.total_split().total_time()),
        (100, second.response_time())
    );
}

#[test]
fn a_release_that_passed_before_the_wait_begins_a_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    // The sleep should have lasted until 2,000, but the thread arrives at 2,500: the call returns
    // at once.
    run.push(
        "2500us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=2ms
        +1us sys_exit 230",
    );
    run.sleep(2_600, 3_000, 10);
    let [_, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Sleep));
    assert_eq!(us(late.total_split().time_of(CauseKind::Overrun)), 500);
    assert_eq!(
        (late.total_split().total_time(), us(late.response_time())),
        (late.response_time(), 600)
    );
}

#[test]
fn a_timer_that_expires_before_the_read_releases_the_cycle() {
    let mut run = Run::new();
    // The second expiry occurs during the run, and the read finds it.
    run.push(
        "0us cpu0 7/20 hrtimer_start 0xaaaa expires=1ms
        10us sys_enter 0 3; 11us switch S -> 9
        1005us hrtimer_entry 0xaaaa; 1006us waking 7/20; 1007us hrtimer_exit 0xaaaa
        1008us switch R -> 7/20; 1010us sys_exit 0 8
        1011us hrtimer_start 0xaaaa expires=2ms
        2003us 9 hrtimer_entry 0xaaaa; 2004us hrtimer_exit 0xaaaa
        2300us 7/20 sys_enter 0 3; 2301us sys_exit 0 8
        2302us hrtimer_start 0xaaaa expires=3ms
        2400us sys_enter 0 3; 2401us switch S -> 9",
    );
    let [first, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by, first.timer), (1_000_000, WokenBy::Timer, TIMER));
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Timer));
    assert_eq!(
        (us(late.response_time()), us(late.total_split().time_of(CauseKind::Overrun))),
        (400, 300)
    );
}

#[test]
fn waits_other_than_the_selected_call_are_part_of_the_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    run.stream.select_wait(THREAD, Some((SLEEP, false)));
    run.push(
        "1020us cpu0 7/20 sys_enter 0 3; 1021us switch S -> 9; 1100us waking 7/20
        1101us switch R -> 7/20; 1102us sys_exit 0 1",
    );
    run.sleep(1_200, 2_000, 10);
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.blocks, us(cycle.total_split().time_of(CauseKind::Waiting))), (1, 79));
    run.stream.select_wait(THREAD, None);
    run.sleep(2_100, 3_000, 10).sleep(3_100, 4_000, 10);
    assert_eq!(run.cycles.len(), 1);
}

#[test]
fn waits_in_the_selected_call_for_something_else_are_counted() {
    let mut run = Run::new();
    let call = WaitingCall { number: FUTEX, operation: 9, argument: 0x20028, place: 0 };
    run.stream.select_wait(THREAD, Some((call, true)));
    let wait = |at: i64, word: &str| {
        format!(
            "{at}us cpu0 7/20 sys_enter 202 {word} 9; +1us switch S -> 9
            +50us waking 7/20; +1us switch R -> 7/20; +1us sys_exit 202\n"
        )
    };
    run.push(&wait(1_000, "0x20028"));
    run.push(&wait(1_100, "0x20030"));
    // A condition variable has two words.
    run.push(&wait(1_200, "0x2002c"));
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.blocks, cycle.elsewhere, us(cycle.response_time())), (1, 1, 149));
}

#[test]
fn a_wait_that_ends_by_its_timeout_is_one() {
    // The result of the call, and the timeout and other shares of its wait.
    let calls = [
        (FUTEX, -110, 79, 0),
        (FUTEX, 0, 0, 79),
        (READ, -11, 79, 0),
        (READ, 1, 0, 79),
        (POLL, 0, 79, 0),
        (POLL, 1, 0, 79),
        (READ, 0, 0, 79),
    ];
    for (number, result, timeout, waiting) in calls {
        let cycles = |is_selected: bool| {
            let mut run = Run::new();
            run.sleep(0, 1_000, 10);
            if is_selected {
                run.stream.select_wait(THREAD, Some((SLEEP, false)));
            }
            // For a futex, the second argument is FUTEX_WAIT_BITSET.
            run.push(&format!(
                "1020us cpu0 7/20 sys_enter {number} 3 9; 1021us switch S -> 9
                1100us waking 7/20; 1101us switch R -> 7/20; 1102us sys_exit {number} {result}"
            ));
            run.sleep(1_200, 2_000, 10);
            run.cycles
        };
        let [cycle] = cycles(true)[..] else { panic!("one cycle") };
        let part = |part| us(cycle.total_split().time_of(part));
        let parts = (part(CauseKind::Timeout), part(CauseKind::Waiting));
        assert_eq!(parts, (timeout, waiting), "{number} returned {result}");
        // Until its first wait is known, it counts as two cycles, which are then merged.
        let [first, second] = cycles(false)[..] else { panic!("two cycles") };
        let whole = first.followed_by(&second).total_split();
        assert!((us(whole.time_of(CauseKind::Timeout)) > 0) == (timeout > 0), "{whole:?}");
        assert_eq!(whole.total_time(), first.followed_by(&second).response_time());
    }
}

#[test]
fn cycles_around_lost_events_are_dropped() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10).push("1050us cpu0 0 lost 3 since=0").sleep(1_100, 2_000, 10);
    assert!(run.cycles.is_empty());
    run.sleep(2_100, 3_000, 10);
    assert_eq!(run.cycles.len(), 1);
}

/// The groups in a recording of the whole machine.
const ALL: [Group; 9] = [
    Group::Sched,
    Group::Irq,
    Group::Vectors,
    Group::Softirq,
    Group::Hrtimer,
    Group::Syscall,
    Group::Fault,
    Group::Page,
    Group::Block,
];

impl Run {
    fn whole() -> Run {
        Run::of(&ALL, false)
    }

    fn without(group: Group) -> Run {
        let groups: Vec<Group> = ALL.into_iter().filter(|one| *one != group).collect();
        Run::of(&groups, false)
    }

    /// A sleep and two cycles; `events` are those of the first, from the return of its wait at
    /// 1,010 µs until 1,900. Its wait is known after the sleep, if it is `selected`.
    fn cycle_of(events: &str, selected: bool) -> Cycle {
        let mut run = Run::whole();
        run.idle_sleep(0, 1_000, 0);
        if selected {
            run.stream.select_wait(THREAD, Some((SLEEP, false)));
        }
        run.push(events).idle_sleep(1_900, 3_000, 0).idle_sleep(3_100, 4_000, 0);
        let [first, ..] = run.cycles[..] else { panic!("no cycle") };
        assert_eq!(first.total_split().total_time(), first.response_time());
        first
    }
}

fn cycle_of(events: &str) -> Cycle {
    Run::cycle_of(events, false)
}

#[test]
fn wake_up_latency_is_divided_by_the_activity_of_the_cpu() {
    let mut run = Run::whole();
    run.idle_sleep(0, 1_000, 30).idle_sleep(1_100, 2_000, 0);
    let cycle = run.cycles[0];
    // Due at 1,000; the interrupt begins at 1,030 and wakes at 1,032; the switch comes at 1,037.
    assert_eq!(us(cycle.wakeup_latency()), 40);
    assert_eq!(parts(&cycle.wake), "irq 5, idle-exit 32, switch 3");
    assert_eq!((cycle.by, cycle.timer), (WokenBy::Sleep, TIMER));
}

#[test]
fn without_interrupt_events_the_delay_of_the_timer_is_unknown() {
    let groups = [Group::Sched, Group::Hrtimer, Group::Syscall, Group::Softirq];
    let mut run = Run::of(&groups, false);
    for (us, due) in [(0, 1_000), (1_100, 2_000)] {
        run.push(&format!(
            "{us}us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 0
            {}us hrtimer_entry 0xaaaa; +1us waking 7/20; +1us wakeup 7/20
            +1us hrtimer_exit 0xaaaa; +3us switch R -> 7/20; +3us sys_exit 230",
            due + 31
        ));
    }
    let cycle = run.cycles[0];
    // From the wake-up to the switch: an exit from idle, or interrupts.
    assert_eq!(us(cycle.wake.time_of(CauseKind::Unknown)), 5);
    assert_eq!(cycle.wake.time_of(CauseKind::NonPreemptible), Nanos::ZERO);
    assert_eq!(cycle.total_split().total_time(), cycle.response_time());
    let missing: Vec<Group> = missing_properties(&groups).map(|(group, _)| group).collect();
    assert_eq!(missing, [Group::Irq, Group::Fault, Group::Block]);
}

#[test]
fn interrupts_and_softirqs_are_not_own_execution() {
    let cycle = cycle_of(
        "1100us cpu0 7/20 vector_entry 0xec; 1150us vector_exit 0xec
        1200us softirq_entry 3
        1210us vector_entry 0xec; 1220us vector_exit 0xec
        1260us softirq_exit 3",
    );
    assert_eq!(parts(&cycle.run), "irq 60, softirq 50, self 780");
}

#[test]
fn a_preempting_task_of_higher_priority_is_the_culprit() {
    let cycle = cycle_of(
        "1100us cpu0 7/20 switch R -> 9/10
        1150us vector_entry 0xec; 1160us vector_exit 0xec
        1400us switch S -> 7/20",
    );
    assert_eq!(parts(&cycle.run), "irq 10, preempted 290, self 590");
    assert_eq!(cycle.culprit.map(|by| (by.tid, us(by.time))), Some((OTHER, 290)));
}

/// A trace is judged when its threads have ended.
#[test]
fn the_last_priority_of_an_ended_thread_is_known() {
    let mut run = Run::without(Group::Syscall);
    let mut priority = |events: &str| run.push(events).stream.thread_priority(THREAD);
    assert_eq!(priority(""), None);
    assert_eq!(priority("10us cpu0 9 switch S -> 7/19; 20us exit"), Some(19));
    // Another thread with the same id has its own.
    assert_eq!(priority("30us cpu0 9 switch S -> 7/120"), Some(120));
    // One that gave up its real-time policy before it ended.
    assert_eq!(priority("40us cpu0 9 switch S -> 7/19; 50us 7/120 switch X -> 9"), Some(19));
}

/// Two tasks alternate: one has the longest single run, the other the longest total.
#[test]
fn of_two_tasks_that_share_a_delay_the_longest_is_named() {
    let shared = |turns: &str| {
        let cycle = cycle_of(&format!("1100us cpu0 7/20 {turns} switch S -> 7/20"));
        let mut usual = Split::default();
        usual.add(CauseKind::OwnExecution, Nanos::from_micros(900));
        let delay = find_delay(&cycle, &usual).expect("it was delayed");
        assert_eq!(us(cycle.run.time_of(CauseKind::Preempted)), 350);
        let by = (delay.part == CauseKind::Preempted).then_some(delay.by).flatten();
        (by.map(|by| by.tid), cycle.culprit.map(|one| us(one.time)))
    };
    let most_in_two = "switch R -> 9/10; +100us switch R -> 11/10; +150us switch R -> 9/10; +100us";
    assert_eq!(shared(most_in_two), (Some(OTHER), Some(200)));
    let most_in_one = "switch R -> 9/10; +80us switch R -> 11/10; +190us switch R -> 9/10; +80us";
    assert_eq!(shared(most_in_one), (Some(11), Some(190)));
}

#[test]
fn stopped_time_is_not_waiting_and_names_the_sender_of_the_signal() {
    let stopped = |state: &str, signal: &str| {
        let cycle = cycle_of(&format!(
            "{signal}
            1100us cpu0 7/20 switch {state} -> 9
            1310us waking 7/20; 1311us wakeup 7/20; 1315us switch R -> 7/20"
        ));
        let part = [CauseKind::Stopped, CauseKind::Waiting, CauseKind::PageFault]
            .map(|part| us(cycle.run.time_of(part)));
        (part, cycle.awaited.map(|one| one.tid))
    };
    assert_eq!(stopped("T", "1090us cpu1 33 signal 19 7"), ([210, 0, 0], Some(33)));
    // A signal that continues, or one to another thread, stops nothing here.
    let others = "1090us cpu1 33 signal 18 7; 1090us signal 19 8";
    assert_eq!(stopped("T", others), ([210, 0, 0], Some(OTHER)));
    // The freezer of its control group suspends it outside of any call; a wait in a call is not a
    // stop.
    assert_eq!(stopped("S", ""), ([210, 0, 0], Some(OTHER)));
    assert_eq!(stopped("D", ""), ([0, 0, 210], Some(OTHER)));
    let waits = cycle_of(
        "1080us cpu1 33 signal 19 7
        1090us cpu0 7/20 sys_enter 0 3; 1100us switch S -> 9
        1310us waking 7/20; 1311us wakeup 7/20; 1315us switch R -> 7/20; 1320us sys_exit 0 1",
    );
    assert_eq!(waits.run.time_of(CauseKind::Stopped), Nanos::ZERO);
}

/// SIGSTOP, a debugger or the freezer interrupts a sleep beyond its end: the cycle due then was
/// delayed by the stop, not by the previous cycle.
#[test]
fn a_cycle_that_is_due_during_a_stop_was_stopped() {
    for (state, result) in [("T", -514), ("S", -514), ("T", -4)] {
        let mut run = Run::whole();
        run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10);
        run.push(&format!(
            "2100us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=3ms
            +1us switch S -> 9
            2500us waking 7/20; 2502us switch R -> 7/20; 2503us sys_exit 230 {result}
            2504us switch {state} -> 9
            4000us waking 7/20; 4002us switch R -> 7/20
            4004us sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=3ms; +1us sys_exit 230"
        ));
        run.sleep(4_100, 5_000, 10);
        let cycle = run.cycles.last().expect("a cycle");
        assert_eq!(us(cycle.release - MonotonicNs(0)), 3_000, "{:?}", run.cycles);
        assert_eq!(us(cycle.total_split().time_of(CauseKind::Stopped)), 1_004, "{cycle:?}");
        assert_eq!(cycle.total_split().time_of(CauseKind::Overrun), Nanos::ZERO);
        assert_eq!(cycle.awaited.map(|one| one.tid), Some(OTHER));
        assert_eq!(cycle.total_split().total_time(), cycle.response_time());
    }
    // A cycle delayed only by the previous one was not stopped.
    let mut run = Run::whole();
    run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10);
    run.push(
        "3500us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=3ms
        +1us sys_exit 230",
    );
    run.sleep(3_600, 5_000, 10);
    let cycle = run.cycles.last().expect("a cycle");
    assert_eq!(us(cycle.total_split().time_of(CauseKind::Overrun)), 500, "{cycle:?}");
    assert_eq!(cycle.total_split().time_of(CauseKind::Stopped), Nanos::ZERO);
}

/// An event of the leaving task, and the return of the call, bound the switch to the thread.
#[test]
fn a_context_switch_ends_with_an_event_inside_or_with_the_call() {
    let split = |inside: &str| {
        let mut run = Run::whole();
        run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10).push(&format!(
            "2100us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=3ms
            +1us switch S -> 9
            3001us hrtimer_entry 0xaaaa; +1us waking 7/20; +1us wakeup 7/20
            +1us hrtimer_exit 0xaaaa; 3010us switch R -> 7/20
            {inside}
            3080us 7/20 sys_exit 230"
        ));
        run.sleep(3_100, 4_000, 10);
        run.cycles.last().expect("a cycle").wake
    };
    let inside = split("3060us 9 contention_begin 1; 3073us contention_end 1");
    let bounded = split("");
    assert_eq!(
        (us(inside.time_of(CauseKind::Switch)), us(inside.time_of(CauseKind::SystemCall))),
        (63, 7)
    );
    assert_eq!(
        (us(bounded.time_of(CauseKind::Switch)), us(bounded.time_of(CauseKind::SystemCall))),
        (70, 0)
    );
    assert_eq!(
        (inside.time_of(CauseKind::Unknown), inside.total_time()),
        (Nanos::ZERO, bounded.total_time())
    );
}

#[test]
fn a_switch_to_a_lower_priority_is_throttling_to_an_equal_one_queueing() {
    let selected = |prio: i16| {
        let events = format!("1100us cpu0 7/20 switch R -> 9/{prio}; 1400us switch S -> 7/20");
        parts(&cycle_of(&events).run)
    };
    assert_eq!(selected(120), "throttled 300, self 590");
    assert_eq!(selected(20), "runqueue 300, self 590");
}

#[test]
fn a_task_that_is_not_preempted_is_the_culprit_of_the_wake_up() {
    let mut run = Run::whole();
    for us in [0, 2_000] {
        let due = us + 1_000;
        run.push(&format!(
            "{us}us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 9
            {due}us vector_entry 0xec; +1us hrtimer_entry 0xaaaa; +1us waking 7/20
            +1us wakeup 7/20; +1us hrtimer_exit 0xaaaa; +1us vector_exit 0xec
            +200us switch R -> 7/20; +1us sys_exit 230"
        ));
    }
    let cycle = run.cycles[0];
    assert_eq!(us(cycle.wake.time_of(CauseKind::NonPreemptible)), 200);
    assert_eq!(cycle.culprit.map(|by| by.tid), Some(OTHER));
}

#[test]
fn a_switch_before_the_thread_is_on_a_runqueue_is_no_throttling() {
    let mut run = Run::whole();
    for us in [0, 2_000] {
        let due = us + 1_000;
        // Task 8 is selected before the wake-up is complete.
        run.push(&format!(
            "{us}us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 9
            {}us hrtimer_entry 0xaaaa; +1us waking 7/20; +1us hrtimer_exit 0xaaaa
            +1us switch S -> 8; +1us wakeup 7/20
            +50us switch R -> 7/20; +1us sys_exit 230",
            due + 1
        ));
    }
    let cycle = run.cycles[0];
    assert_eq!(cycle.wake.time_of(CauseKind::Throttled), Nanos::ZERO);
    assert_eq!(us(cycle.wake.time_of(CauseKind::NonPreemptible)), 53);
}

#[test]
fn waits_in_a_cycle_are_classified_by_system_call_and_waker() {
    let pause = |call: &str, state: &str, [entry, exit]: [&str; 2]| {
        let events = format!(
            "1100us cpu0 7/20 sys_enter {call}; 1110us switch {state} -> 9
            {entry}
            1310us waking 7/20; 1311us wakeup 7/20
            {exit}
            1315us switch R -> 7/20; 1320us sys_exit {}",
            call.split(' ').next().unwrap()
        );
        let cycle = Run::cycle_of(&events, true);
        assert_eq!((cycle.blocks, us(cycle.blocked)), (1, 200));
        cycle
    };
    let time_of = |cycle: &Cycle, part| us(cycle.run.time_of(part));
    let lock = pause("202 7", "S", [""; 2]);
    assert_eq!(time_of(&lock, CauseKind::Lock), 200);
    let holder = lock.holder.expect("who woke it released the lock");
    assert_eq!((holder.tid, us(holder.time)), (OTHER, 200));
    assert!(lock.slept_without_pi);
    let parked = pause("202 7 9", "S", [""; 2]);
    assert_eq!(time_of(&parked, CauseKind::Waiting), 200);
    assert_eq!(parked.awaited.map(|one| (one.by, one.tid)), Some((WokenBy::Task, OTHER)));
    let file = pause("74 4", "D", [""; 2]);
    assert_eq!(time_of(&file, CauseKind::Io), 200);
    let completes = ["1298us irq_entry 5; 1299us block_complete 1 0 512", "1312us irq_exit 5"];
    let device = pause("33", "D", completes);
    assert_eq!(time_of(&device, CauseKind::Io), 200, "the wake-up shows it");
}

#[test]
fn page_faults_and_reclaim_of_a_cycle_are_counted() {
    let cycle =
        cycle_of("1100us cpu0 7/20 page_fault 1 2; 1110us reclaim_begin; 1160us reclaim_end 1");
    assert_eq!((cycle.faults, us(cycle.reclaimed)), (1, 50));
    assert_eq!(us(cycle.run.time_of(CauseKind::Reclaim)), 50);
}

#[test]
fn disk_waits_belong_to_the_fault_or_reclaim_until_the_thread_writes() {
    // The kind of wait of a thread with this activity in a page fault that then sleeps until the
    // disk is done.
    let waits_for = |activity: &str| {
        let mut run = Run::without(Group::Syscall);
        for (begin, due) in [(1, 1_000), (1_301, 2_000), (2_101, 3_000)] {
            run.push(&format!(
                "{begin}us cpu0 7/20 hrtimer_start 0xaaaa expires={due}us; +1us switch S -> 0
                {}us hrtimer_entry 0xaaaa; +1us waking 7/20; +1us wakeup 7/20
                +1us hrtimer_exit 0xaaaa; +4us switch R -> 7/20",
                due + 1
            ));
            if due == 1_000 {
                run.push(&format!(
                    "1100us cpu0 7/20 page_fault 1 2
                    {activity}
                    1110us switch D -> 0
                    1200us irq_entry 4; 1201us block_complete 1 8 4096
                    1202us waking 7/20; 1203us wakeup 7/20; 1204us irq_exit 4
                    1205us switch R -> 7/20; 1206us reclaim_end 1"
                ));
            }
        }
        let [cycle, ..] = run.cycles[..] else { panic!("no cycle") };
        let kinds = [CauseKind::PageFault, CauseKind::Reclaim, CauseKind::Io];
        kinds.map(|kind| us(cycle.total_split().time_of(kind)) >= 90)
    };
    assert_eq!(waits_for(""), [true, false, false]);
    assert_eq!(waits_for("1105us block_issue 1 8 4096 write"), [false, false, true]);
    let reclaims = "1105us reclaim_begin; 1105us block_issue 1 8 4096 write";
    assert_eq!(waits_for(reclaims), [false, true, false]);
    assert_eq!(waits_for(&format!("{reclaims}; 1105us reclaim_end 1")), [true, false, false]);
}

#[test]
fn without_system_calls_cycles_lie_between_sleeps() {
    let mut run = Run::without(Group::Syscall);
    for (begin, due) in [(1, 1_000), (1_101, 2_000), (2_101, 3_000)] {
        run.push(&format!(
            "{begin}us cpu0 7/20 hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 0
            {due}us vector_entry 0xec; +1us hrtimer_entry 0xaaaa; +1us waking 7/20
            +1us wakeup 7/20; +1us hrtimer_exit 0xaaaa; +1us vector_exit 0xec
            +3us switch R -> 7/20"
        ));
    }
    let [first, _] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by), (1_000_000, WokenBy::Sleep));
    assert_eq!((us(first.wakeup_latency()), us(first.response_time())), (8, 102));
    assert_eq!(first.call.number, WaitingCall::NOT_RECORDED);
    assert_eq!(us(first.run.time_of(CauseKind::OwnExecution)), 94);
    assert_eq!(first.total_split().time_of(CauseKind::SystemCall), Nanos::ZERO);
}

#[test]
fn without_timer_events_a_cycle_begins_with_its_wake_up() {
    let mut run = Run::without(Group::Hrtimer);
    for (begin, due) in [(0, 1_000), (1_100, 2_000)] {
        run.push(&format!(
            "{begin}us cpu0 7/20 sys_enter 230 1 1; +2us switch S -> 0
            {}us vector_entry 0xec; +1us waking 7/20; +1us wakeup 7/20; +1us vector_exit 0xec
            +2us switch R -> 7/20; +1us sys_exit 230",
            due + 3
        ));
    }
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.release.ns(), cycle.by), (1_004_000, WokenBy::Irq));
}

#[test]
fn a_hidden_end_of_a_wait_is_replaced_by_the_next_event() {
    let mut run = Run::whole();
    for (begin, due) in [(0, 1_000), (1_100, 2_000)] {
        run.push(&format!(
            "{begin}us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires={due}us
            +1us switch S -> 0; {}us 7/20 sys_exit 230",
            due + 12
        ));
    }
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.release.ns(), cycle.by), (1_000_000, WokenBy::Sleep));
    assert_eq!(us(cycle.wake.time_of(CauseKind::Unknown)), 12, "no event shows it");
}

/// The same without system calls: the switch from the idle task is hidden, and the next event of
/// the thread is an upper bound of its wake-up.
#[test]
fn without_system_calls_the_next_event_of_a_thread_ends_a_hidden_wake_up() {
    let mut run = Run::without(Group::Syscall);
    for (begin, due) in [(1, 1_000), (1_019, 2_000), (2_019, 3_000)] {
        // Events of others, and those of the idle task, end nothing.
        run.push(&format!(
            "{begin}us cpu0 7/20 hrtimer_start 0xaaaa expires={due}us; +1us switch S -> 0
            {}us cpu1 9 softirq_entry 1; +1us softirq_exit 1
            +7us cpu0 vector_entry 0xec; +1us vector_exit 0xec",
            due - 5
        ));
    }
    let [first, second] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by, first.hidden), (1_000_000, WokenBy::Sleep, 1));
    assert_eq!((us(first.wakeup_latency()), us(first.wake.time_of(CauseKind::Unknown))), (19, 19));
    assert_eq!((second.release.ns(), us(second.response_time())), (2_000_000, 20));
}

#[test]
fn a_thread_without_a_switch_from_idle_was_ready_until_its_next_event() {
    let cycle = cycle_of(
        "1100us cpu0 7/20 switch S -> 0
        1200us cpu1 9 waking 7/20; 1210us wakeup 7/20
        1260us cpu0 7/20 vector_entry 0xec; 1265us vector_exit 0xec",
    );
    assert_eq!(us(cycle.run.time_of(CauseKind::IdleExit)), 60);
    assert_eq!((cycle.run.time_of(CauseKind::Unknown), cycle.hidden), (Nanos::ZERO, 1));
}

#[test]
fn cycles_that_overlap_a_gap_are_dropped() {
    let gaps = Gaps::from_events(events!("1600us cpu3 lost 1 since=1500us"));
    let mut run = Run::whole();
    run.stream = CycleStream::new(run.stream.calls.clone(), run.stream.shown, gaps);
    run.idle_sleep(0, 1_000, 0).idle_sleep(1_550, 2_000, 0).idle_sleep(2_100, 3_000, 0);
    run.idle_sleep(3_100, 4_000, 0);
    let releases: Vec<i64> = run.cycles.iter().map(|cycle| cycle.release.ns() / 1_000).collect();
    assert_eq!((releases, run.lost), (vec![3_000], 2), "until the end of the wait in the gap");
}

#[test]
fn time_before_a_task_that_was_never_switched_to_is_unknown() {
    // Another task occurs by 1,300.
    let cycle = cycle_of(
        "1100us cpu0 7/20 switch R -> 9/10
        1300us 8 vector_entry 0xec; 1310us vector_exit 0xec
        1400us switch S -> 7/20",
    );
    assert_eq!(us(cycle.run.time_of(CauseKind::Unknown)), 200);
    assert_eq!(cycle.run.time_of(CauseKind::Preempted), Nanos::ZERO);
}

#[test]
fn after_a_migration_the_other_cpu_explains_the_wait() {
    let cycle = cycle_of(
        "1050us cpu1 5 vector_entry 0xec; 1051us vector_exit 0xec
        1060us switch S -> 8/5
        1100us cpu0 7/20 switch R -> 9/10
        1200us migrate 7 cpu0 -> cpu1
        1300us cpu1 switch S -> 7/20
        1400us switch R -> 8/5
        1500us cpu0 migrate 7 cpu1 -> cpu0
        1600us switch S -> 7/20",
    );
    assert_eq!(us(cycle.run.time_of(CauseKind::Preempted)), 400);
    assert_eq!((cycle.migrations, us(cycle.run.time_of(CauseKind::Unknown))), (2, 0));
}

mod properties {
    use super::*;
    use crate::threads::tests::any_event_of;
    use proptest::prelude::*;

    /// See [`any_event_of`].
    const KINDS: &str = "switch R -> $t/$p; switch S -> $t/$p; switch D -> $t/$p
        switch L -> $t/$p; switch Q -> $t/$p; waking $t/20 cpu$n; waking $t/20 cpu$n
        wakeup $t/20 cpu$n; wakeup $t/20 cpu$n; migrate $t cpu0 -> cpu$n
        sys_enter 230 $i $n; sys_enter 0 $i $n; sys_enter 74 $i $n; sys_enter 202 $i $n
        sys_exit 230 $n; sys_exit 0 -1; sys_exit 74 $n; sys_exit 202 $n
        vector_entry 0xec; vector_exit 0xec; softirq_entry 1; softirq_exit 1
        hrtimer_start $n expires=$i; hrtimer_entry $n now=$i; hrtimer_entry $n; hrtimer_exit $n
        reclaim_begin; reclaim_end; lost 1 since=$i";

    proptest! {
        #[test]
        fn parts_of_a_cycle_add_up_for_any_events(
            events in proptest::collection::vec((0i64..500, any_event_of(KINDS, 200_000)), 0..300),
            shown in 0usize..4,
        ) {
            let mut run = match shown {
                0 => Run::whole(),
                1 => Run::new(),
                2 => Run::without(Group::Syscall),
                _ => Run::of(&[Group::Sched], false),
            };
            let mut now = 0;
            for (step, event) in events {
                now += step * 1_000;
                run.push_event(&Event { at: MonotonicNs(now), ..event });
            }
            for cycle in &run.cycles {
                prop_assert_eq!(cycle.wake.total_time(), cycle.wakeup_latency());
                prop_assert_eq!(cycle.total_split().total_time(), cycle.response_time());
                prop_assert!(cycle.release <= cycle.returned && cycle.returned <= cycle.again);
            }
        }
    }
}

/// After each event, the thread's open cycle shows no more than the final one.
#[test]
fn lower_bounds_of_an_open_cycle_never_exceed_the_final_figures() {
    let mut run = Run::new();
    run.stream.select_wait(THREAD, Some((SLEEP, false)));
    let mut seen: Vec<(i64, OpenCycle)> = Vec::new();
    // It blocks for 1,635 µs in its second cycle, and catches up.
    for (from, due, late) in [(0, 1_000, 10), (1_100, 2_000, 10), (3_700, 3_000, 705)] {
        let back = due + late;
        let until = if due == 2_000 { 3_650 } else { back + 20 };
        let blocks = format!(
            "{}us cpu0 7/20 sys_enter 0 3; +1us switch S -> 9; {until}us softirq_raise 1
            +1us waking 7/20; +1us switch R -> 7/20; +1us sys_exit 0 1",
            back + 5
        );
        for event in parse_events(&(sleep(from, due, late) + &blocks)) {
            run.push_event(&event);
            seen.extend(run.stream.open_cycle(THREAD).map(|open| (event.at.ns(), open)));
        }
    }
    run.sleep(4_000, 5_000, 10).sleep(5_100, 6_000, 10);
    let mut bounds = 0;
    for (now, open) in seen {
        let Some(release) = open.release else { continue };
        let whole = run.cycles.iter().find(|cycle| cycle.release == release);
        let whole = whole.unwrap_or_else(|| panic!("no cycle was released at {release:?}"));
        let now = open.until.map_or(now, |until| until.ns().min(now));
        assert!(now - release.ns() <= whole.response_time().ns(), "at {now}");
        assert!(open.returned.is_none_or(|returned| returned == whole.returned), "at {now}");
        bounds = bounds.max(now - release.ns());
    }
    assert_eq!(bounds, 1_700_000, "the cycle that blocks, when it waits again");
}

/// Its timer has expired, but the event is missing at the end: the sleep is overdue.
#[test]
fn an_overdue_sleep_opens_a_cycle_but_a_wait_for_an_event_does_not() {
    let release = |run: &mut Run, now: i64| {
        run.push(&format!("{now}us cpu0 9 softirq_raise 1"));
        run.stream.open_cycle(THREAD).expect("it waits").release.map(MonotonicNs::ns)
    };
    let mut run = Run::new();
    run.sleep(0, 1_000, 10).push(
        "1100us cpu0 7/20 sys_enter 230 1 1; +1us hrtimer_start 0xaaaa expires=2ms
        +1us switch S -> 9",
    );
    assert_eq!(release(&mut run, 1_900), None);
    assert_eq!(release(&mut run, 2_500), Some(2_000_000));
    // For a wait for an event, a timer shows nothing: an interrupt may have started it.
    let mut run = Run::new();
    run.push(
        "0us cpu0 7/20 sys_enter 0 3; +1us hrtimer_start 0xaaaa expires=100us; +1us switch S -> 9",
    );
    assert_eq!(release(&mut run, 500), None);
}
