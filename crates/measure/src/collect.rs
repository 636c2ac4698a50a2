//! From the ring to statistics: processing of one series' samples in the controller thread.

use crate::ring::{Consumer, MISSED_MANY, SnapshotReader};
use crate::sink::SampleSource;
use punctual_core::digest::{SampleDigest, Sha256Digest};
use punctual_core::{BinnedCounter, ClockNs, Nanos, Sample, SampleWindow, SeriesData, Unfinished};

/// The length of the windows in which samples over time are kept.
pub const WINDOW: Nanos = Nanos::SECOND;

/// Figures between two drains, for the live view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecentFigures {
    pub count: u64,
    /// The latest latency; the mean if samples are only counted.
    pub last: Nanos,
    pub max: Nanos,
}

/// Drains a ring into the statistics of its series, which the caller owns.
pub struct SeriesCollector {
    source: SampleSource,
    /// The samples that have not been fetched yet.
    pending: Vec<Sample>,
    keep_pending: bool,
    /// The worst of the samples that were only counted and not yet fetched; `None` if they are not
    /// requested.
    worst: Option<Vec<Sample>>,
    digest: SampleDigest,
    /// One period after the last wake-up: the next sample is due by then.
    due_by: Option<ClockNs>,
    window: Option<SampleWindow>,
    /// Ended windows that have not been fetched yet: one per second.
    ended_windows: Vec<SampleWindow>,
}

impl SeriesCollector {
    /// The maximum number of samples held for the log; the reader fetches them far more often.
    pub const PENDING: usize = 1 << 20;

    /// A collector for the series of this source. Without `keep_samples` only statistics are kept;
    /// a binned counter has nothing else.
    pub fn new(source: SampleSource, keep_samples: bool) -> SeriesCollector {
        let digest = SampleDigest::default();
        SeriesCollector {
            source,
            pending: Vec::new(),
            keep_pending: keep_samples,
            worst: None,
            digest,
            due_by: None,
            window: None,
            ended_windows: Vec::new(),
        }
    }

    /// A second reader of samples, from now on.
    pub fn snapshot_reader(&self) -> Option<SnapshotReader> {
        self.source.snapshot_reader()
    }

    /// Takes all new samples; `None` if there are none.
    pub fn drain(&mut self, data: &mut SeriesData) -> Option<RecentFigures> {
        let mut recent = None;
        let (pending, keep, digest) = (&mut self.pending, self.keep_pending, &mut self.digest);
        let (window, ended, worst) = (&mut self.window, &mut self.ended_windows, &mut self.worst);
        let (period, due_by) = (data.period, &mut self.due_by);
        match &mut self.source {
            SampleSource::Ring(consumer) => drain_ring(consumer, data, |sample| {
                digest.add(sample);
                *due_by = period.map(|period| sample.woke + period);
                if keep && pending.len() < SeriesCollector::PENDING {
                    pending.push(*sample);
                }
                ended.extend(extend_window(window, window_of_sample(sample)));
                RecentFigures::add(&mut recent, 1, sample.latency(), sample.latency());
            }),
            SampleSource::Counter(reader) => reader.drain(|counter| {
                data.absorb_counter(counter);
                worst
                    .iter_mut()
                    .filter(|worst| worst.len() < SeriesCollector::PENDING)
                    .for_each(|worst| worst.extend(counter.worst_samples()));
                let Some(many) = window_of_counter(counter) else { return };
                ended.extend(extend_window(window, many));
                RecentFigures::add(
                    &mut recent,
                    many.count,
                    Nanos(many.sum.ns() / many.count.max(1) as i64),
                    many.max,
                );
            }),
        }
        recent
    }

    /// The sample that its thread has not taken although more than a period has passed since the
    /// last one, if it takes one in each: the lower bound of its latency. On the series' clock.
    pub fn overdue_sample(&self, data: &SeriesData, now: ClockNs) -> Option<Unfinished> {
        let (due, period) = (self.due_by?, data.period.filter(|period| period.ns() > 0)?);
        let lasted = Some(now - due).filter(|lasted| lasted.ns() > 0)?;
        let passed_periods = (lasted.ns() / period.ns()) as u64;
        Some(Unfinished { due, at_least: lasted, lasted, passed: passed_periods, ended: false })
    }

    /// Takes the rest when the thread has ended, and accounts for samples that were dropped at the
    /// very end.
    pub fn finish(&mut self, data: &mut SeriesData) {
        self.drain(data);
        if let SampleSource::Ring(consumer) = &self.source {
            data.losses.dropped += consumer.dropped_when_ended();
        }
        self.ended_windows.extend(self.window.take());
    }

    /// The digest of all samples; of a binned counter, of its counts in `data`.
    pub fn sample_digest(&self, data: &SeriesData) -> Sha256Digest {
        match &self.source {
            SampleSource::Ring(_) => self.digest.current_digest(),
            SampleSource::Counter(_) => Sha256Digest::of_counts(data),
        }
    }

