//! The loop of workloads that repeat one operation: its start, its pacing, its end conditions.

use crate::sink::SampleSink;
use crate::stop::Stop;
use crate::thread::ThreadSettings;
use crate::workload::{MeasureConfig, SeriesConfig};
use punctual_core::Nanos;
use punctual_sys::attributes::current_cpu;
use punctual_sys::clock;

/// A clock that a loop is compiled for.
pub trait LoopClock {
    /// The current reading of the clock.
    fn now(&self) -> i64;
    /// A reading on CLOCK_MONOTONIC, in ns. Must not be called between two readings.
    #[inline(always)]
    fn reading_to_ns(&self, reading: i64) -> i64 {
        reading
    }
    /// The name of the clock.
    fn clock_name(&self) -> &'static str;
    /// Sleeps until this instant on CLOCK_MONOTONIC, or until a signal comes.
    fn sleep_until(&self, at: i64);
}

/// CLOCK_MONOTONIC through the vDSO.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic;

impl LoopClock for Monotonic {
    #[inline(always)]
    fn now(&self) -> i64 {
        clock::read(libc::CLOCK_MONOTONIC)
    }
    fn clock_name(&self) -> &'static str {
        "CLOCK_MONOTONIC (clock_gettime in the vDSO)"
    }
    fn sleep_until(&self, at: i64) {
        let _ = clock::sleep_until(libc::CLOCK_MONOTONIC, at);
    }
}

/// The distance of two samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pacing {
    /// One follows the other. After every [`Pacing::BURST`] the thread sleeps: a real-time thread
    /// that never sleeps is throttled (sched_rt_runtime_us, 950 ms of each second), and a thread
    /// that waits for its CPU would wait for ever.
    BackToBack {
        /// The length of the sleep; zero: it never sleeps.
        rest: Nanos,
    },
    /// Each begins at the next multiple of the period.
    Periodic(Nanos),
}

impl Pacing {
    /// The time for which samples follow one another before a rest.
    pub(crate) const BURST: Nanos = Nanos::from_millis(10);
}

/// The start and the end conditions of a loop.
#[derive(Clone, Debug)]
pub(crate) struct MeasurementLoop {
    /// The number of its series, for [`Stop::on_limit_exceeded`].
    pub series: u32,
    pub pacing: Pacing,
    pub duration: Option<Nanos>,
    /// At most this many samples.
    pub samples: u64,
    /// A longer sample triggers the stop.
    pub limit: i64,
    /// The CPU, if the thread has only one: saves a query at every sample.
    pub only_cpu: Option<u32>,
}

/// The result of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopResult {
    pub samples: u64,
    /// Periods that passed while a sample took longer than one; they have no sample.
    pub skipped: u64,
}

impl MeasurementLoop {
    /// The loop of one series of a measure.
    pub(crate) fn from_config(
        config: &MeasureConfig,
        series: &SeriesConfig,
        pacing: Pacing,
    ) -> MeasurementLoop {
        MeasurementLoop {
            series: series.number,
            pacing,
            duration: config.duration,
            samples: config.samples.unwrap_or(u64::MAX),
            limit: config.stop_above.map_or(i64::MAX, Nanos::ns),
            only_cpu: config.threads.get(series.thread).and_then(ThreadSettings::only_cpu),
        }
    }

    /// The same for `samples` samples back to back, without other end conditions: for warming up
    /// and for counting.
    pub(crate) fn short_loop(&self, samples: u64) -> MeasurementLoop {
        MeasurementLoop {
            pacing: Pacing::BackToBack { rest: Nanos::ZERO },
            duration: None,
            samples,
            limit: i64::MAX,
            ..self.clone()
        }
    }

