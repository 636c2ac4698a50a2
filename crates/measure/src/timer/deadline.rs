//! The period of SCHED_DEADLINE itself: sched_yield(2) gives up the rest of the budget and returns
//! when the next period begins (Documentation/scheduler/sched-deadline.rst).
//!
//! Periods are not on a fixed grid: a thread that is a period late, or slept, gets a new period
//! from that instant on (kernel/sched/deadline.c, replenish_dl_entity and update_dl_entity). So the
//! kernel's release time is read each time before the thread waits: from its absolute deadline, or
//! from its timer. If neither is available, the release is estimated (see [`ReleaseEstimate`]), and
//! the notes state the quality.

mod estimate;
mod server;

use super::{LoopPlan, Wakeups, missed_periods, take_samples};
use crate::ring::Producer;
use crate::stop::Stop;
use estimate::ReleaseEstimate;
use punctual_core::{Column, Finding, Nanos, Notes, Policy, Severity, Table};
use punctual_record::release::Releases;
use punctual_sys::attributes;
use server::{Blind, DeadlineServer, TimerStamps};
use std::io;

/// The result of one wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitResult {
    /// Until this release, on CLOCK_MONOTONIC in ns.
    Until(i64),
    /// Without waiting: the release had already passed, and the thread kept its CPU.
    NotAtAll,
    Unknown,
}

/// The kernel's side of the loop.
pub(super) trait DeadlineKernel {
    /// Whether [`DeadlineKernel::end_period`] knows the release.
    const KNOWS: bool;
    /// Ends the period and returns in another one.
    fn end_period(&mut self) -> WaitResult;
    /// Now, on CLOCK_MONOTONIC in ns.
    fn now(&self) -> i64;
}

/// The source of release times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ReleaseSource {
    /// sched_getattr(2) with its dynamic parameters, from Linux 7.1 on.
    Attributes,
    /// The timer that the kernel starts for the release.
    Timer,
    /// None.
    #[default]
    Estimated,
}

/// Counts of the releases of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReleaseCounts {
    source: ReleaseSource,
    /// Waits that ended in a release, and calls that did not wait.
    waits: u64,
    passed: u64,
    /// Releases that are not a whole number of periods after the previous one.
    phases: u64,
    estimate: estimate::Quality,
}

impl ReleaseCounts {
    /// The source of the instants from which latencies are counted.
    fn release_table(&self) -> Table {
        let source = match self.source {
            ReleaseSource::Attributes => "the absolute deadline that sched_getattr(2) reports",
            ReleaseSource::Timer => {
                "the expiry of the thread's own timer (timer:hrtimer_start, by BPF)"
            }
            ReleaseSource::Estimated => "an estimate from the earliest wake-ups",
        };
        let mut rows = vec![
            vec!["taken from".into(), source.into()],
            vec!["waits".into(), self.waits.to_string().into()],
        ];
        if self.source != ReleaseSource::Estimated {
            rows.push(vec![
                "at another phase than the one before".into(),
                self.phases.to_string().into(),
            ]);
            rows.push(vec![
                "had passed before the thread waited".into(),
                self.passed.to_string().into(),
            ]);
        }
        let title =
            "Releases by SCHED_DEADLINE: the instants that latencies are counted from".to_owned();
        let columns = vec![Column::new("what", ""), Column::new("which", "")];
        Table { name: "releases".to_owned(), title, columns, rows }
    }
}

/// The loop's kernel resources, opened before the thread has its policy.
pub struct DeadlineLoop {
    stamps: Result<Releases, String>,
    book: ReleaseCounts,
}

impl DeadlineLoop {
    pub fn prepare() -> DeadlineLoop {
        DeadlineLoop {
            stamps: Releases::start().map_err(|why| why.to_string()),
            book: ReleaseCounts::default(),
        }
    }

    /// Measures.
    ///
    /// # Errors
    /// The thread is not under SCHED_DEADLINE: then sched_yield(2) does not wait, and no figure of
    /// it is a latency.
    pub fn run(&mut self, plan: &LoopPlan, ring: &mut Producer, stop: &Stop) -> io::Result<()> {
        let scheduling = attributes::read_scheduling(0)?;
        let Some(given) = scheduling.deadline.filter(|_| scheduling.policy == Policy::Deadline)
        else {
            return Err(io::Error::other(
                "SCHED_DEADLINE was refused, and without it sched_yield(2) waits for nothing",
            ));
        };
        self.book = ReleaseCounts::default();
        match &self.stamps {
            _ if attributes::absolute_deadline().is_ok() => {
                let server = DeadlineServer::new(given);
                self.book.source = ReleaseSource::Attributes;
                take_samples(plan, ring, stop, &mut Yield::new(plan, server, &mut self.book))
            }
            Ok(stamps) => {
                self.book.source = ReleaseSource::Timer;
                take_samples(
                    plan,
                    ring,
                    stop,
                    &mut Yield::new(plan, TimerStamps::new(stamps), &mut self.book),
                )
            }
            Err(_) => take_samples(plan, ring, stop, &mut Yield::new(plan, Blind, &mut self.book)),
        }
    }

