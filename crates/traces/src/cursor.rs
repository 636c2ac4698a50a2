//! Reads the parts of a file in sequence, without trusting any length.

use crate::ReadAt;
use crate::bytes::ByteOrder;
use std::io;

/// A position in a file.
pub(crate) struct FileCursor<'a> {
    file: &'a dyn ReadAt,
    pub(crate) at: u64,
    pub(crate) order: ByteOrder,
}

impl<'a> FileCursor<'a> {
    pub(crate) fn new(file: &'a dyn ReadAt, at: u64, order: ByteOrder) -> FileCursor<'a> {
        FileCursor { file, at, order }
    }

    /// The next `count` bytes, which must exist.
    pub(crate) fn read_bytes(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let message = "it is cut off within the parts that say what its events mean";
        let short = || io::Error::new(io::ErrorKind::UnexpectedEof, message);
        let left = self.file.size()?.saturating_sub(self.at);
        let count = usize::try_from(count).ok().filter(|count| *count as u64 <= left);
        let mut bytes = vec![0; count.ok_or_else(short)?];
        if self.file.read_at(self.at, &mut bytes)? < bytes.len() {
            return Err(short());
        }
        self.at += bytes.len() as u64;
        Ok(bytes)
    }

    /// The same, but at most `most` bytes: the rest is skipped.
    pub(crate) fn at_most(&mut self, count: u64, most: u64) -> io::Result<Vec<u8>> {
        let bytes = self.read_bytes(count.min(most))?;
        self.at = self.at.saturating_add(count - count.min(most));
        Ok(bytes)
    }

    pub(crate) fn skip(&mut self, count: u64) {
        self.at = self.at.saturating_add(count);
    }

    pub(crate) fn read_number(&mut self, size: u64) -> io::Result<u64> {
        Ok(self.order.read_unsigned(&self.read_bytes(size)?))
    }

    pub(crate) fn read_text(&mut self, most: usize) -> io::Result<String> {
        let mut bytes = vec![0; most];
        let read = self.file.read_at(self.at, &mut bytes)?;
        bytes.truncate(read);
        let Some(end) = bytes.iter().position(|byte| *byte == 0) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a name has no end"));
        };
        self.at += end as u64 + 1;
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
