//! States from valid recordings are exact; those from any recording have no gaps.

use super::*;
use crate::gaps::Gaps;
use proptest::prelude::*;
use punctual_core::event::{Recorded, TaskName};
use punctual_core::{Event, EventKind, Names};
use std::collections::BTreeMap;

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
    fn thread(&mut self, span: &ThreadSpan) {
        self.threads.entry(span.tid).or_default().push(*span);
    }
    fn cpu(&mut self, span: &CpuSpan) {
        self.cpus.entry(span.cpu).or_default().push(*span);
    }
    fn interrupt(&mut self, span: &InterruptSpan) {
        self.interrupts.push(*span);
    }
    fn scope(&mut self, span: &ScopeSpan) {
        self.scopes.push(*span);
    }
    fn wake(&mut self, mark: &WakeMark) {
        self.wakes.push(*mark);
    }
}

fn event(at: i64, cpu: u16, tid: u32, what: EventKind) -> Event {
    Event { at: MonotonicNs(at), cpu, tid: Tid(tid), what }
}

fn switch(at: i64, cpu: u16, prev: u32, prev_state: TaskState, next: u32) -> Event {
    event(
        at,
        cpu,
        prev,
        EventKind::Switch { prev_prio: 120, prev_state, next: Tid(next), next_prio: 19 },
    )
}

fn coverage(began: i64, ended: i64) -> Coverage {
    Coverage::between(MonotonicNs(began), MonotonicNs(ended))
}

fn track(events: &[Event], coverage: Coverage) -> (All, TrackerWarnings) {
    let gaps = Gaps::of(events.iter().copied());
    let mut tracker = Tracker::new(coverage, gaps, All::default());
    events.iter().for_each(|event| tracker.push(event));
    tracker.finish()
}

fn states(spans: &[ThreadSpan]) -> Vec<(i64, i64, ThreadState)> {
    spans.iter().map(|span| (span.from.ns(), span.to.ns(), span.doing)).collect()
}

const RUNNING: ThreadState = ThreadState::Running { cpu: 0 };

#[test]
fn sleeping_waking_running_and_preemption_become_thread_states() {
    let events = [
        switch(10, 0, 7, TaskState::Sleeping, 0),
        event(20, 1, 3, EventKind::Waking { task: Tid(7), prio: 19, target: 0 }),
        event(22, 0, 0, EventKind::Wakeup { task: Tid(7), prio: 19, target: 0, new: false }),
        switch(25, 0, 0, TaskState::Preempted, 7),
        switch(40, 0, 7, TaskState::Preempted, 9),
        switch(45, 0, 9, TaskState::Dead, 7),
    ];
    let (all, warnings) = track(&events, coverage(0, 50));
    assert_eq!(warnings, TrackerWarnings::default());
    assert_eq!(
        states(&all.threads[&Tid(7)]),
        [
            (0, 10, RUNNING),
            (10, 20, ThreadState::Sleeping),
            (20, 22, ThreadState::Waking),
            (22, 25, ThreadState::Ready { cpu: Some(0), preempted: false }),
            (25, 40, RUNNING),
            (40, 45, ThreadState::Ready { cpu: Some(0), preempted: true }),
            (45, 50, RUNNING),
        ]
    );
    assert_eq!(
        states(&all.threads[&Tid(9)]),
        [(0, 40, ThreadState::Unknown), (40, 45, RUNNING)],
        "and then it is dead"
    );
    assert_eq!(
        states(&all.threads[&Tid(3)]),
        [(0, 50, ThreadState::Running { cpu: 1 })],
        "no switch on that CPU: it ran throughout"
    );
    assert!(!all.threads.contains_key(&Tid::IDLE));
    let lane: Vec<_> = all.cpus[&0]
        .iter()
        .map(|span| (span.from.ns(), span.to.ns(), span.tid.unwrap().0))
        .collect();
    assert_eq!(lane, [(0, 10, 7), (10, 25, 0), (25, 40, 7), (40, 45, 9), (45, 50, 7)]);
}

