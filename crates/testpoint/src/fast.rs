//! The data accessed by passing a point: the control page, the thread's ring, one slot of it.

use crate::layout::{Control, Ring, SLOTS_AT, Slot};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The memory over which the first page of the file is mapped, so that the check for recording is
/// one load from a known address.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
pub struct ControlPage {
    pub control: Control,
    rest: [AtomicU8; CONTROL_PAGE - size_of::<Control>()],
}

/// The mapped length: a page of the largest size of this architecture.
pub const CONTROL_PAGE: usize = if cfg!(target_arch = "x86_64") { 4_096 } else { 65_536 };

// SAFETY: every field is an atomic integer, for which zero is a value.
pub static CONTROL: ControlPage = unsafe { std::mem::zeroed() };

/// A full ring: a thread without a ring uses it, and takes the slow path.
// SAFETY: every field is an atomic integer, for which zero is a value.
pub static NO_RING: Ring = unsafe { std::mem::zeroed() };

thread_local! {
    /// The ring of this thread's fast path.
        pub static RING: Cell<*const Ring> = const { Cell::new(&raw const NO_RING) };
}

/// Writes a point to a ring that has room for it. `count`, the number of values, is also part of
/// `bits`; as an argument it is known to the compiler.
#[inline(always)]
pub fn write_slot(ring: &Ring, at: u64, bits: u32, count: u32, values: [i64; 2]) {
    let position = reserve_slot(&ring.head);
    let slots = (&raw const *ring).wrapping_byte_add(SLOTS_AT as usize).cast::<Slot>();
    // SAFETY: the mapping of a ring covers `mask + 1` slots that begin at `SLOTS_AT`; the mask
    // keeps the index below that.
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

/// Reserves a position. One instruction, so a signal handler of this thread runs before or after
/// it; without a lock prefix, since no other thread writes here.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn reserve_slot(head: &AtomicU64) -> u64 {
    let mut position = 1_u64;
    // SAFETY: `head` is valid for reads and writes. The compiler treats this as a write to memory
    // that others must not be moved across.
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

/// Reserves a position. The exclusive store fails if a signal handler intervened, so each runs
/// before or after the other.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn reserve_slot(head: &AtomicU64) -> u64 {
    let position = head.fetch_add(1, Ordering::Relaxed);
    // A reader that sees a slot overwritten must see the head that shows it.
    std::sync::atomic::fence(Ordering::Release);
    position
}
