//! trace.dat, built here in every variant that machines produce.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use punctual_core::Event;
use punctual_core::event::{EventKind, MomentSource, Tid};
use punctual_testing::events;
use punctual_traces::{ClockRelation, Trace, TraceError, TraceFacts, TraceFormat};
use std::io::Write;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    big: bool,
    long: usize,
    page: usize,
}

pub(super) const SHAPES: [Shape; 4] = [
    Shape { big: false, long: 8, page: 4096 },
    Shape { big: false, long: 4, page: 4096 },
    Shape { big: true, long: 8, page: 65536 },
    Shape { big: true, long: 4, page: 16384 },
];

impl Shape {
    fn number(self, number: u64, size: usize) -> Vec<u8> {
        if self.big {
            number.to_be_bytes()[8 - size..].to_vec()
        } else {
            number.to_le_bytes()[..size].to_vec()
        }
    }
    fn sized(self, text: &str) -> Vec<u8> {
        [self.number(text.len() as u64, 8), text.as_bytes().to_vec()].concat()
    }
    fn head(self, version: &str) -> Vec<u8> {
        let mut head = b"\x17\x08\x44tracing".to_vec();
        head.extend_from_slice(version.as_bytes());
        head.extend([0, u8::from(self.big), self.long as u8]);
        head.extend(self.number(self.page as u64, 4));
        head
    }
    fn header_pages(self) -> Vec<u8> {
        let (long, data) = (self.long, 8 + self.long);
        let page = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t \
             commit;\toffset:8;\tsize:{long};\tsigned:1;\n\tfield: char \
             data;\toffset:{data};\tsize:4080;\tsigned:1;\n"
        );
        [b"header_page\0".to_vec(), self.sized(&page), b"header_event\0".to_vec(), self.sized("x")]
            .concat()
    }
    fn formats(self) -> Vec<u8> {
        let mut bytes = self.number(1, 4);
        bytes.extend(b"sched\0");
        bytes.extend(self.number(1, 4));
        bytes.extend(self.sized(SWITCH));
        bytes
    }
    fn switch(self, tid: u32, next: u32) -> Vec<u8> {
        let mut record = self.number(316, 2);
        record.extend([0, 0]);
        record.extend(self.number(tid.into(), 4));
        record.extend(b"first\0\0\0\0\0\0\0\0\0\0\0");
        record.extend(self.number(tid.into(), 4));
        record.extend(self.number(120, 4));
        record.extend(self.number(1, 4));
        record.extend(b"two words\0\0\0\0\0\0\0");
        record.extend(self.number(next.into(), 4));
        record.extend(self.number(19, 4));
        record
    }
    /// A page with a record 10 ns after its start and another 5 ns later.
    fn page(self, at: u64, lost: Option<u64>, tid: u32) -> Vec<u8> {
        self.page_of(at, lost, &[(10, self.switch(tid, 77)), (5, self.switch(77, tid))])
    }
    /// A page of records, each with the time since the one before.
    fn page_of(self, at: u64, lost: Option<u64>, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut data = Vec::new();
        for (delta, record) in records {
            let words = record.len() as u64 / 4;
            let head = if self.big { words << 27 | delta } else { words | delta << 5 };
            data.extend(self.number(head, 4));
            data.extend(record);
        }
        let flags = if lost.is_some() { 1 << 31 | 1 << 30 } else { 0 };
        let mut page = self.number(at, 8);
        page.extend(self.number(data.len() as u64 | flags, self.long));
        page.extend(data);
        page.extend(lost.map_or(Vec::new(), |lost| self.number(lost, self.long)));
        page.resize(self.page, 0);
        page
    }
    fn cpus(self) -> [Vec<u8>; 2] {
        let second = [self.page(1_002, None, 8), self.page(5_000, Some(9), 8)].concat();
        [self.page(1_000, None, 7), second]
    }
    pub(super) fn version_6(self) -> Vec<u8> {
        self.version_6_of(&[], "", self.cpus())
    }
    /// With formats of tracers, functions, and the pages of CPUs.
    fn version_6_of(self, tracers: &[String], kallsyms: &str, cpus: [Vec<u8>; 2]) -> Vec<u8> {
        let mut file = [self.head("6"), self.header_pages()].concat();
        file.extend(self.number(tracers.len() as u64, 4));
        tracers.iter().for_each(|format| file.extend(self.sized(format)));
        file.extend(self.formats());
        file.extend(self.number(kallsyms.len() as u64, 4));
        file.extend(kallsyms.as_bytes());
        file.extend(self.number(0, 4));
        file.extend(self.sized("7 of cmdlines\n99 other\n"));
        file.extend(self.number(2, 4));
        file.extend(b"options  \0");
        let uname = b"Linux host 6.12.0-rt #1 SMP x86_64\0";
        file.extend([self.number(5, 2), self.number(uname.len() as u64, 4)].concat());
        file.extend(uname);
        file.extend([self.number(4, 2), self.number(0, 4), self.number(0, 2)].concat());
        file.extend(b"flyrecord\0");
        let clock = self.sized("local [mono] global\n");
        let at = file.len() + 2 * 16 + clock.len();
        let [first, second] = cpus;
        let sizes = [(at, first.len()), (at + first.len(), second.len())];
        for (at, size) in sizes {
            file.extend([self.number(at as u64, 8), self.number(size as u64, 8)].concat());
        }
        [file, clock, first, second].concat()
    }
    fn section(self, kind: u64, bytes: &[u8], packed: bool) -> Vec<u8> {
        let mut section = [self.number(kind, 2), self.number(packed.into(), 2)].concat();
        section.extend(self.number(0, 4));
        if packed {
            let chunk = self.chunk(bytes);
            section.extend(self.number(chunk.len() as u64, 8));
            section.extend(chunk);
        } else {
            section.extend(self.number(bytes.len() as u64, 8));
            section.extend(bytes);
        }
        section
    }
    fn chunk(self, bytes: &[u8]) -> Vec<u8> {
        let packed = zlib(bytes);
        let sizes = [self.number(packed.len() as u64, 4), self.number(bytes.len() as u64, 4)];
        [sizes.concat(), packed].concat()
    }
    pub(super) fn version_7(self) -> Vec<u8> {
        let mut file = [self.head("7"), b"zlib\x001.2\0".to_vec()].concat();
        let place = file.len();
        file.extend([0; 8]);
        let mut options = Vec::new();
        let mut option = |kind: u64, data: Vec<u8>| {
            options.extend([self.number(kind, 2), self.number(data.len() as u64, 4), data].concat())
        };
        for (kind, bytes) in [(16, self.header_pages()), (18, self.formats())] {
            option(kind, self.number(file.len() as u64, 8));
            file.extend(self.section(kind, &bytes, true));
        }
        let buffer = file.len() as u64;
        let mut of_buffer = [self.number(buffer, 8), b"\0mono\0".to_vec()].concat();
        of_buffer.extend([self.number(self.page as u64, 4), self.number(2, 4)].concat());
        file.extend([self.number(3, 2), self.number(1, 2), vec![0; 12]].concat());
        for (cpu, data) in self.cpus().into_iter().enumerate() {
            let at = file.len() as u64;
            let chunks: Vec<Vec<u8>> =
                data.chunks(self.page).map(|page| self.chunk(page)).collect();
            file.extend(self.number(chunks.len() as u64, 4));
            chunks.iter().for_each(|chunk| file.extend(chunk));
            let size = file.len() as u64 - at;
            of_buffer.extend([self.number(cpu as u64, 4), self.number(at, 8)].concat());
            of_buffer.extend(self.number(size, 8));
        }
        option(3, of_buffer);
        option(9, b"3.1.6\0".to_vec());
        option(0, self.number(0, 8));
        let at = self.number(file.len() as u64, 8);
        file[place..place + 8].copy_from_slice(&at);
        file.extend(self.section(0, &options, false));
        file
    }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const SWITCH: &str = include_str!("data/sched_switch.format");

