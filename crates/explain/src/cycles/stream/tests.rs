use super::*;
use crate::cycles::find_delay;
use punctual_core::event::{Group, Tid};
use punctual_core::{Nanos, Split};

const NANOSLEEP: u32 = 230;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FSYNC: u32 = 74;
const FUTEX: u32 = 202;
const POLL: u32 = 7;
const TIMER: u64 = 0xaaaa;
const THREAD: u32 = 7;
const OTHER: u32 = 9;

/// Events at instants in µs, and the resulting cycles.
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
            (WRITE, "write"),
            (POLL, "poll"),
        ];
        let names = names.map(|(number, name)| (number, name.to_owned())).into();
        let shown = ShownKinds::of(groups, some_threads);
        let stream = CycleStream::new(SyscallNumbers::of(&names), shown, Gaps::default());
        let (gaps, times) = (Vec::new(), Vec::new());
        Run { stream, cycles: Vec::new(), moments: Vec::new(), gaps, times, lost: 0 }
    }

    fn at(&mut self, us: i64, tid: u32, what: EventKind) -> &mut Run {
        self.on(0, us, tid, what)
    }

    fn on(&mut self, cpu: u16, us: i64, tid: u32, what: EventKind) -> &mut Run {
        let event = Event { at: MonotonicNs(us * 1_000), cpu, tid: Tid(tid), what };
        let Run { stream, cycles, moments, gaps, times, lost } = self;
        stream.push(&event, &mut |found| match found {
            StreamResult::Cycle(cycle) => cycles.push(cycle),
            StreamResult::Moment(moment) => moments.push(moment),
            StreamResult::Gap(gap) => gaps.push(gap),
            StreamResult::Times(tid, of) => times.push((tid, of)),
            StreamResult::Lost => *lost += 1,
        });
        self
    }

    fn enter(&mut self, us: i64, number: u32, args: [u64; 2]) -> &mut Run {
        self.at(us, THREAD, EventKind::SyscallEnter { number, args })
    }

    fn exit(&mut self, us: i64, number: u32, result: i64) -> &mut Run {
        self.at(us, THREAD, EventKind::SyscallExit { number, result })
    }

    fn start(&mut self, us: i64, expires: i64) -> &mut Run {
        let expires = MonotonicNs(expires * 1_000);
        self.at(us, THREAD, EventKind::HrtimerStart { timer: TIMER, expires, slack: None })
    }

    /// The thread gives its CPU to another one.
    fn leave(&mut self, us: i64, prev_state: TaskState, next_prio: i16) -> &mut Run {
        let next = Tid(OTHER);
        self.at(us, THREAD, EventKind::Switch { prev_prio: 20, prev_state, next, next_prio })
    }

    fn arrive(&mut self, us: i64) -> &mut Run {
        let (prev_state, next) = (TaskState::Preempted, Tid(THREAD));
        let what = EventKind::Switch { prev_prio: 120, prev_state, next, next_prio: 20 };
        self.at(us, OTHER, what)
    }

    fn expire(&mut self, us: i64) -> &mut Run {
        let what =
            EventKind::HrtimerExpireEntry { timer: TIMER, now: None, expires: None, slack: None };
        self.at(us, OTHER, what)
    }

    fn expired(&mut self, us: i64) -> &mut Run {
        self.at(us, OTHER, EventKind::HrtimerExpireExit { timer: TIMER })
    }

    fn wake(&mut self, us: i64, by: u32) -> &mut Run {
        self.at(us, by, EventKind::Waking { task: Tid(THREAD), prio: 20, target: 0 })
    }

    /// Sleeps from `us` until `due`, and is back `late` µs later.
    fn sleep(&mut self, us: i64, due: i64, late: i64) -> &mut Run {
        self.enter(us, NANOSLEEP, [1, 1]).start(us + 1, due).leave(
            us + 2,
            TaskState::Sleeping,
            120,
        );
        self.expire(due + late - 4).wake(due + late - 3, OTHER).expired(due + late - 2);
        self.arrive(due + late - 1).exit(due + late, NANOSLEEP, 0)
    }
}

fn us(span: Nanos) -> i64 {
    span.ns() / 1_000
}

/// It never waits: each loss of its CPU is a gap with a known split.
#[test]
fn a_thread_that_polls_has_gaps() {
    let all = [Group::Sched, Group::Syscall, Group::Irq, Group::Softirq];
    let mut run = Run::of(&all, true);
    run.enter(0, READ, [3, 0]).exit(10, READ, 1);
    run.at(100, THREAD, EventKind::IrqEntry { irq: 9 });
    run.at(103, THREAD, EventKind::IrqExit { irq: 9, handled: true });
    run.at(103, THREAD, EventKind::SoftirqEntry { vector: 1 });
    run.at(108, THREAD, EventKind::SoftirqExit { vector: 1 });
    run.leave(1_000, TaskState::Preempted, 10).arrive(1_400);
    run.leave(2_000, TaskState::Stopped, 120).wake(2_500, OTHER).arrive(2_510);
    // It gives up its CPU, or waits.
    run.enter(3_000, POLL, [0, 0]).leave(3_010, TaskState::Yielded, 120).arrive(3_020);
    run.exit(3_030, POLL, 0);
    run.leave(4_000, TaskState::Blocked, 120).wake(4_300, OTHER).arrive(4_310);
    run.at(5_000, THREAD, EventKind::Exit);
    let gaps = run.gaps.iter().map(|gap| (us(gap.end - gap.begin), gap.split.longest()));
    let known = [
        (3, Some(CauseKind::Irq)),
        (5, Some(CauseKind::Softirq)),
        (400, Some(CauseKind::Preempted)),
        (510, Some(CauseKind::Stopped)),
    ];
    assert_eq!(gaps.collect::<Vec<_>>(), known);
    assert_eq!(run.gaps[2].culprit.map(|of| (of.tid, us(of.time))), Some((OTHER, 400)));
    let [(THREAD, times)] = run.times[..] else { panic!("{:?}", run.times) };
    let parts = [times.ran, times.ready, times.waited, times.stopped].map(us);
    assert_eq!(parts, [5_000 - 430 - 800, 430, 300, 500]);
    assert!(run.cycles.is_empty());
}