    /// Fetches the windows that ended since the last call, for the log.
    pub fn take_windows(&mut self) -> Vec<SampleWindow> {
        std::mem::take(&mut self.ended_windows)
    }

    /// Fetches the samples since the last call, for the log.
    pub fn take_samples(&mut self, mut take: impl FnMut(&[Sample])) {
        take(&self.pending);
        self.pending.clear();
    }

    /// From now on, keeps the worst of samples that are only counted.
    pub fn keep_worst(&mut self) {
        self.worst = Some(Vec::new());
    }

    /// Fetches the worst samples that were only counted since the last call: some of each drain.
    pub fn take_worst(&mut self) -> Vec<Sample> {
        self.worst.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Stops keeping samples for the log.
    pub fn keep_no_samples(&mut self) {
        self.keep_pending = false;
        self.pending = Vec::new();
    }
}

impl RecentFigures {
    fn add(recent: &mut Option<RecentFigures>, count: u64, last: Nanos, max: Nanos) {
        let so_far = recent.unwrap_or(RecentFigures { count: 0, last, max });
        *recent =
            Some(RecentFigures { count: so_far.count + count, last, max: so_far.max.max(max) });
    }
}

fn drain_ring(consumer: &mut Consumer, data: &mut SeriesData, mut seen: impl FnMut(&Sample)) {
    consumer.drain(|drained| {
        let latency = drained.sample.latency();
        let period = data.period.filter(|period| drained.missed == MISSED_MANY && period.ns() > 0);
        let missed =
            period.map_or(drained.missed, |period| (latency.ns() / period.ns()).max(0) as u64);
        data.record_sample(&drained.sample, missed);
        data.losses.dropped += drained.dropped_before;
        seen(&drained.sample);
    });
}

/// The window of a single sample.
fn window_of_sample(sample: &Sample) -> SampleWindow {
    let latency = sample.latency();
    SampleWindow { start: sample.due, count: 1, min: latency, max: latency, sum: latency }
}

/// The window of a binned counter: the time between two drains, assigned to its beginning.
fn window_of_counter(counter: &BinnedCounter) -> Option<SampleWindow> {
    counter.latency_extent().map(|(start, min, max, sum)| SampleWindow {
        start,
        count: counter.sample_count(),
        min,
        max,
        sum,
    })
}

/// Adds samples to their window; returns the previous one when a new one begins. Windows begin at
/// whole multiples of their length on the series' clock.
pub fn extend_window(
    window: &mut Option<SampleWindow>,
    more: SampleWindow,
) -> Option<SampleWindow> {
    let start = ClockNs(more.start.ns().div_euclid(WINDOW.ns()) * WINDOW.ns());
    match window {
        Some(open) if open.start == start => {
            open.count += more.count;
            open.min = open.min.min(more.min);
            open.max = open.max.max(more.max);
            open.sum += more.sum;
            None
        }
        _ => window.replace(SampleWindow { start, ..more }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::create_ring;
    use punctual_core::SeriesShape;

    #[test]
    fn samples_from_the_ring_are_counted_in_the_statistics() {
        let shape = SeriesShape {
            range: Nanos::MILLI,
            resolution: Nanos::MICRO,
            period: Some(Nanos(1_000)),
        };
        let (mut producer, consumer) = create_ring(4);
        let (mut collector, mut data) =
            (SeriesCollector::new(SampleSource::Ring(consumer), true), SeriesData::new(shape));
        for (k, late) in [100, 2_500, 50, 60, 70].into_iter().enumerate() {
            let due = k as i64 * 1_000;
            producer.push(due, due + late, (late / 1_000) as u64, 1);
        }
        // The ring holds four: the fifth was dropped at the end.
        assert_eq!(
            collector.drain(&mut data),
            Some(RecentFigures { count: 4, last: Nanos(60), max: Nanos(2_500) })
        );
        drop(producer);
        collector.finish(&mut data);
        let losses = data.losses;
        assert_eq!(
            (losses.recorded, losses.skipped, losses.dropped, losses.expected_count()),
            (4, 2, 1, 7)
        );
        assert_eq!(collector.overdue_sample(&data, ClockNs(4_050)), None, "it is due at 4,060");
        let late = collector.overdue_sample(&data, ClockNs(6_560)).expect("it is late");
        assert_eq!((late.due, late.at_least, late.passed), (ClockNs(4_060), Nanos(2_500), 2));
        let mut kept = 0;
        collector.take_samples(|samples| kept += samples.len());
        assert_eq!(kept, 4);
        let windows = collector.take_windows();
        assert_eq!(
            windows,
            [SampleWindow {
                start: ClockNs(0),
                count: 4,
                min: Nanos(50),
                max: Nanos(2_500),
                sum: Nanos(2_710)
            }]
        );
    }
}
