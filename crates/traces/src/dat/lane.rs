//! The records of one CPU, page by page.

use super::head::CpuData;
use crate::ReadAt;
use crate::bytes::ByteOrder;
use crate::compression::Compression;
use crate::page::{PageItem, PageReader, PageShape};
use std::io;

/// The reading position in the data of one CPU.
pub(super) struct DatLane {
    data: CpuData,
    order: ByteOrder,
    /// The next byte in the file, and the end.
    next: u64,
    end: u64,
    chunks: Option<u64>,
    /// A page, or a decompressed chunk of several including the current one.
    bytes: Vec<u8>,
    page: usize,
    reader: Option<PageReader>,
    pub(super) at: u64,
    record: (usize, usize),
    /// Events are missing before the current record.
    pub(super) lost: Option<Option<u64>>,
    pub(super) damaged: u64,
    /// The file ends before its data does.
    pub(super) cut_off: bool,
}

/// trace-cmd compresses ten pages at once, of 64 KiB at most.
const MOST_CHUNK: u64 = 32 << 20;

impl DatLane {
    pub(super) fn new(data: CpuData, order: ByteOrder, size: u64) -> DatLane {
        // The stated size of compressed data omits some headers: the count of chunks limits it.
        let end = match data.compression {
            Compression::None => data.at.saturating_add(data.size).min(size),
            _ if data.size == 0 => data.at,
            _ => size,
        };
        DatLane {
            data,
            order,
            next: data.at,
            end,
            chunks: None,
            bytes: Vec::new(),
            page: 0,
            reader: None,
            at: 0,
            record: (0, 0),
            lost: None,
            damaged: 0,
            cut_off: data.at.saturating_add(data.size) > size,
        }
    }

    pub(super) fn cpu(&self) -> u16 {
        self.data.cpu
    }

    pub(super) fn current_record(&self) -> &[u8] {
        self.current_page().get(self.record.0..self.record.1).unwrap_or_default()
    }

    fn current_page(&self) -> &[u8] {
        let from = self.page * self.data.page_size;
        let to = (from + self.data.page_size).min(self.bytes.len());
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Advances to the next record; `false` after the last.
    pub(super) fn advance_record(
        &mut self,
        file: &dyn ReadAt,
        shape: PageShape,
    ) -> io::Result<bool> {
        loop {
            let from = self.page * self.data.page_size;
            let to = (from + self.data.page_size).min(self.bytes.len());
            let page = self.bytes.get(from..to).unwrap_or_default();
            match self.reader.as_mut().and_then(|reader| reader.next(page)) {
                Some(PageItem::Record { at, from, to }) => {
                    (self.at, self.record) = (at, (from, to));
                    return Ok(true);
                }
                Some(PageItem::Lost(count)) => self.add_loss(count),
                Some(PageItem::Damaged) => {
                    self.damaged += 1;
                    self.add_loss(None);
                }
                None => {
                    if !self.next_page(file)? {
                        return Ok(false);
                    }
                    self.reader = Some(PageReader::new(self.current_page(), shape));
                }
            }
        }
    }

    fn add_loss(&mut self, count: Option<u64>) {
        self.lost = Some(match self.lost {
            None => count,
            Some(before) => before.zip(count).map(|(before, count)| before.saturating_add(count)),
        });
    }

    fn next_page(&mut self, file: &dyn ReadAt) -> io::Result<bool> {
        if self.reader.is_some() && (self.page + 1) * self.data.page_size < self.bytes.len() {
            self.page += 1;
            return Ok(true);
        }
        self.page = 0;
        match self.data.compression {
            Compression::None => self.read_plain_page(file),
            packed => self.read_chunk(file, packed),
        }
    }

    fn read_plain_page(&mut self, file: &dyn ReadAt) -> io::Result<bool> {
        let size = self.end.saturating_sub(self.next).min(self.data.page_size as u64);
        self.bytes.resize(size as usize, 0);
        let read = file.read_at(self.next, &mut self.bytes)?;
        self.bytes.truncate(read);
        self.next += read as u64;
        Ok(read > 0)
    }

    fn read_chunk(&mut self, file: &dyn ReadAt, packed: Compression) -> io::Result<bool> {
        let number = |at: u64| -> io::Result<Option<u64>> {
            let mut bytes = [0; 4];
            Ok((file.read_at(at, &mut bytes)? == 4).then(|| self.order.read_unsigned(&bytes)))
        };
        if self.chunks.is_none() && self.next < self.end {
            self.chunks = number(self.next)?;
            self.cut_off |= self.chunks.is_none();
            self.next += 4;
        }
        let left = self.chunks.unwrap_or(0);
        if left == 0 {
            return Ok(false);
        }
        let (Some(size), Some(unpacked)) = (number(self.next)?, number(self.next + 4)?) else {
            self.cut_off = true;
            return Ok(false);
        };
        self.chunks = Some(left - 1);
        let from = self.next + 8;
        self.next = from.saturating_add(size);
        if size > MOST_CHUNK || self.next > self.end {
            self.cut_off |= self.next > self.end;
            self.count_damage();
            return Ok(false);
        }
        let mut bytes = vec![0; size as usize];
        let read = file.read_at(from, &mut bytes)?;
        match packed.decompress(&bytes[..read], unpacked.min(MOST_CHUNK)) {
            Ok(bytes) if !bytes.is_empty() && bytes.len() as u64 == unpacked => self.bytes = bytes,
            other => {
                self.count_damage();
                self.bytes = other.unwrap_or_default();
            }
        }
        Ok(true)
    }

    fn count_damage(&mut self) {
        self.damaged += 1;
        self.add_loss(None);
    }
}