#[test]
fn a_cycle_reaches_from_its_release_to_the_next_wait() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    // 100 µs of its own work, a call of 50 µs, 200 µs of a higher priority, 40 µs for the disk.
    run.enter(1_110, READ, [3, 0]).exit(1_160, READ, 1);
    run.leave(1_200, TaskState::Preempted, 10).arrive(1_400);
    run.enter(1_410, FSYNC, [4, 0]).leave(1_420, TaskState::Blocked, 120);
    run.wake(1_460, OTHER).arrive(1_463).exit(1_465, FSYNC, 0);
    run.sleep(1_500, 2_000, 10).sleep(2_100, 3_000, 10);
    let [first, second] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.returned.ns()), (1_000_000, 1_010_000));
    assert_eq!((first.by, first.call.number, first.call.operation), (WokenBy::Sleep, NANOSLEEP, 1));
    assert_eq!((us(first.wakeup_latency()), us(first.response_time())), (10, 500));
    assert_eq!(first.split().sum(), first.response_time());
    let part = |part| us(first.split().of(part));
    assert_eq!((part(CauseKind::TimerIrqDelay), part(CauseKind::Irq)), (6, 1));
    assert_eq!((part(CauseKind::Preempted), part(CauseKind::Io)), (200, 40));
    // From the wake-ups to the switches, no event shows the running task.
    assert_eq!(part(CauseKind::Unknown), 2 + 3);
    assert_eq!(part(CauseKind::OwnExecution), 100 + 40 + 10 + 35);
    assert_eq!((part(CauseKind::Switch), part(CauseKind::SystemCall)), (1, 50 + 10 + 2));
    assert_eq!(first.culprit.map(|culprit| (culprit.tid, us(culprit.time))), Some((OTHER, 200)));
    assert_eq!((first.blocks, us(first.blocked), first.syscalls), (1, 40, 3));
    assert_eq!(first.longest_call, Some((FSYNC, Nanos::from_micros(55))));
    assert_eq!((us(second.response_time()), second.split().sum()), (100, second.response_time()));
}

#[test]
fn a_release_that_passed_before_the_wait_begins_a_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    // The sleep should have lasted until 2,000, but the thread arrives at 2,500: the call returns
    // at once.
    run.enter(2_500, NANOSLEEP, [1, 1]).start(2_501, 2_000).exit(2_502, NANOSLEEP, 0);
    run.sleep(2_600, 3_000, 10);
    let [_, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Sleep));
    assert_eq!(us(late.split().of(CauseKind::Overrun)), 500);
    assert_eq!((late.split().sum(), us(late.response_time())), (late.response_time(), 600));
}

#[test]
fn a_timer_that_expires_before_the_read_releases_the_cycle() {
    let mut run = Run::new();
    run.start(0, 1_000);
    run.enter(10, READ, [3, 0]).leave(11, TaskState::Sleeping, 120);
    run.expire(1_005).wake(1_006, OTHER).expired(1_007).arrive(1_008).exit(1_010, READ, 8);
    // The next expiry occurs during the run, and the read finds it.
    run.start(1_011, 2_000).expire(2_003).expired(2_004);
    run.enter(2_300, READ, [3, 0]).exit(2_301, READ, 8);
    run.start(2_302, 3_000).enter(2_400, READ, [3, 0]).leave(2_401, TaskState::Sleeping, 120);
    let [first, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by, first.timer), (1_000_000, WokenBy::Timer, TIMER));
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Timer));
    assert_eq!((us(late.response_time()), us(late.split().of(CauseKind::Overrun))), (400, 300));
}

#[test]
fn waits_other_than_the_selected_call_are_part_of_the_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    let call = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1 };
    run.stream.select(THREAD, Some((call, false)));
    run.enter(1_020, READ, [3, 0]).leave(1_021, TaskState::Sleeping, 120).wake(1_100, OTHER);
    run.arrive(1_101).exit(1_102, READ, 1).sleep(1_200, 2_000, 10);
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.blocks, us(cycle.split().of(CauseKind::Waiting))), (1, 79));
    run.stream.select(THREAD, None);
    run.sleep(2_100, 3_000, 10).sleep(3_100, 4_000, 10);
    assert_eq!(run.cycles.len(), 1);
}

#[test]
fn a_wait_that_ends_by_its_timeout_is_one() {
    const BITSET: u64 = 9;
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
            let call = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1 };
            if is_selected {
                run.stream.select(THREAD, Some((call, false)));
            }
            run.enter(1_020, number, [3, BITSET]).leave(1_021, TaskState::Sleeping, 120);
            run.wake(1_100, OTHER).arrive(1_101).exit(1_102, number, result);
            run.sleep(1_200, 2_000, 10);
            run.cycles
        };
        let [cycle] = cycles(true)[..] else { panic!("one cycle") };
        let part = |part| us(cycle.split().of(part));
        let parts = (part(CauseKind::Timeout), part(CauseKind::Waiting));
        assert_eq!(parts, (timeout, waiting), "{number} returned {result}");
        // Until its first wait is known, it counts as two cycles, which are then merged.
        let [first, second] = cycles(false)[..] else { panic!("two cycles") };
        let whole = first.followed_by(&second).split();
        assert!((us(whole.of(CauseKind::Timeout)) > 0) == (timeout > 0), "{whole:?}");
        assert_eq!(whole.sum(), first.followed_by(&second).response_time());
    }
}

#[test]
fn cycles_around_lost_events_are_dropped() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10).at(1_050, 0, EventKind::Lost { count: 3, since: MonotonicNs(0) });
    run.sleep(1_100, 2_000, 10);
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

const VECTOR: u8 = 0xec;
const IDLE: u32 = 0;

impl Run {
    fn whole() -> Run {
        Run::of(&ALL, false)
    }

