//! The file of a process's points: `docs/reference/testpoints.md` describes it for readers in other
//! languages.
//!
//! All numbers have the byte order of the machine. The file consists of the control page, the table
//! of names, and one ring per thread. It grows: parts that were never used do not exist.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// The first eight bytes of a file; written last, so a file without them is not ready.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"PNCTLPT1");
/// The version of this layout.
pub const VERSION: u32 = 1;
/// The suffix of a file's name: `PID.START.N.points`, START being field 22 of /proc/PID/stat.
pub const SUFFIX: &str = ".points";
/// A file beside them that a collector locks (flock(2)) while it records: a process that starts
/// meanwhile records from its first point on.
pub const COLLECTOR: &str = ".collector";

/// The alignment of the table of names and of every ring: the largest page size of any supported
/// machine.
pub const ALIGN: u64 = 65_536;
/// The offset of the table of names.
pub const NAMES_AT: u64 = ALIGN;
/// The maximum number of names of a process.
pub const NAMES_MAX: u32 = 1_023;
/// The offset of the first ring.
pub const RINGS_AT: u64 = NAMES_AT + 2 * ALIGN;
/// The maximum number of rings of a process. Points of further threads are counted in
/// [`Control::ringless`].
pub const RINGS_MAX: u32 = 256;
/// The offset of the slots in a ring.
pub const SLOTS_AT: u64 = 4_096;
/// The default number of slots of a ring: 1 MiB.
pub const SLOTS_DEFAULT: u32 = 32_768;
/// The minimum number of slots of a ring.
pub const SLOTS_MIN: u32 = 1_024;
/// The maximum number of slots of a ring: 128 MiB.
pub const SLOTS_MAX: u32 = 1 << 22;
/// Slots kept free in a full ring, because a signal handler may record between its thread's check
/// of the limit and the reservation of a slot: one for every signal.
pub const MARGIN: u64 = 64;

/// [`Control::mode`]: a full ring drops points until a collector has read some.
pub const STREAM: u32 = 1;
/// [`Control::mode`]: new points overwrite the oldest.
pub const FLIGHT: u32 = 2;

/// [`Control::clock`]: the time stamp counter of x86-64.
pub const CLOCK_TSC: u32 = 1;
/// [`Control::clock`]: the virtual counter of arm64 (CNTVCT_EL0).
pub const CLOCK_CNTVCT: u32 = 2;
/// [`Control::clock`]: CLOCK_MONOTONIC in nanoseconds.
pub const CLOCK_MONOTONIC: u32 = 3;

/// [`Control::namespace`] of the file that punctual's kernel module shows: `tid` of each ring is a
/// CPU, a point has at most one value, and its second one is its thread.
pub const KERNEL: u64 = u64::MAX;
/// In that file, the thread of points that interrupts pass: this plus the CPU. No thread has such a
/// number (PID_MAX_LIMIT in include/linux/threads.h).
pub const INTERRUPTS: u32 = 1 << 30;

/// [`Ring::state`]: a thread writes it.
pub const RING_LIVE: u32 = 1;
/// [`Ring::state`]: its thread ended.
pub const RING_ENDED: u32 = 2;
/// [`Ring::state`]: its thread ended and a collector has read everything; another thread may
/// take it.
pub const RING_FREE: u32 = 3;
/// [`Ring::state`]: a thread is preparing it.
pub const RING_CLAIMED: u32 = 4;

/// The low half of [`Slot::word`]: id in bits 0–23.
pub const ID_MASK: u32 = 0xff_ffff;
/// The id of points whose names did not fit in the table.
pub const ID_UNNAMED: u32 = ID_MASK;
/// The low half of [`Slot::word`]: an instant.
pub const KIND_POINT: u32 = 1 << 24;
/// The low half of [`Slot::word`]: a beginning.
pub const KIND_BEGIN: u32 = 2 << 24;
/// The low half of [`Slot::word`]: an end.
pub const KIND_END: u32 = 3 << 24;
/// The bits of the kind in the low half of [`Slot::word`].
pub const KIND_MASK: u32 = 0xf << 24;
/// The shift of the number of values in the low half of [`Slot::word`].
pub const COUNT_SHIFT: u32 = 28;

