//! Marks of spans without a regular end.

use super::*;
use punctual_testing::{events, parse_events};

fn described(events: &str) -> Vec<String> {
    let names = Names { points: vec!["cycle".to_owned()], ..Names::default() };
    let mut marks = Marks::new(&names);
    let mut drawn = Vec::new();
    parse_events(events).iter().for_each(|event| marks.describe_event(event, &mut drawn));
    marks.finish(&mut drawn);
    let note = |mark: &Mark<'_>| match mark.details.iter().find(|(name, _)| *name == "note") {
        Some((_, Detail::Text(text))) => format!(": {text}"),
        _ => String::new(),
    };
    let described = |mark: &Mark<'_>| {
        let extent = match mark.shape {
            Extent::Span(from, to) => format!("{}..{}", from.0, to.0),
            Extent::Begun(from) => format!("{}..", from.0),
            Extent::Instant(at) => format!("{}", at.0),
            Extent::Value(at, value) => format!("{} = {value}", at.0),
        };
        format!("{:?} {} {extent}{}", mark.lane, mark.name, note(mark))
    };
    drawn.iter().map(described).collect()
}

#[test]
fn unmatched_beginnings_and_ends_are_marked() {
    let described = described(
        "1 cpu0 7 irq_exit 5; 2 irq_entry 6; 4 irq_entry 7
        9 cpu1 7 lost 3 since=8
        12 cpu0 lost 3 since=11; 13 irq_entry 8",
    );
    insta::assert_snapshot!(described.join("\n"), @r"
    Interrupts(0) end of irq 5 1: its beginning was not recorded
    Interrupts(0) irq 6 2..4: its end was not recorded
    OnCpu(1) events lost 8..9
    Interrupts(0) irq 7 4..11: its end was not recorded
    OnCpu(0) events lost 11..12
    Interrupts(0) irq 8 13..
    ");
}

#[test]
fn scopes_of_one_name_nest_per_thread() {
    let described =
        described("1 nocpu 7 begin 0; 2 8 begin 0; 3 7 begin 0 42; 4 end 0; 5 end 0; 6 end 0");
    insta::assert_snapshot!(described.join("\n"), @r"
    Values(Tid(7), PointId(0), 0) cycle 3 = 42
    Points(Tid(7), PointId(0)) cycle 3..4
    Points(Tid(7), PointId(0)) cycle 1..5
    Points(Tid(7), PointId(0)) end of cycle 6: its beginning was not recorded
    Points(Tid(8), PointId(0)) cycle 2..
    ");
}

#[test]
fn overlapping_samples_get_separate_lanes() {
    let described = described("50 cpu0 7 sample 3 due=10; 60 sample 3 due=20; 70 sample 3 due=55");
    insta::assert_snapshot!(described.join("\n"), @r"
    Samples(Tid(7), 3, 0) sample of series 3 10..50
    Samples(Tid(7), 3, 1) sample of series 3 20..60
    Samples(Tid(7), 3, 0) sample of series 3 55..70
    ");
}

#[test]
fn a_wake_up_before_the_due_time_does_not_belong_to_the_sample() {
    let names = Names::default();
    let mut marks = Marks::new(&names);
    let mut drawn = Vec::new();
    let events = events!(
        "10 cpu2 0 waking 7/1 cpu2; 12 switch S -> 7/1
        15 sample 0 due=9; 30 sample 0 due=20"
    );
    events.iter().for_each(|event| marks.describe_event(event, &mut drawn));
    let wakes: Vec<_> = drawn.iter().map(|mark| mark.wake.and_then(|wake| wake.ran)).collect();
    assert_eq!(wakes, [Some((MonotonicNs(12), 2)), None]);
}