    fn without(group: Group) -> Run {
        let groups: Vec<Group> = ALL.into_iter().filter(|one| *one != group).collect();
        Run::of(&groups, false)
    }

    fn switch(
        &mut self,
        us: i64,
        (from, prio): (u32, i16),
        (to, next_prio): (u32, i16),
    ) -> &mut Run {
        let state = if from == IDLE { TaskState::Preempted } else { TaskState::Sleeping };
        self.switch_as(us, (from, prio), state, (to, next_prio))
    }

    fn switch_as(
        &mut self,
        us: i64,
        (from, prev_prio): (u32, i16),
        prev_state: TaskState,
        (to, next_prio): (u32, i16),
    ) -> &mut Run {
        let next = Tid(to);
        self.at(us, from, EventKind::Switch { prev_prio, prev_state, next, next_prio })
    }

    fn vector(&mut self, from: i64, to: i64, tid: u32) -> &mut Run {
        self.at(from, tid, EventKind::VectorEntry { vector: VECTOR });
        self.at(to, tid, EventKind::VectorExit { vector: VECTOR })
    }

    /// Sleeps until `due` with an idle CPU, `late` µs from there to the interrupt, and is back 10
    /// µs after that.
    fn idle_sleep(&mut self, us: i64, due: i64, late: i64) -> &mut Run {
        let irq = due + late;
        self.enter(us, NANOSLEEP, [1, 1]).start(us + 1, due);
        self.switch(us + 2, (THREAD, 20), (IDLE, 120));
        self.at(irq, IDLE, EventKind::VectorEntry { vector: VECTOR });
        self.fire(irq + 1, IDLE).wake(irq + 2, IDLE).enqueue(irq + 3, IDLE);
        self.at(irq + 4, IDLE, EventKind::HrtimerExpireExit { timer: TIMER });
        self.at(irq + 5, IDLE, EventKind::VectorExit { vector: VECTOR });
        self.switch(irq + 7, (IDLE, 120), (THREAD, 20)).exit(irq + 10, NANOSLEEP, 0)
    }

    fn fire(&mut self, us: i64, tid: u32) -> &mut Run {
        let what =
            EventKind::HrtimerExpireEntry { timer: TIMER, now: None, expires: None, slack: None };
        self.at(us, tid, what)
    }

    fn enqueue(&mut self, us: i64, by: u32) -> &mut Run {
        let what = EventKind::Wakeup { task: Tid(THREAD), prio: 20, target: 0, new: false };
        self.at(us, by, what)
    }

    /// Two cycles; `between` defines the first, from the return of its wait at 1,010 µs on; it is
    /// over by 1,900.
    fn one(mut self, between: impl FnOnce(&mut Run)) -> Cycle {
        self.idle_sleep(0, 1_000, 0);
        between(&mut self);
        self.idle_sleep(1_900, 3_000, 0).idle_sleep(3_100, 4_000, 0);
        let [first, ..] = self.cycles[..] else { panic!("no cycle") };
        assert_eq!(first.split().sum(), first.response_time());
        first
    }
}

#[test]
fn wake_up_latency_is_divided_by_the_activity_of_the_cpu() {
    let mut run = Run::whole();
    run.idle_sleep(0, 1_000, 30).idle_sleep(1_100, 2_000, 0);
    let cycle = run.cycles[0];
    let part = |part| us(cycle.wake.of(part));
    // Due at 1,000; the interrupt begins at 1,030 and wakes at 1,032; the switch comes at 1,037.
    assert_eq!(us(cycle.wakeup_latency()), 40);
    assert_eq!(part(CauseKind::Irq), 5);
    assert_eq!(part(CauseKind::IdleExit), 30 + 2);
    assert_eq!((part(CauseKind::Switch), part(CauseKind::SystemCall)), (3, 0));
    assert_eq!(part(CauseKind::Unknown), 0);
    assert_eq!((cycle.by, cycle.timer), (WokenBy::Sleep, TIMER));
}

#[test]
fn without_interrupt_events_the_delay_of_the_timer_is_unknown() {
    let groups = [Group::Sched, Group::Hrtimer, Group::Syscall, Group::Softirq];
    let mut run = Run::of(&groups, false);
    for (us, due) in [(0, 1_000), (1_100, 2_000)] {
        run.enter(us, NANOSLEEP, [1, 1]).start(us + 1, due);
        run.switch(us + 2, (THREAD, 20), (IDLE, 120));
        run.fire(due + 31, IDLE).wake(due + 32, IDLE).enqueue(due + 33, IDLE);
        run.at(due + 34, IDLE, EventKind::HrtimerExpireExit { timer: TIMER });
        run.switch(due + 37, (IDLE, 120), (THREAD, 20)).exit(due + 40, NANOSLEEP, 0);
    }
    let cycle = run.cycles[0];
    // From the wake-up to the switch: an exit from idle, or interrupts.
    assert_eq!(us(cycle.wake.of(CauseKind::Unknown)), 5);
    assert_eq!(cycle.wake.of(CauseKind::NonPreemptible), Nanos::ZERO);
    assert_eq!(cycle.split().sum(), cycle.response_time());
    let missing: Vec<Group> = missing(&groups).map(|(group, _)| group).collect();
    assert_eq!(missing, [Group::Irq, Group::Fault, Group::Block]);
}

#[test]
fn interrupts_and_softirqs_are_not_own_execution() {
    let cycle = Run::whole().one(|run| {
        run.vector(1_100, 1_150, THREAD);
        run.at(1_200, THREAD, EventKind::SoftirqEntry { vector: 3 });
        run.vector(1_210, 1_220, THREAD);
        run.at(1_260, THREAD, EventKind::SoftirqExit { vector: 3 });
    });
    let part = |part| us(cycle.run.of(part));
    assert_eq!((part(CauseKind::Irq), part(CauseKind::Softirq)), (60, 50));
    assert_eq!(part(CauseKind::OwnExecution), 890 - 110);
}

