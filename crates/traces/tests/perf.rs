//! perf.data as written by `perf record -z` of perf 6.1 on Linux 6.18, without maps and most
//! features; the counts are those of `perf script`.

use proptest::prelude::*;
use punctual_core::event::{EventKind, Group, Tid};
use punctual_core::{Event, Finding};
use punctual_traces::{ClockRelation, Trace, TraceError, TraceFacts, TraceFormat};

const SERVO: &[u8] = include_bytes!("data/servo.perf.data");

fn read(bytes: &[u8]) -> (Vec<Event>, TraceFacts) {
    let mut trace = Trace::open(bytes.to_vec()).unwrap();
    let events: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    (events, trace.facts())
}

fn word(at: usize) -> usize {
    u64::from_le_bytes(SERVO[at..at + 8].try_into().unwrap()) as usize
}

/// The same as written by `perf record -o -`.
pub(super) fn pipe() -> Vec<u8> {
    let (attr_size, attrs, data) = (word(16), (word(24), word(32)), (word(40), word(48)));
    let record = |kind: u32, payload: &[u8]| {
        let mut record = kind.to_le_bytes().to_vec();
        record.extend(((payload.len() as u32 + 8) << 16).to_le_bytes());
        record.extend(payload);
        record
    };
    let mut pipe = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    for attr in SERVO[attrs.0..attrs.0 + attrs.1].chunks(attr_size) {
        let (attr, ids) = attr.split_at(attr_size - 16);
        let place = |at: usize| u64::from_le_bytes(ids[at..at + 8].try_into().unwrap()) as usize;
        let ids = &SERVO[place(0)..place(0) + place(8)];
        pipe.extend(record(64, &[attr, ids].concat()));
    }
    let features = data.0 + data.1;
    let tracing = &SERVO[word(features)..word(features) + word(features + 8)];
    let aligned = tracing.len().next_multiple_of(8);
    pipe.extend(record(66, &(aligned as u64).to_le_bytes()));
    pipe.extend(tracing);
    pipe.resize(pipe.len() + aligned - tracing.len(), 0);
    pipe.extend(record(80, &[&4u64.to_le_bytes()[..], b"\x05\0\0\0" as &[u8], b"6.18\0"].concat()));
    pipe.extend(&SERVO[data.0..features]);
    pipe
}

#[test]
fn every_sample_of_a_file_is_an_event() {
    let (events, facts) = read(SERVO);
    assert_eq!(facts.format, TraceFormat::PerfData);
    let counts: Vec<(&str, u64, u64)> = facts
        .tracepoints
        .iter()
        .map(|(name, count)| (name.as_str(), count.seen, count.used))
        .collect();
    let expected = [
        ("irq_vectors:local_timer_entry", 122, 122),
        ("irq_vectors:local_timer_exit", 122, 122),
        ("raw_syscalls:sys_enter", 78, 78),
        ("raw_syscalls:sys_exit", 78, 78),
        ("sched:sched_switch", 198, 198),
        ("sched:sched_waking", 88, 88),
        ("timer:hrtimer_expire_entry", 123, 123),
        ("timer:hrtimer_start", 127, 127),
    ];
    assert_eq!(counts, expected);
    assert_eq!(events.len(), 936);
    assert_eq!((facts.unreadable, facts.out_of_order, facts.recorded.lost_count()), (0, 0, 0));
    assert_eq!(facts.clock.relation, ClockRelation::Monotonic);
    assert_eq!(facts.producer.as_deref(), Some("perf 6.1.192"));
    assert_eq!(facts.machine.as_deref(), Some("x86_64"));
    let groups = [Group::Sched, Group::Vectors, Group::Hrtimer, Group::Syscall];
    assert!(groups.iter().all(|group| facts.recorded.groups.contains(group)));
    assert!(!facts.recorded.groups.contains(&Group::Softirq));
    assert!(facts.names.tasks.values().any(|task| task.comm == "servo"));
}

