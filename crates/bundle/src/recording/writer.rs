//! Writes a recording: a document that is updated, and a lane of segments for each thread that
//! drains recorders.

use super::block::{BlockHeader, HEADER, MAGIC};
use super::{DIRECTORY, RecordingDocument, SEGMENT};
use crate::BundleError;
use crate::member::Member;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::Path;

/// A recording being written.
#[derive(Debug)]
pub struct RecordingWriter {
    directory: Member,
}

impl RecordingWriter {
    /// Creates `recording/` in a bundle, closed to other users, with its document. From here on the
    /// bundle has a recording.
    pub fn create(
        bundle: &Path,
        document: &RecordingDocument,
    ) -> Result<RecordingWriter, BundleError> {
        let directory = Member::from_root(bundle).join(DIRECTORY).to_private();
        directory.create_directory()?;
        let writer = RecordingWriter { directory };
        writer.renew_document(document)?;
        writer.reserve_member().replace_bytes(&vec![b'-'; RESERVE])?;
        Ok(writer)
    }

    /// Space for the last files of the bundle, freed when they are written.
    fn reserve_member(&self) -> Member {
        self.directory.join("reserve")
    }

    pub fn renew_document(&self, document: &RecordingDocument) -> Result<(), BundleError> {
        self.directory.join("recording.json").replace_json(document)
    }

    /// A lane: the segments written by one thread. `keep_newest` limits its bytes by removing the
    /// oldest segments.
    pub fn new_lane(&self, number: u8, keep_newest: Option<u64>) -> LaneWriter {
        LaneWriter {
            directory: self.directory.clone(),
            number,
            keep_newest,
            next: 0,
            current: None,
            older: VecDeque::new(),
            bytes: 0,
            removed: 0,
        }
    }

    /// Ends the recording: writes the final document and syncs everything to disk.
    pub fn finish(self, document: &RecordingDocument) -> Result<(), BundleError> {
        self.reserve_member().remove()?;
        self.renew_document(document)?;
        self.directory.sync_to_disk()
    }
}

/// Twice the maximum size of the last files of a bundle: names of many thousand threads.
const RESERVE: usize = 2 << 20;
/// The size of a full segment; if only the newest are kept, an eighth of the lane.
const SEGMENT_BYTES: u64 = 1 << 30;
const SEGMENTS_KEPT: u64 = 8;

/// The segments of one thread. Appending a block is one writev(2) without a copy.
#[derive(Debug)]
pub struct LaneWriter {
    directory: Member,
    number: u8,
    keep_newest: Option<u64>,
    next: u32,
    current: Option<SegmentFile>,
    older: VecDeque<ClosedSegment>,
    bytes: u64,
    removed: u64,
}

#[derive(Debug)]
struct SegmentFile {
    member: Member,
    file: File,
    bytes: u64,
    events: u64,
}

#[derive(Debug)]
struct ClosedSegment {
    member: Member,
    bytes: u64,
    events: u64,
}

/// The result of appending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Appended {
    /// The current size of the lane in bytes.
    pub bytes: u64,
    /// Events removed with old segments since the start.
    pub removed: u64,
}

impl LaneWriter {
    /// Appends a block. After an error the file contains no part of it; the `before` of later
    /// blocks counts its events, which are missing.
    pub fn append_block(
        &mut self,
        block: &BlockHeader,
        payload: &[u8],
    ) -> Result<Appended, BundleError> {
        let full = self.keep_newest.map_or(SEGMENT_BYTES, |bytes| bytes / SEGMENTS_KEPT);
        if self
            .current
            .as_ref()
            .is_some_and(|segment| segment.bytes > HEADER as u64 && segment.bytes >= full)
        {
            self.close_segment();
        }
        let mut segment = match self.current.take() {
            Some(segment) => segment,
            None => self.open_segment()?,
        };
        let written = segment.append_block(block, payload);
        self.current = Some(segment);
        self.bytes += written?;
        self.remove_oldest()?;
        Ok(Appended { bytes: self.bytes, removed: self.removed })
    }

    /// The size of the lane in bytes.
    pub fn byte_count(&self) -> u64 {
        self.bytes
    }

    fn open_segment(&mut self) -> Result<SegmentFile, BundleError> {
        let member = self.directory.join(format!("{:02}-{:06}{SEGMENT}", self.number, self.next));
        let mut file = member.create_new()?;
        if let Err(why) = file.write_all(MAGIC) {
            let _ = member.remove();
            return Err(BundleError::from_io("write", member.path())(why));
        }
        self.next += 1;
        self.bytes += MAGIC.len() as u64;
        Ok(SegmentFile { member, file, bytes: MAGIC.len() as u64, events: 0 })
    }

    fn close_segment(&mut self) {
        let closed = self.current.take().map(|s| ClosedSegment {
            member: s.member,
            bytes: s.bytes,
            events: s.events,
        });
        self.older.extend(closed);
    }

    fn remove_oldest(&mut self) -> Result<(), BundleError> {
        let Some(bound) = self.keep_newest else { return Ok(()) };
        while self.bytes > bound {
            let Some(oldest) = self.older.pop_front() else { break };
            oldest.member.remove()?;
            self.bytes -= oldest.bytes;
            self.removed += oldest.events;
        }
        Ok(())
    }
}

impl SegmentFile {
    fn append_block(&mut self, block: &BlockHeader, payload: &[u8]) -> Result<u64, BundleError> {
        let header = block.encode_header(payload);
        if let Err(why) = write_both(&mut self.file, &header, payload) {
            // A partial write must not precede later whole blocks.
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::Start(self.bytes));
            return Err(BundleError::from_io("write", self.member.path())(why));
        }
        let length = (HEADER + payload.len()) as u64;
        self.bytes += length;
        self.events += u64::from(block.count);
        Ok(length)
    }
}

fn write_both(file: &mut File, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let (mut parts, mut left) =
        ([IoSlice::new(header), IoSlice::new(payload)], header.len() + payload.len());
    let mut rest = &mut parts[..];
    while left > 0 {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                left -= n;
                IoSlice::advance_slices(&mut rest, n);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}