#[test]
fn a_preempting_task_of_higher_priority_is_the_culprit() {
    let cycle = Run::whole().one(|run| {
        run.switch_as(1_100, (THREAD, 20), TaskState::Preempted, (OTHER, 10));
        run.vector(1_150, 1_160, OTHER);
        run.switch(1_400, (OTHER, 10), (THREAD, 20));
    });
    assert_eq!(us(cycle.run.of(CauseKind::Preempted)), 290);
    assert_eq!(us(cycle.run.of(CauseKind::Irq)), 10);
    assert_eq!(cycle.culprit.map(|by| (by.tid, us(by.time))), Some((OTHER, 290)));
}

/// A trace is judged when its threads have ended.
#[test]
fn the_last_priority_of_an_ended_thread_is_known() {
    let mut run = Run::without(Group::Syscall);
    assert_eq!(run.stream.priority(THREAD), None);
    run.switch(10, (OTHER, 120), (THREAD, 19));
    run.at(20, THREAD, EventKind::Exit);
    assert_eq!(run.stream.priority(THREAD), Some(19));
    // Another thread with the same id has its own.
    run.switch(30, (OTHER, 120), (THREAD, 120));
    assert_eq!(run.stream.priority(THREAD), Some(120));
    // One that gave up its real-time policy before it ended.
    run.switch(40, (OTHER, 120), (THREAD, 19));
    run.switch_as(50, (THREAD, 120), TaskState::Dead, (OTHER, 120));
    assert_eq!(run.stream.priority(THREAD), Some(19));
}

/// Two tasks alternate: one has the longest single run, the other the longest total.
#[test]
fn of_two_tasks_that_share_a_delay_the_longest_is_named() {
    const THIRD: u32 = 11;
    let shared = |turns: [(u32, i64); 3]| {
        let cycle = Run::whole().one(|run| {
            let (mut at, mut from) = (1_100, (THREAD, 20));
            for (task, takes) in turns {
                run.switch_as(at, from, TaskState::Preempted, (task, 10));
                (at, from) = (at + takes, (task, 10));
            }
            run.switch(at, from, (THREAD, 20));
        });
        let mut usual = Split::default();
        usual.add(CauseKind::OwnExecution, Nanos::from_micros(900));
        let delay = find_delay(&cycle, &usual).expect("it was delayed");
        assert_eq!(us(cycle.run.of(CauseKind::Preempted)), 350);
        let by = (delay.part == CauseKind::Preempted).then_some(delay.by).flatten();
        (by.map(|by| by.tid), cycle.culprit.map(|one| us(one.time)))
    };
    assert_eq!(shared([(OTHER, 100), (THIRD, 150), (OTHER, 100)]), (Some(OTHER), Some(200)));
    assert_eq!(shared([(OTHER, 80), (THIRD, 190), (OTHER, 80)]), (Some(THIRD), Some(190)));
}

#[test]
fn stopped_time_is_not_waiting_and_names_the_sender_of_the_signal() {
    let stopped = |state, sent: &[(u32, u8)]| {
        let cycle = Run::whole().one(|run| {
            for (task, signal) in sent {
                let what = EventKind::Signal { task: Tid(*task), signal: *signal };
                run.on(1, 1_090, 33, what);
            }
            run.switch_as(1_100, (THREAD, 20), state, (OTHER, 120));
            run.wake(1_310, OTHER).enqueue(1_311, OTHER);
            run.switch_as(1_315, (OTHER, 120), TaskState::Preempted, (THREAD, 20));
        });
        let part = [CauseKind::Stopped, CauseKind::Waiting, CauseKind::PageFault]
            .map(|part| us(cycle.run.of(part)));
        (part, cycle.awaited.map(|one| one.tid))
    };
    assert_eq!(stopped(TaskState::Stopped, &[(THREAD, 19)]), ([210, 0, 0], Some(33)));
    // A signal that continues, or one to another thread, stops nothing here.
    assert_eq!(stopped(TaskState::Stopped, &[(THREAD, 18), (8, 19)]), ([210, 0, 0], Some(OTHER)));
    // The freezer of its control group suspends it outside of any call; a wait in a call is not a
    // stop.
    assert_eq!(stopped(TaskState::Sleeping, &[]), ([210, 0, 0], Some(OTHER)));
    assert_eq!(stopped(TaskState::Blocked, &[]), ([0, 0, 210], Some(OTHER)));
    let waits = Run::whole().one(|run| {
        run.on(1, 1_080, 33, EventKind::Signal { task: Tid(THREAD), signal: 19 });
        run.enter(1_090, READ, [3, 0]);
        run.switch_as(1_100, (THREAD, 20), TaskState::Sleeping, (OTHER, 120));
        run.wake(1_310, OTHER).enqueue(1_311, OTHER);
        run.switch_as(1_315, (OTHER, 120), TaskState::Preempted, (THREAD, 20));
        run.exit(1_320, READ, 1);
    });
    assert_eq!(waits.run.of(CauseKind::Stopped), Nanos::ZERO);
}

/// SIGSTOP, a debugger or the freezer interrupts a sleep beyond its end: the cycle due then was
/// delayed by the stop, not by the previous cycle.
#[test]
fn a_cycle_that_is_due_during_a_stop_was_stopped() {
    for (state, result) in
        [(TaskState::Stopped, -514), (TaskState::Sleeping, -514), (TaskState::Stopped, -4)]
    {
        let mut run = Run::whole();
        run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10);
        run.enter(2_100, NANOSLEEP, [1, 1]).start(2_101, 3_000);
        run.leave(2_102, TaskState::Sleeping, 120);
        run.wake(2_500, OTHER).arrive(2_502).exit(2_503, NANOSLEEP, result);
        run.switch_as(2_504, (THREAD, 20), state, (OTHER, 120));
        run.wake(4_000, OTHER).arrive(4_002);
        run.enter(4_004, NANOSLEEP, [1, 1]).start(4_005, 3_000).exit(4_006, NANOSLEEP, 0);
        run.sleep(4_100, 5_000, 10);
        let cycle = run.cycles.last().expect("a cycle");
        assert_eq!(us(cycle.release - MonotonicNs(0)), 3_000, "{:?}", run.cycles);
        assert_eq!(us(cycle.split().of(CauseKind::Stopped)), 1_004, "{cycle:?}");
        assert_eq!(cycle.split().of(CauseKind::Overrun), Nanos::ZERO);
        assert_eq!(cycle.awaited.map(|one| one.tid), Some(OTHER));
        assert_eq!(cycle.split().sum(), cycle.response_time());
    }
    // A cycle delayed only by the previous one was not stopped.
    let mut run = Run::whole();
    run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10);
    run.enter(3_500, NANOSLEEP, [1, 1]).start(3_501, 3_000).exit(3_502, NANOSLEEP, 0);
    run.sleep(3_600, 5_000, 10);
    let cycle = run.cycles.last().expect("a cycle");
    assert_eq!(us(cycle.split().of(CauseKind::Overrun)), 500, "{cycle:?}");
    assert_eq!(cycle.split().of(CauseKind::Stopped), Nanos::ZERO);
}

