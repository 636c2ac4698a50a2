//! Random bytes as a segment of a recording, as the payload of a valid block, and, if they begin
//! with a brace, as its document.
use punctual_bundle::RecordingReader;
use punctual_bundle::recording::{BlockHeader, Encoding, RecordingWriter};
use punctual_core::MonotonicNs;
use std::fs;
use std::path::Path;

pub fn fuzz(bytes: &[u8]) {
    let place =
        std::env::temp_dir().join(format!("punctual-fuzz-recording-{}", std::process::id()));
    let directory = place.join("recording");
    let _ = fs::create_dir_all(&directory);
    let file = if bytes.starts_with(b"{") { "recording.json" } else { "00-000000.events" };
    fs::write(directory.join(file), bytes).expect("a file in a temporary directory");
    let document = read(&place);
    let _ = fs::remove_dir_all(&directory);
    if let Some(document) = document.filter(|_| !bytes.starts_with(b"{")) {
        // The same bytes as the header and content of a valid block.
        let number = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let block = BlockHeader {
            source: number(0).into(),
            encoding: Encoding(number(1).into()),
            count: u32::from_le_bytes([number(2), number(3), number(4), number(5)]),
            before: u64::from(number(6)) << (number(7) % 64),
            lost: u64::from(number(8)) << (number(9) % 64),
            first: MonotonicNs(i64::from(number(10)) << (number(11) % 64)),
            last: MonotonicNs(i64::MAX),
        };
        let writer = RecordingWriter::create(&place, &document).expect("a recording");
        let mut lane = writer.new_lane(0, None);
        lane.append_block(&block, bytes).expect("a block");
        lane.append_block(&block, b"").expect("a block");
        read(&place);
        let _ = fs::remove_dir_all(&directory);
    }
}

fn read(place: &Path) -> Option<punctual_bundle::RecordingDocument> {
    let recording = RecordingReader::open(place)?;
    let _ = (recording.count_recorded().lost_count(), recording.encodings());
    for block in recording.sources.values().flat_map(|source| &source.blocks) {
        let _ = block.read();
    }
    Some(recording.document)
}
