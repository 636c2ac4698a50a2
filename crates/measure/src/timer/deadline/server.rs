//! Sources of the release time in the kernel. All are read before the thread waits, or return data
//! written by then: events between the release and the first instruction after it change nothing.

use super::{DeadlineKernel, WaitResult};
use punctual_record::release::Releases;
use punctual_sys::attributes;
use punctual_sys::clock;

#[inline(always)]
fn sched_yield() {
    // SAFETY: sched_yield has no arguments and always succeeds on Linux.
    unsafe { libc::sched_yield() };
}

fn monotonic_now() -> i64 {
    clock::read(libc::CLOCK_MONOTONIC)
}

/// The absolute deadline of the running period, which the kernel converts to CLOCK_MONOTONIC.
pub struct DeadlineServer {
    /// The distance from an absolute deadline to the next release (kernel/sched/deadline.c:
    /// dl_next_period).
    gap: i64,
}

impl DeadlineServer {
    pub fn new(given: attributes::DeadlineAttributes) -> DeadlineServer {
        DeadlineServer { gap: given.period.ns() - given.deadline.ns() }
    }
}

impl DeadlineKernel for DeadlineServer {
    const KNOWS: bool = true;
    #[inline(always)]
    fn end_period(&mut self) -> WaitResult {
        let release = attributes::absolute_deadline().map(|deadline| deadline + self.gap);
        let waits = matches!(release, Ok(release) if release > monotonic_now());
        sched_yield();
        match release {
            Ok(release) if waits => WaitResult::Until(release),
            _ => WaitResult::NotAtAll,
        }
    }
    fn now(&self) -> i64 {
        monotonic_now()
    }
}

/// The expiry of the thread's own timer, recorded where the kernel starts it. It starts none for a
/// release that has passed (kernel/sched/deadline.c: start_dl_timer).
pub struct TimerStamps<'r>(&'r Releases);

impl TimerStamps<'_> {
    pub fn new(releases: &Releases) -> TimerStamps<'_> {
        TimerStamps(releases)
    }
}

impl DeadlineKernel for TimerStamps<'_> {
    const KNOWS: bool = true;
    #[inline(always)]
    fn end_period(&mut self) -> WaitResult {
        let before = self.0.release_count();
        sched_yield();
        // If there are several, the thread was throttled after the first; that is part of its
        // latency.
        if self.0.release_count() == before {
            WaitResult::NotAtAll
        } else {
            WaitResult::Until(self.0.release_at(before))
        }
    }
    fn now(&self) -> i64 {
        monotonic_now()
    }
}

/// No source.
pub(crate) struct Blind;

impl DeadlineKernel for Blind {
    const KNOWS: bool = false;
    #[inline(always)]
    fn end_period(&mut self) -> WaitResult {
        sched_yield();
        WaitResult::Unknown
    }
    fn now(&self) -> i64 {
        monotonic_now()
    }
}