/// An event of the leaving task, and the return of the call, bound the switch to the thread.
#[test]
fn a_context_switch_ends_with_an_event_inside_or_with_the_call() {
    let split = |inside: bool| {
        let mut run = Run::whole();
        run.sleep(0, 1_000, 10).sleep(1_100, 2_000, 10).enter(2_100, NANOSLEEP, [1, 1]);
        run.start(2_101, 3_000).leave(2_102, TaskState::Sleeping, 120);
        run.expire(3_001).wake(3_002, OTHER).enqueue(3_003, OTHER).expired(3_004).arrive(3_010);
        if inside {
            run.at(3_060, OTHER, EventKind::ContentionBegin { lock: 1, flags: 0 });
            run.at(3_073, OTHER, EventKind::ContentionEnd { lock: 1, result: 0 });
        }
        run.exit(3_080, NANOSLEEP, 0).sleep(3_100, 4_000, 10);
        run.cycles.last().expect("a cycle").wake
    };
    let (inside, bounded) = (split(true), split(false));
    assert_eq!((us(inside.of(CauseKind::Switch)), us(inside.of(CauseKind::SystemCall))), (63, 7));
    assert_eq!((us(bounded.of(CauseKind::Switch)), us(bounded.of(CauseKind::SystemCall))), (70, 0));
    assert_eq!((inside.of(CauseKind::Unknown), inside.sum()), (Nanos::ZERO, bounded.sum()));
}

#[test]
fn a_switch_to_a_lower_priority_is_throttling_to_an_equal_one_queueing() {
    let choose = |prio: i16| {
        Run::whole().one(|run| {
            run.switch_as(1_100, (THREAD, 20), TaskState::Preempted, (OTHER, prio));
            run.switch(1_400, (OTHER, prio), (THREAD, 20));
        })
    };
    assert_eq!(us(choose(120).run.of(CauseKind::Throttled)), 300);
    assert_eq!(us(choose(20).run.of(CauseKind::Runqueue)), 300);
}

#[test]
fn a_task_that_is_not_preempted_is_the_culprit_of_the_wake_up() {
    let mut run = Run::whole();
    for us in [0, 2_000] {
        let due = us + 1_000;
        run.enter(us, NANOSLEEP, [1, 1]).start(us + 1, due);
        run.switch(us + 2, (THREAD, 20), (OTHER, 120));
        run.at(due, OTHER, EventKind::VectorEntry { vector: VECTOR });
        run.fire(due + 1, OTHER).wake(due + 2, OTHER).enqueue(due + 3, OTHER);
        run.at(due + 4, OTHER, EventKind::HrtimerExpireExit { timer: TIMER });
        run.at(due + 5, OTHER, EventKind::VectorExit { vector: VECTOR });
        run.switch_as(due + 205, (OTHER, 120), TaskState::Preempted, (THREAD, 20));
        run.exit(due + 206, NANOSLEEP, 0);
    }
    let cycle = run.cycles[0];
    assert_eq!(us(cycle.wake.of(CauseKind::NonPreemptible)), 200);
    assert_eq!(cycle.culprit.map(|by| by.tid), Some(OTHER));
}

#[test]
fn a_switch_before_the_thread_is_on_a_runqueue_is_no_throttling() {
    let mut run = Run::whole();
    for us in [0, 2_000] {
        let due = us + 1_000;
        run.enter(us, NANOSLEEP, [1, 1]).start(us + 1, due);
        run.switch(us + 2, (THREAD, 20), (OTHER, 120));
        run.fire(due + 1, OTHER).wake(due + 2, OTHER);
        run.at(due + 3, OTHER, EventKind::HrtimerExpireExit { timer: TIMER });
        // Selected before the wake-up was complete.
        run.switch(due + 4, (OTHER, 120), (8, 120)).enqueue(due + 5, 8);
        run.switch_as(due + 55, (8, 120), TaskState::Preempted, (THREAD, 20));
        run.exit(due + 56, NANOSLEEP, 0);
    }
    let cycle = run.cycles[0];
    assert_eq!(cycle.wake.of(CauseKind::Throttled), Nanos::ZERO);
    assert_eq!(us(cycle.wake.of(CauseKind::NonPreemptible)), 53);
}

