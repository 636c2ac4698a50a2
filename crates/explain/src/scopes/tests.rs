//! Scopes that nest, call themselves, overlap or have no end; and a comparison with a model of
//! every nanosecond.

use super::*;
use proptest::prelude::*;
use punctual_testing::{events, parse_events};

/// The report on the scopes of thread 7, and the exclusive times ordered by the ends of scopes.
fn run(events: &str, gaps: &Gaps) -> (ScopeReport, Vec<i64>) {
    follow(&events!("0 nocpu 7 exec\n{events}"), gaps)
}

fn follow(events: &[Event], gaps: &Gaps) -> (ScopeReport, Vec<i64>) {
    let (mut scopes, mut found) = (ScopeReader::default(), Vec::new());
    for event in events {
        let EventKind::Point { point, .. } = event.what else { continue };
        found.extend(scopes.push(event, point, gaps).map(Nanos::ns));
    }
    (scopes.finish(), found)
}

#[test]
fn inner_scopes_are_subtracted_from_exclusive_time() {
    let (report, found) = run(
        "0 begin 0; 10 begin 1; 30 end 1; 40 begin 1; 45 begin 2; 50 end 2; 60 end 1; 100 end 0",
        &Gaps::default(),
    );
    assert_eq!(found, [20, 5, 15, 60]);
    let outer = &report.scopes[&PointId(0)];
    assert_eq!(
        (outer.total, outer.exclusive_total, report.total),
        (Nanos(100), Nanos(60), Nanos(100))
    );
    assert_eq!(report.share_of_time(outer), Some(0.6));
    assert_eq!((outer.recursive, outer.overlapping, outer.open), (0, 0, 0));
}

#[test]
fn recursive_scopes_count_time_once() {
    let events = "0 begin 0; 10 begin 0; 20 begin 0; 30 end 0; 50 end 0; 100 end 0";
    let (report, found) = run(events, &Gaps::default());
    assert_eq!(found, [10, 30, 60]);
    let figures = &report.scopes[&PointId(0)];
    assert_eq!(
        (figures.total, figures.exclusive_total, figures.recursive),
        (Nanos(100), Nanos(100), 2)
    );
    assert_eq!(figures.inclusive.sample_count(), 3);
}

#[test]
fn scopes_that_overlap_share_no_time() {
    let (report, found) = run("0 begin 0; 10 begin 1; 20 end 0; 30 end 1", &Gaps::default());
    assert_eq!(found, [10, 20]);
    assert_eq!(report.total, Nanos(30));
    assert_eq!(
        (report.scopes[&PointId(0)].overlapping, report.scopes[&PointId(1)].overlapping),
        (1, 0)
    );
}

#[test]
fn scopes_are_matched_per_thread_and_open_ones_counted() {
    // At 6, a scope ends that was begun in no thread of this number.
    let (report, found) = run(
        "0 begin 0; 5 8 begin 1; 6 8 end 0; 10 7 end 0; 20 begin 2; 30 begin 0; 35 end 0",
        &Gaps::default(),
    );
    assert_eq!(found, [10, 5]);
    assert_eq!([0, 1, 2].map(|scope| report.scopes[&PointId(scope)].open), [0, 1, 1]);
    assert_eq!(report.total, Nanos(15));
    assert_eq!(report.scopes[&PointId(0)].threads.len(), 1);
}

#[test]
fn a_scope_over_missing_points_is_in_no_figure() {
    let gaps = Gaps::from_events(events!("52 nocpu 7 lost 3 since=50"));
    let (report, found) =
        run("0 begin 0; 10 begin 1; 20 end 1; 60 begin 1; 70 end 1; 100 end 0", &gaps);
    assert_eq!(found, [10, 10]);
    let outer = &report.scopes[&PointId(0)];
    assert_eq!((outer.uncertain, outer.inclusive.sample_count(), report.total), (1, 0, Nanos(20)));
}

#[test]
fn scopes_without_end_are_limited_in_depth() {
    let mut scopes = ScopeReader::default();
    for event in events!("0 nocpu 7 {}", ["begin 0"; 10_000].join("; +1 ")) {
        scopes.push(&event, PointId(0), &Gaps::default());
    }
    assert_eq!(scopes.open[&Tid(7)].len(), DEPTH);
    assert_eq!(scopes.finish().scopes[&PointId(0)].open, 10_000);
}

#[test]
fn more_scopes_than_are_followed_are_counted() {
    let events = (0..5_000).map(|scope| format!("+5 begin {scope}; +5 end {scope}\n"));
    let (report, _) = run(&events.collect::<String>(), &Gaps::default());
    assert_eq!((report.scopes.len(), report.untracked), (SCOPES, 2 * (5_000 - SCOPES as u64)));
}

