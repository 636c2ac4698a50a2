//! The Perfetto export, read back by Perfetto's own trace processor: thread states, slices, flows,
//! values and losses are those of the recording.

use crate::processor;
use crate::recording;
use crate::recording::{CONTROL, Recording};
use punctual_bundle::Timebase;
use punctual_bundle::exact::ExactDocument;
use punctual_core::event::TaskState;
use punctual_core::{EventKind, MonotonicNs, Names, Tid};
use punctual_report::export::{self, Format, RecordingInput, export_recording};
use punctual_report::marks::{Extent, Lane, Marks};
use punctual_testing::events;
use std::collections::BTreeMap;

const STATES: &str = "select t.tid, s.state, s.ts, s.dur from thread_state s join thread t \
                      using(utid) where t.tid != 0 and s.dur > 0 order by 1, 3";
const SLICES: &str =
    "select s.name, s.ts, s.dur, s.depth from slice s where s.dur != 0 order by 2, 1";
const FLOWS: &str = "select o.name, i.name, i.ts - o.ts from flow join slice o on o.id = \
                     slice_out join slice i on i.id = slice_in";
const VALUES: &str = "select t.name, c.ts, cast(c.value as int) from counter c join track t on \
                      t.id = c.track_id where t.type like '%track_event%' order by 1, 2";
const TROUBLE: &str =
    "select name, value from stats where severity in ('error', 'data_loss') and value != 0";
const THREADS: &str = "select t.tid, t.name, p.pid, p.name from thread t left join process p \
                       using(upid) where t.tid != 0";

fn written(all: &Recording) -> Vec<u8> {
    written_in(all, Timebase::Own)
}

fn written_in(all: &Recording, timebase: Timebase) -> Vec<u8> {
    let mut trace = Vec::new();
    let events = all.events.iter().copied();
    let input = RecordingInput {
        recorded: &all.recorded,
        names: &all.names,
        release: Some("6.12.1-rt"),
        timebase,
    };
    export_recording(input, events, Format::Perfetto, &mut trace).unwrap();
    trace
}

fn cell(cell: &Option<String>) -> &str {
    cell.as_deref().unwrap_or("null")
}

/// The states of threads computed in the simplest way: the letters that sched_switch prints, `R`
/// from waking or preemption on.
fn states(all: &Recording) -> Vec<[String; 4]> {
    let mut spans = Vec::new();
    let mut now: BTreeMap<Tid, (&str, MonotonicNs)> = BTreeMap::new();
    let mut change = |tid: Tid, to: &'static str, at: MonotonicNs| {
        if let Some((state, since)) = now.insert(tid, (to, at)) {
            let row = [
                tid.0.to_string(),
                state.to_owned(),
                since.ns().to_string(),
                (at - since).ns().to_string(),
            ];
            spans.push((tid, since, row));
        }
    };
    for event in &all.events {
        match event.what {
            EventKind::Switch { prev_state, next, .. } => {
                let state = match prev_state {
                    TaskState::Preempted => "R+",
                    TaskState::Sleeping => "S",
                    TaskState::Dead => "X",
                    _ => "I",
                };
                if event.tid != Tid::IDLE {
                    change(event.tid, state, event.at);
                }
                if next != Tid::IDLE {
                    change(next, "Running", event.at);
                }
            }
            EventKind::Waking { task, .. } => change(task, "R", event.at),
            _ => {}
        }
    }
    spans.sort_by_key(|(tid, since, _)| (*tid, *since));
    spans.into_iter().map(|(.., row)| row).collect()
}

