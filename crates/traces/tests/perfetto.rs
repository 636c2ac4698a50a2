//! Traces of Perfetto: one written with its own schema (`data/write_perfetto.py`).

use proptest::prelude::*;
use punctual_core::event::{EventKind, Group, Tid};
use punctual_core::{Event, MonotonicNs};
use punctual_testing::events;
use punctual_traces::{ClockRelation, Trace, TraceFacts, TraceFormat};

const SERVO: &[u8] = include_bytes!("data/servo.perfetto");

fn read(bytes: &[u8]) -> (Vec<Event>, TraceFacts) {
    let mut trace = Trace::open(bytes.to_vec()).unwrap();
    let events: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    (events, trace.facts())
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    for mut rest in [u64::from(number << 3 | 2), bytes.len() as u64] {
        while rest >= 0x80 {
            field.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        field.push(rest as u8);
    }
    field.extend(bytes);
    field
}

#[test]
fn perfetto_events_of_every_encoding_are_merged_in_order() {
    let (events, facts) = read(SERVO);
    assert_eq!(facts.format, TraceFormat::Perfetto);
    let counts: Vec<(&str, u64, u64)> = facts
        .tracepoints
        .iter()
        .map(|(name, count)| (name.as_str(), count.seen, count.used))
        .collect();
    // The task left by the first switch is unknown.
    let expected = [
        ("local_timer_entry", 100, 100),
        ("local_timer_exit", 100, 100),
        ("raw_syscalls:sys_enter", 100, 100),
        ("raw_syscalls:sys_exit", 100, 100),
        ("sched:sched_switch", 200, 199),
        ("sched:sched_waking", 100, 100),
        ("timer:hrtimer_expire_entry", 100, 100),
        ("timer:hrtimer_expire_exit", 100, 100),
        ("timer:hrtimer_start", 100, 100),
    ];
    assert_eq!(counts, expected);
    assert_eq!((facts.unreadable, facts.out_of_order, facts.recorded.lost_count()), (0, 0, 0));
    assert_eq!(facts.clock.name.as_deref(), Some("boot"));
    assert_eq!(facts.clock.relation, ClockRelation::Bridged);
    assert_eq!(facts.kernel.as_deref(), Some("6.1.0-rt"));
    assert_eq!([7, 9].map(|tid| facts.names.task_name(Tid(tid))), ["servo", "hog"]);
    let groups = [Group::Sched, Group::Vectors, Group::Hrtimer, Group::Syscall];
    assert!(groups.iter().all(|group| facts.recorded.groups.contains(group)));
    let switches: Vec<&Event> =
        events.iter().filter(|event| matches!(event.what, EventKind::Switch { .. })).collect();
    let first = events!("0 9/9 switch S -> 7/19")[0];
    assert_eq!((switches[0].tid, switches[0].what), (first.tid, first.what));
    // Timers are on CLOCK_MONOTONIC, which is five seconds behind.
    let start = events.iter().find_map(|event| match event.what {
        EventKind::HrtimerStart { expires, .. } => Some(expires),
        _ => None,
    });
    assert_eq!(start, Some(MonotonicNs(6_001_000_000)));
}

#[test]
fn compressed_perfetto_packets_have_the_same_events() {
    let (events, _) = read(SERVO);
    let streamed = Trace::open_stream(std::io::Cursor::new(SERVO)).unwrap();
    assert_eq!(streamed.map(Result::unwrap).collect::<Vec<_>>(), events);
}

#[test]
fn lost_perfetto_events_become_gaps() {
    // A bundle of CPU 1 that reports a loss, with a switch as a message of its own.
    let event =
        b"\x08\x80\xe8\x92\xa6\x2a\x10\x07\x22\x0e\x10\x07\x18\x13\x20\x01\x2a\x00\x30\x09\x38\x78";
    let mut event = event.to_vec();
    event[9] = (event.len() - 10) as u8;
    let bundle = [&b"\x08\x01\x18\x01"[..], &field(2, &event)].concat();
    let lost = field(1, &field(1, &bundle));
    let (events, facts) = read(&[SERVO, &lost].concat());
    assert_eq!(facts.recorded.lost_count(), 1);
    let gap = events.iter().find(|event| matches!(event.what, EventKind::Lost { .. })).unwrap();
    assert_eq!(gap.cpu, 1);
    assert!(facts.recorded.findings.iter().any(|finding| finding.id == "trace-lost"));
    // Everything after the last whole packet is missing.
    let (_, facts) = read(&[SERVO, &lost[..10]].concat());
    assert!(facts.recorded.findings.iter().any(|finding| finding.id == "trace-cut-off"));
}

#[test]
fn events_that_describe_themselves_are_read_by_their_description() {
    let text = |number, text: &str| field(number, text.as_bytes());
    let member = |name: &str, number: u8| [text(1, name), vec![0x18, number]].concat();
    // irq_handler_entry: `irq` is the second field here, `name` the first.
    let kind =
        [text(1, "irq_handler_entry"), field(2, &member("name", 1)), field(2, &member("irq", 2))];
    let number = [0x08, 0x81, 0x80, 0x04];
    let description = [&number[..], &field(2, &kind.concat()), &text(3, "irq")].concat();
    let message = [text(1, "eth0"), vec![0x10, 17]].concat();
    // The instant, the thread, the message 65537.
    let event = [&b"\x08\xe8\x07\x10\x09"[..], &field(65_537, &message)].concat();
    let unknown = [&b"\x08\xe9\x07\x10\x09"[..], &field(65_538, &message)].concat();
    let events = [field(2, &event), field(2, &unknown)].concat();
    let bundle = [&b"\x08\x01"[..], &field(11, &description), &events].concat();
    let (events, facts) = read(&field(1, &field(1, &bundle)));
    let found: Vec<_> = events.iter().map(|event| (event.at.0, event.cpu, event.tid.0)).collect();
    assert_eq!(found, [(1_000, 1, 9)]);
    assert_eq!(events[0].what, EventKind::IrqEntry { irq: 17 });
    assert_eq!(facts.names.irqs[&17], "eth0");
    assert_eq!(facts.tracepoints["irq:irq_handler_entry"].used, 1);
    assert_eq!(facts.tracepoints["perfetto:message 65538"].seen, 1);
}

proptest! {
    #[test]
    fn damaged_files_never_panic(
        places in proptest::collection::vec((0usize..15_000, any::<u8>()), 1..8),
        cut in 0usize..15_000,
    ) {
        let mut bytes = SERVO.to_vec();
        for (place, byte) in places {
            bytes[place] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        if let Ok(trace) = Trace::open(bytes) {
            prop_assert!(trace.take(100_000).count() < 100_000);
        }
    }
}
