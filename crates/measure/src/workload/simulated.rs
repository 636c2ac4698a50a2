//! A clock for tests of workloads: only the test advances its time.

use super::measurement_loop::LoopClock;
use std::cell::Cell;

/// Every reading takes [`SteppedClock::READING`].
#[derive(Default)]
pub(crate) struct SteppedClock(Cell<i64>);

impl SteppedClock {
    /// The duration of a reading, in ns.
    pub(crate) const READING: i64 = 5;

    /// Lets time pass, in ns.
    pub fn pass_time(&self, ns: i64) {
        self.0.set(self.0.get() + ns);
    }

    pub(crate) fn peek_time(&self) -> i64 {
        self.0.get()
    }
}

impl LoopClock for SteppedClock {
    fn now(&self) -> i64 {
        self.pass_time(SteppedClock::READING);
        self.peek_time()
    }
    fn clock_name(&self) -> &'static str {
        "simulated"
    }
    fn sleep_until(&self, at: i64) {
        self.0.set(self.peek_time().max(at));
    }
}
