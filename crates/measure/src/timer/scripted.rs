//! The measuring loop on scripted wake-ups: its reaction to signals and errors, without a timer.

use super::nanosleep::Absolute;
use super::{LoopPlan, SleepMethod, Wakeups, missed_periods, take_samples};
use crate::ring::create_ring;
use crate::stop::Stop;
use punctual_core::Nanos;
use std::io;

/// Some ns before a whole second, the time of the third expiry.
const FIRST: i64 = 7_999_999_000;
const PERIOD: i64 = 500;

fn scripted_plan() -> LoopPlan {
    LoopPlan {
        method: SleepMethod::NanosleepAbsolute,
        clock: libc::CLOCK_MONOTONIC,
        period: Nanos(PERIOD),
        first_due: FIRST,
        end_due: i64::MAX,
        samples: 4,
        stop_above: None,
        only_cpu: Some(0),
        series: 0,
    }
}

/// Each sleep returns the next entry; afterwards immediately.
struct Script(Vec<Result<i64, i32>>);

impl Wakeups for Script {
    fn await_expiry(&mut self) -> io::Result<i64> {
        let next = self.0.pop().unwrap_or(Ok(FIRST));
        next.map_err(io::Error::from_raw_os_error)
    }
    fn arm_next(&mut self, _due: i64, _woke: i64) -> u64 {
        0
    }
    fn next_due(&self) -> i64 {
        FIRST
    }
}

fn run_script(script: Vec<Result<i64, i32>>) -> (io::Result<()>, u64) {
    let (mut producer, mut consumer) = create_ring(16);
    let ended = take_samples(&scripted_plan(), &mut producer, &Stop::default(), Script(script));
    (ended, consumer.drain(|_| ()))
}

#[test]
fn a_signal_ends_no_loop_and_is_no_sample() {
    let (ended, count) = run_script(vec![Err(libc::EINTR), Ok(FIRST), Err(libc::EINTR)]);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(count, 4, "as many samples as were asked for");
}

#[test]
fn an_error_other_than_eintr_ends_the_loop_and_keeps_its_samples() {
    let (ended, count) = run_script(vec![Err(libc::EINVAL), Ok(FIRST)]);
    assert_eq!(ended.map_err(|why| why.raw_os_error()), Err(Some(libc::EINVAL)));
    assert_eq!(count, 1);
}

/// The kernel refuses a time of a second or more in nanoseconds (EINVAL: clock_nanosleep(2)).
#[test]
fn a_sleep_until_a_whole_second_is_one_that_the_kernel_takes() {
    let mut absolute = Absolute::new(&scripted_plan());
    for missed in [0, 0, 1, 0, 1_999_998, 1, 40_000_000, 0] {
        let due = absolute.next_due();
        assert_eq!(absolute.arm_next(due, due + missed * PERIOD), missed as u64);
        let due = due + (missed + 1) * PERIOD;
        let time = absolute.sleep_time();
        assert_eq!(absolute.next_due(), due);
        assert_eq!((time.tv_sec, time.tv_nsec), (due / 1_000_000_000, due % 1_000_000_000));
    }
}

#[test]
fn missed_periods_are_counted_by_passed_expiries() {
    assert_eq!(missed_periods(0, 999, 1000), 0);
    assert_eq!(missed_periods(0, 1000, 1000), 1);
    assert_eq!(missed_periods(0, 3500, 1000), 3);
    assert_eq!(missed_periods(1000, 0, 1000), 0);
}
