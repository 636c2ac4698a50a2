//! The cost of the loop itself: samples whose expiry has already passed, so that there is no sleep.

use super::{LoopPlan, SleepMethod, Wakeups, deadline, nanosleep, posix, timerfd};
use crate::ring::ring;
use punctual_core::Nanos;
use punctual_sys::attributes::{current_cpu, set_timer_slack};
use punctual_sys::clock;
use std::io;

/// Far enough behind an expiry that the kernel has delivered it.
const BEHIND: i64 = 30_000;
const PERIOD: Nanos = Nanos::from_micros(100);

/// The time between two clock readings around one empty sample: the call that would have slept, the
/// clock, the bookkeeping, the ring. In ns, one value per sample, on CLOCK_MONOTONIC. An expired
/// nanosleep still arms the timer and takes its interrupt (kernel/time/hrtimer.c, do_nanosleep);
/// the other calls return immediately.
pub fn empty_samples(method: SleepMethod, samples: usize) -> io::Result<Vec<i64>> {
    // As in measuring threads; otherwise a relative sleep of zero would take the default slack of
    // 50 µs.
    set_timer_slack(Nanos(1))?;
    let plan = LoopPlan {
        method,
        clock: libc::CLOCK_MONOTONIC,
        // A relative sleep of zero returns immediately; the others have expired.
        period: if method == SleepMethod::NanosleepRelative { Nanos(0) } else { PERIOD },
        first_due: clock::read(libc::CLOCK_MONOTONIC) + PERIOD.ns(),
        end_due: i64::MAX,
        samples: samples as u64,
        stop_above: None,
        only_cpu: None,
        series: 0,
    };
    match method {
        SleepMethod::NanosleepAbsolute => measure(&plan, nanosleep::Absolute::new(&plan)),
        SleepMethod::NanosleepRelative => measure(&plan, nanosleep::Relative::new(&plan)),
        SleepMethod::Timerfd => measure(&plan, timerfd::Timerfd::new(&plan)?),
        SleepMethod::PosixTimer => measure(&plan, posix::PosixTimer::new(&plan)?),
        SleepMethod::Deadline => {
            let mut book = deadline::ReleaseCounts::default();
            measure(&plan, &mut deadline::Yield::new(&plan, deadline::NoRelease, &mut book))
        }
    }
}

fn measure<W: Wakeups>(plan: &LoopPlan, mut wakeups: W) -> io::Result<Vec<i64>> {
    let (mut producer, mut consumer) = ring(1 << 10);
    let mut costs = Vec::with_capacity(plan.samples as usize);
    while costs.len() < plan.samples as usize {
        let expired = wakeups.next_due().min(clock::read(plan.clock) + PERIOD.ns()) + BEHIND;
        while plan.method != SleepMethod::NanosleepRelative && clock::read(plan.clock) < expired {
            std::hint::spin_loop();
        }
        let begin = clock::read(plan.clock);
        let due = match wakeups.sleep() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            slept => slept?,
        };
        let woke = clock::read(plan.clock);
        let missed = wakeups.advance(due, woke);
        producer.push(due, woke, missed, current_cpu());
        costs.push(clock::read(plan.clock) - begin);
        consumer.drain(|_| ());
    }
    Ok(costs)
}
