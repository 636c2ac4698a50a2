//! What a thread can ask of the kernel for itself: clocks, scheduling, affinity, memory locks,
//! counts of its own disturbances.

pub mod attributes;
pub mod children;
pub mod clock;
pub mod gate;
pub mod memory;
pub mod power;
pub mod progress;
pub mod rights;
pub mod signals;
pub mod usage;

use std::io;

/// Turns the result of a libc call that returns -1 on failure into an `io::Result`.
pub(crate) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
