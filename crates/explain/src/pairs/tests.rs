//! Pairs compared with a simple model, and the parsing of requests.

use super::*;
use crate::pairs::PairingOptions;
use proptest::prelude::*;
use punctual_core::event::{Group, PointId, PointKind, Recorded};
use punctual_core::{Event, EventKind, Limit, MonotonicNs, Names, Nanos};
use punctual_testing::{events, parse_events, parse_names};

fn names() -> Names {
    parse_names(
        "point a; point b; point frame; point a; function /bin/x fopen
        function /bin/x Vec<u8>::push; task 7 in 7 worker; irq 5 virtio0-req.0; softirq 3 NET_RX",
    )
}

fn recorded() -> Recorded {
    Recorded { ended: MonotonicNs(1_000), groups: vec![Group::Sched], ..Recorded::default() }
}

fn run(
    events: &[Event],
    requests: Vec<PairRequest>,
    everything: bool,
) -> (Results, Vec<PairMatch>) {
    let prepared = PreparedPairing::from_events(events.iter().copied(), &requests);
    let mut pairing =
        Pairing::new(PairingOptions { requests, everything }, prepared, &names(), &recorded());
    let mut all = Vec::new();
    events.iter().for_each(|event| pairing.push(event, |found| all.push(found)));
    (pairing.finish(&names()), all)
}

/// Recorders are attached one by one: events before all were attached form no interval.
#[test]
fn events_before_the_recording_began_form_no_interval() {
    let events =
        events!("-20 nocpu 7 point 0; -10 point 1; -5 point 0; 10 point 1; 20 point 0; 50 point 1");
    let (results, found) = run(&events, vec![asked("a->b", None, None)], false);
    assert_eq!(spans(&found), [30]);
    assert_eq!(results.pairs[0].figures.data.sample_count(), 1);
}

fn asked(text: &str, by: Option<PairKey>, rule: Option<MatchRule>) -> PairRequest {
    PairRequest::from_text(text, &names(), by, rule).unwrap()
}

fn spans(found: &[PairMatch]) -> Vec<i64> {
    found.iter().map(|found| found.interval.duration().ns()).collect()
}

#[test]
fn words_are_looked_up_in_the_recording() {
    let how = |text: &str| match asked(text, None, None).target {
        RequestTarget::Pair { by, rule, .. } => (by, rule),
        RequestTarget::Function { .. } => panic!("{text} is a pair"),
    };
    assert_eq!(how("a -> b"), (PairKey::Thread, MatchRule::Next));
    assert_eq!(how("frame"), (PairKey::Thread, MatchRule::Nested));
    assert_eq!(how("sched_waking:worker->switch_in"), (PairKey::Thread, MatchRule::Next));
    assert_eq!(how("irq_entry:virtio0->irq_exit"), (PairKey::Cpu, MatchRule::Next));
    assert_eq!(how("irq_entry:5->a"), (PairKey::Global, MatchRule::Next));
    assert_eq!(how("hrtimer_start->hrtimer_expire"), (PairKey::Value, MatchRule::Async));
    assert_eq!(
        how("Vec<u8>::push:entry->Vec<u8>::push:exit"),
        (PairKey::Thread, MatchRule::Nested)
    );
    assert!(matches!(asked("fopen", None, None).target, RequestTarget::Function { .. }));
    let limited = PairRequest::find_limited("Vec<u8>::push <= 5us", &names(), None, None).unwrap();
    assert_eq!(limited.limit, Some(Limit { bound: Nanos(5_000), inclusive: true }));
    // As may be written for probed functions: without parameters.
    let mut names = names();
    names.functions[0].name = "ns::control_step(int, char const*)".to_owned();
    let short = PairRequest::find_limited("ns::control_step < 500us", &names, None, None).unwrap();
    let long =
        PairRequest::find_limited("ns::control_step(int, char const*) < 500us", &names, None, None)
            .unwrap();
    let numbers = |request: PairRequest| match request.target {
        RequestTarget::Function { functions, .. } => functions,
        RequestTarget::Pair { .. } => panic!("it is a function"),
    };
    assert_eq!(numbers(short), numbers(long));
    assert!(PairRequest::find_limited("ns::control < 500us", &names, None, None).is_err());
    let names = self::names();
    let wrong =
        |text: &str| PairRequest::find_limited(text, &names, None, None).unwrap_err().to_string();
    assert_eq!(
        wrong("a->bb < 5us"),
        "`bb` is not a test point, probed function or kernel event of this recording: did you \
         mean `b`?"
    );
    assert_eq!(
        wrong("fopen->a < 5us"),
        "`fopen` is a function: write `fopen:entry` or `fopen:exit`, or the function alone to \
         time its calls"
    );
    assert_eq!(wrong("irq_entry:eth0->a < 5us"), "`irq_entry` has no `eth0` in this recording");
    assert!(wrong("a->b").contains("a->b < 100us"));
    assert!(wrong("a->b < 5").contains("no unit"));
}