#[test]
fn waits_in_a_cycle_are_classified_by_system_call_and_waker() {
    let pause = |number: u32, args, state, completes: bool| {
        let cycle = Run::whole().one(|run| {
            let call = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1 };
            run.stream.select(THREAD, Some((call, false)));
            run.enter(1_100, number, args).switch_as(1_110, (THREAD, 20), state, (OTHER, 120));
            if completes {
                run.at(1_298, OTHER, EventKind::IrqEntry { irq: 5 });
                let what = EventKind::BlockComplete { device: 1, sector: 0, bytes: 512, error: 0 };
                run.at(1_299, OTHER, what);
            }
            run.wake(1_310, OTHER).enqueue(1_311, OTHER);
            if completes {
                run.at(1_312, OTHER, EventKind::IrqExit { irq: 5, handled: true });
            }
            run.switch_as(1_315, (OTHER, 120), TaskState::Preempted, (THREAD, 20));
            run.exit(1_320, number, 0);
        });
        assert_eq!((cycle.blocks, us(cycle.blocked)), (1, 200));
        cycle
    };
    let of = |cycle: &Cycle, part| us(cycle.run.of(part));
    let lock = pause(FUTEX, [7, 0], TaskState::Sleeping, false);
    assert_eq!(of(&lock, CauseKind::Lock), 200);
    let holder = lock.holder.expect("who woke it released the lock");
    assert_eq!((holder.tid, us(holder.time)), (OTHER, 200));
    assert!(lock.slept_without_pi);
    let parked = pause(FUTEX, [7, 9], TaskState::Sleeping, false);
    assert_eq!(of(&parked, CauseKind::Waiting), 200);
    assert_eq!(parked.awaited.map(|one| (one.by, one.tid)), Some((WokenBy::Task, OTHER)));
    let file = pause(FSYNC, [4, 0], TaskState::Blocked, false);
    assert_eq!(of(&file, CauseKind::Io), 200);
    let device = pause(33, [0, 0], TaskState::Blocked, true);
    assert_eq!(of(&device, CauseKind::Io), 200, "the wake-up shows it");
}

#[test]
fn page_faults_and_reclaim_of_a_cycle_are_counted() {
    let cycle = Run::whole().one(|run| {
        run.at(1_100, THREAD, EventKind::PageFault { address: 1, ip: 2, user: true });
        run.at(1_110, THREAD, EventKind::ReclaimBegin { order: 0 });
        run.at(1_160, THREAD, EventKind::ReclaimEnd { reclaimed: 1 });
    });
    assert_eq!((cycle.faults, us(cycle.reclaimed)), (1, 50));
    assert_eq!(us(cycle.run.of(CauseKind::Reclaim)), 50);
}

#[test]
fn disk_waits_belong_to_the_fault_or_reclaim_until_the_thread_writes() {
    let write = EventKind::BlockIssue { device: 1, sector: 8, bytes: 4096, write: true };
    let reclaims = EventKind::ReclaimBegin { order: 0 };
    let end = EventKind::ReclaimEnd { reclaimed: 1 };
    // The kind of wait of a thread with this activity in a page fault that then sleeps until the
    // disk is done.
    let waits_for = |does: &[EventKind]| {
        let mut run = Run::without(Group::Syscall);
        for (begin, due) in [(0, 1_000), (1_300, 2_000), (2_100, 3_000)] {
            run.start(begin + 1, due).switch(begin + 2, (THREAD, 20), (IDLE, 120));
            run.fire(due + 1, IDLE).wake(due + 2, IDLE).enqueue(due + 3, IDLE);
            run.at(due + 4, IDLE, EventKind::HrtimerExpireExit { timer: TIMER });
            run.switch(due + 8, (IDLE, 120), (THREAD, 20));
            if due == 1_000 {
                run.at(1_100, THREAD, EventKind::PageFault { address: 1, ip: 2, user: true });
                for what in does {
                    run.at(1_105, THREAD, *what);
                }
                run.switch_as(1_110, (THREAD, 20), TaskState::Blocked, (IDLE, 120));
                run.at(1_200, IDLE, EventKind::IrqEntry { irq: 4 });
                let done = EventKind::BlockComplete { device: 1, sector: 8, bytes: 4096, error: 0 };
                run.at(1_201, IDLE, done).wake(1_202, IDLE).enqueue(1_203, IDLE);
                run.at(1_204, IDLE, EventKind::IrqExit { irq: 4, handled: true });
                run.switch(1_205, (IDLE, 120), (THREAD, 20));
                run.at(1_206, THREAD, end);
            }
        }
        let [cycle, ..] = run.cycles[..] else { panic!("no cycle") };
        let parts = [CauseKind::PageFault, CauseKind::Reclaim, CauseKind::Io];
        parts.map(|part| us(cycle.split().of(part)) >= 90)
    };
    assert_eq!(waits_for(&[]), [true, false, false]);
    assert_eq!(waits_for(&[write]), [false, false, true]);
    assert_eq!(waits_for(&[reclaims, write]), [false, true, false]);
    assert_eq!(waits_for(&[reclaims, write, end]), [true, false, false]);
}

#[test]
fn without_system_calls_cycles_lie_between_sleeps() {
    let mut run = Run::without(Group::Syscall);
    for (begin, due) in [(0, 1_000), (1_100, 2_000), (2_100, 3_000)] {
        run.start(begin + 1, due).switch(begin + 2, (THREAD, 20), (IDLE, 120));
        run.at(due, IDLE, EventKind::VectorEntry { vector: VECTOR });
        run.fire(due + 1, IDLE).wake(due + 2, IDLE).enqueue(due + 3, IDLE);
        run.at(due + 4, IDLE, EventKind::HrtimerExpireExit { timer: TIMER });
        run.at(due + 5, IDLE, EventKind::VectorExit { vector: VECTOR });
        run.switch(due + 8, (IDLE, 120), (THREAD, 20));
    }
    let [first, _] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by), (1_000_000, WokenBy::Sleep));
    assert_eq!((us(first.wakeup_latency()), us(first.response_time())), (8, 102));
    assert_eq!(first.call.number, WaitingCall::NOT_RECORDED);
    assert_eq!(us(first.run.of(CauseKind::OwnExecution)), 94);
    assert_eq!(first.split().of(CauseKind::SystemCall), Nanos::ZERO);
}

#[test]
fn without_timer_events_a_cycle_begins_with_its_wake_up() {
    let mut run = Run::without(Group::Hrtimer);
    for (begin, due) in [(0, 1_000), (1_100, 2_000)] {
        run.enter(begin, NANOSLEEP, [1, 1]).switch(begin + 2, (THREAD, 20), (IDLE, 120));
        run.at(due + 3, IDLE, EventKind::VectorEntry { vector: VECTOR });
        run.wake(due + 4, IDLE).enqueue(due + 5, IDLE);
        run.at(due + 6, IDLE, EventKind::VectorExit { vector: VECTOR });
        run.switch(due + 8, (IDLE, 120), (THREAD, 20)).exit(due + 9, NANOSLEEP, 0);
    }
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.release.ns(), cycle.by), (1_004_000, WokenBy::Irq));
}

