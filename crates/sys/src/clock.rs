//! Reading clocks (clock_gettime(2), through the vDSO where the kernel offers one).

use punctual_core::{Clock, ClockNs, MonotonicNs, Nanos};
use std::io;

/// The kernel's number of a clock (linux/time.h).
pub fn id(clock: Clock) -> libc::clockid_t {
    match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Tai => libc::CLOCK_TAI,
    }
}

/// The time on a clock by its number, in ns. The measured path: nothing but the call.
#[inline(always)]
pub fn read(id: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to. The call fails only for an unknown clock, and
    // every `id` that this crate hands out is known to every supported kernel; `time` would
    // then read 0.
    unsafe { libc::clock_gettime(id, &mut time) };
    wide(time.tv_sec) * 1_000_000_000 + wide(time.tv_nsec)
}

/// A part of a time of the C library, which has 32 bits on some systems.
#[inline(always)]
pub(crate) fn wide(part: impl Into<i64>) -> i64 {
    part.into()
}

/// The time on a clock.
pub fn now(clock: Clock) -> ClockNs {
    ClockNs(read(id(clock)))
}

/// The time on CLOCK_MONOTONIC.
pub fn monotonic() -> MonotonicNs {
    MonotonicNs(read(libc::CLOCK_MONOTONIC))
}

/// The resolution that the kernel states for a clock (clock_getres(2)): 1 ns with high-resolution
/// timers, a jiffy without.
pub fn resolution(clock: Clock) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { libc::clock_getres(id(clock), &mut time) };
    Nanos(wide(time.tv_sec) * 1_000_000_000 + wide(time.tv_nsec))
}

/// The time as a timespec.
#[inline]
pub fn timespec(ns: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: ns.div_euclid(1_000_000_000) as _,
        tv_nsec: ns.rem_euclid(1_000_000_000) as _,
    }
}

/// Sleeps for a time, or with TIMER_ABSTIME until one (clock_nanosleep(2)). EINTR: a signal came.
#[inline(always)]
pub fn sleep(id: libc::clockid_t, flags: libc::c_int, time: &libc::timespec) -> io::Result<()> {
    // SAFETY: `time` is a valid timespec; the remaining time is not asked for.
    match unsafe { libc::clock_nanosleep(id, flags, time, std::ptr::null_mut()) } {
        0 => Ok(()),
        // The call returns the error number itself.
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Sleeps until an instant of a clock, in ns.
#[inline(always)]
pub fn sleep_until(id: libc::clockid_t, at: i64) -> io::Result<()> {
    sleep(id, libc::TIMER_ABSTIME, &timespec(at))
}
