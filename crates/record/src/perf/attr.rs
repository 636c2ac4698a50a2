//! perf_event_open(2), for counting and for attaching programs.

use punctual_sys::descriptor::own_descriptor;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `struct perf_event_attr` up to `config2`, PERF_ATTR_SIZE_VER1 (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PerfEventAttr {
    pub(crate) kind: u32,
    /// Set by [`open_event`].
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
}

/// PERF_TYPE_*.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PerfType {
    Hardware = 0,
    Software = 1,
    Tracepoint = 2,
    Cache = 3,
}

/// Bits of `PerfEventAttr::flags`.
pub(crate) const DISABLED: u64 = 1;
pub(crate) const INHERIT: u64 = 1 << 1;
pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;

/// Bits of `PerfEventAttr::read_format`.
pub(crate) const FORMAT_ENABLED: u64 = 1;
pub(crate) const FORMAT_RUNNING: u64 = 1 << 1;
pub(crate) const FORMAT_GROUP: u64 = 1 << 3;

pub(crate) const ENABLED: libc::c_ulong = 0x2400;
pub(crate) const NOT_ENABLED: libc::c_ulong = 0x2401;

/// PERF_EVENT_IOC_SET_FILTER, `_IOW('$', 6, char *)`: the size of a pointer is part of it.
pub(crate) const SET_FILTER: libc::c_ulong =
    0x4000_2406 | (size_of::<usize>() as libc::c_ulong) << 16;

/// Opens an event of a thread (`pid`; 0: the calling one) or of a CPU, in the group of `leader` if
/// there is one.
///
/// The target of `config1`, for the kinds where it is a pointer, must live through the call.
pub(crate) fn open_event(
    mut attr: PerfEventAttr,
    pid: i32,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_ulong = 8; // PERF_FLAG_FD_CLOEXEC
    attr.size = size_of::<PerfEventAttr>() as u32;
    let group = leader.map_or(-1, |leader| leader.as_raw_fd());
    // SAFETY: the attribute is of the size that it states, and the kernel only reads it; it copies
    // a path that `config1` points to with a bounded copy that fails for an invalid pointer.
    unsafe {
        own_descriptor(libc::syscall(libc::SYS_perf_event_open, &attr, pid, cpu, group, CLOEXEC))
    }
}
