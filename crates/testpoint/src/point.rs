//! A point, and what passing it costs.
//!
//! Not recording: a load and a branch. Recording: a look at the thread's ring, the counter, a
//! reservation that a signal handler cannot split, and two stores. Everything else happens in
//! [`crate::slow`].

use crate::layout::{COUNT_SHIFT, Control, KIND_BEGIN, KIND_END, KIND_POINT, Ring, SLOTS_AT, Slot};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The memory that the first page of the file is mapped over: so that "is anybody recording?" is
/// one load from a known address.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
#[doc(hidden)]
pub struct ControlPage {
    pub control: Control,
    rest: [AtomicU8; CONTROL_PAGE - size_of::<Control>()],
}

/// As much as is mapped: a page of the largest size that this architecture has.
pub const CONTROL_PAGE: usize = if cfg!(target_arch = "x86_64") { 4_096 } else { 65_536 };

// SAFETY: every field is an atomic integer, for which zero is a value.
#[doc(hidden)]
pub static CONTROL: ControlPage = unsafe { std::mem::zeroed() };

/// A full ring: a thread without a ring gets it, and takes the slow path.
// SAFETY: every field is an atomic integer, for which zero is a value.
pub(crate) static NO_RING: Ring = unsafe { std::mem::zeroed() };

thread_local! {
    /// The ring that this thread's fast path writes.
    #[doc(hidden)]
    pub static RING: Cell<*const Ring> = const { Cell::new(&raw const NO_RING) };
}

/// A test point: a name, and the number that it is recorded by.
///
/// ```
/// use punctual_testpoint::Point;
/// static TICK: Point = Point::new("control.tick");
///
/// TICK.hit(); // an instant
/// TICK.hit1(42); // with a value
/// {
///     let _scope = TICK.scope(); // begins here, ends with the block
/// }
/// ```
pub struct Point {
    name: &'static str,
    id: AtomicU32,
}

impl Point {
    /// A point of this name. Points of the same name are the same point to readers. At most 120
    /// bytes of the name are kept.
    pub const fn new(name: &'static str) -> Point {
        Point { name, id: AtomicU32::new(0) }
    }

    /// The point was passed.
    #[inline(always)]
    pub fn hit(&self) {
        self.record::<{ KIND_POINT }>(0, 0);
    }
    /// The point was passed, with a value.
    #[inline(always)]
    pub fn hit1(&self, a: i64) {
        self.record::<{ KIND_POINT | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// The point was passed, with two values.
    #[inline(always)]
    pub fn hit2(&self, a: i64, b: i64) {
        self.record::<{ KIND_POINT | 2 << COUNT_SHIFT }>(a, b);
    }
    /// What the point is named after begins.
    #[inline(always)]
    pub fn begin(&self) {
        self.record::<{ KIND_BEGIN }>(0, 0);
    }
    /// It begins, with a value.
    #[inline(always)]
    pub fn begin1(&self, a: i64) {
        self.record::<{ KIND_BEGIN | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// It begins, with two values.
    #[inline(always)]
    pub fn begin2(&self, a: i64, b: i64) {
        self.record::<{ KIND_BEGIN | 2 << COUNT_SHIFT }>(a, b);
    }
    /// It ends.
    #[inline(always)]
    pub fn end(&self) {
        self.record::<{ KIND_END }>(0, 0);
    }
    /// It ends, with a value.
    #[inline(always)]
    pub fn end1(&self, a: i64) {
        self.record::<{ KIND_END | 1 << COUNT_SHIFT }>(a, 0);
    }
    /// It ends, with two values.
    #[inline(always)]
    pub fn end2(&self, a: i64, b: i64) {
        self.record::<{ KIND_END | 2 << COUNT_SHIFT }>(a, b);
    }
    /// It begins, and ends when the returned guard is dropped.
    #[inline(always)]
    pub fn scope(&'static self) -> Scope {
        self.begin();
        Scope { point: self }
    }

    #[inline(always)]
    fn record<const BITS: u32>(&self, a: i64, b: i64) {
        if CONTROL.control.recording.load(Ordering::Relaxed) != 0 {
            self.write::<BITS>(a, b);
        }
    }

    #[inline(always)]
    fn write<const BITS: u32>(&self, a: i64, b: i64) {
        let ring = RING.get();
        let id = self.id.load(Ordering::Relaxed);
        // SAFETY: `RING` holds `NO_RING` or the ring that this thread has mapped until it ends.
        let ring = unsafe { &*ring };
        if id == 0 || ring.head.load(Ordering::Relaxed) >= ring.limit.load(Ordering::Relaxed) {
            crate::slow::slow(&self.id, self.name.as_bytes(), BITS, [a, b]);
        } else {
            put(ring, crate::counter::ticks(), id | BITS, BITS >> COUNT_SHIFT, [a, b]);
        }
    }
}

/// Ends what it began when it is dropped: see [`Point::scope`].
#[must_use = "the scope ends when this is dropped: bind it to a name that begins with `_`"]
pub struct Scope {
    point: &'static Point,
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        self.point.end();
    }
}

/// Writes a point to a ring that has room for it. `count`, the number of values, stands in `bits`
/// too; the compiler knows it only by itself.
#[inline(always)]
pub(crate) fn put(ring: &Ring, at: u64, bits: u32, count: u32, values: [i64; 2]) {
    let position = reserve(&ring.head);
    let slots = (&raw const *ring).wrapping_byte_add(SLOTS_AT as usize).cast::<Slot>();
    // SAFETY: the mapping of a ring goes on over `mask + 1` slots that begin at `SLOTS_AT`; the
    // mask keeps the index below that.
    let slot = unsafe { &*slots.add((position & ring.mask.load(Ordering::Relaxed)) as usize) };
    if count > 0 {
        slot.values[0].store(values[0], Ordering::Relaxed);
    }
    if count > 1 {
        slot.values[1].store(values[1], Ordering::Relaxed);
    }
    slot.at.store(at, Ordering::Relaxed);
    slot.word.store((position + 1) << 32 | u64::from(bits), Ordering::Release);
}

/// Takes a position. One instruction, so a signal handler of this thread comes before or after it;
/// without a lock prefix, since no other thread writes here.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn reserve(head: &AtomicU64) -> u64 {
    let mut position = 1_u64;
    // SAFETY: `head` is valid for reads and writes. To the compiler this is a write to memory that
    // it must not move others across.
    unsafe {
        core::arch::asm!(
            "xadd qword ptr [{head}], {position}",
            head = in(reg) head.as_ptr(),
            position = inout(reg) position,
            options(nostack)
        )
    };
    position
}

/// Takes a position. The exclusive store fails if a signal handler came in between, so each comes
/// before or after the other.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn reserve(head: &AtomicU64) -> u64 {
    let position = head.fetch_add(1, Ordering::Relaxed);
    // A reader that sees a slot overwritten must see the head that shows it.
    std::sync::atomic::fence(Ordering::Release);
    position
}
