//! Memory that is there before it is needed: locks (mlockall(2), mlock2(2)) and first touches.

use crate::{check, status};
use std::io;

/// Left below the frame when the stack's unused pages are given back.
const KEPT_STACK: usize = 16 * 1024;
/// A caller farther from the stack's begin is on another stack.
const MAIN_STACK: usize = 64 << 20;

/// Locks what is mapped and will be mapped, each page from its first touch on (MCL_ONFAULT, Linux
/// 4.4): pages that the process never uses, such as most of a large binary, do not become resident.
/// What the measured path uses must be touched before.
///
/// ENOMEM or EPERM: RLIMIT_MEMLOCK is too low and there is no CAP_IPC_LOCK.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: mlockall takes flags alone and changes no content of any memory.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) })
        .map(drop)
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

/// The resident memory of the process in bytes, from /proc/self/statm (proc(5)).
pub fn resident_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages
        .map(|n| n * page_size() as u64)
        .ok_or_else(|| io::Error::other("/proc/self/statm has no second field"))
}

/// Gives back what setting up has used and measuring does not need: free heap, and pages of program
/// files, which the kernel keeps in its cache and maps again where they are still used (a minor
/// fault each: so before the measured path is warmed up). Must come before [`lock_all`], because
/// locked pages are not given back.
///
/// Only pages whose content is the file's are dropped: of mappings that had no page of our own at
/// first (`Anonymous: 0 kB` in /proc/self/smaps), those that have become none since. What cannot be
/// given back costs only memory, so it is not reported.
pub fn release_setup() {
    // SAFETY: malloc_trim may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let begun = BEGUN.get_or_init(Begun::read);
    release_stack(begun.stack_end);
    let Ok(pagemap) = std::fs::File::open("/proc/self/pagemap") else { return };
    for (start, end) in &begun.files {
        release_file_pages(&pagemap, *start, *end);
    }
}

