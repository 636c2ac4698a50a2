//! The ring of a thread: taken at its first recorded point, marked when the thread ends.

use crate::fast::{NO_RING, RING};
use crate::layout::*;
use crate::process::PROCESS;
use crate::sys;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ring state of a thread.
#[derive(Clone, Copy)]
enum Mine {
    /// It has not recorded yet.
    Nothing,
    /// A ring, and its number.
    Ring(&'static Ring, u32),
    /// No ring was available, or the thread is ending.
    Refused,
}

thread_local! {
    static MINE: Cell<Mine> = const { Cell::new(Mine::Nothing) };
}

/// This thread's ring, created now if there is none.
pub fn thread_ring(control: &Control) -> Option<&'static Ring> {
    match MINE.get() {
        Mine::Ring(ring, _) => Some(ring),
        Mine::Refused => None,
        Mine::Nothing => {
            // A signal handler in between would find an incomplete ring.
            let signals = sys::block_signals();
            let claimed_ring = claim_ring(control);
            MINE.set(claimed_ring.map_or(Mine::Refused, |(ring, number)| Mine::Ring(ring, number)));
            if let Some((ring, _)) = claimed_ring {
                set_value(1);
                // The fast path can only read a counter.
                if control.clock.load(Ordering::Relaxed) != CLOCK_MONOTONIC {
                    RING.set(ring);
                }
            }
            sys::restore_signals(&signals);
            claimed_ring.map(|(ring, _)| ring)
        }
    }
}

fn claim_ring(control: &Control) -> Option<(&'static Ring, u32)> {
    let file = PROCESS.reopen_file()?;
    PROCESS.map_names(&file)?;
    let (ring, number) = reuse_ring(control, &file).or_else(|| new(control, &file))?;
    let slots = control.ring_slots.load(Ordering::Relaxed);
    ring.generation.fetch_add(1, Ordering::Relaxed);
    ring.tid.store(sys::thread_id(), Ordering::Relaxed);
    ring.slots.store(slots, Ordering::Relaxed);
    ring.mask.store(u64::from(slots) - 1, Ordering::Relaxed);
    for (place, word) in ring.comm.iter().zip(sys::thread_name()) {
        place.store(word, Ordering::Relaxed);
    }
    let flight = control.mode.load(Ordering::Relaxed) == FLIGHT;
    ring.read.store(0, Ordering::Relaxed);
    ring.reported.store(0, Ordering::Relaxed);
    ring.dropped.store(0, Ordering::Relaxed);
    ring.head.store(0, Ordering::Relaxed);
    ring.limit.store(if flight { u64::MAX } else { u64::from(slots) - MARGIN }, Ordering::Relaxed);
    ring.state.store(RING_LIVE, Ordering::Release);
    PROCESS.rings[number as usize].store((&raw const *ring).cast_mut(), Ordering::Release);
    Some((ring, number))
}

/// A ring whose thread has ended and whose collector has finished reading it.
fn reuse_ring(control: &Control, file: &sys::Fd) -> Option<(&'static Ring, u32)> {
    let used = control.rings_used.load(Ordering::Relaxed).min(RINGS_MAX);
    (0..used).find_map(|number| {
        if read_ring_state(control, file, number) != Some(RING_FREE) {
            return None;
        }
        let ring = map_ring(control, file, number)?;
        match ring.state.compare_exchange(
            RING_FREE,
            RING_CLAIMED,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => Some((ring, number)),
            Err(_) => {
                unmap_ring(control, ring);
                None
            }
        }
    })
}

fn read_ring_state(control: &Control, file: &sys::Fd, number: u32) -> Option<u32> {
    let mut state = [0; 4];
    // SAFETY: `state` has room for the four requested bytes.
    let count = unsafe {
        libc::pread(
            file.0,
            state.as_mut_ptr().cast(),
            4,
            ring_offset(control, number) as libc::off_t,
        )
    };
    (count == 4).then(|| u32::from_ne_bytes(state))
}

fn new(control: &Control, file: &sys::Fd) -> Option<(&'static Ring, u32)> {
    let next_used = |used: u32| (used < RINGS_MAX).then_some(used + 1);
    let number =
        control.rings_used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_used).ok()?;
    if !sys::allocate_space(file, ring_offset(control, number), ring_bytes(control) as u64) {
        return None;
    }
    map_ring(control, file, number).map(|ring| (ring, number))
}

fn ring_offset(control: &Control, number: u32) -> u64 {
    RINGS_AT + u64::from(number) * ring_stride(control.ring_slots.load(Ordering::Relaxed))
}

fn ring_bytes(control: &Control) -> usize {
    ring_stride(control.ring_slots.load(Ordering::Relaxed)) as usize
}

fn map_ring(control: &Control, file: &sys::Fd, number: u32) -> Option<&'static Ring> {
    let start = sys::map_file(
        file,
        ring_offset(control, number),
        ring_bytes(control),
        std::ptr::null_mut(),
    )?;
    // SAFETY: the mapping is aligned, longer than a ring, and consists of atomic integers; it stays
    // until this thread ends, when further requests are refused.
    Some(unsafe { &*start.cast::<Ring>() })
}

fn unmap_ring(control: &Control, ring: &Ring) {
    sys::unmap_memory((&raw const *ring).cast_mut().cast(), ring_bytes(control));
}

/// The key of the thread-specific value whose destructor is [`ending`], and 1.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Makes [`ending`] run when threads with a ring end.
pub fn watch_ends() {
    let mut key = 0;
    // SAFETY: a function that exists as long as this library is loaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(ending)) } == 0 {
        KEY.store(key as u32 + 1, Ordering::Relaxed);
    }
}

/// A thread-specific value other than 0 makes the destructor run, now or in the next round.
fn set_value(value: usize) {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: a key that was created and is never deleted; the value is a number.
        unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, value as *const c_void) };
    }
}

/// The destructor of the thread-specific value. Other destructors may still record, so this waits
/// for the last of the rounds in which they are called (PTHREAD_DESTRUCTOR_ITERATIONS is 4 in glibc
/// and in musl).
unsafe extern "C" fn ending(round: *mut c_void) {
    let round = round as usize;
    if round < 4 {
        set_value(round + 1);
    } else if let (Some(control), Mine::Ring(ring, number)) =
        (PROCESS.control_page(), MINE.replace(Mine::Refused))
    {
        let signals = sys::block_signals();
        RING.set(&raw const NO_RING);
        PROCESS.rings[number as usize].store(std::ptr::null_mut(), Ordering::Relaxed);
        ring.state.store(RING_ENDED, Ordering::Release);
        unmap_ring(control, ring);
        sys::restore_signals(&signals);
    }
}

/// Resets the state in a forked child: the rings are the parent's.
pub fn forget_rings() {
    MINE.set(Mine::Nothing);
    RING.set(&raw const NO_RING);
}
