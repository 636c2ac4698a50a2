use super::*;
use proptest::prelude::*;
use punctual_core::cycle::{
    AwaitedWaker, CycleCulprit, LockEvidence, LockHolder, OpenCycle, SeriesKind, TaskComm,
    WaitingCall,
};
use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};

const SLEEP: u32 = 1;
const READ: u32 = 2;
const FUTEX: u32 = 3;

fn names() -> CallNames {
    let names = [(SLEEP, "clock_nanosleep"), (READ, "read"), (FUTEX, "futex")];
    names.into_iter().map(|(number, name)| (number, name.to_owned())).collect()
}

/// A cycle released at `release` after a wait entered at `entered`, which took `took`.
pub(super) fn cycle(call: (u32, u16), by: WokenBy, entered: i64, release: i64, took: i64) -> Cycle {
    let (mut wake, mut run) = (Split::default(), Split::default());
    let begin = release.max(entered);
    wake.add(CauseKind::Overrun, Nanos(begin - release));
    wake.add(CauseKind::Irq, Nanos(500));
    run.add(CauseKind::OwnExecution, Nanos(took));
    Cycle {
        tid: 7,
        release: MonotonicNs(release),
        entered: MonotonicNs(entered),
        woken: MonotonicNs(begin + 400),
        returned: MonotonicNs(begin + 500),
        again: MonotonicNs(begin + 500 + took),
        call: WaitingCall { number: call.0, operation: call.1, argument: 5, place: 0 },
        by,
        waker: 9,
        wait_is: CauseKind::Waiting,
        syscalls: 1,
        wake,
        run,
        ..Cycle::default()
    }
}

/// A thread with these cycles: the call it waits in, and its work.
fn thread(period: i64, works: &[i64]) -> Vec<Cycle> {
    let mut at = 0;
    let mut next = period;
    let mut cycles = Vec::new();
    for took in works {
        let one = cycle((SLEEP, 1), WokenBy::Sleep, at, next, *took);
        at = one.again.ns();
        next += period;
        // As in cyclictest: releases that have passed are skipped.
        while next < at {
            next += period;
        }
        cycles.push(one);
    }
    cycles
}

fn inferred(cycles: &[Cycle]) -> Inferred {
    infer_cycles(cycles, Constraint::default(), &names()).expect("it has cycles")
}

#[test]
fn an_absolute_sleeper_is_periodic() {
    let found = inferred(&thread(1_000_000, &[40_000; 50]));
    assert_eq!(
        (found.kind, found.period, found.confidence),
        (CycleKind::Absolute, Some(Nanos::MILLI), 1.0)
    );
}

#[test]
fn releases_that_passed_are_counted() {
    let mut works = vec![40_000; 50];
    works[20] = 3_300_000;
    let cycles = thread(1_000_000, &works);
    let found = inferred(&cycles);
    assert_eq!(found.period, Some(Nanos::MILLI));
    let mut follower = CycleFollower::new(&found);
    let mut all: Vec<MeasuredCycle> = cycles.iter().filter_map(|one| follower.push(*one)).collect();
    all.extend(follower.finish());
    assert_eq!(all.len(), 50);
    assert_eq!(all.iter().map(|one| one.skipped).sum::<u64>(), 3);
    assert_eq!(all[21].skipped, 3);
}

#[test]
fn a_release_that_passes_while_late_is_an_overrun() {
    let cycles = [
        cycle((SLEEP, 1), WokenBy::Sleep, 0, 1_000, 5_000),
        cycle((SLEEP, 1), WokenBy::Sleep, 6_500, 2_000, 100),
    ];
    let found = Inferred {
        kind: CycleKind::Absolute,
        site: WaitSite::from_call(cycles[0].call, &names()),
        period: Some(Nanos(1_000)),
        confidence: 1.0,
        cycles: 2,
        sleep: None,
        distance: None,
        has_others: false,
        takes_turns: false,
    };
    let mut follower = CycleFollower::new(&found);
    let all: Vec<_> = cycles.iter().filter_map(|one| follower.push(*one)).collect();
    assert_eq!(all.len(), 1);
    assert!(follower.finish().is_some_and(|last| last.overrun && last.skipped == 0));
}