#[test]
fn without_sched_wakeup_a_thread_is_ready_from_sched_waking_on() {
    let events = [
        switch(10, 0, 7, TaskState::Sleeping, 0),
        event(20, 1, 3, EventKind::Waking { task: Tid(7), prio: 19, target: 1 }),
        switch(25, 0, 0, TaskState::Preempted, 7),
    ];
    let (all, warnings) = track(&events, coverage(0, 50));
    assert_eq!(warnings, TrackerWarnings::default());
    let expected = [
        (0, 10, RUNNING),
        (10, 20, ThreadState::Sleeping),
        (20, 25, ThreadState::Ready { cpu: Some(0), preempted: false }),
        (25, 50, RUNNING),
    ];
    assert_eq!(states(&all.threads[&Tid(7)]), expected);
}

/// As kernels record that hide an idle CPU.
#[test]
fn a_thread_without_a_recorded_switch_was_ready_until_its_next_event() {
    let wake =
        |at| event(at, 1, 3, EventKind::Wakeup { task: Tid(7), prio: 19, target: 0, new: false });
    let returns = |at, tid| event(at, 0, tid, EventKind::SyscallExit { number: 1, result: 0 });
    let asleep = switch(10, 0, 7, TaskState::Sleeping, 0);
    let ready = ThreadState::Ready { cpu: Some(0), preempted: false };
    let of = |events: &[Event]| {
        let (all, warnings) = track(events, coverage(0, 50));
        (states(&all.threads[&Tid(7)])[1..].to_vec(), warnings.contradictions)
    };
    let seen = [(10, 20, ThreadState::Sleeping), (20, 25, ready), (25, 50, RUNNING)];
    assert_eq!(of(&[asleep, wake(20), returns(25, 7)]), (seen.to_vec(), 0));
    // Its next switch alone shows it.
    let leaves = switch(40, 0, 7, TaskState::Sleeping, 0);
    let (states, contradictions) = of(&[asleep, wake(20), leaves]);
    assert_eq!((states[1], contradictions), ((20, 40, ready), 0));
    // Its wake-up was not recorded either: how long it slept is not known.
    let (states, contradictions) = of(&[asleep, returns(25, 7)]);
    assert_eq!(states, [(10, 25, ThreadState::Unknown), (25, 50, RUNNING)]);
    assert_eq!(contradictions, 0);
    // Another task ran there: until when is not known.
    let (states, contradictions) =
        of(&[switch(10, 0, 7, TaskState::Sleeping, 8), wake(20), returns(25, 7)]);
    assert_eq!((states, contradictions), (seen.to_vec(), 1));
    // Inside of the switch it does not run.
    let held = event(12, 0, 7, EventKind::ContentionBegin { lock: 1, flags: 0 });
    let (states, _) = of(&[asleep, held, wake(20)]);
    assert_eq!(states, [(10, 20, ThreadState::Sleeping), (20, 50, ready)]);
}

#[test]
fn only_states_that_a_gap_may_hide_are_unknown() {
    let lost =
        |at, cpu, since| event(at, cpu, 0, EventKind::Lost { count: 5, since: MonotonicNs(since) });
    let events = [
        switch(10, 0, 7, TaskState::Sleeping, 8),
        lost(30, 0, 20),
        switch(40, 0, 9, TaskState::Sleeping, 8),
        event(50, 1, 3, EventKind::Waking { task: Tid(7), prio: 19, target: 0 }),
    ];
    let (all, warnings) = track(&events, coverage(0, 60));
    assert_eq!(warnings, TrackerWarnings::default(), "a gap explains contradictions");
    assert_eq!(
        states(&all.threads[&Tid(7)]),
        [
            (0, 10, RUNNING),
            (10, 20, ThreadState::Sleeping),
            (20, 30, ThreadState::Unknown),
            (30, 50, ThreadState::Sleeping),
            (50, 60, ThreadState::Waking)
        ]
    );
    assert_eq!(
        states(&all.threads[&Tid(8)]),
        [
            (0, 10, ThreadState::Unknown),
            (10, 20, RUNNING),
            (20, 40, ThreadState::Unknown),
            (40, 60, RUNNING)
        ]
    );
    assert_eq!(
        states(&all.threads[&Tid(9)])[..2],
        [(0, 30, ThreadState::Unknown), (30, 40, RUNNING)]
    );
    let lane: Vec<_> =
        all.cpus[&0].iter().map(|span| (span.to.ns(), span.tid.map(|tid| tid.0))).collect();
    assert_eq!(lane, [(10, Some(7)), (20, Some(8)), (30, None), (40, Some(9)), (60, Some(8))]);
}

