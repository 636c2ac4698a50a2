//! The parts of a perf.data besides its records (perf.data-file-format.txt of perf).

use super::attr::RecordLayout;
use super::records::MOST_TRACING_DATA;
use crate::bytes::{ByteOrder, until_nul};
use crate::cursor::FileCursor;
use crate::formats::EventFormats;
use crate::quick::IdMap;
use crate::{ReadAt, TraceError, TraceFormat};
use std::io;

/// The first bytes of a file, in the byte order of the machine that wrote it.
const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";

/// Limits for hostile files.
const MOST_EVENTS: usize = 1 << 16;
const MOST_IDS: usize = 1 << 20;
const MOST_TEXT: u64 = 1 << 12;
const MOST_NAMES: u64 = 16 << 20;

const TRACING_DATA: u64 = 1;
const OS_RELEASE: u64 = 4;
const VERSION: u64 = 5;
const ARCH: u64 = 6;

/// The byte order by the first bytes of a file; `None` if it is not perf's.
pub(super) fn detect_order(head: &[u8]) -> Option<ByteOrder> {
    match head.first_chunk::<8>()? {
        MAGIC => Some(ByteOrder::Little),
        MAGIC_BIG => Some(ByteOrder::Big),
        _ => None,
    }
}

/// The description of the records.
#[derive(Debug, Default)]
pub(super) struct PerfHead {
    pub(super) order: ByteOrder,
    pub(super) attrs: Vec<RecordLayout>,
    /// The attributes by id.
    ids: IdMap<u64, usize>,
    /// The CPU by id.
    cpus: IdMap<u64, u16>,
    pub(super) formats: Option<EventFormats>,
    /// Lines of `PID NAME`.
    pub(super) comms: Vec<u8>,
    pub(super) release: Option<String>,
    pub(super) version: Option<String>,
    pub(super) arch: Option<String>,
    /// The file is shorter than it states.
    pub(super) cut_off: bool,
}

/// The position of the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPosition {
    pub(super) at: u64,
    pub(super) size: u64,
}

impl PerfHead {
    pub(super) fn new(order: ByteOrder) -> PerfHead {
        PerfHead { order, ..PerfHead::default() }
    }

    /// Reads the parts before and after the records; in a saved pipe they are among these.
    pub(super) fn read(file: &dyn ReadAt) -> Result<(PerfHead, DataPosition), TraceError> {
        let mut magic = [0; 8];
        file.read_at(0, &mut magic)?;
        let mut head = PerfHead::new(detect_order(&magic).unwrap_or_default());
        let mut cursor = FileCursor::new(file, 8, head.order);
        let size = cursor.read_number(8)?;
        if size == PIPE_HEAD {
            return Ok((
                head,
                DataPosition { at: PIPE_HEAD, size: file.size()?.saturating_sub(PIPE_HEAD) },
            ));
        }
        let attr_size = cursor.read_number(8)?;
        let attrs = (cursor.read_number(8)?, cursor.read_number(8)?);
        let data = DataPosition { at: cursor.read_number(8)?, size: cursor.read_number(8)? };
        cursor.skip(16);
        let features = cursor.read_bytes(32)?;
        if data.size == 0 {
            return Err(TraceError::Unsupported(
                "this perf.data was not finished: perf record was killed, or still runs; only an \
                 end by a signal that it takes (SIGINT, SIGTERM) writes what its events mean"
                    .to_owned(),
            ));
        }
        head.read_attributes(file, attrs, attr_size)?;
        head.read_features(file, data.at.saturating_add(data.size), &features)?;
        Ok((head, data))
    }

