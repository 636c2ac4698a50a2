//! Traces in CTF 1.8, in the format of lttng-modules, in either byte order.

use proptest::prelude::*;
use punctual_core::Event;
use punctual_core::event::{EventKind, Group, Tid};
use punctual_testing::events;
use punctual_traces::{ClockRelation, ReadAt, Trace, TraceError, TraceFacts, TraceFormat};

/// Declarations as in lttng-modules, for few events.
const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 32; align = 8; signed = true; } := pid_t;
trace {
    major = 1; minor = 8; byte_order = ORDER;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
env {
    domain = "kernel"; kernel_release = "4.4.3"; tracer_name = "lttng-modules";
    tracer_major = 2; tracer_minor = 8; tracer_patchlevel = 0;
};
clock { name = "monotonic"; freq = 1000000000; offset = 1457111225177515989; };
typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := uint27_clock;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := uint64_clock;
stream {
    id = 0;
    event.header := struct {
        enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
        variant <id> {
            struct { uint27_clock timestamp; } compact;
            struct { uint32_t id; uint64_clock timestamp; } extended;
        } v;
    } align(8);
    packet.context := struct {
        uint64_clock timestamp_begin; uint64_clock timestamp_end; uint64_t content_size;
        uint64_t packet_size; uint64_t packet_seq_num; unsigned long events_discarded;
        uint32_t cpu_id;
    };
};
event {
    name = "sched_switch"; id = 0; stream_id = 0;
    fields := struct {
        integer { size = 8; align = 8; encoding = UTF8; } _prev_comm[16]; pid_t _prev_tid;
        pid_t _prev_prio; integer { size = 64; signed = 1; } _prev_state;
        integer { size = 8; align = 8; encoding = UTF8; } _next_comm[16]; pid_t _next_tid;
        pid_t _next_prio;
    };
};
event {
    name = "irq_handler_entry"; id = 40; stream_id = 0;
    fields := struct { pid_t _irq; string _name; };
};
event {
    name = "syscall_entry_futex"; id = 2; stream_id = 0;
    fields := struct {
        uint64_t _uaddr; pid_t _op; uint32_t __rest_length; uint64_t _rest[ __rest_length ];
    };
};
"#;

/// Writes packets in one byte order.
pub(super) struct Writer {
    big: bool,
    pub(super) bytes: Vec<u8>,
}

const BEGAN: u64 = 1_000_000_000;

impl Writer {
    pub(super) fn number(&mut self, number: u64, size: usize) {
        match self.big {
            true => self.bytes.extend(&number.to_be_bytes()[8 - size..]),
            false => self.bytes.extend(&number.to_le_bytes()[..size]),
        }
    }

    pub(super) fn compact(&mut self, id: u32, at: u64) {
        let at = at as u32 & 0x7ff_ffff;
        let head = if self.big { id << 27 | at } else { id | at << 5 };
        self.number(head.into(), 4);
    }

    pub(super) fn switch(
        &mut self,
        at: u64,
        from: (&str, i64, i64),
        state: u64,
        to: (&str, i64, i64),
    ) {
        self.compact(0, at);
        for (place, (comm, tid, prio)) in [from, to].into_iter().enumerate() {
            self.bytes.extend(comm.bytes().chain(std::iter::repeat(0)).take(16));
            self.number(tid as u64, 4);
            self.number(prio as u64, 4);
            if place == 0 {
                self.number(state, 8);
            }
        }
    }

    fn irq(&mut self, at: u64) {
        // 5 bits; the rest of the byte is padding, as the next field is aligned to 8.
        self.bytes.push(if self.big { 31 << 3 } else { 31 });
        self.number(40, 4);
        self.number(at, 8);
        self.number(17, 4);
        self.bytes.extend(b"eth0\0");
    }

    fn futex(&mut self, at: u64) {
        self.compact(2, at);
        self.number(0x7f00, 8);
        self.number(128, 4);
        self.number(2, 4);
        self.bytes.extend([0; 16]);
    }
}

/// The bytes of a packet before its first event.
pub(super) const PACKET_HEAD: usize = 24 + 6 * 8 + 4;

/// A packet of half a second on the first CPU.
pub(super) fn one_packet(events: impl FnOnce(&mut Writer)) -> Vec<u8> {
    packet(false, (BEGAN, BEGAN + 500 * MS), (0, 0, 0), events)
}

/// A packet from `began` to `ended` on a CPU.
fn packet(
    big: bool,
    (began, ended): (u64, u64),
    (sequence, discarded, cpu): (u64, u64, u64),
    events: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    let mut content = Writer { big, bytes: Vec::new() };
    events(&mut content);
    let mut packet = Writer { big, bytes: Vec::new() };
    packet.number(0xc1fc_1fc1, 4);
    packet.bytes.extend([7; 16]);
    packet.number(0, 4);
    let size = PACKET_HEAD as u64 + content.bytes.len() as u64;
    for number in [began, ended, size * 8, (size + 3) * 8, sequence, discarded] {
        packet.number(number, 8);
    }
    packet.number(cpu, 4);
    packet.bytes.extend(content.bytes);
    packet.bytes.extend([0xee; 3]);
    packet.bytes
}

const MS: u64 = 1_000_000;
const SERVO: (&str, i64, i64) = ("servo", 7, -81);
const IDLE: (&str, i64, i64) = ("swapper/0", 0, 20);

/// Two CPUs; the first has a second packet, after three discarded events.
pub(super) fn streams(big: bool) -> [Vec<u8>; 2] {
    let at = |ms: u64| BEGAN + ms * MS;
    let first = packet(big, (at(0), at(300)), (0, 0, 0), |to| {
        to.switch(at(1), IDLE, 0, SERVO);
        to.futex(at(2));
        // In total more than 27 bits of nanoseconds later, but less in each step.
        to.switch(at(120), SERVO, 1, IDLE);
        to.irq(at(250));
    });
    let second = packet(big, (at(300), at(500)), (1, 3, 0), |to| {
        to.switch(at(400), IDLE, 0x800, SERVO);
    });
    let other = packet(big, (at(0), at(500)), (0, 0, 1), |to| to.irq(at(100)));
    [[first, second].concat(), other]
}

fn metadata(big: bool) -> Vec<u8> {
    METADATA.replace("ORDER", if big { "be" } else { "le" }).into_bytes()
}

pub(super) fn open(
    metadata: Vec<u8>,
    streams: impl IntoIterator<Item = Vec<u8>>,
) -> Result<Trace, TraceError> {
    let streams = streams.into_iter().map(|bytes| Box::new(bytes) as Box<dyn ReadAt>);
    Trace::open_ctf(metadata, streams.collect())
}

pub(super) fn read(big: bool, streams: [Vec<u8>; 2]) -> (Vec<Event>, TraceFacts) {
    let mut trace = open(metadata(big), streams).unwrap();
    let events: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    (events, trace.facts())
}

#[test]
fn events_of_several_streams_are_merged_in_time_order() {
    let (events, facts) = read(false, streams(false));
    assert_eq!(read(true, streams(true)).0, events);
    assert_eq!((facts.format, facts.unreadable, facts.out_of_order), (TraceFormat::Ctf, 0, 0));
    let at = |ms: u64| BEGAN + ms * MS;
    // The task of CPU 1 is unknown: its interrupt is counted but produces no event.
    let calls: Vec<&EventKind> = events.iter().map(|event| &event.what).collect();
    assert!(matches!(calls[2], EventKind::SyscallEnter { args: [0x7f00, 128], .. }), "{calls:?}");
    assert!(matches!(calls[1], EventKind::FutexEnter { address: 0x7f00, .. }));
    let expected = events!(
        "{} cpu0 0 switch R -> 7/19
        {} 7/19 switch S -> 0
        {} irq_entry 17
        {} switch R -> 7/19
        {} 0 lost 3 since={}",
        at(1),
        at(120),
        at(250),
        at(400),
        at(500),
        at(400)
    );
    let others: Vec<_> = events[..1].iter().chain(&events[3..]).copied().collect();
    assert_eq!(others, expected);
    assert_eq!(facts.recorded.lost_count(), 3);
    assert_eq!(facts.clock.relation, ClockRelation::Monotonic);
    assert_eq!(facts.producer.as_deref(), Some("lttng-modules 2.8.0"));
    assert_eq!(facts.kernel.as_deref(), Some("4.4.3"));
    assert_eq!(facts.tracepoints["irq_handler_entry"].seen, 2);
    assert_eq!(facts.tracepoints["irq_handler_entry"].used, 1);
    assert_eq!(facts.names.task_name(Tid(7)), "servo");
    assert_eq!(facts.names.irqs[&17], "eth0");
    let groups = [Group::Sched, Group::Syscall, Group::Futex];
    assert!(groups.iter().all(|group| facts.recorded.groups.contains(group)));
    assert!(!facts.recorded.groups.contains(&Group::Irq), "exits were off");
}

#[test]
fn packets_that_are_missing_or_broken_are_gaps() {
    let at = |ms: u64| BEGAN + ms * MS;
    // The packet with the number 1 is missing.
    let third = packet(false, (at(600), at(700)), (2, 0, 1), |to| to.irq(at(650)));
    let [first, other] = streams(false);
    let (events, facts) = read(false, [first.clone(), [other.clone(), third].concat()]);
    let gap = events
        .iter()
        .find(|event| event.cpu == 1 && matches!(event.what, EventKind::Lost { count: 1, .. }));
    assert_eq!(gap.map(|gap| gap.at.0 as u64), Some(at(600)));
    assert!(facts.recorded.findings.iter().any(|finding| finding.id == "trace-lost"));
    // An undeclared id: the rest of its packet is unreadable.
    let unknown = packet(false, (at(0), at(500)), (0, 0, 1), |to| {
        to.compact(9, at(50));
        to.irq(at(100));
    });
    let (events, facts) = read(false, [first.clone(), unknown]);
    assert_eq!(facts.unreadable, 1);
    let is_gap = |event: &&Event| event.cpu == 1 && matches!(event.what, EventKind::Lost { .. });
    assert_eq!(events.iter().filter(is_gap).count(), 1);
    // A file that ends within a packet.
    let cut = first[..first.len() - 40].to_vec();
    let (_, facts) = read(false, [cut, other]);
    assert!(facts.recorded.findings.iter().any(|finding| finding.id == "trace-cut-off"));
}

#[test]
fn unsupported_ctf_traces_are_refused_with_the_reason() {
    let refused = |text: &str| open(text.into(), []).map(|_| ()).unwrap_err().to_string();
    assert!(refused("env { domain = \"ust\"; };").contains("domain ust"));
    assert!(refused("/* CTF 1.8 */").contains("no events of the kernel"));
    let twice = METADATA.replace("ORDER", "le").replace("pid_t _irq", "pid_u _irq");
    let refused = refused(&twice);
    assert!(
        refused.contains("`pid_u` is not declared") && refused.contains("line 45"),
        "{refused}"
    );
}

/// The seed of the fuzzer: the length of the metadata, the metadata, and two streams of equal
/// length.
#[test]
fn the_seed_of_the_fuzzer_is_this_trace() {
    assert_seed("lttng", &metadata(false));
}

pub(super) fn assert_seed(name: &str, metadata: &[u8]) {
    let [mut first, mut second] = streams(false);
    let length = first.len().max(second.len());
    first.resize(length, 0);
    second.resize(length, 0);
    let seed = [&(metadata.len() as u16).to_le_bytes()[..], metadata, &first, &second].concat();
    let path = format!("{}/../../fuzz/seeds/trace_ctf/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &seed).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == seed, "write it with PUNCTUAL_WRITE_DOCS=1");
}

proptest! {
    #[test]
    fn damaged_traces_never_panic(
        of_text in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3),
        of_stream in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cut in 0usize..200,
    ) {
        let (mut text, [mut first, second]) = (metadata(false), streams(false));
        for (bytes, places) in [(&mut text, of_text), (&mut first, of_stream)] {
            for (place, byte) in places {
                let place = place % bytes.len();
                bytes[place] = byte;
            }
        }
        first.truncate(first.len() - cut);
        if let Ok(trace) = open(text, [first, second]) {
            prop_assert!(trace.take(100_000).count() < 100_000);
        }
    }
}
