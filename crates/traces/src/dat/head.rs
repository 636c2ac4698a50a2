//! The parts of a trace.dat before its data (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).

use crate::bytes::{ByteOrder, until_nul};
use crate::compression::Compression;
use crate::cursor::FileCursor;
use crate::formats::EventFormats;
use crate::{ReadAt, TraceError, TraceFormat};
use std::io;

/// The data of a CPU in one of the buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuData {
    pub(super) cpu: u16,
    pub(super) at: u64,
    pub(super) size: u64,
    pub(super) page_size: usize,
    pub(super) compression: Compression,
}

#[derive(Debug)]
pub(super) struct DatHead {
    pub(super) version: u32,
    pub(super) order: ByteOrder,
    pub(super) formats: EventFormats,
    pub(super) data: Vec<CpuData>,
    pub(super) cpus: u32,
    pub(super) instances: Vec<String>,
    pub(super) comms: Vec<u8>,
    pub(super) processes: Vec<u8>,
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) writer: Option<String>,
    pub(super) statistics: Vec<String>,
    pub(super) kallsyms: Option<HeadPart>,
    pub(super) offset: i64,
    pub(super) ticks: Option<(u32, u32)>,
    pub(super) of_guest: bool,
    page_size: usize,
    compression: Compression,
}

/// A part of the file, in place or decompressed.
#[derive(Debug)]
pub(super) enum HeadPart {
    At(u64, u64),
    Unpacked(Vec<u8>),
}

/// Limits for hostile files.
const MOST_TEXT: usize = 1 << 12;
const MOST_NAMES: u64 = 16 << 20;
const MOST_OPTIONS: usize = 1 << 16;
const MOST_DATA: usize = 1 << 14;
const MOST_SECTION: u64 = 64 << 20;

pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

impl DatHead {
    pub(super) fn read(file: &dyn ReadAt) -> Result<DatHead, TraceError> {
        let mut cursor = FileCursor::new(file, MAGIC.len() as u64, ByteOrder::Little);
        let version = cursor.read_text(16)?;
        let version: u32 = match version.parse() {
            Ok(version @ (6 | 7)) => version,
            _ => {
                return Err(TraceError::Unsupported(format!(
                    "this trace.dat has version {}; versions 6 and 7 are read: `trace-cmd \
                     convert` makes them",
                    version.escape_debug()
                )));
            }
        };
        let order = if cursor.read_number(1)? == 1 { ByteOrder::Big } else { ByteOrder::Little };
        cursor.order = order;
        let long = cursor.read_number(1)? as usize;
        let page_size = page_size(cursor.read_number(4)?, cursor.at)?;
        let mut head = DatHead {
            version,
            order,
            formats: EventFormats::new(TraceFormat::TraceDat, order, long),
            data: Vec::new(),
            cpus: 0,
            instances: Vec::new(),
            comms: Vec::new(),
            processes: Vec::new(),
            clock: None,
            uname: None,
            writer: None,
            statistics: Vec::new(),
            kallsyms: None,
            offset: 0,
            ticks: None,
            of_guest: false,
            page_size,
            compression: Compression::None,
        };
        if version == 6 {
            head.read_6(file, cursor)?
        } else {
            head.read_7(file, cursor)?
        }
        Ok(head)
    }

    fn read_6(&mut self, file: &dyn ReadAt, mut cursor: FileCursor<'_>) -> Result<(), TraceError> {
        self.formats.header_pages(&mut cursor)?;
        self.formats.of_tracers(&mut cursor)?;
        self.formats.of_systems(&mut cursor)?;
        let size = cursor.read_number(4)?;
        self.kallsyms = Some(HeadPart::At(cursor.at, size));
        cursor.skip(size);
        let printk = cursor.read_number(4)?;
        cursor.skip(printk);
        let names = cursor.read_number(8)?;
        self.comms = cursor.at_most(names, MOST_NAMES)?;
        self.cpus = cursor.read_number(4)? as u32;
        let mut buffers = Vec::new();
        let with_clock = self.options_6(&mut cursor, &mut buffers)?;
        self.data_6(&mut cursor, self.cpus)?;
        if with_clock {
            let size = cursor.read_number(8)?;
            self.clock = parse_clock(&cursor.at_most(size, MOST_TEXT as u64)?);
        }
        for (at, cpus) in buffers {
            let mut cursor = FileCursor::new(file, at, self.order);
            self.options_6(&mut cursor, &mut Vec::new())?;
            self.data_6(&mut cursor, cpus)?;
        }
        Ok(())
    }

