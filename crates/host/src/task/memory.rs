//! Memory that is there before it is needed: locks (mlockall(2), mlock2(2)) and first touches.

use super::check;
use std::io;

/// Locks what is mapped and will be mapped, each page from its first touch on (MCL_ONFAULT, Linux 4.4): pages that the process never
/// uses, such as most of a large binary, do not become resident. What the measured path uses must be touched before.
///
/// ENOMEM or EPERM: RLIMIT_MEMLOCK is too low and there is no CAP_IPC_LOCK.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: mlockall takes flags alone and changes no content of any memory.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) }.into()).map(drop)
}

/// Makes the pages of a slice resident and locked. Fails as [`lock_all`].
pub fn lock<T>(memory: &[T]) -> io::Result<()> {
    // SAFETY: the range is one live slice.
    check(unsafe { libc::mlock(memory.as_ptr().cast(), size_of_val(memory)) }.into()).map(drop)
}

/// Touches `BYTES` of the calling thread's stack below this frame, so that later calls find it mapped.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    let mut memory = [0u8; BYTES];
    // Volatile through black_box: the compiler must not see that nobody reads it.
    for at in (0..BYTES).step_by(1024) {
        memory[at] = 1;
    }
    std::hint::black_box(&mut memory);
}

/// The resident memory of the process in bytes, from /proc/self/statm (proc(5)).
pub fn resident_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    // SAFETY: sysconf takes a number and touches no memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
    pages.map(|n| n * page).ok_or_else(|| io::Error::other("/proc/self/statm has no second field"))
}
