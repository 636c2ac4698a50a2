//! The memory shared with the allocating process: requests and results. `heap.c` has the same two
//! structures.

use punctual_sys::descriptor::create_memfd;
use punctual_sys::futex::{self, FutexScope};
use punctual_sys::mapping::{Mapping, READ_WRITE};
use punctual_sys::memory::page_size;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

pub const TOUCH: u32 = 1;
/// Each round is in a new process.
pub(crate) const FRESH: u32 = 2;
/// mlockall(2).
pub const LOCK: u32 = 4;
/// No transparent huge pages, so that pages have one size.
pub(crate) const SMALL_PAGES: u32 = 8;
pub const END: u32 = 16;
/// It runs on one CPU, and need not query it.
pub const ONE_CPU: u32 = 32;

/// `struct head`. Written by the side that has the turn; `turn` and `stop` by both.
#[repr(C)]
pub(crate) struct HeapHead {
    turn: AtomicU32,
    stop: AtomicU32,
    pub flags: u32,
    /// The errno that ended the batch early.
    pub error: u32,
    layout: u64,
    pub page: u64,
    pub blocks: u64,
    /// Blocks that are allocated, then touched, then freed.
    pub round: u64,
    /// The beginning of the next round, with a period.
    pub due: i64,
    pub period: i64,
    pub burst: i64,
    pub until: i64,
    pub limit: i64,
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Time in rounds, in ns, without sleep.
    pub spent: i64,
    pub faults: u64,
    /// CPU time in rounds of more than one block, in ns: excludes other tasks on the CPU.
    pub cpu_time: i64,
    malloc_at: u64,
    free_at: u64,
    libc: [u8; 32],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct HeapBlock {
    pub size: u64,
    /// The block of the round that is touched at this position.
    pub visit: u64,
    pub at: u64,
    pub malloc: [i64; 2],
    pub touch: [i64; 2],
    pub free: [i64; 2],
    pub cpu: u64,
}

/// The mapping of this side. Apart from the atomic words it is accessed only through `&mut self`,
/// and by the other side only while it has the turn and this side waits.
pub struct HeapMemory {
    file: File,
    memory: Mapping,
    blocks: usize,
}

const HEAD: usize = size_of::<HeapHead>().next_multiple_of(64);

impl HeapMemory {
    /// Allocates memory for batches of at most this many blocks, all of it touched.
    pub fn new(blocks: usize) -> io::Result<HeapMemory> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let length = blocks
            .checked_mul(size_of::<HeapBlock>())
            .and_then(|n| n.checked_add(HEAD))
            .ok_or_else(too_large)?;
        let file = create_memfd(c"punctual-heap", 0)?;
        file.set_len(length as u64)?;
        let memory = Mapping::of_file(&file, 0, length, READ_WRITE, libc::MAP_POPULATE)?;
        let mut shared_memory = HeapMemory { file, memory, blocks };
        let head = shared_memory.batch_head();
        head.page = page_size() as u64;
        head.burst = crate::workload::measurement_loop::Pacing::BURST.ns();
        (head.until, head.limit) = (i64::MAX, i64::MAX);
        // Initially the other side has the turn: it reports when it is ready.
        head.turn.store(1, Ordering::Release);
        Ok(shared_memory)
    }

    /// Its description for a program: descriptor, length, offset of the blocks.
    pub(crate) fn describe_mapping(&self) -> (i32, [String; 3]) {
        let fd = self.file.as_raw_fd();
        (fd, [fd.to_string(), self.memory.length().to_string(), HEAD.to_string()])
    }

    fn raw_pointers(&self) -> (*mut HeapHead, *mut HeapBlock) {
        // SAFETY: the blocks begin HEAD bytes after the beginning of the mapping, which is longer.
        (
            self.memory.start_address().as_ptr().cast(),
            unsafe { self.memory.start_address().as_ptr().add(HEAD) }.cast(),
        )
    }

    fn turn_and_stop(&self) -> (&AtomicU32, &AtomicU32) {
        // SAFETY: the mapping begins with a `HeapHead`, whose first two words are atomic on both
        // sides.
        unsafe { (&(*self.raw_pointers().0).turn, &(*self.raw_pointers().0).stop) }
    }

    /// The header of a batch. This side has the turn.
    pub(crate) fn batch_head(&mut self) -> &mut HeapHead {
        // SAFETY: the mapping begins with a `HeapHead`, any bytes are valid, and the other side
        // does not access it while this one has the turn.
        unsafe { &mut *self.raw_pointers().0 }
    }

    /// All blocks. This side has the turn.
    pub(crate) fn all_blocks(&mut self) -> &mut [HeapBlock] {
        // SAFETY: there are `blocks` of them, any bytes are valid, and the other side does not
        // access them while this one has the turn.
        unsafe { std::slice::from_raw_parts_mut(self.raw_pointers().1, self.blocks) }
    }

    /// Whether the other side has the same structures.
    pub(crate) fn has_same_layout(&mut self) -> bool {
        self.batch_head().layout
            == (size_of::<HeapHead>() as u64) << 32 | size_of::<HeapBlock>() as u64
    }

    /// The addresses of the other side's malloc and free, and the version of its C library.
    pub(crate) fn allocator_addresses(&mut self) -> ([u64; 2], String) {
        let head = self.batch_head();
        let end = head.libc.iter().position(|byte| *byte == 0).unwrap_or_default();
        ([head.malloc_at, head.free_at], String::from_utf8_lossy(&head.libc[..end]).into_owned())
    }

    /// Gives the turn to the other side.
    pub(crate) fn hand_over(&mut self) {
        let (turn, stop) = self.turn_and_stop();
        stop.store(0, Ordering::Relaxed);
        turn.store(1, Ordering::Release);
        let _ = futex::wake(turn, 1, FutexScope::Shared);
    }

    /// Asks the other side to end its batch.
    pub(crate) fn ask_to_stop(&self) {
        self.turn_and_stop().1.store(1, Ordering::Relaxed);
    }

    /// Whether this side has the turn.
    pub(crate) fn has_turn(&self) -> bool {
        self.turn_and_stop().0.load(Ordering::Acquire) == 0
    }

    /// Waits for the turn, for a limited time or until a signal comes.
    pub(crate) fn wait_a_while(&self) {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 500_000_000 };
        let _ = futex::wait(self.turn_and_stop().0, 1, FutexScope::Shared, Some(&time));
    }
}