#[test]
fn own_time_of_nested_interrupts_excludes_inner_ones() {
    let events = [
        event(10, 0, 7, EventKind::SoftirqEntry { vector: 3 }),
        event(12, 0, 7, EventKind::IrqEntry { irq: 5 }),
        event(13, 0, 7, EventKind::Waking { task: Tid(9), prio: 1, target: 1 }),
        event(15, 0, 7, EventKind::IrqExit { irq: 5, handled: true }),
        event(20, 0, 7, EventKind::SoftirqExit { vector: 3 }),
        event(25, 0, 7, EventKind::IrqExit { irq: 5, handled: true }),
    ];
    let (all, warnings) = track(&events, coverage(0, 50));
    let states: Vec<_> = all
        .interrupts
        .iter()
        .map(|span| (span.what, span.depth, span.own.ns(), span.whole))
        .collect();
    assert_eq!(states, [(Interrupt::Hard(5), 1, 3, true), (Interrupt::Soft(3), 0, 7, true)]);
    assert_eq!(warnings.stray, 1);
    assert_eq!(all.wakes[0].interrupt, Some(Interrupt::Hard(5)));
}

#[test]
fn a_softirq_in_a_thread_is_split_while_the_thread_is_preempted() {
    let events = [
        event(10, 0, 7, EventKind::SoftirqEntry { vector: 3 }),
        switch(20, 0, 7, TaskState::Preempted, 8),
        switch(30, 0, 8, TaskState::Sleeping, 7),
        event(35, 0, 7, EventKind::SoftirqExit { vector: 3 }),
    ];
    let (all, _) = track(&events, coverage(0, 50));
    let states: Vec<_> =
        all.interrupts.iter().map(|span| (span.from.ns(), span.to.ns(), span.whole)).collect();
    assert_eq!(states, [(10, 20, false), (30, 35, true)]);
}

#[test]
fn a_recording_of_one_process_leaves_other_tasks_unknown() {
    let events = [
        switch(10, 0, 7, TaskState::Sleeping, 8),
        event(30, 1, 99, EventKind::Waking { task: Tid(7), prio: 19, target: 0 }),
        switch(40, 0, 8, TaskState::Sleeping, 7),
    ];
    let limited = Coverage { threads: Some([Tid(7)].into()), ..coverage(0, 50) };
    let (all, _) = track(&events, limited);
    assert_eq!(all.threads.keys().collect::<Vec<_>>(), [&Tid(7)]);
    let lane: Vec<_> =
        all.cpus[&0].iter().map(|span| (span.to.ns(), span.tid.map(|tid| tid.0))).collect();
    assert_eq!(lane, [(10, Some(7)), (40, None), (50, Some(7))]);
}