    /// Reads options, if any, up to the mark of the data after them; returns whether a clock
    /// follows.
    fn options_6(
        &mut self,
        cursor: &mut FileCursor<'_>,
        buffers: &mut Vec<(u64, u32)>,
    ) -> Result<bool, TraceError> {
        let mut with_clock = false;
        for _ in 0..2 {
            let at = cursor.at;
            match cursor.read_bytes(10)?.as_slice() {
                b"options  \0" => {
                    for _ in 0..MOST_OPTIONS {
                        let kind = cursor.read_number(2)?;
                        if kind == 0 {
                            break;
                        }
                        let size = cursor.read_number(4)?;
                        let data = cursor.at_most(size, MOST_NAMES)?;
                        match kind {
                            3 => buffers.extend(self.buffer_6(&data)),
                            4 if data.is_empty() => with_clock = true,
                            _ => self.read_option(kind, &data),
                        }
                        with_clock |= kind == 4;
                    }
                }
                b"flyrecord\0" => return Ok(with_clock),
                b"latency  \0" => {
                    return Err(TraceError::Unsupported(
                        "this trace.dat holds text of a latency tracer instead of events: \
                         `trace-cmd report` shows it, and that text is read"
                            .to_owned(),
                    ));
                }
                _ => {
                    return Err(damaged_error(
                        at,
                        "neither options nor data are where they should be",
                    ));
                }
            }
        }
        Err(damaged_error(cursor.at, "options follow options"))
    }

    fn buffer_6(&mut self, data: &[u8]) -> Option<(u64, u32)> {
        let at = self.order.unsigned_at(data, 0, 8)?;
        let name = until_nul(data.get(8..)?);
        if self.instances.len() >= MOST_DATA {
            return None;
        }
        self.instances.push(String::from_utf8_lossy(name).into_owned());
        Some((at, self.cpus))
    }

    fn data_6(&mut self, cursor: &mut FileCursor<'_>, cpus: u32) -> Result<(), TraceError> {
        for cpu in 0..cpus {
            let (at, size) = (cursor.read_number(8)?, cursor.read_number(8)?);
            self.add_data(cpu, at, size, self.page_size, Compression::None);
        }
        Ok(())
    }

    fn add_data(
        &mut self,
        cpu: u32,
        at: u64,
        size: u64,
        page_size: usize,
        compression: Compression,
    ) {
        if let Some(cpu) = u16::try_from(cpu).ok().filter(|_| self.data.len() < MOST_DATA) {
            self.data.push(CpuData { cpu, at, size, page_size, compression });
        }
    }

    fn read_7(&mut self, file: &dyn ReadAt, mut cursor: FileCursor<'_>) -> Result<(), TraceError> {
        let name = cursor.read_text(MOST_TEXT)?;
        let _version = cursor.read_text(MOST_TEXT)?;
        self.compression = Compression::of_name(&name).ok_or_else(|| {
            TraceError::Unsupported(format!(
                "this trace.dat is compressed by {}; zlib and zstd are read",
                name.escape_debug()
            ))
        })?;
        let mut next = cursor.read_number(8)?;
        let mut buffers = Vec::new();
        let mut sections = Vec::new();
        for _ in 0..MOST_OPTIONS {
            if next == 0 {
                break;
            }
            let options = self.read_section(file, next)?;
            next = self.options_7(&options, &mut buffers, &mut sections)?;
        }
        // Fields of records need formats, and those of pages the header.
        sections.sort_by_key(|(kind, _)| *kind);
        for (kind, at) in sections {
            let section = self.read_section(file, at)?;
            let mut cursor = FileCursor::new(&section, 0, self.order);
            match kind {
                16 => self.formats.header_pages(&mut cursor)?,
                17 => self.formats.of_tracers(&mut cursor)?,
                18 => self.formats.of_systems(&mut cursor)?,
                19 => {
                    let size = cursor.read_number(4)?;
                    self.kallsyms = Some(HeadPart::Unpacked(cursor.at_most(size, MOST_SECTION)?));
                }
                _ => {
                    let size = cursor.read_number(8)?;
                    self.comms = cursor.at_most(size, MOST_NAMES)?;
                }
            }
        }
        for data in buffers {
            self.buffer_7(file, &data)?;
        }
        Ok(())
    }

    fn read_section(&self, file: &dyn ReadAt, at: u64) -> Result<Vec<u8>, TraceError> {
        let mut cursor = FileCursor::new(file, at, self.order);
        let (_kind, flags) = (cursor.read_number(2)?, cursor.read_number(2)?);
        let (_text, size) = (cursor.read_number(4)?, cursor.read_number(8)?);
        if flags & 1 == 0 {
            return Ok(cursor.at_most(size, MOST_SECTION)?);
        }
        let (packed, size) = (cursor.read_number(4)?, cursor.read_number(4)?);
        let bytes = cursor.at_most(packed, MOST_SECTION)?;
        Ok(self.compression.decompress(&bytes, size.min(MOST_SECTION))?)
    }

