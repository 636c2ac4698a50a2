//! Marks of spans without a regular end.

use super::*;
use punctual_core::event::PointKind;
use punctual_core::{EventKind, Tid};

const THREAD: Tid = Tid(7);

fn described(events: &[(i64, u16, Tid, EventKind)]) -> Vec<String> {
    let names = Names { points: vec!["cycle".to_owned()], ..Names::default() };
    let mut marks = Marks::new(&names);
    let mut drawn = Vec::new();
    for (at, cpu, tid, what) in events {
        marks.describe(
            &Event { at: MonotonicNs(*at), cpu: *cpu, tid: *tid, what: *what },
            &mut drawn,
        );
    }
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
    let irq = |irq| EventKind::IrqEntry { irq };
    let described = described(&[
        (1, 0, THREAD, EventKind::IrqExit { irq: 5, handled: true }),
        (2, 0, THREAD, irq(6)),
        (4, 0, THREAD, irq(7)),
        (9, 1, THREAD, EventKind::Lost { count: 3, since: MonotonicNs(8) }),
        (12, 0, THREAD, EventKind::Lost { count: 3, since: MonotonicNs(11) }),
        (13, 0, THREAD, irq(8)),
    ]);
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
    let point = |kind, values: &[i64]| EventKind::Point {
        point: punctual_core::event::PointId(0),
        kind,
        count: values.len() as u8,
        values: [values.first().copied().unwrap_or(0), 0],
    };
    let cpu = Event::NO_CPU;
    let described = described(&[
        (1, cpu, THREAD, point(PointKind::Begin, &[])),
        (2, cpu, Tid(8), point(PointKind::Begin, &[])),
        (3, cpu, THREAD, point(PointKind::Begin, &[42])),
        (4, cpu, THREAD, point(PointKind::End, &[])),
        (5, cpu, THREAD, point(PointKind::End, &[])),
        (6, cpu, THREAD, point(PointKind::End, &[])),
    ]);
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
    let sample = |due| EventKind::Sample { series: 3, due: MonotonicNs(due) };
    let described = described(&[
        (50, 0, THREAD, sample(10)),
        (60, 0, THREAD, sample(20)),
        (70, 0, THREAD, sample(55)),
    ]);
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
    let switch = EventKind::Switch {
        prev_prio: 120,
        prev_state: punctual_core::event::TaskState::Sleeping,
        next: THREAD,
        next_prio: 1,
    };
    let mut describe = |at, tid, what| {
        marks.describe(&Event { at: MonotonicNs(at), cpu: 2, tid, what }, &mut drawn);
    };
    describe(10, Tid(0), EventKind::Waking { task: THREAD, prio: 1, target: 2 });
    describe(12, Tid(0), switch);
    describe(15, THREAD, EventKind::Sample { series: 0, due: MonotonicNs(9) });
    describe(30, THREAD, EventKind::Sample { series: 0, due: MonotonicNs(20) });
    let wakes: Vec<_> = drawn.iter().map(|mark| mark.wake.and_then(|wake| wake.ran)).collect();
    assert_eq!(wakes, [Some((MonotonicNs(12), 2)), None]);
}