/// Where calls are not recorded, a wait with another end may be the end of the cycle before.
#[test]
fn a_wait_in_an_unrecorded_call_with_another_end_leaves_the_end_of_the_cycle_open() {
    let record = |by: WokenBy, at: i64, number: u32| {
        let one = cycle((number, by as u16), by, at, at + 1_000_000, 50_000);
        let argument = if number == SLEEP { 5 } else { 0 };
        Cycle { call: WaitingCall { argument, ..one.call }, ..one }
    };
    let measured = |number: u32| {
        let records: Vec<Cycle> = (0..20)
            .flat_map(|k| {
                let own = record(WokenBy::Sleep, k * 10_000_000, number);
                let other = record(WokenBy::Task, k * 10_000_000 + 5_000_000, number);
                std::iter::once(own).chain((k % 4 == 1).then_some(other))
            })
            .collect();
        let sleeps: Vec<Cycle> =
            records.iter().filter(|one| one.by == WokenBy::Sleep).copied().collect();
        follow(&records, &inferred(&sleeps))
    };
    let open = |all: &[MeasuredCycle]| all.iter().filter(|one| one.may_have_ended).count();
    let unrecorded = measured(WaitingCall::NOT_RECORDED);
    assert_eq!((unrecorded.len(), open(&unrecorded)), (20, 5));
    assert!(unrecorded[1].may_have_ended && !unrecorded[1].is_response_known());
    assert!(unrecorded[2].is_response_known());
    assert_eq!(open(&measured(SLEEP)), 0);
}

fn follow(cycles: &[Cycle], inferred: &Inferred) -> Vec<MeasuredCycle> {
    let mut follower = CycleFollower::new(inferred);
    let mut all: Vec<MeasuredCycle> = cycles.iter().filter_map(|one| follower.push(*one)).collect();
    all.extend(follower.finish());
    all
}

/// 12 ms of work in a period of 5 ms, then the releases due meanwhile, as in an audio driver.
#[test]
fn releases_due_during_an_overrun_are_no_overruns_themselves() {
    const PERIOD: i64 = 5_000_000;
    let (mut at, mut cycles) = (0, Vec::new());
    for k in 1..=40 {
        let took = if k % 20 == 0 { 12_000_000 } else { 10_000 };
        cycles.push(cycle((SLEEP, 1), WokenBy::Sleep, at, k * PERIOD, took));
        at = cycles.last().map_or(0, |one: &Cycle| one.again.ns());
    }
    let all = follow(&cycles[..39], &inferred(&cycles));
    assert_eq!(all.iter().filter(|one| one.overrun).count(), 1);
    assert!(all[20].overrun, "the first release that passed");
    assert!(all[21].cycle.entered > all[21].cycle.release && !all[21].overrun);
    assert_eq!(all.iter().map(|one| one.skipped).sum::<u64>(), 0);
}

/// The same with a late start of the long cycle, as on a busy machine.
#[test]
fn a_late_cycle_that_takes_long_is_one_overrun_however_late_it_was() {
    const PERIOD: i64 = 5_000_000;
    for late in [0, 200_000, 4_990_000, 5_100_000, 9_900_000] {
        let (mut at, mut cycles) = (0, Vec::<Cycle>::new());
        for k in 1..700 {
            let (took, late) = if k % 100 == 0 { (12_000_000, late) } else { (10_000, 0) };
            let mut one = cycle((SLEEP, 1), WokenBy::Sleep, at, k * PERIOD, took);
            one.returned = one.returned + Nanos(late);
            one.again = one.again + Nanos(late);
            at = one.again.ns();
            cycles.push(one);
        }
        let all = follow(&cycles, &inferred(&cycles));
        let overruns = all.iter().filter(|one| one.overrun).count();
        assert_eq!((overruns, all.len()), (6, 699), "{late} ns late");
        assert_eq!(all.iter().map(|one| one.skipped).sum::<u64>(), 0);
    }
    // One that was late itself while releases passed, and then takes no time.
    let mut cycles = thread(PERIOD, &[10_000; 30]);
    cycles[9].returned = cycles[9].returned + Nanos(2 * PERIOD);
    cycles[9].again = cycles[9].again + Nanos(2 * PERIOD);
    for late in &mut cycles[10..12] {
        late.entered = MonotonicNs(12 * PERIOD + 10_600);
        late.returned = late.entered + Nanos(50);
        late.again = late.entered + Nanos(100);
    }
    assert!(follow(&cycles, &inferred(&cycles)).iter().all(|one| !one.overrun));
}

