//! A page of memory that BPF programs write and a thread reads, or the other way round.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The size of a page.
pub(crate) fn page() -> usize {
    // SAFETY: takes a number alone.
    (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).max(4096) as usize
}

/// A page of a map that the kernel shares.
pub(crate) struct Page(NonNull<u8>);

// SAFETY: plain shared memory that is only read and written through atomics.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    pub(crate) fn map(map: &OwnedFd, number: usize, protection: libc::c_int) -> io::Result<Page> {
        let at = (number * page()) as libc::off_t;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), page(), protection, flags, map.as_raw_fd(), at)
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => {
                Ok(Page(base))
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The word at this multiple of 8.
    #[inline(always)]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < 4096);
        // SAFETY: within the page, which is mapped as long as self lives, and aligned.
        unsafe { &*self.0.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// The half word at this multiple of 4.
    #[inline(always)]
    pub(crate) fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < 4096);
        // SAFETY: as in `word`.
        unsafe { &*self.0.as_ptr().add(offset).cast::<AtomicU32>() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), page()) };
    }
}
