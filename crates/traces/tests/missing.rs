//! A missing part of a trace is detected if the format shows it: cut off at any byte, with losses,
//! with damaged or missing lines or records.

use punctual_core::Missing;
use punctual_traces::{ReadAt, Trace};

const TRACEFS: &[u8] = include_bytes!("data/numbered-calls.txt");
const REPORT: &[u8] =
    b"cpus=2\nCPU 0 is empty\n          <idle>-0     [001]   100.000015: sched_switch: \
swapper/1:0 [120] R ==> servo loop:77 [19]\n      servo loop-77    [001]   100.000020: \
sched_wakeup:         x:9 [120] CPU:000\n";
const PERFETTO: &[u8] = include_bytes!("data/servo.perfetto");
const PERF: &[u8] = include_bytes!("data/servo.perf.data");
const STREAM: &[u8] = include_bytes!("data/lttng/mychan_1_2");

/// The missing parts of a trace; `None` if it is refused.
fn missing(trace: Result<Trace, punctual_traces::TraceError>) -> Option<Vec<Missing>> {
    let mut trace = trace.ok()?;
    trace.by_ref().for_each(drop);
    Some(trace.facts().recorded.missing)
}

fn of_bytes(bytes: &[u8]) -> Option<Vec<Missing>> {
    missing(Trace::open(bytes.to_vec()))
}

fn of_stream(bytes: &[u8]) -> Option<Vec<Missing>> {
    let metadata = include_bytes!("data/lttng/metadata").to_vec();
    let other = include_bytes!("data/lttng/mychan_2_2").to_vec();
    let streams: Vec<Box<dyn ReadAt>> = vec![Box::new(bytes.to_vec()), Box::new(other)];
    missing(Trace::open_ctf(metadata, streams))
}

/// The ends of the packets of a trace of Perfetto.
fn packets(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (vec![], 0);
    while at < bytes.len() {
        let (mut length, mut place) = (0usize, 0);
        loop {
            at += 1;
            length |= usize::from(bytes[at] & 0x7f) << place;
            place += 7;
            if bytes[at] < 0x80 {
                break;
            }
        }
        at += 1 + length;
        ends.push(at);
    }
    ends
}

/// The ends of the records of a pipe of perf.
fn records(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (vec![], 16);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    while at + 12 <= bytes.len() {
        let kind = word(at);
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        // Descriptions of tracepoints follow their record.
        at += size + if kind == 66 { word(at + 8) as usize } else { 0 };
        ends.push(at);
    }
    ends
}

fn lines(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect()
}

#[test]
fn a_truncated_trace_is_refused_or_reported_as_incomplete() {
    let dat = super::dat::SHAPES[0];
    let (pipe, dat) = (super::perf::pipe(), [dat.version_6(), dat.version_7()]);
    let pages: Vec<usize> = (0..=STREAM.len()).step_by(4096).collect();
    type Read = fn(&[u8]) -> Option<Vec<Missing>>;
    // Undetectable between lines, packets and records without a stated count.
    let all: [(&str, &[u8], Read, Vec<usize>); 8] = [
        ("text of tracefs", TRACEFS, of_bytes, lines(&TRACEFS[..16])),
        ("text of trace-cmd", REPORT, of_bytes, lines(REPORT)),
        ("Perfetto", PERFETTO, of_bytes, packets(PERFETTO)),
        ("perf.data", PERF, of_bytes, vec![]),
        ("a pipe of perf", &pipe, of_bytes, records(&pipe)),
        ("trace.dat 6", &dat[0], of_bytes, vec![]),
        ("trace.dat 7", &dat[1], of_bytes, vec![]),
        ("CTF", STREAM, of_stream, pages),
    ];
    for (name, bytes, read, silent) in all {
        // The one of trace.dat lost nine events.
        let whole = read(bytes).expect("read");
        let lost = whole.iter().all(|one| matches!(one, Missing::Lost { count: 9, .. }));
        assert!(lost && name.starts_with("trace.dat") != whole.is_empty(), "{name}: {whole:?}");
        let step = bytes.len() / 120 + 1;
        let cuts =
            (0..bytes.len()).step_by(step).chain(bytes.len().saturating_sub(60)..bytes.len());
        for cut in cuts.filter(|cut| !silent.contains(cut)) {
            let found = read(&bytes[..cut]);
            assert!(found.is_none_or(|found| found != whole), "{name}: byte {cut}");
        }
    }
}

#[test]
fn a_missing_line_is_detected_by_the_entry_count_of_the_header() {
    let all: Vec<&[u8]> = TRACEFS.split_inclusive(|byte| *byte == b'\n').collect();
    for (gone, line) in all.iter().enumerate().filter(|(_, line)| !line.starts_with(b"#")) {
        let kept = all.iter().enumerate().filter(|(at, _)| *at != gone);
        let text = kept.map(|(_, line)| *line).collect::<Vec<_>>().concat();
        let found = of_bytes(&text).unwrap();
        let entries = |one: &Missing| matches!(one, Missing::Entries { .. });
        assert!(found.iter().any(entries), "{:?}", String::from_utf8_lossy(line));
    }
}

#[test]
fn losses_and_damage_in_text_are_detected_at_any_position() {
    let lost = Missing::Lost { count: 500, at_least: false };
    let anywhere = Missing::Lost { count: 1, at_least: true };
    let of_perf = "perf  1 [000]  100.000500: PERF_RECORD_LOST lost 500";
    let unreadable = Missing::Unreadable { count: 1 };
    let broken = "         servo-7       [000] d..2.   100.000500: sched_switch: prev_comm=serv";
    let cases = [
        ("CPU:0 [LOST 500 EVENTS]", &lost),
        ("CPU:1 [500 EVENTS DROPPED]", &lost),
        ("CPU:0 [LOST EVENTS]", &anywhere),
        ("##### CPU 1 buffer started ####", &anywhere),
        (of_perf, &lost),
        (broken, &unreadable),
    ];
    let all: Vec<&[u8]> = TRACEFS.split_inclusive(|byte| *byte == b'\n').collect();
    let head = all.iter().position(|line| !line.starts_with(b"#")).unwrap();
    for (line, expected) in cases {
        for at in head..=all.len() {
            let added = format!("{line}\n");
            let text = [&all[..at].concat(), added.as_bytes(), &all[at..].concat()].concat();
            let found = of_bytes(&text).unwrap();
            assert!(found.contains(expected), "{line} before line {at}: {found:?}");
        }
    }
    // Text pasted before its first line is not a gap.
    assert_eq!(of_bytes(&[b"root@board:~# cat trace\n", TRACEFS].concat()), Some(vec![]));
    // A stack is not damage.
    let stack = b"\tffffffff81a0c5d3 schedule+0x2f8 ([kernel.kallsyms])\n => do_nanosleep\n";
    assert_eq!(of_bytes(&[TRACEFS, stack].concat()), Some(vec![]));
}