#[test]
fn a_release_without_a_recorded_wake_up_is_unknown() {
    let mut cycles = thread(1_000_000, &[40_000; 50]);
    let found = inferred(&cycles);
    // The wait returned late by an unknown time.
    let unseen = &mut cycles[20];
    (unseen.by, unseen.release) = (WokenBy::Unseen, unseen.returned);
    let all = follow(&cycles, &found);
    let unknown: Vec<usize> = (0..50).filter(|k| all[*k].begins == Begins::Unknown).collect();
    assert_eq!(unknown, [20]);
    assert_eq!((all[20].period, all[21].period), (None, None));
    assert_eq!(all.iter().map(|one| one.skipped).sum::<u64>(), 0, "it had a cycle");
    // For events without a request, the return is the start.
    let event = Inferred { kind: CycleKind::Event, period: None, ..found };
    assert_eq!(follow(&cycles, &event)[20].begins, Begins::Returned);
}

#[test]
fn a_relative_sleeper_has_no_period() {
    let mut at = 0;
    let cycles: Vec<Cycle> = (0..50)
        .map(|k| {
            let one = cycle((SLEEP, 0), WokenBy::Sleep, at, at + 1_000_000, 40_000 + k * 7_000);
            at = one.again.ns();
            one
        })
        .collect();
    let found = inferred(&cycles);
    assert_eq!((found.kind, found.period), (CycleKind::Relative, None));
}

#[test]
fn a_reader_of_a_pipe_waits_for_events() {
    let mut at = 0;
    let cycles: Vec<Cycle> = (0..50)
        .map(|k| {
            let one = cycle(
                (READ, 0),
                WokenBy::Task,
                at,
                at + 300_000 + (k * k * 7919) % 2_000_000,
                40_000,
            );
            at = one.again.ns();
            one
        })
        .collect();
    let found = inferred(&cycles);
    assert_eq!((found.kind, found.period, found.site.by_argument), (CycleKind::Event, None, true));
}

#[test]
fn lock_waits_and_too_few_waits_form_no_cycles() {
    let mut lock = thread(1_000_000, &[40_000; 50]);
    for one in &mut lock {
        (one.call.number, one.wait_is, one.by) = (FUTEX, CauseKind::Lock, WokenBy::Task);
    }
    let seen = infer_cycles(&lock, Constraint::default(), &names())
        .expect_err("locks are waited for within cycles");
    assert!(seen.len() == 1 && seen[0].lock && seen[0].inferred.cycles == 50);
    assert!(infer_cycles(&thread(1_000_000, &[1; 9]), Constraint::default(), &names()).is_err());
    assert_eq!(infer_cycles(&[], Constraint::default(), &names()), Err(Vec::new()));
}

#[test]
fn a_requested_cycle_kind_overrides_inference() {
    let cycles = thread(1_000_000, &[40_000; 50]);
    let constraint = |kind| Constraint { kind: Some(kind) };
    assert!(infer_cycles(&cycles, constraint(CycleKind::Absolute), &names()).is_ok());
    assert!(infer_cycles(&cycles, constraint(CycleKind::Timerfd), &names()).is_err());
    assert_eq!("timerfd".parse(), Ok(CycleKind::Timerfd));
    assert!("timrfd".parse::<CycleKind>().unwrap_err().contains("timerfd"));
}