    fn read_attributes(
        &mut self,
        file: &dyn ReadAt,
        (at, size): (u64, u64),
        each: u64,
    ) -> Result<(), TraceError> {
        // The attributes themselves, and the position of their ids.
        let stated_size = each.checked_sub(16).filter(|own| (64..=MOST_TEXT).contains(own));
        let attr_size = stated_size
            .ok_or_else(|| damaged_error(16, "no attributes of events have this size"))?;
        let mut cursor = FileCursor::new(file, at, self.order);
        for _ in 0..(size / each).min(MOST_EVENTS as u64) {
            let bytes = cursor.read_bytes(attr_size)?;
            let ids = (cursor.read_number(8)?, cursor.read_number(8)?);
            let left = (MOST_IDS - self.ids.len().min(MOST_IDS)) as u64;
            let ids = FileCursor::new(file, ids.0, self.order).read_bytes(ids.1.min(left * 8))?;
            self.add(&bytes, &ids);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, attr: &[u8], ids: &[u8]) {
        let Some(attr) = RecordLayout::read(attr, self.order) else { return };
        if self.attrs.len() >= MOST_EVENTS {
            return;
        }
        for id in ids.chunks_exact(8) {
            if self.ids.len() < MOST_IDS {
                self.ids.insert(self.order.read_unsigned(id), self.attrs.len());
            }
        }
        self.attrs.push(attr);
    }

    /// Adds the event described by a record of a pipe: its attributes and ids.
    pub(super) fn add_of_record(&mut self, payload: &[u8]) {
        let size = self.order.unsigned_at(payload, 4, 4).map_or(0, |size| size as usize);
        // The first version of the attributes has 64 bytes, and may state 0.
        let size = if size < 64 { 64 } else { size };
        if let Some((attr, ids)) = payload.split_at_checked(size) {
            self.add(attr, ids);
        }
    }

    /// Reads the CPU of each id.
    pub(super) fn id_index(&mut self, payload: &[u8]) {
        for entry in payload.get(8..).unwrap_or_default().chunks_exact(32) {
            let cpu = self.order.unsigned_at(entry, 16, 8).and_then(|cpu| u16::try_from(cpu).ok());
            if let Some(cpu) = cpu.filter(|_| self.cpus.len() < MOST_IDS) {
                self.cpus.insert(self.order.read_unsigned(&entry[..8]), cpu);
            }
        }
    }

    /// The CPU of an id, if the file states it.
    pub(super) fn cpu_of(&self, id: u64) -> Option<u16> {
        self.cpus.get(&id).copied()
    }

    /// The attributes of a sample or another record, by the id that `of` finds.
    pub(super) fn find_attr(
        &self,
        of: impl Fn(&RecordLayout) -> Option<u64>,
    ) -> Option<&RecordLayout> {
        let first = self.attrs.first()?;
        let known_attr =
            of(first).and_then(|id| self.ids.get(&id)).and_then(|at| self.attrs.get(*at));
        known_attr.or(Some(first))
    }

    fn read_features(&mut self, file: &dyn ReadAt, at: u64, bits: &[u8]) -> Result<(), TraceError> {
        // 64-bit words, the lowest first.
        let is_set = |bit: u64| {
            let word = self.order.unsigned_at(bits, (bit / 64 * 8) as usize, 8).unwrap_or(0);
            word >> (bit % 64) & 1 == 1
        };
        let features: Vec<u64> = (0..256).filter(|bit| is_set(*bit)).collect();
        let whole = file.size()?;
        let mut cursor = FileCursor::new(file, at, self.order);
        for feature in features {
            let (at, size) = (cursor.read_number(8)?, cursor.read_number(8)?);
            self.cut_off |= at.saturating_add(size) > whole;
            let mut part = FileCursor::new(file, at, self.order);
            match feature {
                TRACING_DATA => {
                    let bytes = part.at_most(size, MOST_TRACING_DATA)?;
                    self.tracing_data(&bytes)?;
                }
                OS_RELEASE | VERSION | ARCH => {
                    self.read_feature(feature, &part.at_most(size, MOST_TEXT)?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a feature section.
    pub(super) fn read_feature(&mut self, feature: u64, bytes: &[u8]) {
        let place = match feature {
            OS_RELEASE => &mut self.release,
            VERSION => &mut self.version,
            ARCH => &mut self.arch,
            _ => return,
        };
        let text = until_nul(bytes.get(4..).unwrap_or_default());
        let end = text.len().min(MOST_TEXT as usize);
        *place = Some(String::from_utf8_lossy(&text[..end]).into_owned());
    }

    /// Reads the descriptions of tracepoints (trace-cmd.dat.v6(5), without its options and data).
    #[allow(clippy::ptr_arg)] // A cursor reads what has a known size.
    pub(super) fn tracing_data(&mut self, bytes: &Vec<u8>) -> Result<(), TraceError> {
        let mut cursor = FileCursor::new(bytes, TRACING_MAGIC.len() as u64, self.order);
        if !bytes.starts_with(TRACING_MAGIC) {
            return Err(damaged_error(0, "the descriptions of its tracepoints are missing"));
        }
        let with_names = cursor.read_text(16)? != "0.5";
        cursor.order = if cursor.read_number(1)? == 1 { ByteOrder::Big } else { ByteOrder::Little };
        let long = cursor.read_number(1)? as usize;
        cursor.skip(4);
        let mut formats = EventFormats::new(TraceFormat::PerfData, cursor.order, long);
        formats.header_pages(&mut cursor)?;
        formats.of_tracers(&mut cursor)?;
        formats.of_systems(&mut cursor)?;
        self.formats = Some(formats);
        for _ in ["kallsyms", "printk"] {
            let size = cursor.read_number(4)?;
            cursor.skip(size);
        }
        if with_names {
            let size = cursor.read_number(8)?;
            self.comms = cursor.at_most(size, MOST_NAMES)?;
        }
        Ok(())
    }
}

/// The size of the header of a pipe.
pub(super) const PIPE_HEAD: u64 = 16;

const TRACING_MAGIC: &[u8] = crate::dat::MAGIC;

pub(super) fn damaged_error(at: u64, why: &str) -> TraceError {
    TraceError::Damaged { format: TraceFormat::PerfData, at, why: why.to_owned() }
}

/// A record that contradicts itself.
pub(super) fn unreadable_error(why: io::Error) -> TraceError {
    TraceError::Read(why)
}
