//! `timer`: a timer of this CPU, from its programmed expiry to its interrupt, to the expiry of the
//! high-resolution timer, to the thread that sleeps on it.

use super::lanes::{IrqLanes, Passed, Periods};
use super::raiser::Go;
use crate::stop::Stop;
use crate::workload::measurement_loop::{LoopClock, Monotonic};
use punctual_record::interrupt::InterruptStamps;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sleeps until each instant in turn. The kernel records the timer of this very sleep.
pub(crate) fn measure_timers(
    lanes: &mut IrqLanes,
    go: Go,
    stop: &Stop,
    stamps: Option<&InterruptStamps>,
    raised: &AtomicU64,
) {
    let mut pace = Periods::new(go.start, go.period);
    while lanes.samples_left() > 0 && !stop.is_asked() {
        let (due, skipped) = pace.next(Monotonic.now());
        lanes.book.skipped += skipped;
        if due >= go.end {
            return;
        }
        if let Some(stamps) = stamps {
            stamps.arm_stamps(due);
        }
        raised.fetch_add(1, Ordering::Relaxed);
        let mut woke;
        // Newer kernels start no timer for an instant that has passed
        // (hrtimer_start_range_ns_user).
        let was_over = Monotonic.now() >= due;
        loop {
            Monotonic.sleep_until(due);
            woke = Monotonic.now();
            if woke >= due || stop.is_asked() {
                break;
            }
        }
        if woke < due {
            return;
        }
        let mut arrival = Passed { raised: Some(due), woke, ..Passed::default() };
        if let Some(stamps) = stamps {
            let stamped = stamps.take_stamps();
            arrival.expiry = stamped.expiry.map(|at| at.0);
            arrival.handler = stamped.handler.map(|at| at.0).filter(|at| *at >= due);
            arrival.handled_on = stamped.expiry.map(|_| stamped.cpu);
            lanes.book.unstamped += u64::from(arrival.expiry.is_none());
            lanes.book.passed += u64::from(arrival.expiry.is_none() && was_over);
            lanes.book.early += u64::from(arrival.expiry.is_some() && arrival.handler.is_none());
        }
        lanes.record_interrupt(arrival, stop);
    }
}