proptest! {
    /// Waits of a thread within its cycles are merged without loss: the parts of each cycle add up
    /// to its response time, and the cycles with the waits for their releases fill the time.
    #[test]
    fn merged_cycles_keep_the_sum_of_their_parts(
        works in proptest::collection::vec(
            (
                1_000i64..900_000,
                proptest::collection::vec((1_000i64..50_000, -5_000i64..300_000), 0..4),
            ),
            12..40,
        ),
    ) {
        let (mut at, mut next, mut records) = (0, 1_000_000i64, Vec::new());
        for (took, inner) in &works {
            let one = cycle((SLEEP, 1), WokenBy::Sleep, at, next, *took);
            at = one.again.ns();
            records.push(one);
            for (took, later) in inner {
                let one = cycle((FUTEX, 0), WokenBy::Task, at, at + later, *took);
                at = one.again.ns();
                records.push(one);
            }
            next += 1_000_000;
        }
        // Long waits within cycles that hardly sleep would suggest a thread that waits for events.
        let timed = Constraint { kind: Some(CycleKind::Absolute) };
        let found = infer_cycles(&records, timed, &names()).expect("it sleeps until fixed times");
        let mut follower = CycleFollower::new(&found);
        let each = records.iter().filter_map(|one| follower.push(*one));
        let mut all: Vec<MeasuredCycle> = each.collect();
        all.extend(follower.finish());
        prop_assert_eq!(all.len(), works.len());
        for (one, (_, inner)) in all.iter().zip(&works) {
            prop_assert_eq!(one.cycle.total_split().total_time(), one.cycle.response_time());
            prop_assert_eq!(one.cycle.blocks as usize, inner.len());
        }
        for pair in all.windows(2) {
            prop_assert_eq!(pair[0].cycle.again, pair[1].cycle.entered);
        }
    }

    #[test]
    fn inferring_cycles_from_any_records_never_panics(
        records in proptest::collection::vec(
            (0u32..4, 0u16..2, -5i64..1_000_000, -5i64..1_000_000, 0i64..9),
            0..60,
        ),
    ) {
        let cycles: Vec<Cycle> = records
            .iter()
            .map(|(call, operation, entered, release, took)| {
                cycle((*call, *operation), WokenBy::Task, *entered, *release, *took)
            })
            .collect();
        if let Ok(found) = infer_cycles(&cycles, Constraint::default(), &names()) {
            let mut follower = CycleFollower::new(&found);
            cycles.iter().for_each(|one| {
                let _ = follower.push(*one);
            });
        }
    }
}

#[test]
fn sleeps_with_a_constant_distance_are_relative_despite_an_absolute_flag() {
    let (mut at, mut cycles) = (0, Vec::new());
    for k in 0..60 {
        let one =
            cycle((SLEEP, 1), WokenBy::Sleep, at, at + 5_000_000, 100_000 + k * 7 % 13 * 90_000);
        at = one.again.ns();
        cycles.push(one);
    }
    let found = inferred(&cycles);
    assert_eq!((found.kind, found.period, found.confidence), (CycleKind::Relative, None, 1.0));
    let given = Constraint { kind: Some(CycleKind::Absolute) };
    let found = infer_cycles(&cycles, given, &names()).expect("the kind is given");
    assert_eq!(found.kind, CycleKind::Absolute);
}

#[test]
fn sleeps_with_a_constant_period_are_absolute_despite_a_relative_flag() {
    let (mut at, mut cycles) = (0, Vec::new());
    for k in 1..60 {
        let one = cycle(
            (FUTEX, 9),
            WokenBy::Sleep,
            at,
            k * 5_000_000 + k % 3 * 1_000,
            k * 7 % 13 * 90_000,
        );
        at = one.again.ns();
        cycles.push(one);
    }
    let found = inferred(&cycles);
    assert_eq!(found.kind, CycleKind::Absolute);
    assert!((found.period.unwrap() - Nanos(5_000_000)).ns().abs() < 1_000, "{found:?}");
}

