//! Any recording can be exported and reported: any events, in any order, at any instants.

use crate::recording;
use crate::support::synthetic::{Recipe, write};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use punctual_core::event::{
    CpuContext, FunctionId, Futex, PointId, PointKind, RecordBytes, StackId, TaskState,
    TracepointId,
};
use punctual_core::{Event, EventKind, MonotonicNs, Tid};
use punctual_report::export::{Format, RecordingInput, export_recording};
use punctual_report::html::recording::{RecordingDigest, RecordingSource};
use punctual_report::html::{ReportInput, report};

/// Mostly within the recording and close together, sometimes arbitrary.
fn instant() -> impl Strategy<Value = MonotonicNs> {
    prop_oneof![
        12 => (0i64..900).prop_map(recording::us),
        1 => any::<i64>().prop_map(MonotonicNs),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0)].prop_map(MonotonicNs),
    ]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..5, 1 => any::<u32>()]
}

fn what() -> impl Strategy<Value = EventKind> {
    let n = small;
    let state =
        prop_oneof![Just(TaskState::Preempted), Just(TaskState::Sleeping), Just(TaskState::Dead)];
    let kind = prop_oneof![Just(PointKind::Begin), Just(PointKind::End), Just(PointKind::Point)];
    let sched = prop_oneof![
        (any::<i16>(), state, n()).prop_map(|(prio, prev_state, next)| EventKind::Switch {
            prev_prio: prio,
            prev_state,
            next: Tid(next),
            next_prio: prio
        }),
        (n(), any::<u16>()).prop_map(|(task, target)| EventKind::Waking {
            task: Tid(task),
            prio: 1,
            target
        }),
        (n(), 0u16..4).prop_map(|(task, to)| EventKind::Migrate { task: Tid(task), from: 0, to }),
        Just(EventKind::Exit),
        Just(EventKind::Exec),
    ];
    let cpu = prop_oneof![
        n().prop_map(|irq| EventKind::IrqEntry { irq }),
        n().prop_map(|irq| EventKind::IrqExit { irq, handled: true }),
        any::<u8>().prop_map(|vector| EventKind::SoftirqEntry { vector }),
        any::<u8>().prop_map(|vector| EventKind::SoftirqExit { vector }),
        any::<u8>().prop_map(|vector| EventKind::VectorEntry { vector }),
        n().prop_map(|state| EventKind::IdleEnter { state }),
        Just(EventKind::IdleExit),
        n().prop_map(|khz| EventKind::Frequency { khz }),
        (instant(), instant()).prop_map(|(now, at)| EventKind::HrtimerExpireEntry {
            timer: 1,
            now: Some(now),
            expires: Some(at),
            slack: None
        }),
        instant().prop_map(|expires| EventKind::HrtimerStart { timer: 1, expires, slack: None }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(timer, expires)| EventKind::TimerStart { timer, expires }),
    ];
    let thread = prop_oneof![
        (n(), any::<u64>())
            .prop_map(|(number, arg)| EventKind::SyscallEnter { number, args: [arg, 0] }),
        (n(), any::<i64>()).prop_map(|(number, result)| EventKind::SyscallExit { number, result }),
        any::<u64>().prop_map(|address| EventKind::FutexEnter { op: Futex::Wait, address }),
        any::<u64>().prop_map(|lock| EventKind::ContentionBegin { lock, flags: 0 }),
        (n(), n(), n()).prop_map(|(device, sector, bytes)| EventKind::BlockIssue {
            device,
            sector: sector.into(),
            bytes,
            write: false
        }),
        (n(), n(), n()).prop_map(|(device, sector, bytes)| EventKind::BlockComplete {
            device,
            sector: sector.into(),
            bytes,
            error: -5
        }),
        proptest::option::of(n()).prop_map(|call| EventKind::Interrupted { call }),
        (n(), any::<u64>(), any::<bool>()).prop_map(|(bits, site, section)| {
            EventKind::Context { context: CpuContext::of_bits(bits), site, section }
        }),
        n().prop_map(|task| EventKind::Unthrottled { task: Tid(task) }),
        (n(), proptest::collection::vec(any::<u8>(), 0..80)).prop_map(|(id, record)| {
            EventKind::Tracepoint {
                tracepoint: TracepointId(id),
                record: RecordBytes::new(&record),
            }
        }),
        n().prop_map(|stack| EventKind::Stack { stack: StackId(stack) }),
    ];
    let own = prop_oneof![
        (n(), kind, any::<u8>(), any::<[i64; 2]>()).prop_map(|(point, kind, count, values)| {
            EventKind::Point { point: PointId(point), kind, count, values }
        }),
        (n(), instant(), any::<u16>()).prop_map(|(function, began, depth)| EventKind::Call {
            function: FunctionId(function),
            began,
            depth,
            left: depth == 3,
            argument: None
        }),
        (n(), instant()).prop_map(|(series, due)| EventKind::Sample { series, due }),
        (any::<u64>(), instant()).prop_map(|(count, since)| EventKind::Lost { count, since }),
    ];
    prop_oneof![sched, cpu, thread, own]
}

fn event() -> impl Strategy<Value = Event> {
    let cpu = prop_oneof![9 => 0u16..3, 1 => any::<u16>(), 1 => Just(Event::NO_CPU)];
    (instant(), cpu, small(), what()).prop_map(|(at, cpu, tid, what)| Event {
        at,
        cpu,
        tid: Tid(tid),
        what,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn any_events_are_exported_without_panic(
        mut events in proptest::collection::vec(event(), 0..80),
        sorted in any::<bool>(),
    ) {
        let all = recording::recording(1);
        if sorted {
            events.sort_by_key(|event| event.at);
        }
        let input = RecordingInput {
            recorded: &all.recorded,
            names: &all.names,
            release: None,
            timebase: Default::default(),
        };
        let mut out = Vec::new();
        export_recording(input, events.iter().copied(), Format::Perfetto, &mut out).unwrap();
        let source = RecordingSource {
            recorded: &all.recorded,
            names: &all.names,
            series: Vec::new(),
            requests: Vec::new(),
        };
        RecordingDigest::of(&source, || events.iter().copied());
    }
}

/// The same data once through the whole page.
#[test]
fn a_page_is_made_of_any_events() {
    let directory = tempfile::tempdir().unwrap();
    let bundle =
        write(&directory.path().join("b"), &Recipe { phases: Vec::new(), ..Recipe::default() });
    let summary = punctual_stats::summarize(&bundle);
    let all = recording::recording(1);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let events = proptest::collection::vec(event(), 2_000).new_tree(&mut runner).unwrap().current();
    let source = RecordingSource {
        recorded: &all.recorded,
        names: &all.names,
        series: Vec::new(),
        requests: Vec::new(),
    };
    let digest = RecordingDigest::of(&source, || events.iter().copied());
    let page =
        report(&[ReportInput { recording: Some(&digest), ..ReportInput::of(&bundle, &summary) }])
            .unwrap();
    assert!(page.len() < punctual_report::html::SIZE_LIMIT);
}