/// The slices that the marks make: name, begin, duration.
fn slices(all: &Recording) -> Vec<[String; 3]> {
    let mut drawn = Vec::new();
    let mut marks = Marks::new(&all.names);
    all.events.iter().for_each(|event| marks.describe_event(event, &mut drawn));
    marks.finish(&mut drawn);
    let mut rows: Vec<(i64, [String; 3])> = Vec::new();
    for mark in drawn {
        let name = match mark.lane {
            Lane::Idle(_) => continue,
            Lane::Interrupts(_) => "IRQ (virtio0-req.0)".to_owned(),
            _ => mark.name.into_owned(),
        };
        match mark.shape {
            Extent::Span(from, to) if to > from => {
                rows.push((from.ns(), [name, from.ns().to_string(), (to - from).ns().to_string()]));
            }
            Extent::Begun(from) => {
                rows.push((from.ns(), [name, from.ns().to_string(), "-1".to_owned()]))
            }
            _ => {}
        }
    }
    rows.sort();
    rows.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn perfetto_reads_an_exported_recording() {
    let all = recording::recording(30);
    let queries = [STATES, SLICES, FLOWS, VALUES, TROUBLE, THREADS];
    let Some(answers) = processor::ask(&written(&all), &queries) else { return };

    let read: Vec<[&str; 4]> =
        answers[0].iter().map(|row| std::array::from_fn(|k| cell(&row[k]))).collect();
    let expected = states(&all);
    assert!(expected.len() > 200, "{}", expected.len());
    assert_eq!(read, expected, "thread states");

    let read: Vec<[&str; 3]> =
        answers[1].iter().map(|row| std::array::from_fn(|k| cell(&row[k]))).collect();
    assert_eq!(read, slices(&all), "slices");
    let nested =
        answers[1].iter().filter(|row| cell(&row[0]) == "fopen").all(|row| cell(&row[3]) == "1");
    assert!(nested, "fopen lies in parse(char const*)");

    let flow = |from, to, ns| {
        answers[2]
            .iter()
            .filter(|row| row[..] == [from, to, ns].map(|s: &str| Some(s.to_owned())))
            .count()
    };
    assert_eq!(flow("expires for control", "wakes control", "1000"), 30);
    assert_eq!(flow("wakes control", "runs", "6000"), 30);

    let values = answers[3]
        .iter()
        .filter(|row| cell(&row[0]) == "load (second value)" && cell(&row[2]) == "-5")
        .count();
    assert_eq!(values, 30);
    let trouble: Vec<[&str; 2]> =
        answers[4].iter().map(|row| std::array::from_fn(|k| cell(&row[k]))).collect();
    assert_eq!(
        trouble,
        [["ftrace_cpu_has_data_loss", "1"]],
        "the loss is seen, and nothing else is wrong"
    );
    let threads: Vec<[&str; 4]> =
        answers[5].iter().map(|row| std::array::from_fn(|k| cell(&row[k]))).collect();
    assert!(threads.contains(&["1001", "helper", "1000", "control"]), "{threads:?}");
    assert_eq!(threads.len(), all.names.tasks.len());
    assert!(all.names.tasks.contains_key(&CONTROL));
}

/// A call in a softirq on an interrupt on a task, each on its own track, in ns from the release.
#[test]
fn perfetto_reads_the_calls_of_exact_samples() {
    let document = r#"{
        "schema": "punctual-exact/1", "kernel": "6.1.0-test", "ns_per_instruction": 8,
        "digest": "", "instructions": 1, "cut": 0, "ordinary": null, "irqs_disabled": [],
        "findings": [],
        "worst": [{
            "phase": "main", "series": "t/cpu0", "sample": 609, "due": 9000, "latency_ns": 8080,
            "thread": "timer/cpu0", "instructions": 1000, "without": 10, "functions": [],
            "more": [],
            "parts": [{"kind": "return", "begin": 0, "instructions": 1000, "functions": [],
                "stack": []}],
            "calls": [
                {"function": "do_exit", "context": "stress'ng", "depth": 0, "begin": 0,
                    "end": 1000},
                {"function": "free_pages", "context": "stress'ng", "depth": 1, "begin": 100,
                    "end": 900},
                {"function": "asm_sysvec_apic_timer_interrupt", "context": "interrupt",
                    "depth": 2, "begin": 200, "end": 500},
                {"function": "handle_softirqs", "context": "interrupt", "depth": 3, "begin": 300,
                    "end": 400},
                {"function": "net_rx_action", "context": "interrupt", "depth": 4, "begin": 310,
                    "end": 400}
            ]
        }]
    }"#;
    let document: ExactDocument = serde_json::from_str(document).expect("a document");
    let mut bytes = Vec::new();
    export::exact_perfetto(&document, &mut bytes).expect("a Vec takes it");
    let query = "select slice.name, ts, dur, depth, track.name from slice join track on \
                 slice.track_id = track.id order by ts, dur desc, slice.name";
    let Some(answers) = processor::ask(&bytes, &[query, TROUBLE]) else { return };
    let rows: Vec<String> =
        answers[0].iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "do_exit 9080 8000 0 task stress'ng",
        "return to user mode 9080 8000 0 parts",
        "free_pages 9880 6400 1 task stress'ng",
        "asm_sysvec_apic_timer_interrupt 10680 2400 0 interrupt",
        "handle_softirqs 11480 800 0 softirq",
        "net_rx_action 11560 720 1 softirq",
    ];
    assert_eq!(rows, expected);
    assert!(answers[1].is_empty(), "{:?}", answers[1]);
}

/// All texts are hostile, threads have no names, instants are impossible: the trace is valid, and
/// the texts are only texts.
#[test]
fn hostile_recordings_are_only_text() {
    let mut all = recording::recording(3);
    let evil = "</script>\u{0}\u{202e}'; drop table slice; --\n%s";
    all.names = Names {
        points: vec![evil.to_owned(), "x".repeat(100_000)],
        softirqs: [(3, evil.to_owned())].into(),
        ..Names::default()
    };
    all.events.extend(events!(
        "{} cpu9 {} lost {} since={}
        {} cpu9 7 hrtimer_start 1 expires={}",
        recording::us(i64::MIN / 2_000).0,
        u32::MAX,
        u64::MAX,
        i64::MAX,
        recording::us(i64::MAX / 2_000).0,
        i64::MIN
    ));
    let queries = [
        "select count(*) from slice where name glob '*drop table*'",
        "select count(*) from sched where utid != 0",
    ];
    let Some(answers) = processor::ask(&written(&all), &queries) else { return };
    assert_ne!(cell(&answers[0][0][0]), "0");
    assert_ne!(cell(&answers[1][0][0]), "0");
}

/// Any part of the trace shows its timebase.
#[test]
fn virtual_time_is_marked_over_the_whole_trace() {
    let all = recording::recording(1);
    let queries = ["select s.name, s.dur from slice s join track t on s.track_id = t.id where \
                    t.name = 'Whose time this is'"];
    let Some(answers) = processor::ask(&written_in(&all, Timebase::Virtual), &queries) else {
        return;
    };
    let whole = (all.recorded.ended - all.recorded.began).ns().to_string();
    assert_eq!(answers[0], [[Timebase::Virtual.short_meaning().map(str::to_owned), Some(whole)]]);
}
