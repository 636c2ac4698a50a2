//! From the ring to statistics: what the conducting thread does with the samples of one series.

use crate::ring::{Consumer, MISSED_MANY};
use punctual_core::{ClockNs, Nanos, Sample, SeriesData, Window};

/// The length of the windows in which samples over time are kept.
pub const WINDOW: Nanos = Nanos::SECOND;

/// What happened between two looks: for the live view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recent {
    /// Samples.
    pub count: u64,
    /// The latest latency.
    pub last: Nanos,
    /// The largest latency.
    pub max: Nanos,
}

/// Drains a ring into the statistics of its series, which belong to the caller.
pub struct Collector {
    consumer: Consumer,
    /// The samples since they were last taken away, at most [`Collector::PENDING`].
    pending: Vec<Sample>,
    keep_pending: bool,
    window: Option<Window>,
    /// Windows that have ended since they were last taken away: one a second.
    ended_windows: Vec<Window>,
}

impl Collector {
    /// Never more samples are held for the log than this; the reader takes them away far more often.
    pub const PENDING: usize = 1 << 20;

    /// A collector for the series at the other end of the ring. Without `keep_samples` nothing but statistics is kept.
    pub fn new(consumer: Consumer, keep_samples: bool) -> Collector {
        Collector { consumer, pending: Vec::new(), keep_pending: keep_samples, window: None, ended_windows: Vec::new() }
    }

    /// Takes what is in the ring; `None` when there was nothing.
    pub fn drain(&mut self, data: &mut SeriesData) -> Option<Recent> {
        let Collector { consumer, pending, keep_pending, window, ended_windows } = self;
        let mut recent: Option<Recent> = None;
        consumer.drain(|drained| {
            let latency = drained.sample.latency();
            let period = data.period.filter(|period| drained.missed == MISSED_MANY && period.ns() > 0);
            let missed = period.map_or(drained.missed, |period| (latency.ns() / period.ns()).max(0) as u64);
            data.record(&drained.sample, missed);
            data.losses.dropped += drained.dropped_before;
            if *keep_pending && pending.len() < Collector::PENDING {
                pending.push(drained.sample);
            }
            ended_windows.extend(extend_window(window, &drained.sample));
            let so_far = recent.unwrap_or(Recent { count: 0, last: latency, max: latency });
            recent = Some(Recent { count: so_far.count + 1, last: latency, max: so_far.max.max(latency) });
        });
        recent
    }

    /// Accounts for samples that were dropped at the very end; `offered` is what the thread says it offered.
    pub fn finish(&mut self, offered: u32, data: &mut SeriesData) {
        self.drain(data);
        data.losses.dropped += self.consumer.dropped_at_end(offered);
        self.ended_windows.extend(self.window.take());
    }

    /// Hands out the windows that ended since the last call, for the log.
    pub fn take_windows(&mut self) -> Vec<Window> {
        std::mem::take(&mut self.ended_windows)
    }

    /// Hands out the samples since the last call, for the log.
    pub fn take_samples(&mut self, mut take: impl FnMut(&[Sample])) {
        take(&self.pending);
        self.pending.clear();
    }

    /// No more samples are wanted for the log.
    pub fn keep_no_samples(&mut self) {
        self.keep_pending = false;
        self.pending = Vec::new();
    }
}

/// Puts a sample into the window that it belongs to; gives back the one before when a new one begins. Windows lie on whole
/// multiples of their length on the series' clock.
fn extend_window(window: &mut Option<Window>, sample: &Sample) -> Option<Window> {
    let latency = sample.latency();
    let start = ClockNs(sample.due.ns().div_euclid(WINDOW.ns()) * WINDOW.ns());
    match window {
        Some(open) if open.start == start => {
            open.count += 1;
            open.min = open.min.min(latency);
            open.max = open.max.max(latency);
            open.sum += latency;
            None
        }
        _ => window.replace(Window { start, count: 1, min: latency, max: latency, sum: latency }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::ring;
    use punctual_core::SeriesShape;

    #[test]
    fn what_goes_into_the_ring_is_in_the_statistics() {
        let shape = SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos(1_000)) };
        let (mut producer, consumer) = ring(4);
        let (mut collector, mut data) = (Collector::new(consumer, true), SeriesData::new(shape));
        for (k, late) in [100, 2_500, 50, 60, 70].into_iter().enumerate() {
            let due = k as i64 * 1_000;
            producer.push(due, due + late, (late / 1_000) as u64, 1);
        }
        // The ring holds four: the fifth was dropped at the end.
        assert_eq!(collector.drain(&mut data), Some(Recent { count: 4, last: Nanos(60), max: Nanos(2_500) }));
        collector.finish(producer.offered(), &mut data);
        let losses = data.losses;
        assert_eq!((losses.recorded, losses.overruns, losses.dropped, losses.expected()), (4, 2, 1, 7));
        let mut kept = 0;
        collector.take_samples(|samples| kept += samples.len());
        assert_eq!(kept, 4);
        let windows = collector.take_windows();
        assert_eq!(
            windows,
            [Window { start: ClockNs(0), count: 4, min: Nanos(50), max: Nanos(2_500), sum: Nanos(2_710) }]
        );
    }
}
