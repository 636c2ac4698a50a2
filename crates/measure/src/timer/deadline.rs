//! The period of SCHED_DEADLINE itself: sched_yield(2) gives the rest of the budget back and returns when the next period begins
//! (Documentation/scheduler/sched-deadline.rst).
//!
//! The kernel does not tell when a period begins. The grid is laid through the earliest of the first wake-ups, so a latency here is
//! *relative to the best start of a period that was seen*, and one that comes earlier still is negative and counted as such.

use super::{Plan, Wakeups};
use punctual_host::task::clock;
use std::io;

/// Wake-ups from which the grid is taken.
const LEARNING: usize = 32;

pub struct Yield {
    clock: libc::clockid_t,
    period: i64,
    due: i64,
    learnt: bool,
}

impl Yield {
    pub fn new(plan: &Plan) -> Yield {
        Yield { clock: plan.clock, period: plan.period.ns(), due: plan.first_due, learnt: false }
    }

    fn pause(&self) {
        // SAFETY: sched_yield has no arguments and always succeeds on Linux.
        unsafe { libc::sched_yield() };
    }

    /// Lays the grid: the smallest offset of a wake-up from multiples of the period, seen from the first.
    fn learn(&mut self) {
        self.pause();
        let origin = clock::read(self.clock);
        let (mut earliest, mut last) = (0i64, origin);
        for _ in 0..LEARNING {
            self.pause();
            last = clock::read(self.clock);
            // Into (-period/2, period/2]: a wake-up a little before the grid must not count as nearly a period late.
            let offset = (last - origin + self.period / 2).rem_euclid(self.period) - self.period / 2;
            earliest = earliest.min(offset);
        }
        let grid = origin + earliest;
        self.due = grid + ((last - grid) / self.period + 1) * self.period;
        self.learnt = true;
    }
}

impl Wakeups for Yield {
    #[inline(always)]
    fn sleep(&mut self) -> io::Result<i64> {
        if !self.learnt {
            self.learn();
        }
        self.pause();
        Ok(self.due)
    }
    #[inline(always)]
    fn advance(&mut self, due: i64, woke: i64) -> u64 {
        let missed = super::missed_periods(due, woke, self.period);
        self.due += self.period * (missed as i64 + 1);
        missed
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        self.due
    }
}
