use super::*;
use punctual_core::event::Tid;

const NANOSLEEP: u32 = 230;
const READ: u32 = 0;
const FSYNC: u32 = 74;
const TIMER: u64 = 0xaaaa;
const THREAD: u32 = 7;
const OTHER: u32 = 9;

/// Events at instants in µs, and the cycles that come of them.
struct Run {
    tracker: Tracker,
    cycles: Vec<Cycle>,
}

impl Run {
    fn new() -> Run {
        let calls = Calls {
            waits: [NANOSLEEP, READ].into(),
            files: [FSYNC].into(),
            clock_nanosleep: NANOSLEEP,
        };
        Run { tracker: Tracker::new(calls), cycles: Vec::new() }
    }

    fn at(&mut self, us: i64, tid: u32, what: EventKind) -> &mut Run {
        let event = Event { at: MonotonicNs(us * 1_000), cpu: 0, tid: Tid(tid), what };
        let cycles = &mut self.cycles;
        self.tracker.push(&event, &mut |cycle| cycles.push(cycle));
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
        self.at(us, THREAD, EventKind::HrtimerStart { timer: TIMER, expires })
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

    /// The timer's interrupt.
    fn expire(&mut self, us: i64) -> &mut Run {
        let what = EventKind::HrtimerExpireEntry { timer: TIMER, now: None, expires: None };
        self.at(us, OTHER, what)
    }

    fn expired(&mut self, us: i64) -> &mut Run {
        self.at(us, OTHER, EventKind::HrtimerExpireExit { timer: TIMER })
    }

    fn wake(&mut self, us: i64, by: u32) -> &mut Run {
        self.at(us, by, EventKind::Waking { task: Tid(THREAD), prio: 20, target: 0 })
    }

    /// Sleeps until `due` from `us` on, and is back `late` µs later.
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
    assert_eq!((part(MainPart::TimerIrqDelay), part(MainPart::Irq)), (6, 1));
    assert_eq!((part(MainPart::Preempted), part(MainPart::Io)), (200, 40));
    // From the wake-ups to the switches nothing shows who ran.
    assert_eq!(part(MainPart::Unknown), 2 + 3);
    assert_eq!(part(MainPart::OwnExecution), 100 + 40 + 10 + 35);
    assert_eq!(part(MainPart::SystemCall), 1 + 50 + 10 + 2);
    assert_eq!(first.culprit.map(|culprit| (culprit.tid, us(culprit.time))), Some((OTHER, 200)));
    assert_eq!((first.blocks, us(first.blocked), first.syscalls), (1, 40, 3));
    assert_eq!(first.longest_call, Some((FSYNC, Nanos::from_micros(55))));
    assert_eq!((us(second.response_time()), second.split().sum()), (100, second.response_time()));
}

#[test]
fn a_release_that_has_passed_is_one() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    // It should have slept until 2,000 and is there at 2,500: the call returns at once.
    run.enter(2_500, NANOSLEEP, [1, 1]).start(2_501, 2_000).exit(2_502, NANOSLEEP, 0);
    run.sleep(2_600, 3_000, 10);
    let [_, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Sleep));
    assert_eq!(us(late.split().of(MainPart::Overrun)), 500);
    assert_eq!((late.split().sum(), us(late.response_time())), (late.response_time(), 600));
}

#[test]
fn a_timer_of_its_own_releases_it_also_before_it_waits() {
    let mut run = Run::new();
    run.start(0, 1_000);
    run.enter(10, READ, [3, 0]).leave(11, TaskState::Sleeping, 120);
    run.expire(1_005).wake(1_006, OTHER).expired(1_007).arrive(1_008).exit(1_010, READ, 8);
    // The next expiry comes while it runs, and the read finds it.
    run.start(1_011, 2_000).expire(2_003).expired(2_004);
    run.enter(2_300, READ, [3, 0]).exit(2_301, READ, 8);
    run.start(2_302, 3_000).enter(2_400, READ, [3, 0]).leave(2_401, TaskState::Sleeping, 120);
    let [first, late] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((first.release.ns(), first.by, first.timer), (1_000_000, WokenBy::Timer, TIMER));
    assert_eq!((late.release.ns(), late.by), (2_000_000, WokenBy::Timer));
    assert_eq!((us(late.response_time()), us(late.split().of(MainPart::Overrun))), (400, 300));
}

#[test]
fn what_is_not_selected_is_part_of_the_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10);
    let call = WaitingCall { number: NANOSLEEP, operation: 1, argument: 1 };
    run.tracker.select(THREAD, Some((call, false)));
    run.enter(1_020, READ, [3, 0]).leave(1_021, TaskState::Sleeping, 120).wake(1_100, OTHER);
    run.arrive(1_101).exit(1_102, READ, 1).sleep(1_200, 2_000, 10);
    let [cycle] = run.cycles[..] else { panic!("{:?}", run.cycles) };
    assert_eq!((cycle.blocks, us(cycle.split().of(MainPart::Waiting))), (1, 79));
    run.tracker.select(THREAD, None);
    run.sleep(2_100, 3_000, 10).sleep(3_100, 4_000, 10);
    assert_eq!(run.cycles.len(), 1);
}

#[test]
fn around_lost_events_there_is_no_cycle() {
    let mut run = Run::new();
    run.sleep(0, 1_000, 10).at(1_050, 0, EventKind::Lost { count: 3, since: MonotonicNs(0) });
    run.sleep(1_100, 2_000, 10);
    assert!(run.cycles.is_empty());
    run.sleep(2_100, 3_000, 10);
    assert_eq!(run.cycles.len(), 1);
}
