//! Windows written, replaced, damaged, and read.

use super::*;
use proptest::prelude::*;
use punctual_core::event::{Names, Recorded, Tid};
use punctual_core::{Bytes, ClockNs, CpuSet, MonotonicNs, Nanos, Sample};
use std::fs;
use std::path::Path;

fn document() -> WindowsDocument {
    let rule = KeptRule {
        worst: 2,
        above: None,
        before: Nanos::MILLI,
        buffer: Bytes(4096),
        room: Bytes(1 << 20),
    };
    WindowsDocument::new(rule, Recorded::without_events("a test", MonotonicNs(0)), Names::default())
}

fn head(seq: u64, latency: i64, lanes: &[(u16, u32)]) -> WindowHead {
    let due = seq as i64 * 1_000_000;
    let lane = |(cpu, bytes): &(u16, u32)| WindowLane {
        cpu: *cpu,
        whole_from: MonotonicNs(due),
        bytes: *bytes,
    };
    WindowHead {
        steal: None,
        phase: "main".to_owned(),
        series: "timer/cpu1".to_owned(),
        sample: Sample { seq, due: ClockNs(due), woke: ClockNs(due + latency), cpu: 1 },
        due: MonotonicNs(due),
        woke: MonotonicNs(due + latency),
        tid: Tid(7),
        waited: Waited::Timer,
        lanes: lanes.iter().map(lane).collect(),
        left_out: CpuSet::new(),
    }
}

fn write(bundle: &Path) -> WindowsWriter {
    let writer = WindowsWriter::create(bundle, &document()).unwrap();
    writer.add_window(0, &head(3, 500, &[(1, 3), (0, 2)]), &[b"abc", b"de"]).unwrap();
    writer.add_window(1, &head(9, 900, &[(1, 0)]), &[b""]).unwrap();
    writer
}

#[test]
fn windows_are_read_back_latest_first() {
    let bundle = tempfile::tempdir().unwrap();
    assert!(WindowsReader::open(bundle.path()).is_none());
    let writer = write(bundle.path());
    let windows = WindowsReader::open(bundle.path()).unwrap();
    assert_eq!(windows.damage, Vec::<String>::new());
    assert_eq!(
        windows.windows.iter().map(|window| window.head.sample.seq).collect::<Vec<_>>(),
        [9, 3]
    );
    let bytes = windows.windows[1].read().unwrap();
    let (read, lanes) = WindowHead::read(&bytes).unwrap();
    assert_eq!((read, lanes), (head(3, 500, &[(1, 3), (0, 2)]), vec![&b"abc"[..], &b"de"[..]]));
    assert!(windows.limit_findings().iter().any(|finding| finding.id == "windows-cut-off"));
    writer.remove(0).unwrap();
    writer.finish(&WindowsDocument { complete: true, ..document() }).unwrap();
    let windows = WindowsReader::open(bundle.path()).unwrap();
    assert_eq!((windows.windows.len(), windows.limit_findings().len()), (1, 0));
}

#[test]
fn a_window_whose_records_do_not_match_its_head_is_refused() {
    let bundle = tempfile::tempdir().unwrap();
    let writer = write(bundle.path());
    assert!(writer.add_window(5, &head(1, 1, &[(0, 4)]), &[b"abc"]).is_err());
    assert_eq!(WindowsReader::open(bundle.path()).unwrap().windows.len(), 2);
}

#[test]
fn a_damaged_window_is_omitted_and_reported() {
    let bundle = tempfile::tempdir().unwrap();
    write(bundle.path());
    let path = bundle.path().join("windows/000000.window");
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    // The head is valid: the records cannot be read.
    let windows = WindowsReader::open(bundle.path()).unwrap();
    assert!(windows.windows[1].read().unwrap_err().to_string().contains("records"));
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let windows = WindowsReader::open(bundle.path()).unwrap();
    assert_eq!(windows.windows.len(), 1);
    assert!(windows.damage[0].contains("000000.window"), "{:?}", windows.damage);
}

proptest! {
    #[test]
    fn no_bytes_panic(at in 0usize..600, bits in 1u8.., cut in 0usize..600) {
        let head = head(3, 500, &[(1, 3), (0, 2)]);
        let mut bytes = head.encode(&[b"abc", b"de"]).unwrap();
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= bits;
        }
        bytes.truncate(cut);
        let changed = at < bytes.len() || cut < head.encode(&[b"abc", b"de"]).unwrap().len();
        prop_assert_eq!(WindowHead::read(&bytes).is_err(), changed);
    }
}
