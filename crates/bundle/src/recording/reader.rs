//! Opens a recording: indexes its blocks by their headers; payloads are read one at a time.

use super::block::{BlockHeader, Encoding, HEADER, MAGIC};
use super::{DIRECTORY, Keeps, RecordingDocument, SEGMENT};
use crate::BundleError;
use crate::member::Member;
use punctual_core::event::{Names, Recorded, RecordedSource};
use punctual_core::{Finding, Missing, MonotonicNs, Severity};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// An opened recording.
#[derive(Clone, Debug)]
pub struct RecordingReader {
    /// Its document. Counts of a recording that was cut off are those of the last update: see
    /// [`RecordingReader::count_recorded`].
    pub document: RecordingDocument,
    /// The blocks by the number of their source.
    pub sources: BTreeMap<u32, SourceBlocks>,
    /// The damage, each with its place.
    pub damage: Vec<String>,
    /// The size of all segments.
    pub bytes: u64,
    /// Why the recording is unusable: its document, or all its events, cannot be read.
    pub unreadable: Option<String>,
}

/// The blocks of one source, as they were appended.
#[derive(Clone, Debug, Default)]
pub struct SourceBlocks {
    pub blocks: Vec<BlockPlace>,
    /// The number of events in them, by their headers.
    pub count: u64,
    /// Events before the first block that are gone: removed with old segments.
    pub removed: u64,
    /// Events missing between the blocks: unwritten or damaged.
    pub missing: u64,
}

/// The position of a block, with its header.
#[derive(Clone, Debug)]
pub struct BlockPlace {
    pub block: BlockHeader,
    segment: Arc<Member>,
    offset: u64,
    length: u32,
    crc: u32,
}

impl BlockPlace {
    /// Reads the payload into `payload`, replacing its content, and checks it.
    pub fn read_into(&self, payload: &mut Vec<u8>) -> Result<(), BundleError> {
        let path = self.segment.path();
        let file = self.segment.open().map_err(BundleError::from_io("read", path))?;
        payload.clear();
        payload.resize(self.length as usize, 0);
        file.read_exact_at(payload, self.offset).map_err(BundleError::from_io("read", path))?;
        match crc32fast::hash(payload) == self.crc {
            true => Ok(()),
            false => {
                let what = format!(
                    "the block of {} events at byte {} has another checksum",
                    self.block.count, self.offset
                );
                payload.clear();
                Err(BundleError::from_damage(path, what))
            }
        }
    }

    /// The same, into a new buffer.
    pub fn read(&self) -> Result<Vec<u8>, BundleError> {
        let mut payload = Vec::new();
        self.read_into(&mut payload)?;
        Ok(payload)
    }
}

impl RecordingReader {
    /// Opens the recording of a bundle; `None` without one. Damaged parts are skipped and listed.
    pub fn open(bundle: &Path) -> Option<RecordingReader> {
        let directory = Member::from_root(bundle).join(DIRECTORY);
        let mut damage = Vec::new();
        let mut unreadable = match directory.is_there() {
            Ok(false) => return None,
            Ok(true) => None,
            Err(why) => Some(why.to_string()),
        };
        let document = match directory.join("recording.json").read_json() {
            Ok(document) => document,
            Err(error) => {
                let lack = if error.is_missing() {
                    "its subject is unknown"
                } else {
                    "its events have no names"
                };
                damage.push(format!("{error}: {lack}"));
                unreadable.get_or_insert_with(|| error.to_string());
                unknown_document()
            }
        };
        let segments = directory.readable_entries(SEGMENT, &mut damage);
        let sources = BTreeMap::new();
        let mut recording = RecordingReader { document, sources, damage, bytes: 0, unreadable };
        let mut failed = None;
        for segment in segments {
            if let Err(error) = recording.index(segment) {
                recording.damage.push(error.to_string());
                failed = failed.or(Some(error.to_string()));
            }
        }
        if recording.sources.is_empty() {
            recording.unreadable = recording.unreadable.or(failed);
        }
        recording.count_missing();
        Some(recording)
    }

    fn index(&mut self, segment: Member) -> Result<(), BundleError> {
        let segment = Arc::new(segment);
        let path = segment.path();
        let cannot = |why| BundleError::from_io("read", path)(why);
        let file = segment.open().map_err(cannot)?;
        let size = file.metadata().map_err(cannot)?.len();
        self.bytes += size;
        let mut magic = [0; MAGIC.len()];
        if size < MAGIC.len() as u64 {
            return Ok(()); // Its writer died making it.
        }
        file.read_exact_at(&mut magic, 0).map_err(cannot)?;
        if magic != *MAGIC {
            return Err(BundleError::from_damage(
                path,
                "it does not begin as a segment of a recording",
            ));
        }
        let mut at = MAGIC.len() as u64;
        while size - at >= HEADER as u64 {
            let mut header = [0; HEADER];
            file.read_exact_at(&mut header, at).map_err(cannot)?;
            let offset = at + HEADER as u64;
            let Some((block, length, crc)) = BlockHeader::read(&header) else { break };
            if u64::from(length) > size - offset {
                break;
            }
            let place = BlockPlace { block, segment: Arc::clone(&segment), offset, length, crc };
            self.sources.entry(block.source).or_default().blocks.push(place);
            at = offset + u64::from(length);
        }
        match size - at {
            0 => Ok(()),
            // The writer may still be at work or have died: the document is then incomplete, which
            // is reported already.
            rest if !self.document.complete => {
                self.damage.push(format!(
                    "{}: {rest} bytes at the end are not a complete block",
                    path.display()
                ));
                Ok(())
            }
            rest => Err(BundleError::from_damage(
                path,
                format!("what follows from byte {at} on, {rest} bytes, is lost"),
            )),
        }
    }