#[test]
fn the_excess_over_the_typical_cycle_is_its_delay() {
    let name = TaskComm::default();
    let (wake, run) = (Split::default(), Split::default());
    let quiet = Cycle { wake, run, ..cycle((SLEEP, 1), WokenBy::Sleep, 0, 1_000, 0) };
    let mut typical = Split::default();
    typical.add(CauseKind::Runqueue, Nanos(100));
    typical.add(CauseKind::OwnExecution, Nanos(5_000));
    let found = |part, ns, cycle: Cycle| {
        let mut run = Split::default();
        run.add(CauseKind::OwnExecution, Nanos(5_010));
        run.add(part, Nanos(ns));
        find_delay(&Cycle { run, ..cycle }, &typical)
    };
    let ran = |ns| Some(CycleCulprit { tid: 9, name, time: Nanos(ns), behind: Nanos(ns) });
    let of = |part, ns, by: Option<u32>| {
        let by = by.map(|tid| DelayingThread { tid, name, likely: false });
        Some(MainDelay { part, time: Nanos(ns), by, own_call: None })
    };
    let behind = |ns| found(CauseKind::Runqueue, 1_100, Cycle { culprit: ran(ns), ..quiet });
    assert_eq!(behind(130), of(CauseKind::Runqueue, 1_000, Some(9)), "others share the delay");
    assert_eq!(behind(120), of(CauseKind::Runqueue, 1_000, None), "it took next to nothing");
    let holder = |ns| {
        let (evidence, in_namespace) = (LockEvidence::Waker, false);
        Some(LockHolder { tid: 6, name, evidence, in_namespace, waits: 1, time: Nanos(ns) })
    };
    let held = |ns| found(CauseKind::Lock, 800, Cycle { holder: holder(ns), ..quiet });
    assert_eq!(held(400), of(CauseKind::Lock, 800, Some(6)));
    assert_eq!(held(399), of(CauseKind::Lock, 800, None));
    let waits = |by, ns| {
        let awaited = Some(AwaitedWaker { by, tid: 8, name, time: Nanos(ns) });
        found(CauseKind::Waiting, 600, Cycle { awaited, ..quiet })
    };
    assert_eq!(waits(WokenBy::Task, 300), of(CauseKind::Waiting, 600, Some(8)));
    assert_eq!(waits(WokenBy::Task, 299), of(CauseKind::Waiting, 600, None));
    assert_eq!(waits(WokenBy::Sleep, 600), of(CauseKind::Waiting, 600, None), "a timer is no task");
    // An interrupt has no task; and a cycle that took no longer than usual has no delay.
    let irq = Cycle { culprit: ran(900), ..quiet };
    assert_eq!(found(CauseKind::Irq, 900, irq), of(CauseKind::Irq, 900, None));
    assert_eq!(find_delay(&quiet, &typical), None);
}

