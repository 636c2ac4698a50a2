//! States from valid recordings are exact; those from any recording have no gaps.

use super::*;
use crate::gaps::Gaps;
use proptest::prelude::*;
use punctual_core::event::Recorded;
use punctual_core::{Event, EventKind};
use punctual_testing::{assert_lines, events, parse_events, parse_names};
use std::collections::BTreeMap;

/// The lanes of one window. Reads the whole recording, as spans may begin or end far outside of it.
fn lanes_of_window(
    events: impl IntoIterator<Item = Event>,
    coverage: Coverage,
    gaps: Gaps,
    from: MonotonicNs,
    to: MonotonicNs,
) -> WindowLanes {
    let mut tracker = Tracker::new(coverage, gaps, LaneWindows::new([(from, to)]));
    events.into_iter().for_each(|event| tracker.push(&event));
    let (windows, _) = tracker.finish();
    windows.finish().into_iter().next().unwrap_or_default()
}

/// Keeps everything.
#[derive(Default)]
struct All {
    threads: BTreeMap<Tid, Vec<ThreadSpan>>,
    cpus: BTreeMap<u16, Vec<CpuSpan>>,
    interrupts: Vec<InterruptSpan>,
    scopes: Vec<ScopeSpan>,
    wakes: Vec<WakeMark>,
}

impl SpanSink for All {
    fn on_thread_span(&mut self, span: &ThreadSpan) {
        self.threads.entry(span.tid).or_default().push(*span);
    }
    fn on_cpu_span(&mut self, span: &CpuSpan) {
        self.cpus.entry(span.cpu).or_default().push(*span);
    }
    fn on_interrupt_span(&mut self, span: &InterruptSpan) {
        self.interrupts.push(*span);
    }
    fn on_scope_span(&mut self, span: &ScopeSpan) {
        self.scopes.push(*span);
    }
    fn on_wake(&mut self, mark: &WakeMark) {
        self.wakes.push(*mark);
    }
}

fn coverage(began: i64, ended: i64) -> Coverage {
    Coverage::from_span(MonotonicNs(began), MonotonicNs(ended))
}

fn track(events: &[Event], coverage: Coverage) -> (All, TrackerWarnings) {
    let gaps = Gaps::from_events(events.iter().copied());
    let mut tracker = Tracker::new(coverage, gaps, All::default());
    events.iter().for_each(|event| tracker.push(event));
    tracker.finish()
}

/// The states of a thread, a line each.
#[track_caller]
fn assert_states(all: &All, tid: u32, expected: &str) {
    let spans = all.threads[&Tid(tid)].iter();
    assert_lines(spans.map(|span| (span.from.ns(), span.to.ns(), span.doing)), expected);
}

/// The tasks of CPU 0 with the ends of their times.
fn lane(all: &All) -> Vec<(i64, Option<u32>)> {
    all.cpus[&0].iter().map(|span| (span.to.ns(), span.tid.map(|tid| tid.0))).collect()
}

