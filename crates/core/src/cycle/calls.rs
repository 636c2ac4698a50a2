//! The system calls that cycles are searched for: those that a real-time thread should avoid.

/// The effect of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallClass {
    /// It changes the address space.
    Memory,
    /// It is for a file, by a path or by a descriptor of one.
    File,
    /// It writes to its first argument: a file, or something else.
    Write,
}

use CallClass::{File, Memory, Write};

/// All marked calls; the index of a call is its bit in a [`CallSet`].
pub const MARKED: [(&str, CallClass); 28] = [
    ("brk", Memory),
    ("mmap", Memory),
    ("munmap", Memory),
    ("mremap", Memory),
    ("madvise", Memory),
    ("mprotect", Memory),
    ("write", Write),
    ("writev", Write),
    ("pwrite64", Write),
    ("pread64", File),
    ("open", File),
    ("openat", File),
    ("openat2", File),
    ("stat", File),
    ("newfstatat", File),
    ("statx", File),
    ("unlink", File),
    ("unlinkat", File),
    ("rename", File),
    ("renameat", File),
    ("renameat2", File),
    ("ftruncate", File),
    ("fallocate", File),
    ("fsync", File),
    ("fdatasync", File),
    ("sync", File),
    ("syncfs", File),
    ("msync", File),
];

/// The [`MARKED`] calls made by a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CallSet(pub u32);

impl CallSet {
    /// Whether the call with this index is included.
    pub fn contains(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    /// The union of both.
    #[must_use]
    pub fn union(self, other: CallSet) -> CallSet {
        CallSet(self.0 | other.0)
    }
}

/// A set of file descriptors: 0 to 62, and all others as one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DescriptorSet(pub u64);

impl DescriptorSet {
    /// The bit for all descriptors from here on.
    pub const OTHERS: u32 = 63;

    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |place| self.0 >> place & 1 == 1)
    }

    /// The union of both.
    #[must_use]
    pub fn union(self, other: DescriptorSet) -> DescriptorSet {
        DescriptorSet(self.0 | other.0)
    }
}

/// Calls that may be the wait of a cycle.
pub const WAITING_CALLS: [&str; 36] = [
    "clock_nanosleep",
    "nanosleep",
    "read",
    "readv",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "futex",
    "futex_wait",
    "futex_waitv",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "pause",
    "sched_yield",
    "io_uring_enter",
    "io_getevents",
    "io_pgetevents",
    "ioctl",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "accept",
    "accept4",
    "mq_timedreceive",
    "msgrcv",
    "semop",
    "semtimedop",
    "wait4",
    "waitid",
    "sigtimedwait",
    "restart_syscall",
    "pread64",
];

/// Calls that return 0 on timeout.
pub const POLLS: [&str; 7] =
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// ETIMEDOUT and EAGAIN of errno(3) as return values: the latter at SO_RCVTIMEO of socket(7).
const TIMEOUTS: [i64; 2] = [-110, -11];

/// Whether this is the return value of a sleeping call on timeout; `polls`: it is one of [`POLLS`].
pub fn has_timed_out(result: i64, polls: bool) -> bool {
    TIMEOUTS.contains(&result) || polls && result == 0
}

/// Whether this return value means an interruption by a signal: EINTR, or one by which the kernel
/// continues the call (include/linux/errno.h).
pub fn is_interrupted(result: i64) -> bool {
    result == -4 || (-516..=-512).contains(&result)
}

/// Calls whose uninterruptible sleep is I/O.
pub const FILE_CALLS: [&str; 22] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "open",
    "openat",
    "close",
    "rename",
    "unlink",
    "ftruncate",
    "fallocate",
    "sendfile",
];
