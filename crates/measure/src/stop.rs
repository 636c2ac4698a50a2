//! Ends a phase: requested by the controller, or by a measuring thread whose sample exceeded
//! `stop_above`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The stop flag of all threads of a phase. A measuring thread reads one relaxed flag per sample.
#[derive(Debug)]
pub struct Stop {
    asked: AtomicBool,
    /// The number of the first series that exceeded its limit, or `NONE`.
    tripped_by: AtomicU32,
}

const NONE: u32 = u32::MAX;

impl Default for Stop {
    fn default() -> Stop {
        Stop { asked: AtomicBool::new(false), tripped_by: AtomicU32::new(NONE) }
    }
}

impl Stop {
    /// Asks every thread to end after its next sample.
    pub fn request_stop(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
    /// Whether the end was asked for.
    #[inline(always)]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
    /// Series number `series` exceeded its `stop_above`: all threads end. Records the first such
    /// series.
    pub(crate) fn on_limit_exceeded(&self, series: u32) {
        let _ =
            self.tripped_by.compare_exchange(NONE, series, Ordering::Relaxed, Ordering::Relaxed);
        self.request_stop();
    }
    /// The first series that exceeded its limit.
    pub fn tripped_by(&self) -> Option<u32> {
        Some(self.tripped_by.load(Ordering::Relaxed)).filter(|series| *series != NONE)
    }
}