fn read(file: Vec<u8>) -> (Vec<Event>, TraceFacts) {
    let mut trace = Trace::open(file).unwrap();
    let events: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    (events, trace.facts())
}

/// Whether it is not the header of one.
fn is_of_a_tracepoint(event: &Event) -> bool {
    !matches!(event.what, EventKind::Context { .. })
}

#[test]
fn trace_dat_6_and_7_are_read_in_every_byte_order_and_word_size() {
    for shape in SHAPES {
        for (version, file) in [(6, shape.version_6()), (7, shape.version_7())] {
            let (mut events, facts) = read(file);
            events.retain(is_of_a_tracepoint);
            let of = |event: &Event| (event.at.0, event.cpu, event.tid.0);
            let lost = (5_010, 1, 0);
            let expected = [
                (1_010, 0, 7),
                (1_012, 1, 8),
                (1_015, 0, 77),
                (1_017, 1, 77),
                lost,
                (5_010, 1, 8),
                (5_015, 1, 77),
            ];
            assert_eq!(events.iter().map(of).collect::<Vec<_>>(), expected, "{shape:?} {version}");
            let kinds = events!("0 switch S -> 77/19; 0 lost 9 since=1017");
            assert_eq!([events[0].what, events[4].what], [kinds[0].what, kinds[1].what]);
            assert_eq!(facts.format, TraceFormat::TraceDat);
            assert_eq!(facts.clock.name.as_deref(), Some("mono"));
            assert_eq!(facts.clock.relation, ClockRelation::Monotonic);
            assert_eq!(facts.names.task_name(Tid(77)), "first");
            assert_eq!(facts.recorded.lost_count(), 9);
            assert_eq!(facts.tracepoints["sched:sched_switch"].used, 6);
            assert_eq!((facts.unreadable, facts.out_of_order), (0, 0));
            if version == 6 {
                assert_eq!(facts.names.task_name(Tid(99)), "other");
                assert_eq!(facts.kernel.as_deref(), Some("6.12.0-rt"));
                assert_eq!(facts.machine.as_deref(), Some("x86_64"));
            } else {
                assert_eq!(facts.producer.as_deref(), Some("trace-cmd 3.1.6 (trace.dat 7)"));
            }
        }
    }
}