/// Any begins and ends of two threads, in order of time.
fn passes() -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec((0i64..4, 0u32..2, 0u32..4, any::<bool>()), 0..120).prop_map(
        |steps| {
            let lines = steps.into_iter().map(|(after, tid, scope, begins)| {
                let word = if begins { "begin" } else { "end" };
                format!("+{after} nocpu {tid} {word} {scope}\n")
            });
            parse_events(&lines.collect::<String>())
        },
    )
}

/// A scope, its start, and its end.
type Matched = (u32, i64, i64);

/// Matches scopes of one thread, each begin with the newest open one of its name; then those open
/// at the end, with their begins.
fn matched(events: &[Event], tid: u32) -> (Vec<Matched>, Vec<(u32, i64)>) {
    let (mut open, mut done) = (Vec::<(u32, i64, usize)>::new(), Vec::new());
    for (order, event) in events.iter().enumerate().filter(|(_, event)| event.tid == Tid(tid)) {
        let EventKind::Point { point, kind, .. } = event.what else { continue };
        if kind == PointKind::Begin {
            open.push((point.0, event.at.ns(), order));
        } else if let Some(place) = open.iter().rposition(|one| one.0 == point.0) {
            let (scope, began, _) = open.remove(place);
            done.push((scope, began, event.at.ns()));
        }
    }
    (done, open.into_iter().map(|(scope, began, _)| (scope, began)).collect())
}

proptest! {
    #[test]
    fn exclusive_times_are_at_most_the_inclusive_times_of_the_roots(events in passes()) {
        let (report, found) = follow(&events, &Gaps::default());
        let mut roots = 0;
        for tid in 0..2 {
            let (done, _) = matched(&events, tid);
            let within = |one: &Matched, other: &Matched| other.1 <= one.1 && one.2 <= other.2;
            for (place, one) in done.iter().enumerate() {
                let is_root = done.iter().enumerate().all(|(at, other)| {
                    // Of two equal intervals one is the root.
                    at == place || !within(one, other) || within(other, one) && at > place
                });
                roots += if is_root { one.2 - one.1 } else { 0 };
            }
        }
        prop_assert!(report.total.ns() <= roots, "{:?} beyond {roots}", report.total);
        prop_assert_eq!(found.iter().sum::<i64>(), report.total.ns());
        let sum: f64 = report.scopes.values().filter_map(|figures| report.share_of_time(figures))
            .sum();
        prop_assert!(report.total == Nanos::ZERO || (sum - 1.0).abs() < 1e-9, "{sum}");
        for figures in report.scopes.values() {
            prop_assert!(figures.exclusive.min.is_none_or(|min| min.ns() >= 0));
            prop_assert!(
                figures.exclusive_total <= figures.total,
                "{:?} {:?}",
                figures.exclusive_total,
                figures.total
            );
            prop_assert_eq!(figures.exclusive.sample_count(), figures.inclusive.sample_count());
        }
    }

    /// Every nanosecond belongs to the open scope that began last.
    #[test]
    fn every_instant_belongs_to_the_innermost_scope(events in passes()) {
        let (report, _) = follow(&events, &Gaps::default());
        let mut expected = BTreeMap::<u32, i64>::new();
        let last = events.last().map_or(0, |event| event.at.ns());
        for tid in 0..2 {
            let mut open = Vec::<(u32, i64)>::new();
            let mut own = HashMap::<usize, i64>::new();
            let mut ids = Vec::<usize>::new();
            let mut read = 0;
            let of_thread: Vec<&Event> =
                events.iter().filter(|event| event.tid == Tid(tid)).collect();
            for now in 0..=last {
                while let Some(event) = of_thread.get(read).filter(|event| event.at.ns() == now) {
                    let EventKind::Point { point, kind, .. } = event.what else { unreachable!() };
                    if kind == PointKind::Begin {
                        open.push((point.0, now));
                        ids.push(read);
                    } else if let Some(place) = open.iter().rposition(|one| one.0 == point.0) {
                        open.remove(place);
                        *expected.entry(point.0).or_default() +=
                            own.remove(&ids.remove(place)).unwrap_or(0);
                    }
                    read += 1;
                }
                if let Some(id) = ids.last() {
                    *own.entry(*id).or_default() += 1;
                }
            }
        }
        for (scope, figures) in &report.scopes {
            prop_assert_eq!(
                figures.exclusive_total.ns(),
                expected.get(&scope.0).copied().unwrap_or(0)
            );
        }
    }
}
