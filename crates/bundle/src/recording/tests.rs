//! Recordings written, cut, damaged, and read.

use super::*;
use proptest::prelude::*;
use punctual_core::MonotonicNs;
use punctual_core::event::{Names, Recorded, RecordedSource};
use std::fs;
use std::path::{Path, PathBuf};

fn document(keeps: Keeps, cpus: u16) -> RecordingDocument {
    let source = |cpu| RecordedSource {
        name: format!("cpu {cpu}"),
        cpu: Some(cpu),
        ..RecordedSource::default()
    };
    let recorded = Recorded {
        recorder: "a test".into(),
        ended: MonotonicNs(1_000),
        sources: (0..cpus).map(source).collect(),
        ..Recorded::default()
    };
    RecordingDocument::new(keeps, recorded, Names::default())
}

fn block(source: u32, before: u64, count: u32) -> BlockHeader {
    let at = |n: u64| MonotonicNs(n as i64 * 10);
    let last = at(before + u64::from(count) - 1);
    BlockHeader {
        source,
        encoding: Encoding::KERNEL,
        count,
        before,
        lost: 0,
        first: at(before),
        last,
    }
}

/// Two sources, a hundred blocks of ten events in turn, of 100 bytes each.
fn write(bundle: &Path, keeps: Keeps, bound: Option<u64>) -> LaneWriter {
    let writer = RecordingWriter::create(bundle, &document(keeps, 2)).unwrap();
    let mut lane = writer.new_lane(0, bound);
    for n in 0..100u64 {
        lane.append_block(&block((n % 2) as u32, n / 2 * 10, 10), &[n as u8; 100]).unwrap();
    }
    lane
}

fn segment(bundle: &Path) -> PathBuf {
    bundle.join("recording/00-000000.events")
}

fn find(recording: &RecordingReader, id: &str) -> bool {
    recording.count_recorded().findings.iter().any(|finding| finding.id == id)
}

#[test]
fn appended_blocks_are_read_back() {
    let bundle = tempfile::tempdir().unwrap();
    assert!(RecordingReader::open(bundle.path()).is_none());
    let writer = RecordingWriter::create(bundle.path(), &document(Keeps::All, 1)).unwrap();
    let mut lane = writer.new_lane(0, None);
    lane.append_block(&BlockHeader { lost: 7, ..block(0, 0, 3) }, b"three").unwrap();
    lane.append_block(&BlockHeader { lost: 9, ..block(0, 3, 1) }, b"").unwrap();
    let mut at_end = document(Keeps::All, 1);
    at_end.complete = true;
    writer.finish(&at_end).unwrap();
    let recording = RecordingReader::open(bundle.path()).unwrap();
    let recorded = recording.count_recorded();
    assert_eq!((recorded.sources[0].recorded, recorded.sources[0].lost), (4, 9));
    assert_eq!((recording.damage.len(), recorded.findings.len()), (0, 0));
    let blocks = &recording.sources[&0].blocks;
    assert_eq!(
        blocks.iter().map(|place| place.read().unwrap()).collect::<Vec<_>>(),
        [b"three".to_vec(), Vec::new()]
    );
    assert_eq!(recording.encodings(), [Encoding::KERNEL]);
}

#[test]
fn a_truncated_recording_reports_its_contents() {
    let bundle = tempfile::tempdir().unwrap();
    write(bundle.path(), Keeps::All, None);
    let recording = RecordingReader::open(bundle.path()).unwrap();
    let recorded = recording.count_recorded();
    assert!(find(&recording, "recording-cut-off") && !find(&recording, "recording-events-missing"));
    assert_eq!(
        recorded.sources.iter().map(|source| source.recorded).collect::<Vec<_>>(),
        [500, 500]
    );
    assert_eq!(recorded.ended, MonotonicNs(4_990));
}

#[test]
fn unwritten_and_damaged_events_are_counted_as_missing() {
    let bundle = tempfile::tempdir().unwrap();
    let mut lane = write(bundle.path(), Keeps::All, None);
    // Ten events that could not be written, as the disk was full.
    lane.append_block(&block(0, 510, 5), b"later").unwrap();
    let path = segment(bundle.path());
    let mut bytes = fs::read(&path).unwrap();
    // A byte of the third payload.
    bytes[8 + 2 * 164 + 64] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let recording = RecordingReader::open(bundle.path()).unwrap();
    assert!(find(&recording, "recording-events-missing"));
    assert_eq!(recording.count_recorded().lost_count(), 10);
    let third = recording.sources[&0].blocks[1].read().unwrap_err().to_string();
    assert!(third.contains("the block of 10 events"), "{third}");
    // A broken header ends the trusted part of this segment, and the rest is reported.
    bytes[8 + 50 * 164 + 3] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let recording = RecordingReader::open(bundle.path()).unwrap();
    assert_eq!(
        recording.count_recorded().sources.iter().map(|source| source.recorded).sum::<u64>(),
        500
    );
    assert!(recording.damage[0].contains("not a complete block"), "{:?}", recording.damage);
}

#[test]
fn a_limited_recording_keeps_only_the_newest_events() {
    let bundle = tempfile::tempdir().unwrap();
    let lane = write(bundle.path(), Keeps::Newest, Some(4_000));
    assert!(lane.byte_count() <= 4_000, "{}", lane.byte_count());
    let recording = RecordingReader::open(bundle.path()).unwrap();
    let (recorded, sources) = (recording.count_recorded(), &recording.sources);
    assert!(find(&recording, "recording-oldest-removed") && recorded.lost_count() == 0);
    assert!(
        sources.values().all(|source| source.removed + source.count == 500 && source.missing == 0),
        "{sources:?}"
    );
    assert!(recorded.began > MonotonicNs(3_500));
    assert!(recording.bytes == lane.byte_count() && recording.bytes > 3_000);
}

#[test]
fn a_recording_without_its_document_is_readable() {
    let bundle = tempfile::tempdir().unwrap();
    write(bundle.path(), Keeps::All, None);
    fs::remove_file(bundle.path().join("recording/recording.json")).unwrap();
    let recording = RecordingReader::open(bundle.path()).unwrap();
    assert_eq!(recording.count_recorded().sources[1].name, "source 1");
    assert_eq!(recording.count_recorded().sources[1].recorded, 500);
    assert!(recording.damage[0].contains("recording.json"), "{:?}", recording.damage);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_panic(cut in 0usize..16_500, at in 0usize..16_400, bits in 1u8..) {
        let bundle = tempfile::tempdir().unwrap();
        write(bundle.path(), Keeps::All, None);
        let mut bytes = fs::read(segment(bundle.path())).unwrap();
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= bits;
        }
        bytes.truncate(cut);
        fs::write(segment(bundle.path()), &bytes).unwrap();
        let recording = RecordingReader::open(bundle.path()).unwrap();
        let recorded = recording.count_recorded();
        let read = recording
            .sources
            .values()
            .flat_map(|source| &source.blocks)
            .filter(|place| place.read().is_ok());
        prop_assert!(read.count() <= 100);
        prop_assert!(recorded.sources.iter().all(|source| source.recorded <= 500));
    }
}