#[test]
fn a_hidden_end_of_a_wait_is_replaced_by_the_next_event() {
    let mut run = Run::whole();
    for (begin, due) in [(0, 1_000), (1_100, 2_000)] {
        run.enter(begin, NANOSLEEP, [1, 1]).start(begin + 1, due);
        run.switch(begin + 2, (THREAD, 20), (IDLE, 120)).exit(due + 12, NANOSLEEP, 0);
    }
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.release.ns(), cycle.by), (1_000_000, WokenBy::Sleep));
    assert_eq!(us(cycle.wake.of(CauseKind::Unknown)), 12, "no event shows it");
}

/// The same without system calls: the switch from the idle task is hidden, and the next event of
/// the thread is an upper bound of its wake-up.
#[test]
fn without_system_calls_the_next_event_of_a_thread_ends_a_hidden_wake_up() {
    let mut run = Run::without(Group::Syscall);
    for (begin, due) in [(0, 1_000), (1_018, 2_000), (2_018, 3_000)] {
        run.start(begin + 1, due).switch(begin + 2, (THREAD, 20), (IDLE, 120));
        // Events of others, and those of the idle task, end nothing.
        run.on(1, due - 5, OTHER, EventKind::SoftirqEntry { vector: 1 });
        run.on(1, due - 4, OTHER, EventKind::SoftirqExit { vector: 1 });
        run.at(due + 3, IDLE, EventKind::VectorEntry { vector: VECTOR });
        run.at(due + 4, IDLE, EventKind::VectorExit { vector: VECTOR });
    }
    let [first, second] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by, first.hidden), (1_000_000, WokenBy::Sleep, 1));
    assert_eq!((us(first.wakeup_latency()), us(first.wake.of(CauseKind::Unknown))), (19, 19));
    assert_eq!((second.release.ns(), us(second.response_time())), (2_000_000, 20));
}

#[test]
fn a_thread_without_a_switch_from_idle_was_ready_until_its_next_event() {
    let cycle = Run::whole().one(|run| {
        run.switch(1_100, (THREAD, 20), (IDLE, 120));
        run.on(1, 1_200, OTHER, EventKind::Waking { task: Tid(THREAD), prio: 20, target: 0 });
        let enqueued = EventKind::Wakeup { task: Tid(THREAD), prio: 20, target: 0, new: false };
        run.on(1, 1_210, OTHER, enqueued).vector(1_260, 1_265, THREAD);
    });
    assert_eq!(us(cycle.run.of(CauseKind::IdleExit)), 60);
    assert_eq!((cycle.run.of(CauseKind::Unknown), cycle.hidden), (Nanos::ZERO, 1));
}

#[test]
fn cycles_that_overlap_a_gap_are_dropped() {
    let lost = EventKind::Lost { count: 1, since: MonotonicNs(1_500_000) };
    let gap = Event { at: MonotonicNs(1_600_000), cpu: 3, tid: Tid(0), what: lost };
    let mut run = Run::whole();
    run.stream = CycleStream::new(run.stream.calls.clone(), run.stream.shown, Gaps::of([gap]));
    run.idle_sleep(0, 1_000, 0).idle_sleep(1_550, 2_000, 0).idle_sleep(2_100, 3_000, 0);
    run.idle_sleep(3_100, 4_000, 0);
    let releases: Vec<i64> = run.cycles.iter().map(|cycle| cycle.release.ns() / 1_000).collect();
    assert_eq!((releases, run.lost), (vec![3_000], 2), "until the end of the wait in the gap");
}

#[test]
fn time_before_a_task_that_was_never_switched_to_is_unknown() {
    let cycle = Run::whole().one(|run| {
        run.switch_as(1_100, (THREAD, 20), TaskState::Preempted, (OTHER, 10));
        // Another one occurs by 1,300.
        run.vector(1_300, 1_310, 8);
        run.switch(1_400, (8, 120), (THREAD, 20));
    });
    assert_eq!(us(cycle.run.of(CauseKind::Unknown)), 200);
    assert_eq!(cycle.run.of(CauseKind::Preempted), Nanos::ZERO);
}

