//! The least of io_uring(7): one write, submitted and waited for.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// `struct io_sqring_offsets` and `struct io_cqring_offsets` (include/uapi/linux/io_uring.h), as far as they are used.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    resv: [u32; 3],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array, resv1, user_addr (2)
    sq_off: [u32; 10],
    /// head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1, user_addr (2)
    cq_off: [u32; 10],
}

const SQ_TAIL: usize = 1;
const SQ_MASK: usize = 2;
const SQ_ARRAY: usize = 6;
const CQ_HEAD: usize = 0;
const CQ_MASK: usize = 2;
const CQ_CQES: usize = 5;

const OFF_SQ_RING: i64 = 0;
const OFF_SQES: i64 = 0x1000_0000;
const FEAT_SINGLE_MMAP: u32 = 1;
const ENTER_GETEVENTS: u32 = 1;
const OP_WRITE: u8 = 23;
const ENTRIES: u32 = 4;
const SQE: usize = 64;
const CQE: usize = 16;
/// The whole of both rings at four entries is far smaller.
const PAGE: usize = 4096;

/// A ring that takes one request at a time.
pub struct Uring {
    fd: OwnedFd,
    rings: Mapping,
    sqes: Mapping,
    params: Params,
}

struct Mapping(*mut u8, usize);

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nobody uses it any more.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

// SAFETY: the mappings belong to the ring alone, and it is used by one thread at a time (`&mut self`).
unsafe impl Send for Uring {}

impl Uring {
    /// Makes one. ENOSYS: the kernel has none; EPERM: kernel.io_uring_disabled.
    pub fn new() -> io::Result<Uring> {
        let mut params = Params::default();
        // SAFETY: `params` is an io_uring_params to read and write.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut params) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        if params.features & FEAT_SINGLE_MMAP == 0 {
            return Err(io::Error::other("the kernel is older than 5.4"));
        }
        let completions = params.cq_off[CQ_CQES] as usize + params.cq_entries as usize * CQE;
        let length = completions.max(params.sq_off[SQ_ARRAY] as usize + params.sq_entries as usize * 4);
        let rings = map(&fd, length.next_multiple_of(PAGE), OFF_SQ_RING)?;
        let sqes = map(&fd, (params.sq_entries as usize * SQE).next_multiple_of(PAGE), OFF_SQES)?;
        Ok(Uring { fd, rings, sqes, params })
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel's offsets lie within the mapping, whose length was made of them, and are aligned; both sides use it atomically.
        unsafe { AtomicU32::from_ptr(self.rings.0.add(offset as usize).cast()) }
    }

    /// Writes to a descriptor and waits until that is done. The answer is that of write(2), or −errno.
    ///
    /// # Safety
    /// `bytes` must be readable memory of `length` until this returns.
    #[inline(always)]
    pub unsafe fn write(&mut self, to: i32, bytes: *const u8, length: u32) -> i32 {
        let (sq, cq) = (&self.params.sq_off, &self.params.cq_off);
        let tail = self.word(sq[SQ_TAIL]).load(Ordering::Relaxed);
        let index = tail & self.word(sq[SQ_MASK]).load(Ordering::Relaxed);
        // SAFETY: the index is below the number of entries, each of 64 bytes, of which the fields below are the first 32
        // (struct io_uring_sqe); the kernel reads them only after the tail has moved.
        unsafe {
            let sqe = self.sqes.0.add(index as usize * SQE);
            ptr::write_bytes(sqe, 0, SQE);
            sqe.write(OP_WRITE);
            sqe.add(4).cast::<i32>().write(to);
            sqe.add(16).cast::<u64>().write(bytes as u64);
            sqe.add(24).cast::<u32>().write(length);
        }
        self.word(sq[SQ_ARRAY] + index * 4).store(index, Ordering::Relaxed);
        self.word(sq[SQ_TAIL]).store(tail.wrapping_add(1), Ordering::Release);
        let none = ptr::null::<u8>();
        // SAFETY: io_uring_enter takes numbers and, here, no signal mask.
        let entered = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.fd.as_raw_fd(), 1u32, 1u32, ENTER_GETEVENTS, none, 0usize)
        };
        if entered < 0 {
            return -1;
        }
        let head = self.word(cq[CQ_HEAD]).load(Ordering::Acquire);
        let at = cq[CQ_CQES] as usize + (head & self.word(cq[CQ_MASK]).load(Ordering::Relaxed)) as usize * CQE;
        // SAFETY: the entry lies within the mapping; the call above has waited for it. `res` is at offset 8 (struct io_uring_cqe).
        let result = unsafe { self.rings.0.add(at + 8).cast::<i32>().read() };
        self.word(cq[CQ_HEAD]).store(head.wrapping_add(1), Ordering::Release);
        result
    }
}

fn map(fd: &OwnedFd, length: usize, offset: i64) -> io::Result<Mapping> {
    // SAFETY: a new mapping of a descriptor, at a place that the kernel chooses.
    let at = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Mapping(at.cast(), length)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn what_is_written_arrives() {
        let mut uring = match Uring::new() {
            Ok(uring) => uring,
            Err(why) => return println!("SKIPPED: io_uring is not to be had: {why}"),
        };
        let mut file = tempfile::tempfile().unwrap();
        for _ in 0..20 {
            // SAFETY: a static text.
            let written = unsafe { uring.write(file.as_raw_fd(), b"point".as_ptr(), 5) };
            assert_eq!(written, 5);
        }
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "point", "every write goes to offset 0");
    }
}
