//! System calls of 32-bit programs on a 64-bit kernel: converts their numbers to those of 64-bit
//! programs.

use crate::wire::layout as wire;

/// Those of i386 (arch/x86/entry/syscalls/syscall_32.tbl) that are needed, with their 64-bit names.
/// read(2), number 3, is missing: its number there is 0.
const CALLS: [(usize, &str); 69] = [
    (0, "restart_syscall"),
    (4, "write"),
    (5, "open"),
    (6, "close"),
    (10, "unlink"),
    (29, "pause"),
    (36, "sync"),
    (38, "rename"),
    (45, "brk"),
    (54, "ioctl"),
    (90, "mmap"),
    (91, "munmap"),
    (93, "ftruncate"),
    (114, "wait4"),
    (118, "fsync"),
    (125, "mprotect"),
    (142, "select"),
    (144, "msync"),
    (145, "readv"),
    (146, "writev"),
    (148, "fdatasync"),
    (158, "sched_yield"),
    (163, "mremap"),
    (168, "poll"),
    (177, "rt_sigtimedwait"),
    (179, "rt_sigsuspend"),
    (180, "pread64"),
    (181, "pwrite64"),
    (187, "sendfile"),
    (192, "mmap"),
    (194, "ftruncate"),
    (195, "stat"),
    (219, "madvise"),
    (239, "sendfile"),
    (240, "futex"),
    (247, "io_getevents"),
    (256, "epoll_wait"),
    (280, "mq_timedreceive"),
    (284, "waitid"),
    (295, "openat"),
    (300, "newfstatat"),
    (301, "unlinkat"),
    (302, "renameat"),
    (308, "pselect6"),
    (309, "ppoll"),
    (314, "sync_file_range"),
    (319, "epoll_pwait"),
    (324, "fallocate"),
    (333, "preadv"),
    (334, "pwritev"),
    (337, "recvmmsg"),
    (344, "syncfs"),
    (353, "renameat2"),
    (364, "accept4"),
    (371, "recvfrom"),
    (372, "recvmsg"),
    (383, "statx"),
    (407, "clock_nanosleep"),
    (413, "pselect6"),
    (414, "ppoll"),
    (416, "io_pgetevents"),
    (417, "recvmmsg"),
    (419, "mq_timedreceive"),
    (420, "semtimedop"),
    (421, "rt_sigtimedwait"),
    (422, "futex"),
    (426, "io_uring_enter"),
    (437, "openat2"),
    (441, "epoll_pwait2"),
];
/// The relevant ones that take 32-bit times.
const TIME32: [(usize, &str); 2] = [(162, "nanosleep"), (267, "clock_nanosleep")];

/// The table in the format of the programs; empty if 32-bit programs are not distinguished.
pub(super) fn native_calls() -> Vec<u8> {
    let mut table = vec![0u16; wire::NATIVE_CALLS as usize];
    if cfg!(target_arch = "x86_64") {
        let plain_calls = CALLS.iter().map(|one| (one, 0));
        let times = TIME32.iter().map(|one| (one, wire::NATIVE_TIME32 as u16));
        for ((number, name), flag) in plain_calls.chain(times) {
            let native = crate::syscall_number(name).and_then(|native| u16::try_from(native).ok());
            if let (Some(place), Some(native)) = (table.get_mut(*number), native) {
                *place = native | flag;
            }
        }
    }
    table.into_iter().flat_map(u16::to_ne_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn system_calls_of_32_bit_programs_are_translated() {
        let table = native_calls();
        let (words, _) = table.as_chunks::<2>();
        let native = |number: usize| u64::from(u16::from_ne_bytes(words[number]));
        assert_eq!(native(240), u64::from(crate::translate::NR_FUTEX));
        assert_eq!((native(407), native(267)), (230, 230 | wire::NATIVE_TIME32));
        assert_eq!(native(162), 35 | wire::NATIVE_TIME32);
        assert_eq!((native(256), native(2)), (232, 0), "fork(2) is of no note");
    }
}
