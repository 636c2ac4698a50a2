//! Makes memory resident before it is needed: locks (mlockall(2), mlock2(2)) and first touches.

use crate::{check_result, status};
use std::io;

/// Free heap before a measurement, for the controller thread's allocations.
const HEAP: usize = 1 << 20;
/// Larger blocks would be mapped and unmapped individually: glibc accepts no larger limit (half of
/// HEAP_MAX_SIZE in malloc/arena.c).
#[cfg(target_env = "gnu")]
const MAPPED_FROM: libc::c_int = 32 << 20;

/// Makes all mappings resident and locks them, including later ones: text, data, heap and stacks.
/// No thread of the process faults from then on: on one CPU a fault of its controller thread would
/// delay the measuring thread.
///
/// ENOMEM or EPERM: RLIMIT_MEMLOCK is too low and there is no CAP_IPC_LOCK.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: mlockall takes only flags and changes no content of any memory.
    check_result(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// The alternative if the kernel refuses the lock: all mappings become resident (since Linux 5.14),
/// and stay so while there is enough memory.
pub fn populate_mappings() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end, advice) in maps.lines().filter_map(parse_mapping) {
        // SAFETY: this advice changes no content; the kernel refuses a range that is gone, or has
        // no memory to make resident.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, advice) };
    }
}

/// A line of proc_pid_maps(5): its range, and the advice that makes its pages resident in the way
/// in which they are used. Writing would make a shared file dirty.
fn parse_mapping(line: &str) -> Option<(usize, usize, libc::c_int)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let advice = match rest.get(..4)?.as_bytes() {
        [b'r', b'w', _, b'p'] => libc::MADV_POPULATE_WRITE,
        [b'r', ..] => libc::MADV_POPULATE_READ,
        _ => return None,
    };
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?, advice))
}

/// Frees memory allocated during set-up, and reserves room for the calling thread: free heap that
/// stays, from which blocks are cut. Each newly mapped block is a system call whose pages the
/// kernel has to clear.
pub fn settle_heap() {
    // SAFETY: malloc_trim and mallopt may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM);
    };
    std::hint::black_box(vec![1u8; HEAP]);
}

/// Reverts [`lock_all`].
pub fn unlock_all() {
    // SAFETY: munlockall has no arguments and changes no content of any memory; it cannot fail for
    // a process's own memory.
    unsafe { libc::munlockall() };
}

/// The locked memory of the process in KiB (`VmLck` of proc_pid_status(5)).
pub fn locked_kib() -> io::Result<u64> {
    status::parse_kib(&status::read()?, "VmLck")
        .ok_or_else(|| io::Error::other("/proc/self/status has no VmLck"))
}

/// Makes the pages of a slice resident and locked. Fails like [`lock_all`].
pub fn lock_slice<T>(memory: &[T]) -> io::Result<()> {
    // SAFETY: the range is one live slice.
    check_result(unsafe { libc::mlock(memory.as_ptr().cast(), size_of_val(memory)) }).map(drop)
}

/// Touches `BYTES` of the calling thread's stack below this frame, so that they are resident in
/// later calls.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    let mut memory = [0u8; BYTES];
    // Volatile through black_box: the compiler must not see that it is never read.
    for at in (0..BYTES).step_by(1024) {
        memory[at] = 1;
    }
    std::hint::black_box(&mut memory);
}

/// The size of a page in bytes.
pub fn page_size() -> usize {
    // SAFETY: sysconf takes a number and touches no memory.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::Usage;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn mappings_are_populated_for_reading_or_writing_by_permission() {
        let advice = |line| parse_mapping(line).map(|(start, end, advice)| (end - start, advice));
        let (read, write) = (libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE);
        assert_eq!(advice("1000-3000 r-xp 00001000 08:01 42 /x"), Some((0x2000, read)));
        assert_eq!(advice("1000-2000 rw-p 00000000 00:00 0 [heap]"), Some((0x1000, write)));
        assert_eq!(advice("1000-2000 rw-s 00000000 00:01 7 /f"), Some((0x1000, read)));
        assert_eq!(advice("1000-2000 ---p 00000000 00:00 0"), None);
        assert_eq!(advice("x"), None);
    }

    /// An untouched mapping is resident, and so are later allocations. (Growth beyond that is
    /// counted as faults although there are none: its system call populates it.)
    #[test]
    fn locked_memory_causes_no_page_faults() {
        let before = crate::mapping::Mapping::new_anonymous(1 << 20).expect("a mapping");
        settle_heap();
        touch_stack::<65536>();
        if let Err(why) = lock_all() {
            return println!("SKIPPED: locked memory ({why})");
        }
        let faults = Usage::of_this_thread();
        let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(64);
        for size in [100, 5_000, 200_000].repeat(4) {
            blocks.push(vec![1; size]);
        }
        (0..before.length()).step_by(4096).for_each(|at| before.word_at(at).store(1, Relaxed));
        drop(blocks);
        let after = Usage::of_this_thread();
        unlock_all();
        assert_eq!(after.usage_since(faults).minor_faults, 0);
    }
}
