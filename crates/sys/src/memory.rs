//! Memory that is there before it is needed: locks (mlockall(2), mlock2(2)) and first touches.

use crate::{check, status};
use std::io;

/// How much free heap is there before a measurement: what the controller thread allocates then.
const HEAP: usize = 1 << 20;
/// Larger blocks would be mapped and unmapped one by one: glibc takes no larger bound (half of
/// HEAP_MAX_SIZE in malloc/arena.c).
#[cfg(target_env = "gnu")]
const MAPPED_FROM: libc::c_int = 32 << 20;

/// Makes all that is mapped resident and locks it, and so whatever is mapped later: text, data,
/// heap and stacks. Nothing of the process faults from then on: on one CPU a fault of its
/// controller thread would delay the thread that measures.
///
/// ENOMEM or EPERM: RLIMIT_MEMLOCK is too low and there is no CAP_IPC_LOCK.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: mlockall takes flags alone and changes no content of any memory.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// The same where the kernel refuses the lock: all that is mapped becomes resident (since Linux
/// 5.14), and stays while memory lasts.
pub fn populate() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end, advice) in maps.lines().filter_map(populated) {
        // SAFETY: this advice changes no content; a range that is gone, or has no memory to make
        // resident, is refused.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, advice) };
    }
}

/// A line of proc_pid_maps(5): its range, and the advice that makes its pages resident as they are
/// used. A shared file would become dirty by writing.
fn populated(line: &str) -> Option<(usize, usize, libc::c_int)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let advice = match rest.get(..4)?.as_bytes() {
        [b'r', b'w', _, b'p'] => libc::MADV_POPULATE_WRITE,
        [b'r', ..] => libc::MADV_POPULATE_READ,
        _ => return None,
    };
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?, advice))
}

/// Gives back what setting up has allocated, and leaves the calling thread room for what follows:
/// free heap that stays, and blocks that are cut from it. Each block that is mapped anew is a
/// system call whose pages the kernel has to clear.
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

/// Takes [`lock_all`] back.
pub fn unlock_all() {
    // SAFETY: munlockall has no arguments and changes no content of any memory; it cannot fail for
    // a process's own memory.
    unsafe { libc::munlockall() };
}

/// How much of the process is locked, in KiB (`VmLck` of proc_pid_status(5)).
pub fn locked_kib() -> io::Result<u64> {
    status::kib(&status::read()?, "VmLck")
        .ok_or_else(|| io::Error::other("/proc/self/status has no VmLck"))
}

/// Makes the pages of a slice resident and locked. Fails as [`lock_all`].
pub fn lock<T>(memory: &[T]) -> io::Result<()> {
    // SAFETY: the range is one live slice.
    check(unsafe { libc::mlock(memory.as_ptr().cast(), size_of_val(memory)) }).map(drop)
}

/// Touches `BYTES` of the calling thread's stack below this frame, so that later calls find it
/// mapped.
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
    fn mappings_become_resident_as_they_are_used() {
        let advice = |line| populated(line).map(|(start, end, advice)| (end - start, advice));
        let (read, write) = (libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE);
        assert_eq!(advice("1000-3000 r-xp 00001000 08:01 42 /x"), Some((0x2000, read)));
        assert_eq!(advice("1000-2000 rw-p 00000000 00:00 0 [heap]"), Some((0x1000, write)));
        assert_eq!(advice("1000-2000 rw-s 00000000 00:01 7 /f"), Some((0x1000, read)));
        assert_eq!(advice("1000-2000 ---p 00000000 00:00 0"), None);
        assert_eq!(advice("x"), None);
    }

    /// A mapping that nobody has touched is there, and so is what is allocated later. (Growth
    /// beyond that counts as faults too, although it is none: its system call populates it.)
    #[test]
    fn nothing_faults_once_all_is_locked() {
        let before = crate::mapping::Mapping::anonymous(1 << 20).expect("a mapping");
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
        (0..before.length()).step_by(4096).for_each(|at| before.word(at).store(1, Relaxed));
        drop(blocks);
        let after = Usage::of_this_thread();
        unlock_all();
        assert_eq!(after.since(faults).minor_faults, 0);
    }
}
