//! A minimal io_uring(7): one write, submitted and awaited; a write and an fsync, linked.

use punctual_sys::descriptor;
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// `struct io_sqring_offsets` and `struct io_cqring_offsets` (include/uapi/linux/io_uring.h), the
/// fields in use.
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
const CQ_TAIL: usize = 1;
const CQ_MASK: usize = 2;
const CQ_CQES: usize = 5;

const OFF_SQ_RING: usize = 0;
const OFF_SQES: usize = 0x1000_0000;
const FEAT_SINGLE_MMAP: u32 = 1;
const ENTER_GETEVENTS: u32 = 1;
const OP_FSYNC: u8 = 3;
const OP_WRITE: u8 = 23;
const IO_LINK: u8 = 1 << 2;
const ENTRIES: u32 = 4;
const SQE: usize = 64;
const CQE: usize = 16;
/// Both rings with four entries are far smaller.
const PAGE: usize = 4096;

/// A ring for one request at a time.
pub struct Uring {
    fd: OwnedFd,
    rings: Mapping,
    sqes: Mapping,
    params: Params,
}

impl Uring {
    /// Creates one. ENOSYS: the kernel has none; EPERM: kernel.io_uring_disabled.
    pub fn new() -> io::Result<Uring> {
        let mut params = Params::default();
        // SAFETY: `params` is an io_uring_params to read and write; the call makes a descriptor.
        let fd = unsafe {
            descriptor::own_descriptor(libc::syscall(
                libc::SYS_io_uring_setup,
                ENTRIES,
                &raw mut params,
            ))?
        };
        if params.features & FEAT_SINGLE_MMAP == 0 {
            return Err(io::Error::other("the kernel is older than 5.4"));
        }
        let completions = params.cq_off[CQ_CQES] as usize + params.cq_entries as usize * CQE;
        let length =
            completions.max(params.sq_off[SQ_ARRAY] as usize + params.sq_entries as usize * 4);
        let map = |offset, length: usize| {
            let length = length.next_multiple_of(PAGE);
            Mapping::of_file(&fd, offset, length, READ_WRITE, libc::MAP_POPULATE)
        };
        let rings = map(OFF_SQ_RING, length)?;
        let sqes = map(OFF_SQES, params.sq_entries as usize * SQE)?;
        Ok(Uring { fd, rings, sqes, params })
    }

    fn ring_word(&self, offset: u32) -> &AtomicU32 {
        self.rings.word32_at(offset as usize)
    }

    /// Writes to the beginning of a file and waits for completion. Returns the result of write(2),
    /// or −errno.
    ///
    /// # Safety
    /// `bytes` must be readable memory of `length` until this returns.
    #[inline(always)]
    pub unsafe fn write(&mut self, to: i32, bytes: *const u8, length: u32) -> i32 {
        self.fill_entry(
            0,
            UringRequest { op: OP_WRITE, flags: 0, to, at: bytes as u64, length, offset: 0 },
        );
        self.publish_entries(1);
        if self.enter(1, 1) < 0 {
            return -1;
        }
        self.take_completion().unwrap_or(-1)
    }

    /// Submits a write at this offset with a linked fsync, without waiting for either:
    /// [`Uring::wait_for_both`] does. Returns the result of io_uring_enter(2): 2 if both were
    /// accepted.
    ///
    /// # Safety
    /// `bytes` must be readable memory of `length` until `wait_for_both` has returned.
    #[inline(always)]
    pub(crate) unsafe fn submit_write_and_fsync(
        &mut self,
        to: i32,
        bytes: *const u8,
        length: u32,
        offset: u64,
    ) -> i64 {
        self.fill_entry(
            0,
            UringRequest { op: OP_WRITE, flags: IO_LINK, to, at: bytes as u64, length, offset },
        );
        self.fill_entry(
            1,
            UringRequest { op: OP_FSYNC, flags: 0, to, at: 0, length: 0, offset: 0 },
        );
        self.publish_entries(2);
        self.enter(2, 0)
    }

    /// Waits until the write and the fsync are done: the results of both, or −errno (the fsync's is
    /// −ECANCELED if the write failed).
    #[inline(always)]
    pub(crate) fn wait_for_both(&mut self) -> [i32; 2] {
        let mut results = [-libc::EIO; 2];
        let mut taken_count = 0;
        // Linked requests complete in order.
        while let Some(place) = results.get_mut(taken_count) {
            match self.take_completion() {
                Some(result) => {
                    *place = result;
                    taken_count += 1;
                }
                None if self.enter(0, 2 - taken_count as u32) < 0
                    && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted =>
                {
                    break;
                }
                None => {}
            }
        }
        results
    }