/// `ip`, `size` and so on: fields of one long each behind the common ones.
fn format_of(shape: Shape, name: &str, id: u32, fields: &[&str]) -> String {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                  \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                  \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                  \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let long = shape.long;
    let fields = fields.iter().enumerate().map(|(place, field)| {
        let offset = 8 + place * long;
        format!("\tfield:unsigned long {field};\toffset:{offset};\tsize:{long};\tsigned:0;\n")
    });
    let fields: String = fields.collect();
    format!("name: {name}\nID: {id}\nformat:\n{common}{fields}\nprint fmt: \"x\"\n")
}

/// The records that tracers write by themselves (kernel/trace/trace_entries.h).
#[test]
fn functions_stacks_and_samples_of_tracers_are_read() {
    for shape in SHAPES {
        let names: [(&str, &[&str]); 8] = [
            ("function", &["ip", "parent_ip"]),
            ("kernel_stack", &["size", "caller[8]"]),
            ("funcgraph_entry", &["func", "depth"]),
            ("funcgraph_exit", &["func", "calltime", "rettime"]),
            ("timerlat", &["seqnum", "context", "timer_latency"]),
            ("hwlat", &["seqnum", "duration", "outer_duration"]),
            ("context_switch", &["prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio"]),
            ("wakeup", &["next_pid", "next_prio", "next_cpu"]),
        ];
        let formats =
            names.iter().zip(1..).map(|((name, fields), id)| format_of(shape, name, id, fields));
        let record = |id: u64, values: &[u64]| {
            let mut record = shape.number(id, 2);
            // Interrupts are off (TRACE_FLAG_IRQS_OFF), in the thread 7.
            record.extend([1, 0]);
            record.extend(shape.number(7, 4));
            values.iter().for_each(|value| record.extend(shape.number(*value, shape.long)));
            (1_000, record)
        };
        let records = [
            record(8, &[9, 19, 1]),
            record(1, &[0x8000_1004, 0x8000_2010]),
            record(2, &[2, 0x8000_1004, 0x8000_2010]),
            record(3, &[0x8000_1000, 0]),
            record(4, &[0x8000_1000, 500, 1_200]),
            record(5, &[3, 0, 700]),
            record(5, &[3, 1, 2_500]),
            record(6, &[1, 11, 12]),
            record(7, &[7, 120, 2, 9, 19]),
        ];
        let pages = [shape.page_of(50_000, None, &records), shape.page(50_000, None, 8)];
        let kallsyms = "80001000 t isolate_folios\n80001f00 d no_function\n\
                        80002000 T shrink_list\t[module]\n";
        let formats: Vec<String> = formats.collect();
        let (events, facts) = read(shape.version_6_of(&formats, kallsyms, pages));
        let of_first: Vec<&Event> = events.iter().filter(|event| event.cpu == 0).collect();
        let site = |event: &Event| match event.what {
            EventKind::Context { site, context, .. } if site != 0 => {
                assert_eq!(context.irqs_off, Some(true));
                facts.names.symbols.get(&site).cloned()
            }
            _ => None,
        };
        let sites: Vec<String> = of_first.iter().filter_map(|event| site(event)).collect();
        assert_eq!(sites, ["isolate_folios ‹ shrink_list"], "{shape:?}");
        let stack = of_first.iter().find_map(|event| match event.what {
            EventKind::Stack { stack } => Some(facts.names.stack_functions(stack)),
            _ => None,
        });
        assert_eq!(stack, Some(vec!["isolate_folios".to_owned(), "shrink_list".to_owned()]));
        for expected in events!("0 wakeup 9/19 cpu1; 0 switch D -> 9/19") {
            assert!(of_first.iter().any(|event| event.what == expected.what), "{of_first:?}");
        }
        let moments = facts.recorded.moments.iter().map(|of| (of.source, of.duration().ns()));
        let mut moments: Vec<(MomentSource, i64)> = moments.collect();
        moments.sort_by_key(|(_, span)| *span);
        let expected = [
            (MomentSource::FunctionGraph, 700),
            (MomentSource::Timerlat, 2_500),
            (MomentSource::Hwlat, 12_000),
        ];
        assert_eq!(moments, expected);
        assert_eq!(facts.unreadable, 0);
    }
}

#[test]
fn a_truncated_trace_dat_is_read_or_refused() {
    let shape = SHAPES[0];
    for file in [shape.version_6(), shape.version_7()] {
        for length in (0..file.len()).step_by(37) {
            if let Ok(trace) = Trace::open(file[..length].to_vec()) {
                assert!(trace.flatten().filter(is_of_a_tracepoint).count() <= 7);
            }
        }
    }
    let mut other = shape.version_6();
    other[10] = b'5';
    assert!(matches!(Trace::open(other), Err(TraceError::Unsupported(_))));
    let stream = std::io::Cursor::new(shape.version_6());
    assert!(matches!(Trace::open_stream(stream), Err(TraceError::NotStreamable(_))));
}
