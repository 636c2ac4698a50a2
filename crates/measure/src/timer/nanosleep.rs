//! clock_nanosleep(2), absolute and relative.

use super::{LoopPlan, Wakeups, missed_periods};
use punctual_sys::clock;
use std::io;

/// Sleeps until an absolute time: errors do not add up.
pub struct Absolute {
    clock: libc::clockid_t,
    period: i64,
    due: i64,
    /// `due` as a timespec, stored so that no division is made per sample.
    time: clock::Timespec,
}

impl Absolute {
    pub fn new(plan: &LoopPlan) -> Absolute {
        let (due, period) = (plan.first_due, plan.period.ns());
        Absolute { clock: plan.clock, period, due, time: clock::to_timespec(due) }
    }

    #[cfg(test)]
    pub(crate) fn sleep_time(&self) -> &clock::Timespec {
        &self.time
    }
}

impl Wakeups for Absolute {
    #[inline(always)]
    fn await_expiry(&mut self) -> io::Result<i64> {
        clock::sleep_on_clock(self.clock, libc::TIMER_ABSTIME, &self.time)?;
        Ok(self.due)
    }
    #[inline(always)]
    fn arm_next(&mut self, due: i64, woke: i64) -> u64 {
        let missed = missed_periods(due, woke, self.period);
        let step = self.period * (missed as i64 + 1);
        self.due += step;
        self.time.tv_nsec += step;
        while self.time.tv_nsec >= 1_000_000_000 {
            if self.time.tv_nsec >= 8_000_000_000 {
                self.time = clock::to_timespec(self.due);
                break;
            }
            self.time.tv_nsec -= 1_000_000_000;
            self.time.tv_sec += 1;
        }
        missed
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        self.due
    }
}

/// Sleeps for a span from now, as many programs do. The expiry counts from the clock reading just
/// before the call, so a preemption between reading and sleeping is part of the latency, as it is
/// for those programs.
pub struct Relative {
    clock: libc::clockid_t,
    period: i64,
    span: clock::Timespec,
    first: Option<i64>,
}

impl Relative {
    pub fn new(plan: &LoopPlan) -> Relative {
        let period = plan.period.ns();
        Relative {
            clock: plan.clock,
            period,
            span: clock::to_timespec(period),
            first: Some(plan.first_due - period),
        }
    }
}

impl Wakeups for Relative {
    #[inline(always)]
    fn await_expiry(&mut self) -> io::Result<i64> {
        if let Some(begin) = self.first.take() {
            clock::sleep_until(self.clock, begin)?;
        }
        let due = clock::read(self.clock) + self.period;
        clock::sleep_on_clock(self.clock, 0, &self.span)?;
        Ok(due)
    }
    #[inline(always)]
    fn arm_next(&mut self, _due: i64, _woke: i64) -> u64 {
        0
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        match self.first {
            Some(begin) => begin + self.period,
            None => clock::read(self.clock) + self.period,
        }
    }
}