#[test]
fn an_open_cycle_has_a_lower_bound_in_each_series() {
    let cycles = thread(1_000_000, &[100_000; 40]);
    let found = inferred(&cycles);
    let mut follower = CycleFollower::new(&found);
    let last = *cycles.last().expect("some");
    cycles.into_iter().for_each(|cycle| _ = follower.push(cycle));
    let release = last.release + Nanos::MILLI;
    let now = release + Nanos(1_602_000_000);
    let returned = Some(release + Nanos(5_000));
    let waits = OpenCycle {
        call: last.call,
        entered: last.again,
        release: None,
        returned: None,
        until: None,
        elsewhere: 0,
    };
    assert_eq!(follower.not_ended(&waits, now), None, "it waits for its release");
    let open = OpenCycle { release: Some(release), returned, ..waits };
    let cycle = follower.not_ended(&open, now).expect("it is open");
    assert_eq!((cycle.release, cycle.passed), (release, 1_602));
    let of = |kind| {
        let one = cycle.of_series(kind);
        (one.at_least.ns(), one.lasted.ns(), one.ended)
    };
    assert_eq!(of(SeriesKind::Wakeup), (5_000, 5_000, true));
    assert_eq!(of(SeriesKind::Response), (1_602_000_000, 1_602_000_000, false));
    assert_eq!(of(SeriesKind::Execution), (0, 1_602_000_000, false));
    let until = Some(release + Nanos(9_000));
    let again = follower.not_ended(&OpenCycle { until, ..open }, now).expect("it may be open");
    assert_eq!(again.of_series(SeriesKind::Response).at_least, Nanos(9_000));
    // A wait that begins no cycle is within the last one, if nothing came between.
    let mut other = OpenCycle { call: WaitingCall { number: 0, ..last.call }, ..waits };
    let within = follower.not_ended(&other, now).expect("it is open");
    assert_eq!((within.release, within.returned), (last.release, Some(last.returned)));
    other.entered = last.again + Nanos(1);
    assert_eq!(follower.not_ended(&other, now), None);
    // If its thread ended after two periods, one more release had passed during its life.
    let due = follower.due_cycle(last.release + Nanos(2_500_000)).expect("it was due");
    assert_eq!((due.release, due.passed), (release, 1));
    assert_eq!(follower.due_cycle(last.release + Nanos(1_500_000)), None, "as after any loop");
}

/// A period of 10 ms of waits `first`, with a wait `second` 3 ms later in each `every`th one; of
/// relative sleeps, sleeps for these times.
fn with_second_wait(first: &Cycle, second: &Cycle, every: i64) -> Vec<Cycle> {
    let (mut at, mut records) = (0, Vec::new());
    let mut wait = |of: &Cycle, (asked, due): (i64, i64)| {
        let is_relative = (of.call.number, of.call.operation) == (SLEEP, 0);
        let release = if is_relative { at + asked } else { due };
        let one = cycle((of.call.number, of.call.operation), of.by, at, release, 50_000);
        at = one.again.ns();
        records.push(Cycle { call: of.call, ..one });
    };
    for k in 1..200 {
        wait(first, (10_000_000, k * 10_000_000));
        if k % every == 0 {
            wait(second, (3_000_000, k * 10_000_000 + 3_000_000));
        }
    }
    records
}

fn wait_at(call: (u32, u16), by: WokenBy, argument: u64, place: u64) -> Cycle {
    let one = cycle(call, by, 0, 0, 0);
    Cycle { call: WaitingCall { argument, place, ..one.call }, ..one }
}

fn rivals(records: &[Cycle]) -> usize {
    find_rivals(records, &inferred(records), Constraint::default(), &names()).len()
}

#[test]
fn a_wait_in_the_same_call_elsewhere_is_within_the_cycle() {
    let (sleep, task) = (WokenBy::Sleep, WokenBy::Task);
    for (first, second, every) in [
        // Two places, two words with a place each, and two words where no place is known.
        (wait_at((SLEEP, 1), sleep, 1, 1), wait_at((SLEEP, 1), sleep, 1, 2), 25),
        (wait_at((FUTEX, 9), sleep, 0x20008, 1), wait_at((FUTEX, 9), task, 0x20008, 2), 1),
        (wait_at((FUTEX, 9), sleep, 0x20008, 0), wait_at((FUTEX, 9), task, 0x20010, 0), 1),
    ] {
        let records = with_second_wait(&first, &second, every);
        let found = inferred(&records);
        assert_eq!((found.site.call.place, found.has_others), (first.call.place, true));
        assert_eq!((rivals(&records), found.takes_turns), (0, false));
        let all = follow(&records, &found);
        let longest = all.iter().map(|one| one.cycle.response_time()).max();
        assert_eq!((all.len(), longest), (199, Some(Nanos(3_050_500))));
        assert!(all.iter().all(|one| !one.may_have_ended));
    }
    // The two words of one condition variable.
    let waits = [0x20028, 0x2002c].map(|word| wait_at((FUTEX, 9), sleep, word, 0));
    let records = with_second_wait(&waits[0], &waits[1], 1_000);
    assert!(inferred(&records).site.has_wait(waits[1].call));
}