#[test]
fn after_a_migration_the_other_cpu_explains_the_wait() {
    let cycle = Run::whole().one(|run| {
        run.on(1, 1_050, 5, EventKind::VectorEntry { vector: VECTOR });
        run.on(1, 1_051, 5, EventKind::VectorExit { vector: VECTOR });
        run.on(
            1,
            1_060,
            5,
            EventKind::Switch {
                prev_prio: 120,
                prev_state: TaskState::Sleeping,
                next: Tid(8),
                next_prio: 5,
            },
        );
        run.switch_as(1_100, (THREAD, 20), TaskState::Preempted, (OTHER, 10));
        run.at(1_200, OTHER, EventKind::Migrate { task: Tid(THREAD), from: 0, to: 1 });
        let back = EventKind::Switch {
            prev_prio: 5,
            prev_state: TaskState::Sleeping,
            next: Tid(THREAD),
            next_prio: 20,
        };
        run.on(1, 1_300, 8, back);
        let away = EventKind::Switch {
            prev_prio: 20,
            prev_state: TaskState::Preempted,
            next: Tid(8),
            next_prio: 5,
        };
        run.on(1, 1_400, THREAD, away);
        run.at(1_500, OTHER, EventKind::Migrate { task: Tid(THREAD), from: 1, to: 0 });
        run.switch(1_600, (OTHER, 10), (THREAD, 20));
    });
    assert_eq!(us(cycle.run.of(CauseKind::Preempted)), 400);
    assert_eq!((cycle.migrations, us(cycle.run.of(CauseKind::Unknown))), (2, 0));
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn kind() -> impl Strategy<Value = EventKind> {
        let task = (0u32..4).prop_map(Tid);
        let state = prop_oneof![
            Just(TaskState::Preempted),
            Just(TaskState::Sleeping),
            Just(TaskState::Blocked),
            Just(TaskState::Throttled),
            Just(TaskState::LockWait),
        ];
        let number = prop_oneof![Just(NANOSLEEP), Just(READ), Just(FSYNC), Just(FUTEX)];
        let at = (0i64..200_000).prop_map(MonotonicNs);
        prop_oneof![
            4 => (task.clone(), state, 0i16..130, 0i16..130).prop_map(
                |(next, prev_state, prev_prio, next_prio)| EventKind::Switch {
                    prev_prio, prev_state, next, next_prio,
                }
            ),
            2 => (task.clone(), 0u16..3).prop_map(
                |(task, target)| EventKind::Waking { task, prio: 20, target }
            ),
            2 => (task.clone(), 0u16..3).prop_map(
                |(task, target)| EventKind::Wakeup { task, prio: 20, target, new: false }
            ),
            1 => (task, 0u16..3).prop_map(|(task, to)| EventKind::Migrate { task, from: 0, to }),
            3 => (number.clone(), any::<[u64; 2]>())
                .prop_map(|(number, args)| EventKind::SyscallEnter { number, args }),
            3 => (number, -1i64..3)
                .prop_map(|(number, result)| EventKind::SyscallExit { number, result }),
            1 => Just(EventKind::VectorEntry { vector: VECTOR }),
            1 => Just(EventKind::VectorExit { vector: VECTOR }),
            1 => Just(EventKind::SoftirqEntry { vector: 1 }),
            1 => Just(EventKind::SoftirqExit { vector: 1 }),
            1 => (0u64..3, at.clone())
                .prop_map(|(timer, expires)| {
                    EventKind::HrtimerStart { timer, expires, slack: None }
                }),
            1 => (0u64..3, proptest::option::of(at.clone())).prop_map(
                |(timer, now)| {
                    let (expires, slack) = (None, None);
                    EventKind::HrtimerExpireEntry { timer, now, expires, slack }
                }
            ),
            1 => (0u64..3).prop_map(|timer| EventKind::HrtimerExpireExit { timer }),
            1 => Just(EventKind::ReclaimBegin { order: 0 }),
            1 => Just(EventKind::ReclaimEnd { reclaimed: 0 }),
            1 => at.prop_map(|since| EventKind::Lost { count: 1, since }),
        ]
    }

    proptest! {
        #[test]
        fn parts_of_a_cycle_add_up_for_any_events(
            events in proptest::collection::vec((0i64..500, 0u16..3, 0u32..4, kind()), 0..300),
            shown in 0usize..4,
        ) {
            let mut run = match shown {
                0 => Run::whole(),
                1 => Run::new(),
                2 => Run::without(Group::Syscall),
                _ => Run::of(&[Group::Sched], false),
            };
            let mut now = 0;
            for (step, cpu, tid, what) in events {
                now += step;
                run.on(cpu, now, tid, what);
            }
            for cycle in &run.cycles {
                prop_assert_eq!(cycle.wake.sum(), cycle.wakeup_latency());
                prop_assert_eq!(cycle.split().sum(), cycle.response_time());
                prop_assert!(cycle.release <= cycle.returned && cycle.returned <= cycle.again);
            }
        }
    }
}

/// After each event, the thread's open cycle shows no more than the final one.
#[test]
fn lower_bounds_of_an_open_cycle_never_exceed_the_final_figures() {
    let mut run = Run::new();
    let sleep = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1 };
    run.stream.select(THREAD, Some((sleep, false)));
    let mut seen: Vec<(i64, OpenCycle)> = Vec::new();
    let mut look = |run: &mut Run, now: i64| {
        seen.extend(run.stream.open(THREAD).map(|open| (now * 1_000, open)));
    };
    // It blocks for 1,635 µs in its second cycle, and catches up.
    for (from, due, late) in [(0, 1_000, 10), (1_100, 2_000, 10), (3_700, 3_000, 705)] {
        let steps: [&dyn Fn(&mut Run); 8] = [
            &|run| _ = run.enter(from, NANOSLEEP, [1, 1]),
            &|run| _ = run.start(from + 1, due),
            &|run| _ = run.leave(from + 2, TaskState::Sleeping, 120),
            &|run| _ = run.expire(due + late - 4),
            &|run| _ = run.wake(due + late - 3, OTHER),
            &|run| _ = run.expired(due + late - 2),
            &|run| _ = run.arrive(due + late - 1),
            &|run| _ = run.exit(due + late, NANOSLEEP, 0),
        ];
        let at = [from, from + 1, from + 2]
            .into_iter()
            .chain((-4..=0).map(|before| due + late + before));
        for (step, now) in steps.iter().zip(at) {
            step(&mut run);
            look(&mut run, now);
        }
        run.enter(due + late + 5, READ, [3, 0]).leave(due + late + 6, TaskState::Sleeping, 120);
        look(&mut run, due + late + 6);
        let until = if due == 2_000 { 3_650 } else { due + late + 20 };
        run.at(until, OTHER, EventKind::SoftirqRaise { vector: 1 });
        look(&mut run, until);
        run.wake(until + 1, OTHER).arrive(until + 2).exit(until + 3, READ, 1);
        look(&mut run, until + 3);
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
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    run.enter(1_100, NANOSLEEP, [1, 1]).start(1_101, 2_000).leave(1_102, TaskState::Sleeping, 120);
    let release = |run: &mut Run, now| {
        run.at(now, OTHER, EventKind::SoftirqRaise { vector: 1 });
        run.stream.open(THREAD).expect("it waits").release.map(MonotonicNs::ns)
    };
    assert_eq!(release(&mut run, 1_900), None);
    assert_eq!(release(&mut run, 2_500), Some(2_000_000));
    // For a wait for an event, a timer shows nothing: an interrupt may have started it.
    let mut run = Run::new();
    run.enter(0, READ, [3, 0]).start(1, 100).leave(2, TaskState::Sleeping, 120);
    assert_eq!(release(&mut run, 500), None);
}