#[test]
fn only_the_recorded_tasks_are_followed() {
    let name = |process: u32, comm: &str| TaskName { process, comm: comm.into(), scheduling: None };
    let tasks = [(Tid(7), name(7, "mine")), (Tid(8), name(7, "other")), (Tid(9), name(9, "mine"))];
    let names = Names { tasks: tasks.into(), ..Names::default() };
    let recorded = |pids: &[u32], comms: &[&str]| Recorded {
        recorder: "none".into(),
        began: MonotonicNs(0),
        ended: MonotonicNs(1),
        cpus: Default::default(),
        groups: Vec::new(),
        tracepoints: Vec::new(),
        pids: pids.into(),
        comms: comms.iter().map(|comm| comm.to_string()).collect(),
        sources: Vec::new(),
        missing: Vec::new(),
        point_clock_error: None,
        moments: Vec::new(),
        findings: Vec::new(),
    };
    let followed = |pids: &[u32], comms: &[&str]| {
        let threads = Coverage::of(&recorded(pids, comms), &names).threads;
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
    let events = [
        switch(10, 0, 7, TaskState::Sleeping, 8),
        switch(40, 0, 8, TaskState::Preempted, 7),
        switch(70, 0, 7, TaskState::Sleeping, 0),
    ];
    let lanes = window(events, coverage(0, 100), Gaps::default(), MonotonicNs(20), MonotonicNs(50));
    let lane: Vec<_> = lanes.cpus[&0]
        .ran
        .iter()
        .map(|span| (span.from.ns(), span.to.ns(), span.tid.unwrap().0))
        .collect();
    assert_eq!(lane, [(20, 40, 8), (40, 50, 7)]);
    assert_eq!(lanes.threads.len(), 2);
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let task = || (0u32..6).prop_map(Tid);
    let state = prop_oneof![
        Just(TaskState::Preempted),
        Just(TaskState::Sleeping),
        Just(TaskState::Blocked),
        Just(TaskState::Dead),
        Just(TaskState::LockWait)
    ];
    let what = prop_oneof![
        5 => (state, task()).prop_map(|(prev_state, next)| EventKind::Switch {
            prev_prio: 1,
            prev_state,
            next,
            next_prio: 2,
        }),
        3 => task().prop_map(|task| EventKind::Waking { task, prio: 1, target: 0 }),
        3 => (task(), 0u16..3).prop_map(|(task, target)| EventKind::Wakeup {
            task,
            prio: 1,
            target,
            new: false,
        }),
        1 => (task(), 0u16..3, 0u16..3).prop_map(|(task, from, to)| EventKind::Migrate {
            task,
            from,
            to,
        }),
        1 => task().prop_map(|child| EventKind::Fork { child }),
        2 => (0u32..3).prop_map(|irq| EventKind::IrqEntry { irq }),
        2 => (0u32..3).prop_map(|irq| EventKind::IrqExit { irq, handled: true }),
        2 => (0u8..3).prop_map(|vector| EventKind::SoftirqEntry { vector }),
        2 => (0u8..3).prop_map(|vector| EventKind::SoftirqExit { vector }),
        1 => {
            (0i64..1_100).prop_map(|since| EventKind::Lost { count: 1, since: MonotonicNs(since) })
        },
        1 => (0u32..3).prop_map(|state| EventKind::IdleEnter { state }),
        1 => Just(EventKind::IdleExit),
        1 => (0u32..3).prop_map(|number| EventKind::SyscallEnter { number, args: [0; 2] }),
        1 => (0u32..3).prop_map(|number| EventKind::SyscallExit { number, result: 0 }),
        2 => (0u32..3, 0u8..3).prop_map(|(point, kind)| EventKind::Point {
            point: PointId(point),
            kind: [PointKind::Point, PointKind::Begin, PointKind::End][usize::from(kind)],
            count: 1,
            values: [1, 0],
        }),
        1 => (0i64..1_100).prop_map(|began| EventKind::Call {
            function: FunctionId(0),
            began: MonotonicNs(began),
            depth: 0,
            left: false,
            argument: None,
        }),
    ];
    let cpu = prop_oneof![6 => 0u16..3, 1 => Just(Event::NO_CPU)];
    (0i64..1_100, cpu, 0u32..6, what).prop_map(|(at, cpu, tid, what)| event(at, cpu, tid, what))
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
        let gaps = if recorded_gaps { Gaps::of(events.iter().copied()) } else { Gaps::default() };
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