/// Gives back the pages of a mapping that are the file's. A page that became a private copy since
/// (a uprobe or a debugger wrote a breakpoint into it) stays: dropping it would remove the
/// breakpoint.
fn release_file_pages(pagemap: &std::fs::File, start: usize, end: usize) {
    use std::os::unix::fs::FileExt;
    let page = page_size();
    let mut entries = [0u8; 4096];
    for piece in (start..end).step_by(page * entries.len() / 8) {
        let count = ((end - piece) / page).min(entries.len() / 8);
        let read = &mut entries[..count * 8];
        if pagemap.read_exact_at(read, (piece / page * 8) as u64).is_err() {
            return;
        }
        for pages in runs_of_file_pages(read) {
            let (at, length) = (piece + pages.start * page, pages.len() * page);
            // SAFETY: the range belongs to a mapping of a file (cut or not), readable and not
            // writable, and none of its pages differs from the file: what MADV_DONTNEED drops is
            // read again unchanged. It is a mapping of the program or of a library that was there
            // at the first call; none of these is ever unmapped.
            unsafe { libc::madvise(at as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }
}

/// Runs of pages that are not private copies, in entries of /proc/PID/pagemap
/// (Documentation/admin-guide/mm/pagemap.rst): eight bytes a page, bit 63 present, 62 swapped, 61
/// of a file or shared.
fn runs_of_file_pages(entries: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (place, entry) in entries.chunks_exact(8).enumerate() {
        let entry = entry.try_into().map_or(0, u64::from_ne_bytes);
        let is_copy = entry >> 62 != 0 && entry & 1 << 61 == 0;
        match runs.last_mut() {
            _ if is_copy => {}
            Some(run) if run.end == place => run.end += 1,
            _ => runs.push(place..place + 1),
        }
    }
    runs
}

/// What is mapped when setting up is first released. Read once: after the cut there are thousands
/// of mappings, and listing them, their pages counted, took half of all the CPU time of a short
/// run.
struct Begun {
    /// Mappings of files that can be dropped without loss, each as it was before it was cut.
    files: Vec<(usize, usize)>,
    /// The end of the main thread's stack, which stays; its start moves down.
    stack_end: Option<usize>,
}

static BEGUN: std::sync::OnceLock<Begun> = std::sync::OnceLock::new();

impl Begun {
    fn read() -> Begun {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let files = clean_file_mappings(&text, release_setup as fn() as usize);
        cut(&files);
        Begun { files, stack_end: stack_end(&text) }
    }
}

/// The length of the mappings that a program's files are cut into. Smaller ones would cost more
/// than they save: the kernel keeps some 200 bytes for each.
const CUT: usize = 16 * 1024;
/// Files larger than this are left whole: a bound on the number of mappings (vm.max_map_count is
/// 65,530).
const CUT_AT_MOST: usize = 32 << 20;

/// Cuts mappings of files into small ones. A fault on a page of a file maps its neighbours along,
/// 64 KiB at once, but only within the mapping (mm/memory.c, do_fault_around): a large program
/// whose running functions lie apart is so mapped nearly whole. Every second piece is advised to be
/// read in order, which has no effect once it is in the page cache, and makes it a separate
/// mapping.
fn cut(files: &[(usize, usize)]) {
    for (start, end) in files.iter().filter(|(start, end)| end - start <= CUT_AT_MOST) {
        for piece in (start.next_multiple_of(CUT)..*end).step_by(2 * CUT) {
            // SAFETY: within a mapping of this process; this advice changes no content.
            unsafe {
                libc::madvise(
                    piece as *mut libc::c_void,
                    CUT.min(end - piece),
                    libc::MADV_SEQUENTIAL,
                )
            };
        }
    }
}

/// Gives back the pages of the main thread's stack below the caller's frame: setting up goes deeper
/// than what follows.
fn release_stack(end: Option<usize>) {
    let status = status::read().unwrap_or_default();
    let Some((top, bytes)) = end.zip(stack_bytes(&status)) else { return };
    let start = top.saturating_sub(bytes);
    let here = &raw const start as usize;
    // A distance below this frame stays: this function's own calls need it.
    let end = here.saturating_sub(KEPT_STACK) & !4095;
    // Another thread's stack is not within these bounds.
    if start < end && here < top && here - start < MAIN_STACK {
        // SAFETY: below the stack pointer, further than any red zone or running call reaches, lies
        // nothing that is read again.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// The end of the main thread's stack, in a text of smaps(5).
fn stack_end(smaps: &str) -> Option<usize> {
    let (range, _) = smaps.lines().find(|line| line.ends_with("[stack]"))?.split_once(' ')?;
    usize::from_str_radix(range.split_once('-')?.1, 16).ok()
}

/// How large that stack is by now (`VmStk` of proc_pid_status(5)).
fn stack_bytes(status: &str) -> Option<usize> {
    usize::try_from(status::kib(status, "VmStk")?.checked_mul(1024)?).ok()
}

/// The mappings of files in a text of smaps(5) that can be dropped without loss, now and later:
/// those of the program, to which this address belongs, and of libraries. What else is mapped may
/// be gone tomorrow, and its place taken.
fn clean_file_mappings(smaps: &str, own: usize) -> Vec<(usize, usize)> {
    let headers = || smaps.lines().filter_map(FileMapping::read);
    let program = headers().find(|one| (one.start..one.end).contains(&own)).map(|one| one.inode);
    let mut clean = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        if let Some(mapping) = FileMapping::read(line) {
            let lasts = Some(mapping.inode) == program || mapping.path.contains(".so");
            candidate = (lasts && mapping.is_constant).then_some((mapping.start, mapping.end));
        } else if line.strip_prefix("Anonymous:").is_some_and(|rest| rest.trim() == "0 kB") {
            clean.extend(candidate.take());
        }
    }
    clean
}

/// The first line of a mapping in smaps(5).
struct FileMapping<'t> {
    start: usize,
    end: usize,
    /// Readable, not writable, of a file, private.
    is_constant: bool,
    inode: (&'t str, &'t str),
    path: &'t str,
}

impl<'t> FileMapping<'t> {
    fn read(line: &'t str) -> Option<FileMapping<'t>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) =
            (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        let (rights, _offset, device, number) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let path = words.next().unwrap_or_default();
        let is_constant = matches!(rights, "r-xp" | "r--p") && path.starts_with('/');
        Some(FileMapping { start, end, is_constant, inode: (device, number), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_file_mappings_are_dropped() {
        let smaps = "55d0-55f0 r-xp 00001000 08:01 42 /usr/bin/x\nRss: 4 kB\nAnonymous: 0 \
                     kB\n5600-5700 r--p 00001000 08:01 42 /usr/bin/x\nAnonymous: 4 kB\n5800-5900 \
                     rw-p 00001000 08:01 42 /usr/bin/x\nAnonymous: 0 kB\n5a00-5b00 r--p 00001000 \
                     08:01 43 /lib/libc.so.6\nAnonymous: 0 kB\n5c00-5d00 r--p 00001000 08:01 44 \
                     /tmp/a-file-read-by-mmap\nAnonymous: 0 kB\n7000-8000 r--p 00000000 00:00 0 \
                     [vvar]\nAnonymous: 0 kB\n";
        assert_eq!(clean_file_mappings(smaps, 0x55d8), [(0x55d0, 0x55f0), (0x5a00, 0x5b00)]);
    }

    #[test]
    fn pages_with_a_breakpoint_are_not_dropped() {
        let (absent, file, copy, swapped) = (0, 1 << 63 | 1 << 61, 1u64 << 63, 1u64 << 62);
        let entries = [file, absent, copy, file, swapped, swapped | 1 << 61];
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        assert_eq!(runs_of_file_pages(&bytes), [0..2, 3..4, 5..6]);
        assert_eq!(runs_of_file_pages(&copy.to_ne_bytes()), []);
    }

    #[test]
    fn the_main_stack_is_found_where_it_is() {
        let smaps = "7000-8000 r--p 00000000 00:00 0 [vvar]\n7ffe1000-7ffe3000 rw-p 00000000 \
                     00:00 0    [stack]\nRss: 4 kB\n";
        assert_eq!(stack_end(smaps), Some(0x7ffe_3000));
        assert_eq!(
            stack_bytes("VmData:\t     8 kB\nVmStk:\t     136 kB\nVmExe: 4 kB\n"),
            Some(136 << 10)
        );
        // As the kernel that runs has them.
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap();
        let (smaps, status) = (read("smaps"), read("status"));
        let line = smaps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let start = usize::from_str_radix(line.split_once('-').unwrap().0, 16).unwrap();
        assert_eq!(stack_end(&smaps).unwrap() - stack_bytes(&status).unwrap(), start);
    }

    /// Listing mappings is the dearest part of it, and their number grows by the cut.
    #[test]
    fn mappings_are_listed_once() {
        release_setup();
        let read = || {
            let text = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse::<u64>().ok())
        };
        let Some(before) = read() else {
            return println!("SKIPPED: a kernel that counts what is read");
        };
        release_setup();
        let (after, list) =
            (read().unwrap(), std::fs::read("/proc/self/smaps").unwrap().len() as u64);
        assert!(
            after - before < list / 2,
            "{} bytes were read, and the list has {list}",
            after - before
        );
    }

    #[test]
    fn a_program_goes_on_after_releasing() {
        release_setup();
        assert!(resident_bytes().unwrap() > 0);
    }
}
