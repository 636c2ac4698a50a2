//! The source of bytes: a file with random access, or a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The number of bytes by which a file is recognised.
pub(crate) const HEAD: usize = 64 << 10;

/// A file with random access.
pub trait ReadAt {
    /// Reads the available bytes from `at` on, at most as many as `into` takes.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;
    fn size(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < into.len() {
            match FileExt::read_at(self, &mut into[read..], at.saturating_add(read as u64)) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(read)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        let count = into.len().min(self.len() - from);
        into[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(at, into)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// The bytes of a trace, from its first one.
pub(crate) enum Input {
    File(Box<dyn ReadAt>),
    Pipe(Box<dyn Read>),
}

impl Input {
    /// For a reader that needs no random access.
    pub(crate) fn in_sequence(self) -> Box<dyn Read> {
        match self {
            Input::File(file) => Box::new(Sequential { file, at: 0 }),
            Input::Pipe(pipe) => pipe,
        }
    }
}

/// Reads a file sequentially.
pub(crate) struct Sequential {
    pub(crate) file: Box<dyn ReadAt>,
    pub(crate) at: u64,
}

impl Read for Sequential {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}
