//! Reads clocks (clock_gettime(2), through the vDSO if the kernel offers one), sleeps and arms
//! timers on them.

use calls::itimerspec;
pub use calls::timespec as Timespec;
use calls::{clock_getres, clock_gettime, clock_nanosleep, timer_settime, timerfd_settime};
use punctual_core::{Clock, ClockNs, MonotonicNs, Nanos};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

#[cfg(target_pointer_width = "64")]
use libc as calls;

/// The times of the `libc` crate and its calls have 32 bits here. These are the calls of a C
/// program with `_TIME_BITS=64`: 64 bits, using the old system calls before Linux 5.1.
#[cfg(not(target_pointer_width = "64"))]
#[allow(non_camel_case_types, missing_docs)]
mod calls {
    use libc::{c_int, clockid_t, timer_t};

    #[derive(Clone, Copy, Debug)]
    #[repr(C)]
    pub struct timespec {
        pub tv_sec: i64,
        pub tv_nsec: i64,
    }

    #[derive(Clone, Copy, Debug)]
    #[repr(C)]
    pub struct itimerspec {
        pub it_interval: to_timespec,
        pub it_value: to_timespec,
    }

    // SAFETY: as glibc 2.34 and musl 1.2 declare them for 64-bit times.
    unsafe extern "C" {
        #[link_name = "__clock_gettime64"]
        pub unsafe fn clock_gettime(id: clockid_t, time: *mut to_timespec) -> c_int;
        #[cfg_attr(target_env = "musl", link_name = "__clock_getres_time64")]
        #[cfg_attr(not(target_env = "musl"), link_name = "__clock_getres64")]
        pub(crate) unsafe fn clock_getres(id: clockid_t, time: *mut to_timespec) -> c_int;
        #[link_name = "__clock_nanosleep_time64"]
        pub unsafe fn clock_nanosleep(
            id: clockid_t,
            flags: c_int,
            time: *const to_timespec,
            left: *mut to_timespec,
        ) -> c_int;
        #[link_name = "__timer_settime64"]
        pub(crate) unsafe fn timer_settime(
            timer: timer_t,
            flags: c_int,
            times: *const itimerspec,
            old: *mut itimerspec,
        ) -> c_int;
        #[link_name = "__timerfd_settime64"]
        pub unsafe fn timerfd_settime(
            fd: c_int,
            flags: c_int,
            times: *const itimerspec,
            old: *mut itimerspec,
        ) -> c_int;
    }
}

/// The kernel's number of a clock (linux/time.h).
pub fn clock_id(clock: Clock) -> libc::clockid_t {
    match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Tai => libc::CLOCK_TAI,
    }
}

/// The time on a clock by its number, in ns. On the measured path: nothing but the call.
#[inline(always)]
pub fn read(id: libc::clockid_t) -> i64 {
    let mut time = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to. The call fails only for an unknown clock, and
    // every `id` that this crate returns is known to every supported kernel; otherwise `time` would
    // read 0.
    unsafe { clock_gettime(id, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The time on a clock.
pub fn read_clock(clock: Clock) -> ClockNs {
    ClockNs(read(clock_id(clock)))
}

pub fn monotonic_now() -> MonotonicNs {
    MonotonicNs(read(libc::CLOCK_MONOTONIC))
}

/// The CPU time of the calling thread.
pub fn thread_time() -> Nanos {
    Nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// The resolution that the kernel states for a clock (clock_getres(2)): 1 ns with high-resolution
/// timers, a jiffy without.
pub fn clock_resolution(clock: Clock) -> Nanos {
    let mut time = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { clock_getres(clock_id(clock), &mut time) };
    Nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

/// The time as a timespec.
#[inline]
pub fn to_timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
}

/// Sleeps for a time, or with TIMER_ABSTIME until one (clock_nanosleep(2)). EINTR: a signal came.
#[inline(always)]
pub fn sleep_on_clock(id: libc::clockid_t, flags: libc::c_int, time: &Timespec) -> io::Result<()> {
    // SAFETY: `time` is a valid timespec; the remaining time is not requested.
    match unsafe { clock_nanosleep(id, flags, time, std::ptr::null_mut()) } {
        0 => Ok(()),
        // The call returns the error number itself.
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Sleeps until an instant of a clock, in ns.
#[inline(always)]
pub fn sleep_until(id: libc::clockid_t, at: i64) -> io::Result<()> {
    sleep_on_clock(id, libc::TIMER_ABSTIME, &to_timespec(at))
}

/// Arms a POSIX timer for instants of its clock, in ns (timer_settime(2)).
///
/// # Safety
/// The timer must exist.
pub unsafe fn arm_timer(timer: libc::timer_t, first: i64, period: i64) -> io::Result<()> {
    let times = itimerspec { it_interval: to_timespec(period), it_value: to_timespec(first) };
    // SAFETY: the caller guarantees the timer; `times` is valid; the old value is not requested.
    crate::check_result(unsafe {
        timer_settime(timer, libc::TIMER_ABSTIME, &times, std::ptr::null_mut())
    })
    .map(drop)
}

/// Arms a timerfd for instants of its clock, in ns (timerfd_settime(2)).
pub fn arm_timerfd(fd: BorrowedFd, first: i64, period: i64) -> io::Result<()> {
    let times = itimerspec { it_interval: to_timespec(period), it_value: to_timespec(first) };
    let (fd, flags) = (fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
    // SAFETY: `times` is a valid itimerspec; the old one is not requested.
    crate::check_result(unsafe { timerfd_settime(fd, flags, &times, std::ptr::null_mut()) })
        .map(drop)
}
