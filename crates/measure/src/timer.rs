//! Timer latency: from the programmed expiry to the first instruction after wake-up.

pub mod deadline;
mod nanosleep;
mod posix;
#[cfg(test)]
mod scripted;
mod timerfd;

use crate::ring::Producer;
use crate::stop::Stop;
use punctual_core::Nanos;
use punctual_sys::attributes::current_cpu;
use punctual_sys::clock;
use std::io;

/// The method of sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SleepMethod {
    /// clock_nanosleep(2) until an absolute time.
    NanosleepAbsolute,
    /// clock_nanosleep(2) for a span that begins at the last reading of the clock.
    NanosleepRelative,
    /// read(2) on a periodic timerfd.
    Timerfd,
    /// sigwaitinfo(2) for the signal of a periodic POSIX timer.
    PosixTimer,
    /// sched_yield(2) of a SCHED_DEADLINE thread, which ends its period.
    Deadline,
}

/// The parameters of a measuring loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopPlan {
    pub method: SleepMethod,
    /// The clock of timer and samples, by the kernel's number.
    pub clock: libc::clockid_t,
    pub period: Nanos,
    /// The first expiry, on that clock, in ns.
    pub first_due: i64,
    /// Samples with an expiry at or after this are not taken.
    pub end_due: i64,
    /// At most this many samples.
    pub samples: u64,
    /// A longer latency triggers the stop.
    pub stop_above: Option<Nanos>,
    /// The CPU, if the thread is bound to one: saves a query at every sample.
    pub only_cpu: Option<u32>,
    /// The number of the series, for [`Stop::on_limit_exceeded`].
    pub series: u32,
}

/// A method of waking up at equal distances, or at the kernel's beginnings of a period.
trait Wakeups {
    /// Sleeps until an expiry and returns its due time. EINTR if a signal came instead.
    fn await_expiry(&mut self) -> io::Result<i64>;
    /// Arms the next expiry after a wake-up at `woke` for one due at `due`; returns the number of
    /// missed periods.
    fn arm_next(&mut self, due: i64, woke: i64) -> u64;
    /// The due time of the next expiry, if it is known before sleeping.
    fn next_due(&self) -> i64;
}

/// Runs the loop until its end is reached or requested. Everything is set up before the first sleep
/// and released after the last. [`SleepMethod::Deadline`] has its own preparations:
/// [`deadline::DeadlineLoop`].
pub(crate) fn run_loop(plan: &LoopPlan, ring: &mut Producer, stop: &Stop) -> io::Result<()> {
    match plan.method {
        SleepMethod::NanosleepAbsolute => {
            take_samples(plan, ring, stop, nanosleep::Absolute::new(plan))
        }
        SleepMethod::NanosleepRelative => {
            take_samples(plan, ring, stop, nanosleep::Relative::new(plan))
        }
        SleepMethod::Timerfd => take_samples(plan, ring, stop, timerfd::Timerfd::new(plan)?),
        SleepMethod::PosixTimer => take_samples(plan, ring, stop, posix::PosixTimer::new(plan)?),
        SleepMethod::Deadline => deadline::DeadlineLoop::prepare().run(plan, ring, stop),
    }
}

/// The measuring loop, compiled once for each method. There is nothing between the wake-up and the
/// reading of the clock.
#[inline(always)]
fn take_samples<W: Wakeups>(
    plan: &LoopPlan,
    ring: &mut Producer,
    stop: &Stop,
    mut wakeups: W,
) -> io::Result<()> {
    let limit = plan.stop_above.map_or(i64::MAX, Nanos::ns);
    let mut left = plan.samples;
    while left > 0 && wakeups.next_due() < plan.end_due && !stop.is_asked() {
        let due = match wakeups.await_expiry() {
            Ok(due) => due,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let woke = clock::read(plan.clock);
        let missed = wakeups.arm_next(due, woke);
        let cpu = plan.only_cpu.unwrap_or_else(current_cpu);
        ring.push(due, woke, missed, cpu);
        if woke - due > limit {
            stop.on_limit_exceeded(plan.series);
        }
        left -= 1;
    }
    Ok(())
}

/// Periods that passed entirely between an expiry and its wake-up: those whose own expiry is not
/// later than `woke`.
#[inline(always)]
fn missed_periods(due: i64, woke: i64, period: i64) -> u64 {
    let late = woke - due;
    // The division is not on the usual path.
    if late < period { 0 } else { (late / period) as u64 }
}