    /// Runs the loop from `start` on: `before` is not timed, `act` is. There is nothing else
    /// between the two readings of the clock.
    #[inline(always)]
    pub fn run<T: LoopClock, S: SampleSink>(
        &self,
        start: i64,
        ticks: &T,
        sink: &mut S,
        stop: &Stop,
        mut before: impl FnMut(),
        mut act: impl FnMut(),
    ) -> LoopResult {
        let mut loop_result = LoopResult::default();
        let end_at = self.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        let mut next = start;
        let mut now = ticks.reading_to_ns(ticks.now());
        while now < start && !stop.is_asked() {
            ticks.sleep_until(start);
            now = ticks.reading_to_ns(ticks.now());
        }
        let mut burst_end = now.saturating_add(Pacing::BURST.ns());
        while loop_result.samples < self.samples && now < end_at && !stop.is_asked() {
            let mut missed = 0;
            match self.pacing {
                Pacing::BackToBack { rest } if rest > Nanos::ZERO && now >= burst_end => {
                    ticks.sleep_until(now + rest.ns());
                    burst_end = ticks.reading_to_ns(ticks.now()) + Pacing::BURST.ns();
                }
                Pacing::Periodic(period) => {
                    if now < next {
                        ticks.sleep_until(next.min(end_at));
                        now = ticks.reading_to_ns(ticks.now());
                        // A signal came, or the end.
                        if now < next {
                            continue;
                        }
                    }
                    missed = (now - next) / period.ns().max(1);
                    next += (missed + 1) * period.ns().max(1);
                }
                Pacing::BackToBack { .. } => {}
            }
            before();
            let begin = ticks.now();
            act();
            let end = ticks.now();
            let (begin, end) = (ticks.reading_to_ns(begin), ticks.reading_to_ns(end));
            // The sample hides the periods that pass meanwhile, not the next one.
            if let Pacing::Periodic(period) = self.pacing
                && end.min(end_at) > next
            {
                let passed_periods = (end.min(end_at) - next) / period.ns().max(1);
                next += passed_periods * period.ns().max(1);
                missed += passed_periods;
            }
            let cpu = self.only_cpu.unwrap_or_else(current_cpu);
            match missed {
                0 => sink.put_sample(begin, end, cpu),
                missed => sink.put_late(begin, end, missed as u64, cpu),
            }
            loop_result.skipped += missed as u64;
            loop_result.samples += 1;
            now = end;
            if end - begin > self.limit {
                stop.on_limit_exceeded(self.series);
            }
        }
        loop_result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::SampleSource;
    use crate::workload::simulated::SteppedClock;

    fn measurement_loop(pacing: Pacing) -> MeasurementLoop {
        MeasurementLoop {
            series: 0,
            pacing,
            duration: None,
            samples: 4,
            limit: i64::MAX,
            only_cpu: Some(2),
        }
    }

    fn spans(
        measurement_loop: &MeasurementLoop,
        act: impl Fn(&SteppedClock),
    ) -> (Vec<(i64, i64)>, LoopResult) {
        let ticks = SteppedClock::default();
        let (mut ring, mut reader) = crate::ring::create_ring(64);
        let taken =
            measurement_loop.run(1_000, &ticks, &mut ring, &Stop::default(), || (), || act(&ticks));
        let mut spans = Vec::new();
        reader
            .drain(|drained| spans.push((drained.sample.due.ns(), drained.sample.latency().ns())));
        (spans, taken)
    }

    #[test]
    fn a_sample_covers_the_action_and_one_clock_reading() {
        let (back_to_back, taken) =
            spans(&measurement_loop(Pacing::BackToBack { rest: Nanos::ZERO }), |t| {
                t.pass_time(100)
            });
        assert_eq!(taken, LoopResult { samples: 4, skipped: 0 });
        assert!(back_to_back.iter().all(|(_, span)| *span == 105), "{back_to_back:?}");
    }

    #[test]
    fn a_period_that_passes_during_a_sample_is_skipped_and_counted() {
        let (periodic, taken) = spans(&measurement_loop(Pacing::Periodic(Nanos(1_000))), |t| {
            let longer = if t.peek_time() < 2_000 { 2_500 } else { 10 };
            t.pass_time(longer);
        });
        assert_eq!(taken, LoopResult { samples: 4, skipped: 1 });
        assert_eq!(
            periodic.iter().map(|(begin, _)| begin / 1_000).collect::<Vec<_>>(),
            [1, 3, 4, 5]
        );
    }

    #[test]
    fn after_each_burst_it_rests_once() {
        let rest = Nanos::MILLI;
        let long =
            MeasurementLoop { samples: 1_000, ..measurement_loop(Pacing::BackToBack { rest }) };
        let ticks = SteppedClock::default();
        let mut rested = Vec::new();
        let mut last = None;
        let (mut sink, _source) = crate::sink::ring_for_period(Nanos::MILLI);
        long.run(
            0,
            &ticks,
            &mut sink,
            &Stop::default(),
            || (),
            || {
                let now = ticks.peek_time();
                if last.is_some_and(|last| now - last >= rest.ns()) {
                    rested.push(now);
                }
                ticks.pass_time(100_000);
                last = Some(ticks.peek_time());
            },
        );
        // A hundred samples of 100 µs each are a burst of 10 ms.
        assert!((9..=10).contains(&rested.len()), "{rested:?}");
        let distances = rested.windows(2).map(|pair| pair[1] - pair[0]);
        let whole = Pacing::BURST.ns() + rest.ns();
        assert!(distances.clone().all(|ns| ns >= whole && ns < whole + 200_000), "{rested:?}");
    }

    #[test]
    fn a_loop_ends_at_its_duration_or_at_a_sample_above_the_limit() {
        let timed = MeasurementLoop {
            duration: Some(Nanos(250)),
            samples: u64::MAX,
            ..measurement_loop(Pacing::BackToBack { rest: Nanos::ZERO })
        };
        assert_eq!(spans(&timed, |t| t.pass_time(90)).1.samples, 3);
        let ticks = SteppedClock::default();
        let (mut sink, source) = crate::sink::ring_for_period(Nanos::MILLI);
        let stop = Stop::default();
        let limited = MeasurementLoop { limit: 50, series: 7, samples: u64::MAX, ..timed };
        let limited = MeasurementLoop { duration: None, ..limited };
        let taken = limited.run(0, &ticks, &mut sink, &stop, || (), || ticks.pass_time(60));
        assert_eq!((taken.samples, stop.tripped_by()), (1, Some(7)));
        assert!(matches!(source, SampleSource::Ring(_)));
    }
}