#[test]
fn a_wake_up_is_paired_with_the_switch_to_the_woken_task() {
    let events = events!(
        "10 cpu1 0 waking 7; 12 waking 8
        20 cpu0 0 switch S -> 8; 25 switch S -> 7"
    );
    let (_, found) = run(&events, vec![asked("sched_waking->sched_switch", None, None)], false);
    assert_eq!(spans(&found), [8, 15]);
    let (_, found) =
        run(&events, vec![asked("sched_waking:worker->sched_switch", None, None)], false);
    assert_eq!(spans(&found), [15]);
}

#[test]
fn function_entries_reported_at_exit_are_matched_in_time_order() {
    let events = events!("5 nocpu 7 point 0; 15 point 1; 20 cpu0 7 call 0 began=10");
    let (results, found) = run(
        &events,
        vec![asked("fopen:entry->b", None, None), asked("a->fopen:entry", None, None)],
        false,
    );
    assert_eq!(spans(&found), [5, 5]);
    assert_eq!(results.pairs[0].unmatched_from + results.pairs[1].unmatched_from, 0);
}

#[test]
fn matches_across_lost_events_are_counted_as_uncertain() {
    let events =
        events!("10 nocpu 7 point 0; 20 8 point 0; 30 7 point 1; 32 8 lost 1 since=25; 40 point 1");
    let (results, _) = run(&events, vec![asked("a->b", None, None)], false);
    let figures = &results.pairs[0].figures;
    assert_eq!((figures.data.sample_count(), figures.data.max), (1, Some(Nanos(20))));
    assert_eq!((figures.uncertain.count, figures.uncertain.max), (1, Some(Nanos(20))));
    let (results, _) =
        run(&events, vec![asked("a->b", Some(PairKey::Global), Some(MatchRule::Async))], false);
    assert_eq!(
        results.pairs[0].figures.uncertain.count, 2,
        "any thread's lost point may have been the partner"
    );
}

#[test]
fn without_a_request_everything_is_reported() {
    // The last point 3 is another program's "a".
    let events =
        events!("10 nocpu 7 point 0; 12 begin 2; 20 point 1; 30 end 2; 40 point 3; 45 point 1");
    let (results, _) = run(&events, Vec::new(), true);
    let found: Vec<_> = results
        .pairs
        .iter()
        .map(|pair| {
            (
                pair.name.as_str(),
                pair.figures.data.sample_count(),
                pair.unmatched_from,
                pair.unmatched_to,
            )
        })
        .collect();
    assert_eq!(found, [("frame", 1, 0, 0), ("a->b", 2, 0, 0), ("b->a", 1, 1, 1)]);
}

#[test]
fn a_violated_limit_is_counted() {
    let events = events!("10 nocpu 7 point 0; 20 point 1; 30 point 0; 39 point 1");
    let request = PairRequest::find_limited("a->b < 10ns", &names(), None, None).unwrap();
    let (results, _) = run(&events, vec![request], false);
    assert_eq!(
        (results.pairs[0].figures.violations, results.pairs[0].figures.worst[0].duration()),
        (1, Nanos(10))
    );
}

/// The rules again, in the simplest form: each B searches all A's before it.
fn model(events: &[Event], by: PairKey, rule: MatchRule) -> (Vec<i64>, u64, u64) {
    let key = |event: &Event| match (by, event.what) {
        (PairKey::Thread, _) => Some(i64::from(event.tid.0)),
        (PairKey::Value, EventKind::Point { count: 1, values, .. }) => Some(values[0]),
        (PairKey::Value | PairKey::Cpu, _) => None,
        (PairKey::Global, _) => Some(0),
    };
    let is = |event: &Event, number: u32| match event.what {
        EventKind::Point { point, .. } => point.0 == number,
        _ => false,
    };
    let (mut taken, mut found) = (vec![false; events.len()], Vec::new());
    for (place, to) in events.iter().enumerate().filter(|(_, event)| is(event, 1)) {
        let Some(requested) = key(to) else { continue };
        let mut before: Vec<usize> = (0..place)
            .filter(|k| is(&events[*k], 0) && key(&events[*k]) == Some(requested))
            .collect();
        if rule == MatchRule::Next {
            before = before.split_off(before.len().saturating_sub(1));
        }
        before.retain(|k| !taken[*k]);
        let from = if rule == MatchRule::Async { before.first() } else { before.last() };
        if let Some(from) = from {
            taken[*from] = true;
            found.push((to.at - events[*from].at).ns());
        }
    }
    let count = |number| events.iter().filter(|event| is(event, number)).count() as u64;
    let matched = found.len() as u64;
    (found, count(0) - matched, count(1) - matched)
}

