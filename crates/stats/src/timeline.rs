//! Latency over time in a bounded number of points, for plots: min, mean and max of each bucket of
//! time.

use punctual_bundle::log::LogContents;
use punctual_core::{ClockNs, Nanos, Sample, SampleWindow};

/// The samples in one bucket of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    /// The start of the bucket, on the series' clock.
    pub start: ClockNs,
    /// The number of samples; never 0.
    pub count: u64,
    pub min: Nanos,
    /// The mean latency in ns.
    pub mean: f64,
    pub max: Nanos,
}

/// A series over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// The non-empty buckets, ascending; all of one width.
    pub buckets: Vec<Bucket>,
    /// The width of a bucket; zero without buckets.
    pub width: Nanos,
}

/// The sums for a [`Bucket`].
#[derive(Clone, Copy)]
struct BucketSums {
    count: u64,
    min: Nanos,
    max: Nanos,
    sum: i128,
}

/// One sample, or one window.
struct TimelinePoint {
    at: ClockNs,
    sums: BucketSums,
}

impl Timeline {
    /// The timeline of a log, in at most `buckets` buckets. Windows are preferred if any exist, as
    /// they cover the whole run; if the samples cover it too (`samples_complete`), those are, as
    /// they are finer.
    pub fn from_log(log: &LogContents, samples_complete: bool, buckets: usize) -> Timeline {
        if samples_complete || log.windows.is_empty() {
            Timeline::of_samples(&log.samples, buckets)
        } else {
            Timeline::of_windows(&log.windows, buckets)
        }
    }

    /// The timeline of samples, each at its due time. O(samples + buckets).
    pub fn of_samples(samples: &[Sample], buckets: usize) -> Timeline {
        let point = |sample: &Sample| {
            let latency = sample.latency();
            let sums =
                BucketSums { count: 1, min: latency, max: latency, sum: i128::from(latency.ns()) };
            TimelinePoint { at: sample.due, sums }
        };
        sum_buckets(|| samples.iter().map(point), buckets)
    }

    /// The timeline of windows, each at its start; empty windows are dropped. O(windows + buckets).
    pub fn of_windows(windows: &[SampleWindow], buckets: usize) -> Timeline {
        let point = |w: &SampleWindow| {
            let sums =
                BucketSums { count: w.count, min: w.min, max: w.max, sum: i128::from(w.sum.ns()) };
            TimelinePoint { at: w.start, sums }
        };
        sum_buckets(|| windows.iter().filter(|w| w.count > 0).map(point), buckets)
    }
}

/// Two passes: first the extent of time, then the points by bucket. A damaged log may have any
/// order of instants.
fn sum_buckets<I: Iterator<Item = TimelinePoint>>(
    points: impl Fn() -> I,
    buckets: usize,
) -> Timeline {
    let first = points().map(|p| p.at.ns()).min();
    let last = points().map(|p| p.at.ns()).max();
    let (Some(first), Some(last), true) = (first, last, buckets > 0) else {
        return Timeline::default();
    };
    let span = i128::from(last) - i128::from(first) + 1;
    let width = (span + buckets as i128 - 1) / buckets as i128;
    let mut steps: Vec<Option<BucketSums>> = vec![None; buckets];
    for TimelinePoint { at, sums } in points() {
        let place = ((i128::from(at.ns()) - i128::from(first)) / width) as usize;
        let step = &mut steps[place];
        *step = Some(step.map_or(sums, |s| s.merge(&sums)));
    }
    let start = |place: usize| ClockNs((i128::from(first) + place as i128 * width) as i64);
    let filled = steps
        .into_iter()
        .enumerate()
        .filter_map(|(place, sums)| Some(sums?.to_bucket(start(place))));
    Timeline { buckets: filled.collect(), width: Nanos(i64::try_from(width).unwrap_or(i64::MAX)) }
}

impl BucketSums {
    fn merge(&self, more: &BucketSums) -> BucketSums {
        BucketSums {
            count: self.count.saturating_add(more.count),
            min: self.min.min(more.min),
            max: self.max.max(more.max),
            sum: self.sum + more.sum,
        }
    }
    fn to_bucket(self, start: ClockNs) -> Bucket {
        Bucket {
            start,
            count: self.count,
            min: self.min,
            mean: self.sum as f64 / self.count as f64,
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(points: &[(i64, i64)]) -> Vec<Sample> {
        let sample = |(k, (due, latency)): (usize, &(i64, i64))| Sample {
            seq: k as u64,
            due: ClockNs(*due),
            woke: ClockNs(due.saturating_add(*latency)),
            cpu: 0,
        };
        points.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn buckets_have_equal_width_and_empty_ones_are_omitted() {
        let line = Timeline::of_samples(&samples(&[(0, 5), (10, 7), (39, 1), (11, 9)]), 4);
        assert_eq!(line.width, Nanos(10));
        let got: Vec<_> = line
            .buckets
            .iter()
            .map(|b| (b.start.ns(), b.count, b.min.ns(), b.mean, b.max.ns()))
            .collect();
        assert_eq!(got, [(0, 1, 5, 5.0, 5), (10, 2, 7, 8.0, 9), (30, 1, 1, 1.0, 1)]);
    }

    #[test]
    fn a_timeline_without_samples_or_buckets_is_empty() {
        assert_eq!(Timeline::of_samples(&[], 10), Timeline::default());
        assert_eq!(Timeline::of_samples(&samples(&[(0, 5)]), 0), Timeline::default());
    }

    proptest! {
        #[test]
        fn no_sample_is_lost_and_extremes_stay(
            points in proptest::collection::vec((any::<i64>(), -1_000i64..1_000_000), 1..200),
            buckets in 1usize..50,
        ) {
            let samples = samples(&points);
            let line = Timeline::of_samples(&samples, buckets);
            prop_assert!(line.buckets.len() <= buckets);
            prop_assert_eq!(
                line.buckets.iter().map(|b| b.count).sum::<u64>(),
                samples.len() as u64
            );
            prop_assert_eq!(
                line.buckets.iter().map(|b| b.max).max(),
                samples.iter().map(Sample::latency).max()
            );
            prop_assert_eq!(
                line.buckets.iter().map(|b| b.min).min(),
                samples.iter().map(Sample::latency).min()
            );
            let sum: f64 = line.buckets.iter().map(|b| b.mean * b.count as f64).sum();
            let exact: i64 = samples.iter().map(|s| s.latency().ns()).sum();
            prop_assert!((sum - exact as f64).abs() <= 1e-6 * exact.abs().max(1) as f64);
        }
    }
}