    /// Calls of sched_yield(2) that ended in a release: the thread was off its CPU in each.
    pub(crate) fn wait_count(&self) -> u64 {
        self.book.waits
    }

    /// Its notes, for a measure of this name.
    pub(crate) fn collect_notes(&self, measure: &str) -> Notes {
        let mut notes = Notes::default();
        let book = &self.book;
        if book.waits + book.passed > 0 {
            notes.tables.push(book.release_table());
        }
        if book.source == ReleaseSource::Estimated && book.waits > 0 {
            let reason = self.stamps.as_ref().err().map_or("", String::as_str);
            notes.findings.push(book.estimate.format_finding(measure).with_evidence(reason));
        } else if book.phases > 0 {
            let ReleaseCounts { phases, waits, passed, .. } = *book;
            let message = format!(
                "the kernel began {phases} of {waits} periods at another phase than the one \
                 before, and {passed} times the release had passed before the thread waited; \
                 latencies are relative to each release as the kernel programmed it"
            );
            notes.findings.push(Finding::new("deadline-phase", Severity::Note, measure, message));
        }
        notes
    }
}

pub(super) struct Yield<'b, S> {
    server: S,
    period: i64,
    first_due: i64,
    next: i64,
    estimate: ReleaseEstimate,
    book: &'b mut ReleaseCounts,
}

impl<'b, S: DeadlineKernel> Yield<'b, S> {
    pub(super) fn new(plan: &LoopPlan, server: S, book: &'b mut ReleaseCounts) -> Yield<'b, S> {
        let period = plan.period.ns();
        Yield {
            server,
            period,
            first_due: plan.first_due,
            next: plan.first_due,
            estimate: ReleaseEstimate::new(period),
            book,
        }
    }

    /// Handles a known release.
    #[inline(always)]
    fn on_release(&mut self, due: i64) -> io::Result<i64> {
        let off = (due - self.next).rem_euclid(self.period);
        // The kernel's conversion between its clocks varies by some ns.
        let moved = off.min(self.period - off) > ROUNDING;
        self.book.phases += u64::from(moved && self.book.waits > 0);
        self.next = due + self.period;
        self.book.waits += 1;
        if due < self.first_due { Err(retry_error()) } else { Ok(due) }
    }
}

/// The maximum deviation of one grid caused by the kernel: conversions between its clocks, and
/// their relative steering.
const ROUNDING: i64 = Nanos::from_micros(5).ns();

/// Makes the loop check its end and retry.
fn retry_error() -> io::Error {
    io::ErrorKind::Interrupted.into()
}

impl<S: DeadlineKernel> Wakeups for &mut Yield<'_, S> {
    #[inline(always)]
    fn await_expiry(&mut self) -> io::Result<i64> {
        match self.server.end_period() {
            WaitResult::Until(due) => self.on_release(due),
            WaitResult::NotAtAll => {
                self.book.passed += 1;
                self.next = self.next.max(self.server.now());
                Err(retry_error())
            }
            WaitResult::Unknown => {
                self.book.waits += 1;
                if let Some(due) = self.estimate.next_release().filter(|due| *due >= self.first_due)
                {
                    return Ok(due);
                }
                let now = self.server.now();
                self.estimate.learn_wakeup(now);
                self.book.estimate = self.estimate.quality;
                self.next =
                    self.estimate.next_release().unwrap_or(now + self.period).max(self.first_due);
                Err(retry_error())
            }
        }
    }
    #[inline(always)]
    fn arm_next(&mut self, due: i64, woke: i64) -> u64 {
        let missed = missed_periods(due, woke, self.period);
        if !S::KNOWS {
            self.estimate.advance_grid(due, woke);
            self.book.estimate = self.estimate.quality;
            self.next = self.estimate.next_release().unwrap_or(woke + self.period);
        }
        missed
    }
    #[inline(always)]
    fn next_due(&self) -> i64 {
        self.next
    }
}

#[cfg(test)]
mod tests;
