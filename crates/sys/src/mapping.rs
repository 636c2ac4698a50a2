//! Memory shared with the kernel or other processes.

use crate::check_result;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Permission to read and to write.
pub const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

/// A shared mapping, until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and a length. Its own functions access the memory only through atomics; users
// of the address are responsible for their accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `length` bytes of a file or a device from `offset` on, with these permissions (PROT_*) and
    /// these flags in addition to MAP_SHARED.
    pub fn of_file(
        file: impl AsFd,
        offset: usize,
        length: usize,
        rights: libc::c_int,
        flags: libc::c_int,
    ) -> io::Result<Mapping> {
        Mapping::new(file.as_fd().as_raw_fd(), offset, length, rights, flags)
    }

    /// `length` bytes of zeroes, shared with processes forked from this one.
    pub fn new_anonymous(length: usize) -> io::Result<Mapping> {
        Mapping::new(-1, 0, length, READ_WRITE, libc::MAP_ANONYMOUS)
    }

    fn new(
        fd: libc::c_int,
        offset: usize,
        length: usize,
        rights: libc::c_int,
        flags: libc::c_int,
    ) -> io::Result<Mapping> {
        let (flags, offset) = (flags | libc::MAP_SHARED, offset as libc::off_t);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            check_result(-1)?;
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }

    /// The start address.
    #[inline(always)]
    pub fn start_address(&self) -> NonNull<u8> {
        self.start
    }

    /// The length in bytes.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The word of eight bytes at this multiple of 8.
    #[inline(always)]
    pub fn word_at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.length && self.length - offset >= 8);
        // SAFETY: within the mapping, which lives as long as self, and aligned.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    /// The word of four bytes at this multiple of 4.
    #[inline(always)]
    pub fn word32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < self.length && self.length - offset >= 4);
        // SAFETY: as in `word`.
        unsafe { self.start.add(offset).cast().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::create_memfd;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_of_a_mapping_are_written_at_their_file_offset() {
        let file = create_memfd(c"words", 0).unwrap();
        file.set_len(8192).unwrap();
        let mapping = Mapping::of_file(&file, 4096, 4096, READ_WRITE, 0).unwrap();
        mapping.word_at(4088).store(7, Ordering::Relaxed);
        mapping.word32_at(4).store(9, Ordering::Relaxed);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 4096 + 4088).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        file.read_exact_at(&mut bytes[..4], 4100).unwrap();
        assert_eq!(bytes[..4], 9u32.to_ne_bytes());
    }

    #[test]
    #[should_panic]
    fn a_word_beyond_the_end_is_refused() {
        Mapping::new_anonymous(4096).unwrap().word_at(4096);
    }

    #[test]
    fn mapping_an_empty_file_is_an_error() {
        let why =
            Mapping::of_file(create_memfd(c"none", 0).unwrap(), 0, 0, READ_WRITE, 0).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(libc::EINVAL));
    }
}