#[test]
fn waits_that_may_all_be_the_period_are_rivals() {
    let (sleep, task) = (WokenBy::Sleep, WokenBy::Task);
    for (first, second, every, expected) in [
        (wait_at((SLEEP, 1), sleep, 1, 1), wait_at((SLEEP, 1), sleep, 1, 2), 1, 1),
        (wait_at((FUTEX, 9), task, 0x20008, 1), wait_at((FUTEX, 9), task, 0x20010, 2), 1, 1),
        (wait_at((READ, 0), task, 5, 0), wait_at((READ, 0), task, 6, 0), 1, 1),
        // A sleep for a time, until the next of equal distances.
        (wait_at((SLEEP, 1), sleep, 1, 1), wait_at((SLEEP, 0), sleep, 1, 2), 1, 0),
        (wait_at((SLEEP, 1), sleep, 1, 1), wait_at((SLEEP, 0), sleep, 1, 0), 1, 0),
        (wait_at((SLEEP, 1), sleep, 1, 1), wait_at((READ, 0), task, 5, 2), 1, 0),
    ] {
        assert_eq!(rivals(&with_second_wait(&first, &second, every)), expected, "{second:?}");
    }
}

#[test]
fn a_pause_that_is_longer_than_the_rest_of_its_period_begins_no_cycle() {
    let (mut at, mut records) = (0, Vec::new());
    for k in 1..100 {
        for (operation, release) in [(1, k * 10_000_000), (0, k * 10_000_000 + 6_050_000)] {
            let one = cycle((SLEEP, operation), WokenBy::Sleep, at, release, 50_000);
            at = one.again.ns();
            records.push(one);
        }
    }
    let found = inferred(&records);
    assert_eq!((found.kind, found.period), (CycleKind::Absolute, Some(Nanos(10_000_000))));
    assert_eq!(rivals(&records), 0);
}

/// Where neither place nor object is known, the time that is asked for and the distance show it.
#[test]
fn waits_that_look_alike_leave_the_end_of_a_cycle_open() {
    for (operation, place) in [(0, 0), (0, 1), (1, 0)] {
        let wait = wait_at((SLEEP, operation), WokenBy::Sleep, 1, place);
        let records = with_second_wait(&wait, &wait, 25);
        let (found, mut follower) = (inferred(&records), CycleFollower::new(&inferred(&records)));
        let mut all: Vec<_> = records.iter().filter_map(|one| follower.push(*one)).collect();
        all.extend(follower.finish());
        let open = all.iter().filter(|one| one.may_have_ended).count();
        assert_eq!((all.len(), open, follower.odd_waits()), (199, 7, 7), "{found:?}");
        assert_eq!(open, all.iter().filter(|one| !one.is_response_known()).count());
    }
    // Of waits for others nothing shows it but that they take turns.
    let wait = wait_at((FUTEX, 9), WokenBy::Task, 0x20008, 1);
    assert!(inferred(&with_second_wait(&wait, &wait, 1)).takes_turns);
    assert!(!inferred(&with_second_wait(&wait, &wait, 1_000)).takes_turns);
}

