//! Whether standard output was closed when this program began (`punctual … >&-`).
//!
//! Rust's runtime opens /dev/null in its place before `main`, so that no file gets its number:
//! output would be lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called before the runtime begins: ELF, "Initialization and Termination Functions".
#[used]
// SAFETY: the section holds pointers to functions of the C ABI, and this is one.
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: reads a flag of a descriptor, whether it exists or not.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
    }
    look
};

/// Whether there was no standard output.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
