//! The bytes of a file in sequence, seen where they were read to.

use std::io::{self, Read};

pub(super) struct Window {
    from: Box<dyn Read>,
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

/// Some records at once; none is longer than 64 KiB.
const SIZE: usize = 1 << 18;

impl Window {
    pub(super) fn new(from: Box<dyn Read>) -> Window {
        Window { from, bytes: vec![0; SIZE], at: 0, end: 0 }
    }

    /// The number of bytes that are there: at least `count`, unless the file ends.
    pub(super) fn fill_at_least(&mut self, count: u16) -> io::Result<usize> {
        while self.end - self.at < count.into() {
            if SIZE - self.at < count.into() {
                self.bytes.copy_within(self.at..self.end, 0);
                (self.at, self.end) = (0, self.end - self.at);
            }
            match self.from.read(&mut self.bytes[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(self.end - self.at)
    }

    /// The bytes that are there.
    pub(super) fn available_bytes(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    pub(super) fn consume_bytes(&mut self, count: usize) {
        self.at = (self.at + count).min(self.end);
    }
}

impl Read for Window {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end {
            return self.from.read(into);
        }
        let count = self.available_bytes().read(into)?;
        self.consume_bytes(count);
        Ok(count)
    }
}