proptest! {
    #[test]
    fn matching_is_that_of_the_model(
        given in proptest::collection::vec(
            (0i64..50, 0u32..3, 0u32..2, proptest::option::of(0i64..3)),
            0..80,
        ),
        by in 0usize..4,
        rule in 0usize..3,
    ) {
        let ((_, by), (_, rule)) = (PairKey::ALL[by], MatchRule::ALL[rule]);
        let lines = given.iter().map(|(at, tid, number, value)| {
            let value = value.map(|value| value.to_string()).unwrap_or_default();
            format!("{at} nocpu {tid} point {number} {value}\n")
        });
        let mut events = parse_events(&lines.collect::<String>());
        events.sort_by_key(|event| event.at);
        let (results, found) = run(&events, vec![asked("a->b", Some(by), Some(rule))], false);
        let (expected, unmatched_from, unmatched_to) = model(&events, by, rule);
        prop_assert_eq!(spans(&found), expected);
        prop_assert_eq!(
            (results.pairs[0].unmatched_from, results.pairs[0].unmatched_to),
            (unmatched_from, unmatched_to)
        );
    }

    #[test]
    fn pairs_of_any_events_are_counted_completely(
        given in proptest::collection::vec((0i64..1_100, 0u32..4, 0u32..6, 0u8..5), 0..150),
        by in 0usize..4,
        rule in 0usize..3,
    ) {
        let kinds = [PointKind::Point, PointKind::Begin, PointKind::End];
        let lines = given.iter().map(|(at, tid, number, kind)| match kind {
            3 => format!("{at} nocpu {tid} lost 1 since={}\n", at - 30),
            4 => format!("{at} cpu0 {tid} call {number} began={}\n", at - 20),
            kind => {
                let word = ["point", "begin", "end"][usize::from(*kind)];
                format!("{at} nocpu {tid} {word} {number} 1\n")
            }
        });
        let events = parse_events(&lines.collect::<String>());
        let requests = vec![
            asked("a->b", Some(PairKey::ALL[by].1), Some(MatchRule::ALL[rule].1)),
            asked("fopen:entry->b", Some(PairKey::ALL[by].1), Some(MatchRule::ALL[rule].1)),
            asked("a->a", None, None),
        ];
        let (results, found) = run(&events, requests, true);
        let passed = |requested: &[u32], kinds: &[PointKind]| {
            let is_one = |event: &&Event| {
                matches!(event.what, EventKind::Point { point, kind, .. }
                    if requested.contains(&point.0) && kinds.contains(&kind))
            };
            events.iter().filter(is_one).count() as u64
        };
        let ab = &results.pairs[0];
        prop_assert_eq!(ab.figures.matched_count() + ab.unmatched_from, passed(&[0, 3], &kinds));
        prop_assert_eq!(ab.figures.matched_count() + ab.unmatched_to, passed(&[1], &kinds));
        let aa = &results.pairs[2];
        prop_assert_eq!(aa.figures.matched_count() + aa.unmatched_from, passed(&[0, 3], &kinds));
        for pair in &results.pairs {
            let IntervalPair::Scope(PointId(number)) = pair.pair else { continue };
            let same: &[u32] = if number == 0 { &[0, 3] } else { &[number] };
            prop_assert_eq!(
                pair.figures.matched_count() + pair.unmatched_from,
                passed(same, &[PointKind::Begin])
            );
            prop_assert_eq!(
                pair.figures.matched_count() + pair.unmatched_to,
                passed(same, &[PointKind::End])
            );
        }
        for pair in &results.pairs {
            prop_assert_eq!(
                pair.figures.matched_count(),
                found.iter().filter(|found| found.pair == pair.pair).count() as u64
            );
        }
        for (function, figures) in &results.functions {
            let of_it = |found: &&PairMatch| found.pair == IntervalPair::Function(*function);
            let calls = found.iter().filter(of_it).count() as u64;
            prop_assert_eq!(figures.calls.matched_count(), calls);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = PairRequest::find_limited(&text, &names(), None, None);
        let _ = PairRequest::from_text(&text, &names(), None, None);
    }
}