#[test]
fn perf_data_from_a_pipe_has_the_events_of_a_file() {
    let (events, _) = read(SERVO);
    let (of_pipe, facts) = read(&pipe());
    assert_eq!(of_pipe, events);
    assert_eq!(facts.kernel.as_deref(), Some("6.18"));
    assert_eq!(facts.clock.relation, ClockRelation::Monotonic);
    let streamed = Trace::open_stream(std::io::Cursor::new(pipe())).unwrap();
    assert_eq!(streamed.map(Result::unwrap).collect::<Vec<_>>(), events);
    assert!(matches!(
        Trace::open_stream(std::io::Cursor::new(SERVO)),
        Err(TraceError::NotStreamable(TraceFormat::PerfData))
    ));
}

#[test]
fn data_of_hardware_tracers_are_skipped_and_may_be_cut_off() {
    let (events, _) = read(&pipe());
    let begin = pipe().len() - word(48);
    // Before all records, behind the first compressed one, and at the end; more bytes than are
    // read at once.
    for (at, size) in [(begin, 24u64), (begin + 828, 300_000), (pipe().len(), 300_000)] {
        // PERF_RECORD_AUXTRACE states how many bytes follow it; in them is no sound record.
        let mut aux = (71u64 | 48 << 48).to_le_bytes().to_vec();
        aux.extend(size.to_le_bytes());
        aux.resize(48 + size as usize, 1);
        let mut with = pipe();
        with.splice(at..at, aux);
        assert_eq!(read(&with).0, events);
        if at == pipe().len() {
            let (of_cut, facts) = read(&with[..with.len() - 1]);
            assert_eq!(of_cut, events);
            let is_cut = |finding: &Finding| finding.id == "trace-cut-off";
            assert!(facts.recorded.findings.iter().any(is_cut));
        }
    }
}

#[test]
fn a_pipe_cut_off_anywhere_has_events_of_the_whole_one() {
    let (events, _) = read(&pipe());
    let begin = pipe().len() - word(48);
    for end in (begin..pipe().len()).step_by(97) {
        let mut rest = events.iter();
        let (part, _) = read(&pipe()[..end]);
        assert!(part.iter().all(|event| rest.any(|other| other == event)), "{end}");
    }
}

#[test]
fn lost_perf_records_become_gaps() {
    let (events, _) = read(SERVO);
    let last = events.last().unwrap().at.0 as u64;
    let mut pipe = pipe();
    let id = word(word(word(24) + word(16) - 16));
    let mut lose = |kind: u64, payload: &[u64]| {
        // The thread, the instant, the CPU and the event.
        let words = [payload, &[7 << 32 | 7, last + 1_000, 1, id as u64]].concat();
        let head = kind | (8 + 8 * words.len() as u64) << 48;
        pipe.extend([&[head], &words[..]].concat().iter().flat_map(|word| word.to_le_bytes()));
    };
    lose(2, &[id as u64, 77]);
    lose(13, &[90]);
    let (events, facts) = read(&pipe);
    let gap = events.last().unwrap();
    assert_eq!((gap.at.0 as u64, gap.cpu, gap.tid), (last + 1_000, 1, Tid(0)));
    assert!(matches!(gap.what, EventKind::Lost { count: 77, .. }));
    assert_eq!(facts.recorded.lost_count(), 90);
}

#[test]
fn unreadable_perf_data_is_refused_with_the_reason() {
    let refused = |bytes: Vec<u8>| Trace::open(bytes).map(|_| ()).unwrap_err().to_string();
    let mut killed = SERVO.to_vec();
    killed[48..56].fill(0);
    assert!(refused(killed).contains("was not finished"));
    let mut without = SERVO.to_vec();
    without[72..104].fill(0);
    assert!(refused(without).contains("holds no tracepoints"));
    let (events, _) = read(SERVO);
    let mut trace = Trace::open(pipe()[..pipe().len() - 500].to_vec()).unwrap();
    let part: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(part.len() < events.len());
    assert!(trace.facts().recorded.findings.iter().any(|finding| finding.id == "trace-cut-off"));
}

proptest! {
    #[test]
    fn damaged_files_never_panic(
        places in proptest::collection::vec((0usize..18_000, any::<u8>()), 1..8),
        as_pipe in any::<bool>(),
        cut in 0usize..18_000,
    ) {
        let mut bytes = if as_pipe { pipe() } else { SERVO.to_vec() };
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        bytes.truncate(bytes.len().max(cut + 1) - cut);
        if let Ok(trace) = Trace::open(bytes) {
            prop_assert!(trace.take(100_000).count() < 100_000);
        }
    }
}
