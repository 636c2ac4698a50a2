//! The clock of the points: the processor's counter if the kernel itself trusts it, else
//! CLOCK_MONOTONIC.

use crate::layout::{CLOCK_CNTVCT, CLOCK_MONOTONIC, CLOCK_TSC};

/// The processor's counter, unordered: the processor may read it some instructions early or late.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 has the instruction; a process that forbade it itself (PR_SET_TSC) gets
    // SIGSEGV.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The virtual counter, unordered: the processor may read it some instructions early or late.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets every process read the virtual counter (arch_timer, CNTKCTL_EL1.EL0VCTEN).
    unsafe {
        core::arch::asm!(
            "mrs {}, cntvct_el0",
            out(reg) ticks,
            options(nomem, nostack, preserves_flags)
        )
    };
    ticks
}

/// Points of this architecture always carry CLOCK_MONOTONIC.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn ticks() -> u64 {
    monotonic() as u64
}

/// CLOCK_MONOTONIC in ns, through the vDSO if the kernel offers one.
pub fn monotonic() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec, and every kernel knows this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64
}

/// The current time on `clock` (`CLOCK_…` of the layout).
pub fn read(clock: u32) -> u64 {
    if clock == CLOCK_MONOTONIC { monotonic() as u64 } else { ticks() }
}

/// The clock that can be trusted on this machine. `source` is the kernel's current clocksource.
///
/// The counter of x86 counts evenly in all states of the CPU if CPUID has that bit ("invariant
/// TSC", which Linux calls constant_tsc and nonstop_tsc), and the counters of all CPUs are
/// synchronised if the kernel uses it as clocksource (it drops it otherwise: arch/x86/kernel/tsc.c,
/// kernel/time/clocksource.c).
pub fn trusted(source: &[u8]) -> u32 {
    if cfg!(target_arch = "aarch64") {
        return CLOCK_CNTVCT;
    }
    #[cfg(target_arch = "x86_64")]
    #[allow(unused_unsafe)] // `__cpuid` was unsafe before Rust 1.94.
    // SAFETY: every x86-64 has CPUID.
    let invariant = unsafe {
        use core::arch::x86_64::__cpuid;
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    };
    #[cfg(not(target_arch = "x86_64"))]
    let invariant = false;
    if invariant && source.trim_ascii() == b"tsc" { CLOCK_TSC } else { CLOCK_MONOTONIC }
}

/// The counter and CLOCK_MONOTONIC at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The counter.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, ns.
    pub monotonic: i64,
    /// At `monotonic` the counter differed from `ticks` by at most this.
    pub error: u64,
}

/// Reads both clocks several times and keeps the reading that the counter brackets most closely.
pub fn pair() -> Pair {
    let mut best = Pair { ticks: 0, monotonic: 0, error: u64::MAX };
    for _ in 0..10 {
        let (before, monotonic, after) = (ordered_ticks(), monotonic(), ordered_ticks());
        let error = after.wrapping_sub(before).div_ceil(2);
        if error < best.error {
            best = Pair { ticks: before.wrapping_add(error), monotonic, error };
        }
    }
    best
}

/// The counter, read neither before preceding instructions nor after following ones.
fn ordered_ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: LFENCE is part of SSE2, which every x86-64 has; it waits for earlier instructions and
    // delays later ones.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = ticks();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: ISB waits until earlier instructions are done and refetches later ones.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
        let ticks = ticks();
        core::arch::asm!("isb", options(nostack, preserves_flags));
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    ticks()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clocksource_that_the_kernel_gave_up_is_not_trusted() {
        let counter = if cfg!(target_arch = "aarch64") { CLOCK_CNTVCT } else { CLOCK_MONOTONIC };
        assert_eq!((trusted(b"hpet\n"), trusted(b"")), (counter, counter));
    }

    #[test]
    fn successive_clock_pairs_are_monotonic() {
        let (first, second) = (pair(), pair());
        assert!(
            first.ticks < second.ticks
                && first.monotonic <= second.monotonic
                && first.error < second.ticks - first.ticks
        );
    }
}
