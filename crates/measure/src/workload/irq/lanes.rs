//! The destination of an interrupt's samples: a series for each hop whose instants are known.

use crate::ring::{Producer, create_ring};
use crate::sink::{self, SampleSink, SampleSource};
use crate::stop::Stop;
use crate::workload::MeasureConfig;
use punctual_core::{CpuSet, Nanos};
use punctual_sys::attributes::current_cpu;
use punctual_sys::memory;
use std::io;

/// An arrived interrupt, in instants of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// The time of raising or of the expected arrival; unknown for a device that raises its own.
    pub raised: Option<i64>,
    /// The entry of its handler.
    pub handler: Option<i64>,
    /// The expiry of the timer, if there is one.
    pub expiry: Option<i64>,
    /// The first instruction of the thread that waited.
    pub woke: i64,
    pub handled_on: Option<u32>,
}

/// The outcomes of interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct InterruptCounts {
    pub taken: u64,
    /// With a matching timestamp of the handler.
    pub stamped: u64,
    /// Timers served by an interrupt that had begun before the expiry.
    pub early: u64,
    /// Arrived together with others of the same kind: the timestamp is ambiguous.
    pub mixed: u64,
    /// Without any timestamp, although timestamps are taken.
    pub unstamped: u64,
    /// Timers whose instant had passed when the thread went to sleep.
    pub passed: u64,
    /// Waits in vain: the other CPU was not ready, or needed no interrupt.
    pub vain: u64,
    /// Periods without an interrupt, because the previous one had not been answered.
    pub skipped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hops {
    /// To handler, to expiry, to thread, whole.
    Timer,
    /// To handler, to thread, whole.
    Raised,
    Thread,
}

/// The series, and the number of remaining samples.
pub(crate) struct IrqLanes {
    hops: Hops,
    producers: Vec<Producer>,
    /// The number of the series that `stop_above` applies to.
    number: u32,
    limit: i64,
    left: u64,
    cpu: Option<u32>,
    pub book: InterruptCounts,
    /// The number of skipped periods already charged to samples.
    missed: u64,
    /// A bit for each CPU.
    handled_on: [u64; punctual_core::cpuset::MAX_CPUS / 64],
}

impl IrqLanes {
    /// The series of a measure; `cpu` is the waiting thread's, if it is bound to one.
    pub(crate) fn from_config(
        config: &MeasureConfig,
        hops: Hops,
        period: Nanos,
        cpu: Option<u32>,
    ) -> (IrqLanes, Vec<SampleSource>) {
        let (producers, sources) =
            config.series.iter().map(|_| sink::ring_for_period(period)).unzip();
        let number = config.series.last().map_or(0, |series| series.number);
        let limit = config.stop_above.map_or(i64::MAX, Nanos::ns);
        let left = config.samples.unwrap_or(u64::MAX);
        (
            IrqLanes {
                hops,
                producers,
                number,
                limit,
                left,
                cpu,
                book: InterruptCounts::default(),
                missed: 0,
                handled_on: [0; _],
            },
            sources,
        )
    }

    /// The same without series, for `count` unmeasured interrupts.
    pub(crate) fn scratch_copy(&self, samples: u64) -> IrqLanes {
        let producers = self.producers.iter().map(|_| create_ring(2).0).collect();
        IrqLanes {
            producers,
            limit: i64::MAX,
            left: samples,
            book: InterruptCounts::default(),
            missed: 0,
            handled_on: [0; _],
            ..*self
        }
    }

    /// The number of remaining samples.
    pub fn samples_left(&self) -> u64 {
        self.left
    }

    pub(crate) fn handled_on(&self) -> CpuSet {
        let is_set = |cpu: &usize| self.handled_on[cpu / 64] & 1 << (cpu % 64) != 0;
        (0..punctual_core::cpuset::MAX_CPUS).filter(is_set).collect()
    }