#[test]
fn sleeping_waking_running_and_preemption_become_thread_states() {
    let events = events!(
        "10 cpu0 7 switch S -> 0
        20 cpu1 3 waking 7
        22 cpu0 wakeup 7
        25 switch R -> 7
        40 switch R -> 9
        45 switch X -> 7"
    );
    let (all, warnings) = track(&events, coverage(0, 50));
    assert_eq!(warnings, TrackerWarnings::default());
    assert_states(
        &all,
        7,
        "(0, 10, Running { cpu: 0 })
        (10, 20, Sleeping)
        (20, 22, Waking)
        (22, 25, Ready { cpu: Some(0), preempted: false })
        (25, 40, Running { cpu: 0 })
        (40, 45, Ready { cpu: Some(0), preempted: true })
        (45, 50, Running { cpu: 0 })",
    );
    // And then it is dead.
    assert_states(&all, 9, "(0, 40, Unknown)\n(40, 45, Running { cpu: 0 })");
    // No switch on that CPU: it ran throughout.
    assert_states(&all, 3, "(0, 50, Running { cpu: 1 })");
    assert!(!all.threads.contains_key(&Tid::IDLE));
    let expected = [(10, Some(7)), (25, Some(0)), (40, Some(7)), (45, Some(9)), (50, Some(7))];
    assert_eq!(lane(&all), expected);
    assert!(all.cpus[&0].windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(all.cpus[&0][0].from, MonotonicNs(0));
}

#[test]
fn without_sched_wakeup_a_thread_is_ready_from_sched_waking_on() {
    let events = events!("10 cpu0 7 switch S -> 0; 20 cpu1 3 waking 7 cpu1; 25 cpu0 switch R -> 7");
    let (all, warnings) = track(&events, coverage(0, 50));
    assert_eq!(warnings, TrackerWarnings::default());
    assert_states(
        &all,
        7,
        "(0, 10, Running { cpu: 0 })
        (10, 20, Sleeping)
        (20, 25, Ready { cpu: Some(0), preempted: false })
        (25, 50, Running { cpu: 0 })",
    );
}

/// As kernels record that hide an idle CPU.
#[test]
fn a_thread_without_a_recorded_switch_was_ready_until_its_next_event() {
    let check = |events: &str, contradictions: u64, expected: &str| {
        let (all, warnings) = track(&parse_events(events), coverage(0, 50));
        assert_states(&all, 7, &format!("(0, 10, Running {{ cpu: 0 }})\n{expected}"));
        assert_eq!(warnings.contradictions, contradictions);
    };
    let seen = "(10, 20, Sleeping)
        (20, 25, Ready { cpu: Some(0), preempted: false })
        (25, 50, Running { cpu: 0 })";
    check("10 cpu0 7 switch S -> 0; 20 cpu1 3 wakeup 7; 25 cpu0 7 sys_exit 1", 0, seen);
    // Its next switch alone shows it.
    check(
        "10 cpu0 7 switch S -> 0; 20 cpu1 3 wakeup 7; 40 cpu0 7 switch S -> 0",
        0,
        "(10, 20, Sleeping)
        (20, 40, Ready { cpu: Some(0), preempted: false })
        (40, 50, Sleeping)",
    );
    // Its wake-up was not recorded either: how long it slept is not known.
    check(
        "10 cpu0 7 switch S -> 0; 25 cpu0 7 sys_exit 1",
        0,
        "(10, 25, Unknown)\n(25, 50, Running { cpu: 0 })",
    );
    // Another task ran there: until when is not known.
    check("10 cpu0 7 switch S -> 8; 20 cpu1 3 wakeup 7; 25 cpu0 7 sys_exit 1", 1, seen);
    // Inside of the switch it does not run.
    check(
        "10 cpu0 7 switch S -> 0; 12 7 contention_begin 1; 20 cpu1 3 wakeup 7",
        0,
        "(10, 20, Sleeping)\n(20, 50, Ready { cpu: Some(0), preempted: false })",
    );
}

#[test]
fn only_states_that_a_gap_may_hide_are_unknown() {
    let events = events!(
        "10 cpu0 7 switch S -> 8
        30 0 lost 5 since=20
        40 9 switch S -> 8
        50 cpu1 3 waking 7"
    );
    let (all, warnings) = track(&events, coverage(0, 60));
    assert_eq!(warnings, TrackerWarnings::default(), "a gap explains contradictions");
    assert_states(
        &all,
        7,
        "(0, 10, Running { cpu: 0 })
        (10, 20, Sleeping)
        (20, 30, Unknown)
        (30, 50, Sleeping)
        (50, 60, Waking)",
    );
    assert_states(
        &all,
        8,
        "(0, 10, Unknown)
        (10, 20, Running { cpu: 0 })
        (20, 40, Unknown)
        (40, 60, Running { cpu: 0 })",
    );
    assert_states(&all, 9, "(0, 30, Unknown)\n(30, 40, Running { cpu: 0 })\n(40, 60, Sleeping)");
    let expected = [(10, Some(7)), (20, Some(8)), (30, None), (40, Some(9)), (60, Some(8))];
    assert_eq!(lane(&all), expected);
}

#[test]
fn own_time_of_nested_interrupts_excludes_inner_ones() {
    let events = events!(
        "10 cpu0 7 softirq_entry 3
        12 irq_entry 5
        13 waking 9/1 cpu1
        15 irq_exit 5
        20 softirq_exit 3
        25 irq_exit 5"
    );
    let (all, warnings) = track(&events, coverage(0, 50));
    let spans = all.interrupts.iter();
    assert_lines(
        spans.map(|span| (span.what, span.depth, span.own.ns(), span.whole)),
        "(Hard(5), 1, 3, true)\n(Soft(3), 0, 7, true)",
    );
    assert_eq!(warnings.stray, 1);
    assert_eq!(all.wakes[0].interrupt, Some(Interrupt::Hard(5)));
}

#[test]
fn a_softirq_in_a_thread_is_split_while_the_thread_is_preempted() {
    let events =
        events!("10 cpu0 7 softirq_entry 3; 20 switch R -> 8; 30 switch S -> 7; 35 softirq_exit 3");
    let (all, _) = track(&events, coverage(0, 50));
    let spans = all.interrupts.iter();
    assert_lines(
        spans.map(|span| (span.from.ns(), span.to.ns(), span.whole)),
        "(10, 20, false)\n(30, 35, true)",
    );
}

#[test]
fn a_recording_of_one_process_leaves_other_tasks_unknown() {
    let events = events!("10 cpu0 7 switch S -> 8; 30 cpu1 99 waking 7; 40 cpu0 switch S -> 7");
    let limited = Coverage { threads: Some([Tid(7)].into()), ..coverage(0, 50) };
    let (all, _) = track(&events, limited);
    assert_eq!(all.threads.keys().collect::<Vec<_>>(), [&Tid(7)]);
    assert_eq!(lane(&all), [(10, Some(7)), (40, None), (50, Some(7))]);
}

#[test]
fn only_the_recorded_tasks_are_followed() {
    let names = parse_names("task 7 in 7 mine; task 8 in 7 other; task 9 in 9 mine");
    let followed = |pids: &[u32], comms: &[&str]| {
        let recorded = Recorded {
            pids: pids.into(),
            comms: comms.iter().map(|comm| comm.to_string()).collect(),
            ..Recorded::default()
        };
        let threads = Coverage::from_recording(&recorded, &names).threads;
        threads.map(|threads| {
            threads.into_iter().map(|tid| tid.0).collect::<std::collections::BTreeSet<u32>>()
        })
    };
    assert_eq!(followed(&[], &[]), None);
    assert_eq!(followed(&[7], &[]), Some([7, 8].into()));
    assert_eq!(followed(&[], &["mine"]), Some([7, 9].into()));
    assert_eq!(followed(&[7], &["mine"]), Some([7].into()));
}

#[test]
fn spans_are_clipped_to_the_window() {
    let events = events!("10 cpu0 7 switch S -> 8; 40 switch R -> 7; 70 switch S -> 0");
    let lanes = lanes_of_window(
        events,
        coverage(0, 100),
        Gaps::default(),
        MonotonicNs(20),
        MonotonicNs(50),
    );
    let spans = lanes.cpus[&0].ran.iter();
    assert_lines(
        spans.map(|span| (span.from.ns(), span.to.ns(), span.tid.unwrap().0)),
        "(20, 40, 8)\n(40, 50, 7)",
    );
    assert_eq!(lanes.threads.len(), 2);
}

/// An event before 1,100 ns of one of these kinds, each as often as the others: in the texts
/// between semicolons and line ends, `$t` is a task, `$p` a priority, `$n` a number up to 2, and
/// `$i` an instant before `end`.
pub(crate) fn any_event_of(kinds: &str, end: i64) -> impl Strategy<Value = Event> {
    let kinds: Vec<String> = kinds.split([';', '\n']).map(str::to_owned).collect();
    let fields = (0u32..6, -1i16..130, 0u16..3, 0..end);
    (0i64..1_100, 0u16..3, 0u32..6, prop::sample::select(kinds), fields).prop_map(
        |(at, cpu, tid, kind, (task, prio, number, instant))| {
            let kind = kind.replace("$t", &task.to_string()).replace("$p", &prio.to_string());
            let kind = kind.replace("$n", &number.to_string()).replace("$i", &instant.to_string());
            events!("{at} cpu{cpu} {tid}/1 {kind}")[0]
        },
    )
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let kinds = "switch R -> $t/2; switch S -> $t/2; switch D -> $t/2; switch X -> $t/2
        switch L -> $t/2; waking $t/1; waking $t/1; waking $t/1
        wakeup $t/1 cpu$n; wakeup $t/1 cpu$n; wakeup $t/1 cpu$n; migrate $t cpu$n -> cpu1
        fork $t; irq_entry $n; irq_entry $n; irq_exit $n; irq_exit $n
        softirq_entry $n; softirq_entry $n; softirq_exit $n; softirq_exit $n
        lost 1 since=$i; idle_enter $n; idle_exit; sys_enter $n; sys_exit $n
        point $n 1; begin $n 1; end $n 1; call 0 began=$i";
    (any_event_of(kinds, 1_100), 0..7).prop_map(|(event, k)| Event {
        cpu: if k == 0 { Event::NO_CPU } else { event.cpu },
        ..event
    })
}

/// No gaps or overlaps, from the beginning (for threads, their creation) to the end (their death).
fn seamless<T>(spans: &[T], ends: impl Fn(&T) -> (MonotonicNs, MonotonicNs)) -> bool {
    spans.windows(2).all(|pair| ends(&pair[0]).1 <= ends(&pair[1]).0)
        && spans.iter().all(|span| ends(span).0 < ends(span).1)
}

proptest! {
    #[test]
    fn lanes_of_any_events_never_overlap(
        mut events in proptest::collection::vec(any_event(), 0..120),
        sorted: bool,
        limited: bool,
        recorded_gaps: bool,
    ) {
        if sorted {
            events.sort_by_key(|event| event.at);
        }
        let threads = limited.then(|| [Tid(1), Tid(2)].into());
        let coverage = Coverage { threads, ..coverage(50, 1_000) };
        let gaps = if recorded_gaps { Gaps::from_events(events.iter().copied()) } else {
            Gaps::default() };
        let mut tracker = Tracker::new(
            coverage.clone(),
            gaps.clone(),
            (All::default(), LaneWindows::new([(MonotonicNs(200), MonotonicNs(400))])),
        );
        events.iter().for_each(|event| tracker.push(event));
        let ((all, windows), _) = tracker.finish();
        let born_or_dead = |tid: Tid| {
            events.iter().any(|event| match event.what {
                EventKind::Fork { child } => child == tid,
                EventKind::Switch { prev_state: TaskState::Dead, .. } => event.tid == tid,
                _ => false,
            })
        };
        for (tid, spans) in &all.threads {
            prop_assert!(seamless(spans, |span| (span.from, span.to)));
            let sum: i64 = spans.iter().map(|span| (span.to - span.from).ns()).sum();
            prop_assert!(sum <= 950);
            if !born_or_dead(*tid) {
                prop_assert_eq!(sum, 950, "thread {}: {:?}", tid.0, spans);
            }
        }
        for spans in all.cpus.values() {
            prop_assert!(seamless(spans, |span| (span.from, span.to)));
            prop_assert_eq!(spans.iter().map(|span| (span.to - span.from).ns()).sum::<i64>(), 950);
        }
        for span in &all.interrupts {
            prop_assert!(span.own.ns() >= 0 && span.own <= span.to - span.from);
        }
        for span in &all.scopes {
            prop_assert!(span.to >= span.from);
        }
        let lanes = &windows.finish()[0];
        for lane in lanes.cpus.values().filter(|lane| !lane.ran.is_empty()) {
            prop_assert_eq!(
                lane.ran.iter().map(|span| (span.to - span.from).ns()).sum::<i64>(),
                200
            );
        }
        for (tid, lane) in lanes
            .threads
            .iter()
            .filter(|(tid, lane)| !lane.spans.is_empty() && !born_or_dead(**tid))
        {
            prop_assert_eq!(
                lane.spans.iter().map(|span| (span.to - span.from).ns()).sum::<i64>(),
                200,
                "thread {}",
                tid.0
            );
        }
    }
}
