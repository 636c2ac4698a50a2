//! Planted associations, and none.

use super::*;
use punctual_core::event::Group;
use punctual_stats::Random;
use punctual_testing::events;

const OWN: Tid = Tid(7);
const OTHER: Tid = Tid(8);
const PERIOD: i64 = 10_000;

fn recorded() -> Recorded {
    let groups = vec![Group::Sched, Group::Jbd2, Group::Block, Group::Syscall];
    Recorded { groups, ..Recorded::without_events("test", MonotonicNs(0)) }
}

/// 1,000 intervals of this thread, one of a hundred long.
fn intervals() -> Vec<(i64, i64)> {
    let length = |k: i64| if k % 100 == 50 { 5_000 } else { 1_000 };
    (0..1_000).map(|k| (k * PERIOD, k * PERIOD + length(k))).collect()
}

fn is_late((from, to): (i64, i64)) -> bool {
    to - from > 1_000
}

/// Counts these events, in any order, with these gaps.
fn counted(mut events: Vec<Event>, gaps: &Gaps, names: &Names) -> Coincidences {
    let mut kept = KeptIntervals::default();
    for (from, to) in intervals() {
        kept.add((), (MonotonicNs(from), MonotonicNs(to)), OWN);
    }
    let name = |(): &()| Some("a->b".to_owned());
    let counter = CoincidenceCounter::new(kept, name, gaps, names, &recorded());
    let mut counter = counter.expect("kernel events");
    events.sort_by_key(|event| event.at);
    events.iter().for_each(|event| counter.push(event));
    counter.finish().pop().expect("a table")
}

fn event(at: i64, tid: Tid, what: EventKind) -> Event {
    Event { at: MonotonicNs(at), cpu: 0, tid, what }
}

fn commit(at: i64) -> Event {
    event(at, OTHER, EventKind::JournalStart { device: 1, transaction: 1 })
}

fn counts(table: &Coincidences, who: &str) -> Option<(u64, u64)> {
    let kind = table.kinds.iter().find(|kind| kind.who == who);
    kind.map(|kind| (kind.late, kind.ordinary))
}

#[test]
fn a_planted_association_is_first_with_its_counts() {
    let mut events = Vec::new();
    let (mut late, mut ordinary) = (0, 0);
    for (k, interval) in intervals().into_iter().enumerate() {
        let (from, to) = interval;
        let n = if is_late(interval) { &mut late } else { &mut ordinary };
        *n += 1;
        // In 9 of the 10 long ones and the first 12 others; twice is once.
        if is_late(interval) && *n <= 9 || !is_late(interval) && *n <= 12 {
            events.extend([commit(from), commit(to)]);
        }
        // Between two intervals: in none.
        events.push(event(to + 1, OTHER, EventKind::Exec));
        let call = EventKind::SyscallEnter { number: 1, args: [0, 0] };
        events.push(event(from + 10, OWN, call));
        if k % 4 == 0 {
            events.push(event(from + 20, OTHER, call));
        }
        if k % 5 == 0 {
            events.push(event(from + 30, OTHER, EventKind::IrqEntry { irq: 5 }));
        }
    }
    let table = counted(events, &Gaps::default(), &Names::default());
    assert_eq!((table.late, table.ordinary, table.above), (10, 990, 1_000));
    let first = &table.kinds[0];
    assert_eq!((first.kind.as_str(), first.who.as_str()), ("tracepoint", "jbd2_start_commit"));
    assert_eq!((first.late, first.ordinary, first.associated), (9, 12, true));
    assert!(first.p_adjusted < 1e-6 && first.low > 20.0, "{first:?}");
    assert_eq!(counts(&table, "sched_process_exec"), None);
    // The thread's own calls are no calls of others: 50, 150, … are not divided by 4.
    assert_eq!(counts(&table, "system call 1"), Some((0, 250)));
    assert_eq!(counts(&table, "irq 5"), Some((10, 190)));
}

#[test]
fn a_task_ran_from_its_switch_to_the_next_one() {
    // From within the second interval to within the fourth, with no event in the third.
    let events = events!(
        "10_010 cpu0 7 switch S -> 8
        30_010 switch S -> 7
        9ms 0 switch S -> 7"
    );
    let table = counted(events, &Gaps::default(), &Names::default());
    assert_eq!(counts(&table, "tid 8"), Some((0, 3)));
    assert_eq!(counts(&table, "tid 7"), None);
    assert_eq!(counts(&table, "idle"), None);
}

#[test]
fn intervals_with_losses_are_in_neither_column() {
    let loss = events!("510_001 cpu0 0 lost 3 since=500_000")[0];
    let gaps = Gaps::from_events([loss]);
    let table = counted(vec![loss, commit(0)], &gaps, &Names::default());
    assert_eq!((table.late, table.ordinary, table.left_out), (9, 989, 2));
    assert_eq!(counts(&table, "jbd2_start_commit"), Some((0, 1)));
}

#[test]
fn few_intervals_and_equal_ones_have_no_table() {
    let kept = |n: i64, length: fn(i64) -> i64| {
        let mut kept = KeptIntervals::default();
        for k in 0..n {
            let from = MonotonicNs(k * PERIOD);
            kept.add((), (from, from + punctual_core::Nanos(length(k))), OWN);
        }
        kept.into_subjects(&Gaps::default(), |()| Some(String::new())).len()
    };
    assert_eq!((kept(39, |k| k), kept(40, |k| k), kept(400, |_| 5)), (0, 1, 0));
}

#[test]
fn events_at_random_are_associated_at_no_more_than_the_stated_rate() {
    // 5 % of 100 tables is 5; more than 11 occur by chance in 1 of 200.
    let (mut random, mut named) = (Random::from_seed(5), 0);
    for _ in 0..100 {
        let mut events = Vec::new();
        for number in 0..12 {
            let many = 20 << (number / 2);
            events.extend((0..many).map(|_| {
                let at = random.next_below(1_000 * PERIOD as usize) as i64;
                event(at, OTHER, EventKind::SyscallEnter { number, args: [0, 0] })
            }));
        }
        let table = counted(events, &Gaps::default(), &Names::default());
        named += usize::from(table.kinds.iter().any(|kind| kind.associated));
    }
    assert!(named <= 11, "{named} of 100");
}