/// The control page, at the beginning of the file.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Points are recorded while this is not 0. A collector writes it.
    pub recording: AtomicU32,
    /// [`STREAM`] or [`FLIGHT`]. A collector writes it.
    pub mode: AtomicU32,
    /// The mode requested by the process itself; 0: none, points are recorded only while a
    /// collector requests them.
    pub requested: AtomicU32,
    /// The process number in its own namespace.
    pub pid: AtomicU32,
    /// The clock of [`Slot::at`].
    pub clock: AtomicU32,
    /// The start time of the process (field 22 of /proc/PID/stat); 0 if it could not be read.
    pub start_time: AtomicU64,
    /// A reading of the clock when the file was made …
    pub pair_ticks: AtomicU64,
    /// … and of CLOCK_MONOTONIC at the same time, in ns; both are 0 if `clock` is CLOCK_MONOTONIC …
    pub pair_monotonic: AtomicI64,
    /// … with an error of at most this many ticks.
    pub pair_error: AtomicU64,
    /// Names in the table; may exceed [`NAMES_MAX`], which is then the number.
    pub names_used: AtomicU32,
    /// Sites whose names did not fit; their points carry [`ID_UNNAMED`].
    pub names_refused: AtomicU32,
    /// Slots of every ring: a power of two.
    pub ring_slots: AtomicU32,
    /// Rings that were ever taken; may exceed [`RINGS_MAX`], which is then the number.
    pub rings_used: AtomicU32,
    /// The PID namespace of `pid` and of all thread ids (inode of /proc/PID/ns/pid); 0 if it could
    /// not be read.
    pub namespace: AtomicU64,
    /// 1 after the process ended in order.
    pub ended: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// The process's name when the file was made (`comm`), ended by 0 if shorter.
    pub comm: [AtomicU64; 2],
    /// 0: the following fields are written by threads without a ring, which must not disturb
    /// threads that read `recording`.
    pub reserved_2: [AtomicU64; 2],
    /// Points dropped because their thread could not get a ring.
    pub ringless: AtomicU64,
}

/// An entry of the table of names; the id of a point is the index in the table plus one.
#[repr(C)]
#[derive(Debug)]
pub struct Name {
    /// The number of valid bytes; written last: 0 is an entry not yet ready.
    pub length: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// The name: any bytes.
    pub bytes: [AtomicU64; 15],
}

/// The longest name, in bytes; longer ones are cut.
pub const NAME_BYTES: usize = 120;

/// The header of a ring, on three cache lines: of all, of the writing thread, of the collector.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring {
    /// `RING_…`; 0: never used.
    pub state: AtomicU32,
    /// The number of times that this ring was taken.
    pub generation: AtomicU32,
    /// The thread id in its own namespace.
    pub tid: AtomicU32,
    /// Slots of this ring: as in [`Control::ring_slots`].
    pub slots: AtomicU32,
    /// The thread's name when it took the ring.
    pub comm: [AtomicU64; 2],
    /// 0.
    pub reserved: [AtomicU64; 4],
    /// Points begun so far. Only the writing thread writes it.
    pub head: AtomicU64,
    /// The number of slots minus one.
    pub mask: AtomicU64,
    /// Points dropped because the ring was full.
    pub dropped: AtomicU64,
    /// 0.
    pub reserved_2: [AtomicU64; 5],
    /// A point is recorded while `head` is below this: in stream mode the read position plus the
    /// slots minus [`MARGIN`], in flight mode 2⁶⁴ − 1. The collector writes it.
    pub limit: AtomicU64,
    /// Points that a collector has finished: the next one to be read. The collector writes it.
    pub read: AtomicU64,
    /// The part of `dropped` that a collector has reported. The collector writes it.
    pub reported: AtomicU64,
    /// 0.
    pub reserved_3: [AtomicU64; 5],
}

/// One point. Position `p` (the `head` before it) lies in slot `p & mask`.
#[repr(C, align(32))]
#[derive(Debug)]
pub struct Slot {
    /// The time, on [`Control::clock`].
    pub at: AtomicU64,
    /// Written last: the low 32 bits of `p + 1` in the upper half; id, kind and number of values in
    /// the lower.
    pub word: AtomicU64,
    /// The values; `word` holds their number.
    pub values: [AtomicI64; 2],
}

/// The size of a ring in the file.
pub const fn ring_stride(slots: u32) -> u64 {
    (SLOTS_AT + slots as u64 * size_of::<Slot>() as u64).next_multiple_of(ALIGN)
}

const _: () = {
    assert!(size_of::<Control>() == 136);
    assert!(size_of::<Name>() == 128);
    assert!(size_of::<Ring>() == 192);
    assert!(size_of::<Slot>() == 32);
    assert!((NAMES_MAX as u64 + 1) * size_of::<Name>() as u64 == RINGS_AT - NAMES_AT);
    assert!(std::mem::offset_of!(Control, recording) == 12);
    assert!(std::mem::offset_of!(Control, ringless) == 128);
    assert!(std::mem::offset_of!(Ring, head) == 64);
    assert!(std::mem::offset_of!(Ring, limit) == 128);
};
