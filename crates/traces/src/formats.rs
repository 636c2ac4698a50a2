//! The descriptions of tracepoints in a file, for trace.dat and perf.data.

use crate::bytes::ByteOrder;
use crate::cursor::FileCursor;
use crate::format::RecordFormat;
use crate::layout::TracepointLayout;
use crate::page::PageShape;
use crate::quick::IdMap;
use crate::{TraceError, TraceFormat};

/// Limits for hostile files.
const MOST_TEXT: usize = 1 << 12;
const MOST_FORMATS: usize = 1 << 14;
const MOST_FORMAT: u64 = 1 << 18;

/// The file's descriptions of pages and tracepoints.
#[derive(Debug)]
pub(crate) struct EventFormats {
    of: TraceFormat,
    pub(crate) order: ByteOrder,
    /// The size of the kernel's long in bytes.
    long: usize,
    pub(crate) shape: PageShape,
    /// By `common_type`.
    pub(crate) layouts: IdMap<u16, TracepointLayout>,
}

impl EventFormats {
    pub(crate) fn new(of: TraceFormat, order: ByteOrder, long: usize) -> EventFormats {
        let shape = PageShape::parse("", long, order);
        EventFormats { of, order, long, shape, layouts: IdMap::default() }
    }

    /// Reads the header of pages; that of events is known.
    pub(crate) fn header_pages(&mut self, cursor: &mut FileCursor<'_>) -> Result<(), TraceError> {
        let at = cursor.at;
        if cursor.read_text(16)? != "header_page" {
            return Err(self.damaged_error(at, "the description of pages is missing"));
        }
        let size = cursor.read_number(8)?;
        let text = cursor.at_most(size, MOST_FORMAT)?;
        self.shape = PageShape::parse(&String::from_utf8_lossy(&text), self.long, self.order);
        let at = cursor.at;
        if cursor.read_text(16)? != "header_event" {
            return Err(self.damaged_error(at, "the description of events is missing"));
        }
        let size = cursor.read_number(8)?;
        cursor.skip(size);
        Ok(())
    }

    /// Reads the descriptions of the records that tracers write, and of prints.
    pub(crate) fn of_tracers(&mut self, cursor: &mut FileCursor<'_>) -> Result<(), TraceError> {
        let count = cursor.read_number(4)?;
        for _ in 0..count.min(MOST_FORMATS as u64) {
            self.read_format("ftrace", cursor)?;
        }
        Ok(())
    }

    pub(crate) fn of_systems(&mut self, cursor: &mut FileCursor<'_>) -> Result<(), TraceError> {
        let systems = cursor.read_number(4)?;
        for _ in 0..systems.min(MOST_FORMATS as u64) {
            let system = cursor.read_text(MOST_TEXT)?;
            let events = cursor.read_number(4)?;
            for _ in 0..events.min(MOST_FORMATS as u64) {
                self.read_format(&system, cursor)?;
            }
        }
        Ok(())
    }

    fn read_format(&mut self, system: &str, cursor: &mut FileCursor<'_>) -> Result<(), TraceError> {
        let size = cursor.read_number(8)?;
        let text = cursor.at_most(size, MOST_FORMAT)?;
        let format = RecordFormat::parse(&String::from_utf8_lossy(&text));
        if let Some(format) = format.filter(|_| self.layouts.len() < MOST_FORMATS) {
            self.layouts.insert(format.id, TracepointLayout::new(system, &format, self.long));
        }
        Ok(())
    }

    fn damaged_error(&self, at: u64, why: &str) -> TraceError {
        TraceError::Damaged { format: self.of, at, why: why.to_owned() }
    }
}