    /// Fills the entry `ahead` entries after the last published one.
    #[inline(always)]
    fn fill_entry(&mut self, ahead: u32, request: UringRequest) {
        let sq = &self.params.sq_off;
        let tail = self.ring_word(sq[SQ_TAIL]).load(Ordering::Relaxed).wrapping_add(ahead);
        let index = tail & self.ring_word(sq[SQ_MASK]).load(Ordering::Relaxed);
        // SAFETY: the index is below the number of entries, each of 64 bytes, of which the fields
        // below are the first 32 (struct io_uring_sqe); the kernel reads them only after the tail
        // has moved.
        unsafe {
            let sqe = self.sqes.start_address().as_ptr().add(index as usize * SQE);
            ptr::write_bytes(sqe, 0, SQE);
            sqe.write(request.op);
            sqe.add(1).write(request.flags);
            sqe.add(4).cast::<i32>().write(request.to);
            sqe.add(8).cast::<u64>().write(request.offset);
            sqe.add(16).cast::<u64>().write(request.at);
            sqe.add(24).cast::<u32>().write(request.length);
        }
        self.ring_word(sq[SQ_ARRAY] + index * 4).store(index, Ordering::Relaxed);
    }

    /// Publishes this many further entries to the kernel.
    #[inline(always)]
    fn publish_entries(&mut self, entries: u32) {
        let tail = self.ring_word(self.params.sq_off[SQ_TAIL]);
        tail.store(tail.load(Ordering::Relaxed).wrapping_add(entries), Ordering::Release);
    }

    #[inline(always)]
    fn enter(&mut self, submit: u32, wait_for: u32) -> i64 {
        let (fd, none) = (self.fd.as_raw_fd(), ptr::null::<u8>());
        // SAFETY: io_uring_enter takes numbers and, here, no signal mask. The creators of the
        // entries are responsible for their pointers.
        unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                fd,
                submit,
                wait_for,
                ENTER_GETEVENTS,
                none,
                0usize,
            ) as i64
        }
    }

    /// The next completion, if any.
    #[inline(always)]
    fn take_completion(&mut self) -> Option<i32> {
        let cq = &self.params.cq_off;
        let head = self.ring_word(cq[CQ_HEAD]).load(Ordering::Relaxed);
        if head == self.ring_word(cq[CQ_TAIL]).load(Ordering::Acquire) {
            return None;
        }
        let at = cq[CQ_CQES] as usize
            + (head & self.ring_word(cq[CQ_MASK]).load(Ordering::Relaxed)) as usize * CQE;
        // SAFETY: the entry lies within the mapping, and the tail shows that it is filled. `res` is
        // at offset 8 (struct io_uring_cqe).
        let result = unsafe { self.rings.start_address().add(at + 8).cast::<i32>().read() };
        self.ring_word(cq[CQ_HEAD]).store(head.wrapping_add(1), Ordering::Release);
        Some(result)
    }
}

/// The used fields of a `struct io_uring_sqe`.
struct UringRequest {
    op: u8,
    flags: u8,
    to: i32,
    at: u64,
    length: u32,
    offset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn io_uring_writes_at_the_offset_and_then_forces() {
        let mut uring = match Uring::new() {
            Ok(uring) => uring,
            Err(why) => return println!("SKIPPED: io_uring is unavailable: {why}"),
        };
        let mut file = tempfile::tempfile().unwrap();
        for place in 0..20 {
            // SAFETY: a static text.
            let taken = unsafe {
                uring.submit_write_and_fsync(file.as_raw_fd(), b"point".as_ptr(), 5, place * 5)
            };
            assert_eq!((taken, uring.wait_for_both()), (2, [5, 0]));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "point".repeat(20));
        // SAFETY: as above.
        unsafe { uring.submit_write_and_fsync(-1, b"point".as_ptr(), 5, 0) };
        assert_eq!(uring.wait_for_both(), [-libc::EBADF, -libc::ECANCELED]);
    }

    #[test]
    fn io_uring_writes_reach_the_file() {
        let mut uring = match Uring::new() {
            Ok(uring) => uring,
            Err(why) => return println!("SKIPPED: io_uring is unavailable: {why}"),
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