    /// The position of the next options.
    #[allow(clippy::ptr_arg)] // A cursor reads what has a known size.
    fn options_7(
        &mut self,
        options: &Vec<u8>,
        buffers: &mut Vec<Vec<u8>>,
        sections: &mut Vec<(u64, u64)>,
    ) -> Result<u64, TraceError> {
        let mut cursor = FileCursor::new(options, 0, self.order);
        while cursor.at + 6 <= options.len() as u64 {
            let (kind, size) = (cursor.read_number(2)?, cursor.read_number(4)?);
            let data = cursor.read_bytes(size)?;
            let at = || self.order.unsigned_at(&data, 0, 8);
            match kind {
                0 => return Ok(at().unwrap_or(0)),
                3 if buffers.len() < MOST_DATA => buffers.push(data),
                16..=19 | 21 if sections.len() < MOST_DATA => {
                    sections.extend(at().map(|at| (kind, at)));
                }
                22 => {
                    return Err(TraceError::Unsupported(
                        "this trace.dat holds text of a latency tracer instead of events: \
                         `trace-cmd report` shows it, and that text is read"
                            .to_owned(),
                    ));
                }
                _ => self.read_option(kind, &data),
            }
        }
        Ok(0)
    }

    #[allow(clippy::ptr_arg)] // A cursor reads what has a known size.
    fn buffer_7(&mut self, file: &dyn ReadAt, data: &Vec<u8>) -> Result<(), TraceError> {
        let mut cursor = FileCursor::new(data, 0, self.order);
        let at = cursor.read_number(8)?;
        let (name, clock) = (cursor.read_text(MOST_TEXT)?, cursor.read_text(MOST_TEXT)?);
        let page_size = page_size(cursor.read_number(4)?, cursor.at)?;
        let cpus = cursor.read_number(4)?;
        if name.is_empty() || self.clock.is_none() {
            self.clock = Some(clock).filter(|clock| !clock.is_empty()).or(self.clock.take());
        }
        if !name.is_empty() {
            self.instances.push(name);
        }
        let mut section = FileCursor::new(file, at, self.order);
        let (_kind, flags) = (section.read_number(2)?, section.read_number(2)?);
        let compression = if flags & 1 == 0 { Compression::None } else { self.compression };
        for _ in 0..cpus.min(MOST_DATA as u64) {
            let cpu = cursor.read_number(4)? as u32;
            let (at, size) = (cursor.read_number(8)?, cursor.read_number(8)?);
            self.cpus = self.cpus.max(cpu.saturating_add(1));
            self.add_data(cpu, at, size, page_size, compression);
        }
        Ok(())
    }

    /// An option of both versions.
    fn read_option(&mut self, kind: u64, data: &[u8]) {
        let text = || {
            let text = until_nul(data);
            String::from_utf8_lossy(&text[..text.len().min(MOST_TEXT)]).trim().to_owned()
        };
        match kind {
            2 if self.statistics.len() < MOST_DATA => self.statistics.push(text()),
            4 => self.clock = parse_clock(data).or(self.clock.take()),
            5 => self.uname = Some(text()),
            7 => self.offset = text().parse().unwrap_or(0),
            8 => self.cpus = self.cpus.max(self.order.read_unsigned(data) as u32),
            9 => self.writer = Some(text()),
            12 => self.of_guest = true,
            14 => {
                let number = |at| self.order.unsigned_at(data, at, 4).map(|number| number as u32);
                self.ticks = number(0).zip(number(4)).filter(|(by, shift)| *by > 0 && *shift < 64);
            }
            15 => self.processes = data.to_vec(),
            _ => {}
        }
    }
}

impl HeadPart {
    pub(super) fn read(&self, file: &dyn ReadAt) -> io::Result<Vec<u8>> {
        match self {
            HeadPart::Unpacked(text) => Ok(text.clone()),
            HeadPart::At(at, size) => {
                FileCursor::new(file, *at, ByteOrder::Little).at_most(*size, MOST_SECTION)
            }
        }
    }
}

/// `[local] global counter`, or only the name.
fn parse_clock(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(until_nul(text)).into_owned();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let name = chosen.map_or(text.as_str(), |(name, _)| name).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn page_size(size: u64, at: u64) -> Result<usize, TraceError> {
    match size {
        // Since 6.8 a sub-buffer may have several pages.
        512..=0x100_0000 => Ok(size as usize),
        _ => Err(damaged_error(at, "no page has this size")),
    }
}

pub(super) fn damaged_error(at: u64, why: &str) -> TraceError {
    TraceError::Damaged { format: TraceFormat::TraceDat, at, why: why.to_owned() }
}