/// It computes how long to sleep after an overrun: that is its wait, if for a shorter time.
#[test]
fn a_sleep_for_the_rest_of_a_period_begins_a_cycle() {
    let (mut at, mut records) = (0, Vec::new());
    for k in 0..100 {
        let took = if k == 50 { 3_000_000 } else { 1_000_000 };
        let one = cycle((SLEEP, 0), WokenBy::Sleep, at, at + 9_000_000, took);
        let rest = one.again.ns() + if k == 50 { -2_000_000 } else { 0 };
        let shorter =
            cycle((SLEEP, 0), WokenBy::Sleep, one.again.ns(), rest + 9_000_000, 1_000_000);
        records.push(one);
        at = one.again.ns();
        if k == 50 {
            records.push(shorter);
            at = shorter.again.ns();
        }
    }
    let found = Inferred { kind: CycleKind::Relative, ..inferred(&records) };
    let mut follower = CycleFollower::new(&found);
    let all: Vec<_> = records.iter().filter_map(|one| follower.push(*one)).collect();
    assert_eq!((all.len(), follower.odd_waits()), (100, 0), "{found:?}");
}

/// Elsewhere, it waits in the call of its cycles: these may be further ones of a loop there.
#[test]
fn a_cycle_of_several_periods_with_waits_elsewhere_may_be_several() {
    let wait = wait_at((SLEEP, 1), WokenBy::Sleep, 1, 1);
    let mut records = with_second_wait(&wait, &wait, 1_000);
    let found = inferred(&records);
    let open = |records: &[Cycle]| {
        follow(records, &found).iter().map(|one| one.may_have_ended).collect::<Vec<_>>()
    };
    records[50].elsewhere = 3;
    assert!(!open(&records)[50], "three waits within a period are within the cycle");
    records[50].again = records[50].release + Nanos(21_000_000);
    assert!(open(&records)[50]);
    records[50].elsewhere = 2;
    assert!(!open(&records)[50]);
}

#[test]
fn a_thread_that_waits_elsewhere_only_has_no_known_place_any_more() {
    let wait = wait_at((SLEEP, 1), WokenBy::Sleep, 1, 1);
    let records = with_second_wait(&wait, &wait, 1_000);
    let mut follower = CycleFollower::new(&inferred(&records));
    for record in &records {
        follower.push(*record);
    }
    let last = records.last().expect("there are some");
    let mut open = OpenCycle {
        call: last.call,
        entered: last.again,
        release: Some(last.release + Nanos(10_000_000)),
        returned: None,
        until: None,
        elsewhere: 32,
    };
    let now = last.again + Nanos(40_000_000);
    assert!(follower.has_moved(&open, now));
    assert!(!follower.has_moved(&open, last.again + Nanos(20_000_000)), "that is one period");
    open.elsewhere = 31;
    assert!(!follower.has_moved(&open, now));
    assert_eq!(follower.give_up_place(now).map(|one| one.cycle), Some(*last));
    // The cycle under way is skipped; then its waits at other places begin cycles, at any distance.
    let at = |entered: i64| {
        let one = cycle((SLEEP, 1), WokenBy::Sleep, entered, entered + 1_000_000, 50_000);
        Cycle { call: WaitingCall { place: 2, ..last.call }, ..one }
    };
    let begin = now.ns();
    let pushed = [open.entered.ns(), begin + 1, begin + 1_050_501, begin + 2_101_001].map(at);
    let all: Vec<_> = pushed.iter().filter_map(|one| follower.push(*one)).collect();
    assert_eq!((all.len(), all[0].cycle, all[0].may_have_ended), (2, pushed[1], false));
}

#[test]
fn a_wait_without_a_known_place_may_be_at_any_of_them() {
    let [first, second, unknown] =
        [1, 2, 0].map(|place| wait_at((SLEEP, 1), WokenBy::Sleep, 1, place));
    let mut records = with_second_wait(&first, &second, 25);
    // Neither its time nor its distance shows anything.
    let found = Inferred { sleep: None, period: None, ..inferred(&records) };
    let at = records.iter().rposition(|one| one.call.place == 2).expect("there are some");
    records[at].call = unknown.call;
    let open = |found| follow(&records, found).iter().filter(|one| one.may_have_ended).count();
    assert_eq!(open(&found), 1);
    // Of a thread with one place it is that.
    let alone = Inferred { has_others: false, ..found };
    assert_eq!((open(&alone), follow(&records, &alone).len()), (0, 200));
}
