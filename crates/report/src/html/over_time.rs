//! Latency over time, beyond [`Timeline`]: coarser segments, and the position of zero.

use punctual_bundle::{PhaseMeta, SeriesMeta};
use punctual_core::{Clock, ClockNs, Nanos};
use punctual_stats::{Bucket, Timeline};

/// The source of a plot over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PlotSource {
    Samples,
    /// The one-second windows; not every sample was kept.
    Windows,
    /// The first samples that were kept, this many; the others exist only in the statistics.
    FirstSamples(u64),
    /// No data with a time was kept.
    #[default]
    Nothing,
}

/// The same timeline with at most `limit` segments: neighbours are merged.
pub(crate) fn reduce_timeline(line: &Timeline, limit: usize) -> Timeline {
    let (Some(first), Some(last)) = (line.buckets.first(), line.buckets.last()) else {
        return line.clone();
    };
    let width = i128::from(line.width.ns().max(1));
    let place =
        |bucket: &Bucket| (i128::from(bucket.start.ns()) - i128::from(first.start.ns())) / width;
    let factor = (place(last) / limit.max(1) as i128) + 1;
    if factor == 1 {
        return line.clone();
    }
    let join = |group: &[Bucket]| {
        let sum: f64 = group.iter().map(|b| b.mean * b.count as f64).sum();
        let count = group.iter().fold(0u64, |n, b| n.saturating_add(b.count));
        let start = i128::from(first.start.ns()) + place(&group[0]) / factor * factor * width;
        Bucket {
            start: ClockNs(start as i64),
            count,
            min: group.iter().map(|b| b.min).min().unwrap_or_default(),
            mean: sum / count.max(1) as f64,
            max: group.iter().map(|b| b.max).max().unwrap_or_default(),
        }
    };
    let groups = line.buckets.chunk_by(|a, b| place(a) / factor == place(b) / factor);
    Timeline {
        buckets: groups.map(join).collect(),
        width: line.width * i64::try_from(factor).unwrap_or(i64::MAX),
    }
}

/// The instant on the series' clock at which its phase began, if it is consistent with `due`, an
/// instant of the series. Since 2017 CLOCK_TAI is ahead of UTC by 37 s if the system was told so
/// (adjtimex(2)), else it equals UTC.
pub(crate) fn phase_start(phase: &PhaseMeta, meta: &SeriesMeta, due: ClockNs) -> Option<ClockNs> {
    let utc = i64::try_from(phase.started.as_nanosecond()).ok().map(ClockNs);
    let candidates = match meta.clock {
        Clock::Monotonic => vec![ClockNs(phase.started_monotonic)],
        Clock::Realtime => utc.into_iter().collect(),
        Clock::Tai => utc.map(|utc| vec![utc + Nanos::from_secs(37), utc]).unwrap_or_default(),
    };
    let longest =
        phase.duration.map_or(Nanos(i64::MAX), |duration| duration + Nanos::from_secs(60));
    let fits = |start: &ClockNs| (-Nanos::SECOND..=longest).contains(&(due - *start));
    candidates.into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::Sample;

    proptest! {
        #[test]
        fn joined_timeline_buckets_keep_count_and_extremes(
            samples in proptest::collection::vec((any::<i64>(), -1_000i64..1_000_000), 1..300),
            fine in 1usize..200,
            limit in 1usize..50,
        ) {
            let sample = |(due, latency): &(i64, i64)| Sample {
                seq: 0,
                due: ClockNs(*due),
                woke: ClockNs(due.saturating_add(*latency)),
                cpu: 0,
            };
            let samples: Vec<Sample> = samples.iter().map(sample).collect();
            let full = Timeline::of_samples(&samples, fine);
            let line = reduce_timeline(&full, limit);
            prop_assert!(line.buckets.len() <= limit);
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
            prop_assert!(line.buckets.is_sorted_by_key(|b| b.start));
        }
    }
}