    fn count_missing(&mut self) {
        for source in self.sources.values_mut() {
            let mut expected = None;
            for BlockPlace { block, .. } in &source.blocks {
                match expected {
                    None => source.removed = block.before,
                    Some(expected) => {
                        source.missing =
                            source.missing.saturating_add(block.before.saturating_sub(expected));
                    }
                }
                source.count = source.count.saturating_add(block.count.into());
                expected = Some(block.before.saturating_add(block.count.into()));
            }
        }
    }

    /// The names of the numbers in its events.
    pub fn names(&self) -> &Names {
        &self.document.names
    }

    /// Whether its recorder finished.
    pub fn is_complete(&self) -> bool {
        self.document.complete
    }

    /// The present and missing events, counted in the blocks themselves: correct also for a
    /// recording that was cut off.
    pub fn count_recorded(&self) -> Recorded {
        let mut recorded = self.document.recorded.clone();
        for (number, blocks) in &self.sources {
            let index = *number as usize;
            // Sources are numbered densely; a far higher number is from a hostile file and must not
            // cost memory.
            if index >= recorded.sources.len()
                && index <= recorded.sources.len() + self.sources.len()
            {
                recorded.sources.resize_with(index + 1, || nameless_source(index));
            }
            let Some(source) = recorded.sources.get_mut(index) else { continue };
            let at_last = blocks.blocks.last().map_or(0, |place| place.block.lost);
            source.recorded = blocks.count;
            source.lost = source.lost.max(at_last.saturating_add(blocks.missing));
        }
        for (number, source) in recorded.sources.iter_mut().enumerate() {
            let has_blocks =
                u32::try_from(number).ok().is_some_and(|number| self.sources.contains_key(&number));
            if !has_blocks {
                let missing_events = std::mem::take(&mut source.recorded);
                // Events counted in the document but in no block are missing, unless their segments
                // were removed on purpose.
                source.lost = source.lost.saturating_add(if self.document.keeps == Keeps::Newest {
                    0
                } else {
                    missing_events
                });
            }
        }
        self.repair_times(&mut recorded);
        recorded.findings.extend(self.list_findings());
        recorded.missing.extend(self.unreadable.clone().map(|why| Missing::Unread { why }));
        if !self.document.complete && self.unreadable.is_none() {
            recorded.missing.push(Missing::End { why: "its recorder did not finish".to_owned() });
        }
        recorded
    }

    fn repair_times(&self, recorded: &mut Recorded) {
        let blocks =
            || self.sources.values().flat_map(|source| &source.blocks).map(|place| &place.block);
        let last = blocks().map(|block| block.last).max();
        if !self.document.complete {
            recorded.ended = last.unwrap_or(recorded.ended).max(recorded.ended);
        }
        let removed = self.sources.values().any(|source| source.removed > 0);
        if removed && self.document.keeps == Keeps::Newest {
            // From the instant at which no source lacks events.
            let firsts = self.sources.values().filter(|source| source.removed > 0);
            let first = firsts.filter_map(|source| Some(source.blocks.first()?.block.first)).max();
            recorded.began = first.unwrap_or(recorded.began).max(recorded.began);
        }
    }

    fn list_findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.document.complete {
            let message =
                "the recording was cut off: its recorder did not finish, or is still running";
            let finding =
                Finding::new("recording-cut-off", Severity::Warning, "recording", message);
            findings.push(
                finding.with_remedy(
                    "the rest is complete; the events of the last moments are missing",
                ),
            );
        }
        let missing =
            self.sources.values().fold(0u64, |sum, source| sum.saturating_add(source.missing));
        if missing > 0 {
            let message = format!("{missing} recorded events are not in the bundle");
            let finding =
                Finding::new("recording-events-missing", Severity::Bad, "recording", message);
            findings.push(finding.with_remedy(
                "they could not be written (a full disk?), or the files were damaged since",
            ));
        }
        let removed =
            self.sources.values().fold(0u64, |sum, source| sum.saturating_add(source.removed));
        if removed > 0 {
            findings.push(match self.document.keeps {
                Keeps::Newest => Finding::new(
                    "recording-oldest-removed",
                    Severity::Note,
                    "recording",
                    format!(
                        "{removed} events from before its start were removed to keep to the \
                         requested size"
                    ),
                ),
                Keeps::All => Finding::new(
                    "recording-events-missing",
                    Severity::Bad,
                    "recording",
                    format!("{removed} events of its start are not in the bundle"),
                ),
            });
        }
        findings
    }

    pub fn encodings(&self) -> Vec<Encoding> {
        let block_encodings = self
            .sources
            .values()
            .flat_map(|source| &source.blocks)
            .map(|place| place.block.encoding);
        let mut encodings: Vec<Encoding> = block_encodings.collect();
        encodings.sort();
        encodings.dedup();
        encodings
    }
}

/// The substitute for a lost document.
fn unknown_document() -> RecordingDocument {
    let recorded = Recorded::without_events("unknown", MonotonicNs(0));
    RecordingDocument::new(Keeps::All, recorded, Names::default())
}

fn nameless_source(index: usize) -> RecordedSource {
    RecordedSource { name: format!("source {index}"), ..RecordedSource::default() }
}
