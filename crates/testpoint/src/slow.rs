//! The slow path: the first point of a thread, the first pass of a site, a full ring, a clock that
//! is not a counter.
//!
//! All of it may run in a signal handler, even in one that interrupted it: no allocation, no lock,
//! `errno` is preserved.

use crate::layout::{COUNT_SHIFT, Control, ID_UNNAMED, NAME_BYTES, NAMES_MAX, Name, Ring};
use crate::process::PROCESS;
use crate::{counter, fast, sys, thread};
use std::sync::atomic::{AtomicU32, Ordering};

/// Records a point, or counts it as dropped. `bits` are kind and number of values.
#[cold]
#[inline(never)]
pub fn record_or_drop(id: &AtomicU32, name: &[u8], bits: u32, values: [i64; 2]) {
    #[cfg(feature = "constructor")]
    crate::start::keep_constructor();
    let _errno = sys::KeptErrno::new();
    let Some(control) = PROCESS.control_page() else { return };
    let Some(ring) = thread::thread_ring(control) else {
        control.ringless.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let id = match id.load(Ordering::Relaxed) {
        0 => register_site(control, id, name),
        known => known,
    };
    write_point(control, ring, id | bits, values);
}

fn write_point(control: &Control, ring: &Ring, bits: u32, values: [i64; 2]) {
    if ring.head.load(Ordering::Relaxed) < ring.limit.load(Ordering::Relaxed) {
        let at = counter::read(control.clock.load(Ordering::Relaxed));
        fast::write_slot(ring, at, bits, bits >> COUNT_SHIFT, values);
    } else {
        ring.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Assigns a site the number of its name. Two threads that do this for one site at once may enter
/// the name twice; both numbers are then valid.
fn register_site(control: &Control, site: &AtomicU32, name: &[u8]) -> u32 {
    let Some(table) = PROCESS.name_table() else { return ID_UNNAMED };
    let name = &name[..name.len().min(NAME_BYTES)];
    let id = find_name(control, table, name)
        .or_else(|| enter_name(control, table, name))
        .unwrap_or_else(|| {
            control.names_refused.fetch_add(1, Ordering::Relaxed);
            ID_UNNAMED
        });
    match site.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => id,
        Err(earlier) => earlier,
    }
}

fn find_name(control: &Control, table: &[Name], name: &[u8]) -> Option<u32> {
    let used = control.names_used.load(Ordering::Relaxed).min(NAMES_MAX) as usize;
    let same = |entry: &Name| {
        entry.length.load(Ordering::Acquire) as usize == name.len()
            && name_bytes(entry).eq(name.iter().copied())
    };
    table[..used].iter().position(same).map(|place| place as u32 + 1)
}

fn name_bytes(entry: &Name) -> impl Iterator<Item = u8> {
    let length = (entry.length.load(Ordering::Acquire) as usize).min(NAME_BYTES);
    entry.bytes.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).take(length)
}

fn enter_name(control: &Control, table: &[Name], name: &[u8]) -> Option<u32> {
    let next_used = |used: u32| (used < NAMES_MAX).then_some(used + 1);
    let place =
        control.names_used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_used).ok()?;
    let entry = &table[place as usize];
    for (word, chunk) in entry.bytes.iter().zip(name.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
    // An empty name would look like an entry that is not ready.
    entry.length.store((name.len() as u32).max(1), Ordering::Release);
    Some(place + 1)
}
