//! System calls between samples. If a measuring thread becomes runnable while another thread of
//! this process is in a system call, it waits for its end if the kernel does not preempt it there.
//! The times of the samples are known, and slow system calls are made between them.

use crate::clock;
use std::cell::RefCell;

/// Limits in ns. A call takes at most `BEFORE`, so none begins this close to the next sample (at
/// most half of the period). A sample takes at most `AFTER` (at most a quarter of the period).
const BEFORE: i64 = 500_000;
const AFTER: i64 = 100_000;
/// The maximum number of observed threads; further ones are ignored.
const MAX_OBSERVED_THREADS: usize = 16;
/// The number of searches for a place between all of them.
const TRIES: usize = 3;

/// The samples of a thread: at this instant and at all multiples of the period from it, in ns of
/// CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleTimes {
    pub due: i64,
    pub period: i64,
}

thread_local! {
    static SAMPLES: RefCell<Vec<SampleTimes>> = const { RefCell::new(Vec::new()) };
}

/// Makes the calling thread avoid these from now on.
pub fn avoid_samples(samples: impl IntoIterator<Item = SampleTimes>) {
    SAMPLES.with_borrow_mut(|heeded| {
        heeded.clear();
        heeded.extend(samples.into_iter().filter(|one| one.period > 0).take(MAX_OBSERVED_THREADS));
    });
}

/// Returns between two samples: immediately, if there is time for a system call.
pub fn between_samples() {
    for _ in 0..TRIES {
        let now = clock::monotonic_now().ns();
        let until = SAMPLES.with_borrow(|samples| next_gap(samples, now));
        if until <= now || clock::sleep_until(libc::CLOCK_MONOTONIC, until).is_err() {
            return;
        }
    }
}

/// Sleeps until this instant, or shortly after, between two samples.
pub fn sleep_until(at: i64) {
    let until = SAMPLES.with_borrow(|samples| next_gap(samples, at));
    // A signal requests the end.
    let _ = clock::sleep_until(libc::CLOCK_MONOTONIC, until);
}

/// The first instant from `at` on that is between samples, for each thread in turn.
fn next_gap(samples: &[SampleTimes], at: i64) -> i64 {
    samples.iter().fold(at, |at, one| {
        let (before, after) = (BEFORE.min(one.period / 2), AFTER.min(one.period / 4));
        let since = (at - one.due).rem_euclid(one.period);
        match since {
            _ if since < after => at - since + after,
            _ if since > one.period - before => at - since + one.period + after,
            _ => at,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_placed_between_expected_samples() {
        let each = |period| SampleTimes { due: 7_000_000_123, period };
        let at = |period: i64, since: i64| {
            next_gap(&[each(period)], 9_000_000_123 + since) - 9_000_000_123
        };
        let ms = 1_000_000;
        assert_eq!((at(ms, 0), at(ms, 99_999), at(ms, 100_000)), (100_000, 100_000, 100_000));
        assert_eq!((at(ms, 500_000), at(ms, 500_001), at(ms, -1)), (500_000, 1_100_000, 100_000));
        // Short periods leave a quarter of the time.
        assert_eq!((at(100_000, 50_001), at(100_000, 40_000)), (125_000, 40_000));
        assert_eq!(next_gap(&[], 5), 5);
        let both = [each(ms), SampleTimes { due: 7_000_150_123, period: ms }];
        assert_eq!(next_gap(&both, 9_000_000_123), 9_000_250_123, "after the second of them");
    }

    #[test]
    fn without_a_period_between_samples_returns_at_once() {
        avoid_samples([SampleTimes { due: 0, period: 0 }]);
        let before = clock::monotonic_now();
        between_samples();
        assert!(clock::monotonic_now() - before < punctual_core::Nanos::SECOND);
    }
}
