//! An overall histogram, prepared for queries by rank.

use crate::percentiles;
use hdrhistogram::Histogram;
use punctual_core::series::HDR_MAX;
use punctual_core::{Nanos, SeriesData};

/// The occupied buckets of an HDR histogram, ascending. A value by rank is known to the width of
/// its bucket (0.1 %).
#[derive(Clone, Debug)]
pub struct Distribution {
    buckets: Vec<BucketStep>,
}

/// One occupied bucket.
#[derive(Clone, Copy, Debug)]
struct BucketStep {
    low: Nanos,
    high: Nanos,
    /// Samples in this bucket and all below.
    cumulative: u64,
}

impl Distribution {
    /// The distribution of the samples as measured.
    pub fn from_series(data: &SeriesData) -> Distribution {
        Distribution::from_histogram(&data.whole, data)
    }

    /// The distribution corrected for coordinated omission; `None` if it does not differ.
    pub fn from_corrected(data: &SeriesData) -> Option<Distribution> {
        data.corrected.as_ref().map(|hdr| Distribution::from_histogram(hdr, data))
    }

    /// Limits buckets to the exact minimum and maximum. Buckets that also hold values outside of
    /// their range (0 for negative latencies, [`HDR_MAX`] for all beyond it) extend to those.
    fn from_histogram(hdr: &Histogram<u64>, data: &SeriesData) -> Distribution {
        let (min, max) = (data.min.unwrap_or(Nanos::ZERO), data.max.unwrap_or(Nanos(i64::MAX)));
        let mut cumulative = 0u64;
        let buckets = hdr.iter_recorded().map(|step| {
            let value = step.value_iterated_to();
            cumulative = cumulative.saturating_add(step.count_at_value());
            let low = if value == 0 {
                min.min(Nanos::ZERO)
            } else {
                saturating_nanos(hdr.lowest_equivalent(value))
            };
            let high = if value >= HDR_MAX {
                max
            } else {
                saturating_nanos(hdr.highest_equivalent(value))
            };
            // The corrected view holds values below the minimum, so only the upper end is limited
            // for both.
            BucketStep { low: low.min(max), high: high.min(max), cumulative }
        });
        let mut buckets: Vec<BucketStep> = buckets.collect();
        if let Some(first) =
            buckets.first_mut().filter(|first| first.low < min && min <= first.high)
        {
            first.low = min;
        }
        Distribution { buckets }
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |last| last.cumulative)
    }

    /// The bounds of the latency at this rank (from 1); `None` if no such rank exists.
    pub(crate) fn at_rank(&self, rank: u64) -> Option<(Nanos, Nanos)> {
        let place = self.buckets.partition_point(|step| step.cumulative < rank.max(1));
        self.buckets.get(place).map(|step| (step.low, step.high))
    }

    /// The number of samples above this bound, without those in its bucket.
    pub(crate) fn count_above(&self, bound: Nanos) -> u64 {
        let place = self.buckets.partition_point(|step| step.low <= bound);
        let below = place.checked_sub(1).and_then(|last| self.buckets.get(last));
        self.count() - below.map_or(0, |step| step.cumulative)
    }

    /// The percentile: the upper end of its bucket, as HdrHistogram defines it, so within 0.1 % and
    /// never too small. `None` without samples, and if the latency is beyond the range of the
    /// histogram ([`HDR_MAX`]).
    pub fn percentile(&self, percentile: f64) -> Option<Nanos> {
        let (low, high) =
            self.at_rank(percentiles::percentile_rank(percentile, self.count()).max(1))?;
        let beyond = saturating_nanos(HDR_MAX);
        (low < beyond || high == low).then_some(high)
    }

    /// The smallest distance between occupied buckets, if it is wide enough, relative to the
    /// buckets, to show the resolution of the clock (or of the tool that wrote the figures). `None`
    /// otherwise.
    pub fn clock_step(&self) -> Option<Nanos> {
        // With fewer samples or values, gaps are random.
        const SAMPLES: u64 = 1_000;
        const VALUES: usize = 8;
        if self.count() < SAMPLES || self.buckets.len() < VALUES {
            return None;
        }
        let gaps = || {
            self.buckets
                .windows(2)
                .map(|pair| (pair[1].low - pair[0].low, pair[0].high - pair[0].low))
        };
        let smallest_gap = gaps().map(|(gap, _)| gap).min()?;
        // Buckets blur the distance: of the gaps near the minimum, the one between the narrowest
        // buckets is the best estimate.
        let near = gaps().filter(|(gap, _)| {
            gap.ns() <= smallest_gap.ns().saturating_add(smallest_gap.ns() / 20)
        });
        let (gap, width) = near.min_by_key(|(gap, width)| (*width, *gap))?;
        (gap.ns() >= 4 * (width.ns() + 1)).then_some(gap)
    }

    /// The occupied buckets, ascending: lower end, upper end, samples.
    pub fn occupied_buckets(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let before = std::iter::once(0).chain(self.buckets.iter().map(|step| step.cumulative));
        self.buckets
            .iter()
            .zip(before)
            .map(|(step, before)| (step.low, step.high, step.cumulative - before))
    }

    /// The points of the curve "latency by share of samples": for each occupied bucket its upper
    /// end and the samples up to it.
    pub fn cumulative_curve(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.buckets.iter().map(|step| (step.high, step.cumulative))
    }
}

fn saturating_nanos(value: u64) -> Nanos {
    Nanos(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::series_data;
    use proptest::prelude::*;

    #[test]
    fn no_samples_have_no_percentiles() {
        let nothing = Distribution::from_series(&series_data(&[]));
        assert_eq!(
            (nothing.count(), nothing.percentile(50.0), nothing.at_rank(1)),
            (0, None, None)
        );
    }

    #[test]
    fn percentiles_beyond_the_histogram_range_are_absent() {
        let absurd = Distribution::from_series(&series_data(&[
            5,
            1_000_000_000_000_000_000,
            2_000_000_000_000_000_000,
        ]));
        assert_eq!(absurd.percentile(33.0), Some(Nanos(5)));
        assert_eq!(absurd.percentile(50.0), None);
        assert_eq!(
            absurd.at_rank(2),
            Some((Nanos(HDR_MAX as i64), Nanos(2_000_000_000_000_000_000)))
        );
    }

    #[test]
    fn the_step_of_a_coarse_clock_is_detected() {
        let coarse: Vec<i64> = (0..2_000).map(|k| k % 13 * 1_000).collect();
        assert_eq!(
            Distribution::from_series(&series_data(&coarse)).clock_step(),
            Some(Nanos(1_000))
        );
        let fine: Vec<i64> = (0..2_000).map(|k| k * 7 % 20_000).collect();
        assert_eq!(Distribution::from_series(&series_data(&fine)).clock_step(), None);
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_sorted_samples(
            mut latencies in proptest::collection::vec(-1_000i64..100_000_000, 1..400),
            p in 0.001f64..99.999,
        ) {
            let distribution = Distribution::from_series(&series_data(&latencies));
            latencies.sort();
            let exact = latencies[percentiles::percentile_rank(p, latencies
                .len() as u64) as usize - 1];
            let got = distribution.percentile(p).unwrap().ns();
            // Negative latencies are counted as 0.
            prop_assert!(got >= exact.max(0) || got >= exact, "{} for {}", got, exact);
            prop_assert!(
                (got - exact.max(0)) as f64 <= exact.max(0) as f64 / 1_000.0,
                "{} for {}",
                got,
                exact
            );
        }
    }
}
