//! Ending a phase: asked for by the conductor, or tripped by a measuring thread whose sample was too late.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What all threads of a phase look at. A measuring thread reads one relaxed flag per sample.
#[derive(Debug)]
pub struct Stop {
    asked: AtomicBool,
    /// The number of the series that tripped first, or `NOBODY`.
    tripped_by: AtomicU32,
}

const NOBODY: u32 = u32::MAX;

impl Default for Stop {
    fn default() -> Stop {
        Stop { asked: AtomicBool::new(false), tripped_by: AtomicU32::new(NOBODY) }
    }
}

impl Stop {
    /// Asks every thread to end after its next sample.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
    /// Whether the end was asked for.
    #[inline(always)]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
    /// Series number `series` was later than its `stop_above`: everybody ends. The first to trip is remembered.
    pub fn trip(&self, series: u32) {
        let _ = self.tripped_by.compare_exchange(NOBODY, series, Ordering::Relaxed, Ordering::Relaxed);
        self.ask();
    }
    /// The series that tripped first.
    pub fn tripped_by(&self) -> Option<u32> {
        Some(self.tripped_by.load(Ordering::Relaxed)).filter(|series| *series != NOBODY)
    }
}
