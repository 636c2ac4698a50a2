//! The finest available clock, that of test points: the processor's counter if the kernel trusts
//! it, converted to ns after the reading.

use crate::workload::measurement_loop::{LoopClock, Monotonic};
use punctual_testpoint::counter::{self, Pair};
use punctual_testpoint::layout::{CLOCK_CNTVCT, CLOCK_MONOTONIC};
use std::time::Duration;

/// The time between two readings of both clocks: with an error of some 20 ns each, the rate is
/// exact to a millionth.
const CALIBRATION: Duration = Duration::from_millis(50);
/// The rate is stored in ns per tick as a fraction of 2^32.
const SHIFT: u32 = 32;

/// The counter, with its relation to CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct CycleCounter {
    clock: u32,
    origin: Pair,
    rate: i128,
}

impl CycleCounter {
    /// Finds the clock of test points on this machine, and its rate. Takes some 50 ms if it is a
    /// counter.
    pub fn calibrate() -> CycleCounter {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let clock = counter::trusted(&std::fs::read(source).unwrap_or_default());
        let origin = counter::pair();
        if clock == CLOCK_MONOTONIC {
            return CycleCounter { clock, origin, rate: 1 << SHIFT };
        }
        std::thread::sleep(CALIBRATION);
        let later = counter::pair();
        let ticks = i128::from(later.ticks.wrapping_sub(origin.ticks).max(1));
        let ns = i128::from(later.monotonic - origin.monotonic);
        CycleCounter { clock, origin, rate: (ns << SHIFT) / ticks }
    }

    /// Whether it is the processor's counter, which other programs can read too.
    pub(crate) fn is_counter(&self) -> bool {
        self.clock != CLOCK_MONOTONIC
    }

    /// The ticks in a µs.
    pub(crate) fn ticks_per_us(&self) -> f64 {
        1_000.0 * (1u64 << SHIFT) as f64 / self.rate.max(1) as f64
    }

    /// The ticks of the counter in a span.
    pub(crate) fn ticks_in_span(&self, span: punctual_core::Nanos) -> i64 {
        if self.clock == CLOCK_MONOTONIC {
            return span.ns();
        }
        i64::try_from((i128::from(span.ns()) << SHIFT) / self.rate.max(1)).unwrap_or(i64::MAX)
    }

    /// Converts a reading of the counter to CLOCK_MONOTONIC.
    pub fn on_monotonic(&self, ticks: u64) -> i64 {
        if self.clock == CLOCK_MONOTONIC {
            return ticks as i64;
        }
        let since = i128::from(ticks.wrapping_sub(self.origin.ticks) as i64);
        self.origin.monotonic + ((since * self.rate) >> SHIFT) as i64
    }
}

impl LoopClock for CycleCounter {
    #[inline(always)]
    fn now(&self) -> i64 {
        if self.clock == CLOCK_MONOTONIC { counter::monotonic() } else { counter::ticks() as i64 }
    }
    #[inline(always)]
    fn reading_to_ns(&self, reading: i64) -> i64 {
        self.on_monotonic(reading as u64)
    }
    fn clock_name(&self) -> &'static str {
        match self.clock {
            CLOCK_MONOTONIC => "CLOCK_MONOTONIC (no counter is trusted on this machine)",
            CLOCK_CNTVCT => "the virtual counter (CNTVCT_EL0)",
            _ => "the time stamp counter (rdtsc)",
        }
    }
    fn sleep_until(&self, at: i64) {
        Monotonic.sleep_until(at);
    }
}