    pub fn end_series(&mut self) {
        self.producers.clear();
    }

    /// Locks the memory of the rings.
    pub fn lock_memory(&self) -> io::Result<()> {
        self.producers.iter().try_for_each(|producer| memory::lock_slice(producer.ring_memory()))
    }

    pub(crate) fn record_interrupt(&mut self, passed: Passed, stop: &Stop) {
        let Passed { raised, handler, expiry, woke, handled_on } = passed;
        if let Some(cpu) = handled_on
            && let Some(bits) = self.handled_on.get_mut(cpu as usize / 64)
        {
            *bits |= 1 << (cpu % 64);
        }
        self.book.taken += 1;
        self.book.stamped += u64::from(handler.is_some());
        self.left = self.left.saturating_sub(1);
        let hops = match self.hops {
            Hops::Timer => {
                [(raised, handler), (handler, expiry), (expiry, Some(woke)), (raised, Some(woke))]
            }
            Hops::Raised => {
                [(raised, handler), (handler, Some(woke)), (raised, Some(woke)), (None, None)]
            }
            Hops::Thread => [(handler, Some(woke)), (None, None), (None, None), (None, None)],
        };
        let cpu = self.cpu.unwrap_or_else(current_cpu);
        let missed = self.book.skipped.saturating_sub(self.missed);
        self.missed = self.book.skipped;
        for (producer, hop) in self.producers.iter_mut().zip(hops) {
            if let (Some(begin), Some(end)) = hop {
                producer.put_late(begin, end, missed, cpu);
            }
        }
        if let Some(begin) = raised.or(handler)
            && woke - begin > self.limit
        {
            stop.on_limit_exceeded(self.number);
        }
    }
}

/// The instants of periodic interrupts.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    next: i64,
    period: i64,
    rested: i64,
}

/// A thread that never sleeps is throttled: it rests after this time without sleep.
const BURST: i64 = crate::workload::measurement_loop::Pacing::BURST.ns();
const REST: i64 = 1_000_000;

impl Periods {
    /// Instants that begin at `start`.
    pub fn new(start: i64, period: Nanos) -> Periods {
        Periods { next: start, period: period.ns().max(1), rested: start }
    }

    /// The next instant, and the earliest time for it: later than due if there is a rest. Passed
    /// instants are skipped and counted.
    pub fn next(&mut self, now: i64) -> (i64, u64) {
        if now < self.next {
            self.rested = self.next;
        } else if now - self.rested > BURST {
            self.rested = now + REST;
            let skipped = self.skip_to(now + REST);
            return (self.advance_period(), skipped);
        }
        let skipped = if now < self.next { 0 } else { self.skip_to(now) };
        (self.advance_period(), skipped)
    }

    fn skip_to(&mut self, at: i64) -> u64 {
        let passed_periods =
            (at - self.next) / self.period + i64::from((at - self.next) % self.period != 0);
        self.next += passed_periods * self.period;
        passed_periods.max(0) as u64
    }

    fn advance_period(&mut self) -> i64 {
        let next = self.next;
        self.next += self.period;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_have_passed_are_skipped_and_counted() {
        let mut pace = Periods::new(1_000, Nanos(100));
        assert_eq!(pace.next(0), (1_000, 0));
        assert_eq!(pace.next(1_050), (1_100, 0));
        assert_eq!(pace.next(1_350), (1_400, 2));
        assert_eq!(pace.next(1_500), (1_500, 0));
    }

    #[test]
    fn a_thread_that_is_always_late_sleeps_in_between() {
        let mut pace = Periods::new(0, Nanos(100_000));
        let (mut now, mut rests) = (50, 0);
        for _ in 0..2_000 {
            let (next, _) = pace.next(now);
            rests += u64::from(next - now >= REST);
            // Each takes longer than the period.
            now = next.max(now) + 150_000;
        }
        assert!((1..2_000).contains(&rests), "{rests}");
    }
}
