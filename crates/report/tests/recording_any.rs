//! Any recording can be exported and reported: any events, in any order, at any instants.

use crate::recording;
use crate::support::synthetic::{Recipe, write};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use punctual_core::event::{CpuContext, PointId, PointKind, RecordBytes, TracepointId};
use punctual_core::{Event, EventKind, MonotonicNs, Tid};
use punctual_report::export::{Format, RecordingInput, export_recording};
use punctual_report::html::recording::{RecordingDigest, RecordingSource};
use punctual_report::html::{ReportInput, render_report};
use punctual_testing::events;

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

/// In these events, `$n` is a small number, `$b` a byte, `$p` a priority, `$u` any number of 64
/// bits, `$s` one with a sign, `$c` any CPU, and `$i` an instant.
const KINDS: &str = "switch R -> $n/$p; switch S -> $n/$p; switch X -> $n/$p; waking $n/1 cpu$c
    migrate $n cpu0 -> cpu3; exit; exec
    irq_entry $n; irq_exit $n; softirq_entry $b; softirq_exit $b; vector_entry $b; idle_enter $n
    idle_exit; frequency $n; hrtimer_entry 1 now=$i expires=$i; hrtimer_start 1 expires=$i
    timer_start $u $u
    sys_enter $n $u; sys_exit $n $s; futex_enter wait $u; contention_begin $u
    block_issue $n $n $n; block_complete $n $n $n error=-5; interrupted; interrupted call=$n
    unthrottled $n; stack $n
    call $n began=$i depth=$b; call $n began=$i depth=3 left; sample $n due=$i; lost $u since=$i
    call $n began=$i depth=$b; sample $n due=$i; lost $u since=$i; lost $u since=$i";

fn what() -> impl Strategy<Value = EventKind> {
    let kinds: Vec<String> = KINDS.split([';', '\n']).map(str::to_owned).collect();
    let fields = (any::<(u8, u16, i16, u64, i64)>(), [small(), small(), small()]);
    let instants = [instant(), instant()];
    let parsed = (prop::sample::select(kinds), fields, instants).prop_map(
        |(mut kind, ((byte, cpu, prio, unsigned, signed), numbers), instants)| {
            for number in numbers {
                kind = kind.replacen("$n", &number.to_string(), 1);
            }
            for instant in instants {
                kind = kind.replacen("$i", &instant.0.to_string(), 1);
            }
            kind = kind.replace("$b", &byte.to_string()).replace("$c", &cpu.to_string());
            kind = kind.replace("$p", &prio.to_string()).replace("$u", &unsigned.to_string());
            kind = kind.replace("$s", &signed.to_string());
            events!("0 1/{prio} {kind}")[0].what
        },
    );
    let point = prop_oneof![Just(PointKind::Begin), Just(PointKind::End), Just(PointKind::Point)];
    prop_oneof![
        20 => parsed,
        1 => (small(), any::<u64>(), any::<bool>()).prop_map(|(bits, site, section)| {
            EventKind::Context { context: CpuContext::of_bits(bits), site, section }
        }),
        1 => (small(), proptest::collection::vec(any::<u8>(), 0..80)).prop_map(|(id, record)| {
            let record = RecordBytes::new(&record);
            EventKind::Tracepoint { tracepoint: TracepointId(id), record }
        }),
        4 => (small(), point, any::<u8>(), any::<[i64; 2]>()).prop_map(
            |(point, kind, count, values)| {
                EventKind::Point { point: PointId(point), kind, count, values }
            }
        ),
    ]
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
        RecordingDigest::from_events(&source(&all), || events.iter().copied());
    }
}

fn source(all: &recording::Recording) -> RecordingSource<'_> {
    let (recorded, names) = (&all.recorded, &all.names);
    RecordingSource { recorded, names, series: Vec::new(), requests: Vec::new() }
}

/// The same data once through the whole page.
#[test]
fn a_page_is_made_of_any_events() {
    let directory = tempfile::tempdir().unwrap();
    let bundle =
        write(&directory.path().join("b"), &Recipe { phases: Vec::new(), ..Recipe::default() });
    let summary = punctual_stats::summarize_bundle(&bundle);
    let all = recording::recording(1);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let events = proptest::collection::vec(event(), 2_000).new_tree(&mut runner).unwrap().current();
    let digest = RecordingDigest::from_events(&source(&all), || events.iter().copied());
    let page = render_report(&[ReportInput {
        recording: Some(&digest),
        ..ReportInput::from_bundle(&bundle, &summary)
    }])
    .unwrap();
    assert!(page.len() < punctual_report::html::SIZE_LIMIT);
}
