//! A histogram as a curve: bins from the exact histogram, and beyond its range from the histogram
//! of the whole, so that no outlier is missing. Curves with too many bins for a page are made
//! coarser in their body and stay exact in their tail.

use punctual_core::SeriesData;
use serde::Serialize;

/// A non-empty bin: `count` samples in `[low, low + width)`, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The smallest latency in it.
    pub low: i64,
    /// Its width; at least 1.
    pub width: i64,
    /// Samples in it; at least 1.
    pub count: u64,
}

/// The non-empty bins of a series, ascending.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The width of the bins of the exact range in ns, as measured.
    pub resolution: i64,
    /// Their width in the body of the curve after reduction.
    pub body_width: i64,
    pub bins: Vec<Bin>,
    /// Samples with negative latency: in no bin.
    pub negative: u64,
}

/// Bins of one width for JavaScript: `[width, [step, count, step, count, …]]`; steps are the
/// distances from `low / width` of the previous bin (first bin: from 0).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct BinRun(pub i64, pub Vec<u64>);

impl Curve {
    pub(crate) fn from_data(data: &SeriesData) -> Curve {
        let width = data.exact.resolution.ns();
        let exact =
            data.exact.occupied_bins().map(|(low, count)| Bin { low: low.ns(), width, count });
        let mut bins: Vec<Bin> = exact.collect();
        bins.extend(bins_beyond_range(data));
        Curve { resolution: width, body_width: width, bins, negative: data.exact.below }
    }

    /// About `limit` bins at most: the upper half of that number is unchanged, bins below are
    /// merged into wider ones. The total is unchanged; a bin with one sample is still a bin with at
    /// least one.
    pub(crate) fn reduce_to(&self, limit: usize) -> Curve {
        let limit = limit.max(8);
        if self.bins.len() <= limit {
            return self.clone();
        }
        let (body, tail) = self.bins.split_at(self.bins.len() - limit / 2);
        let widths =
            (0..).flat_map(|decade| [2, 5, 10].map(|step| step * 10i64.saturating_pow(decade)));
        let candidates = widths.map(|factor| self.resolution.saturating_mul(factor));
        let merged = candidates
            .map(|width| (width, widen_bins(body, width)))
            .find(|(_, bins)| bins.len() <= limit / 2);
        let (body_width, mut bins) = merged.unwrap_or((i64::MAX, widen_bins(body, i64::MAX)));
        bins.extend(tail);
        Curve { resolution: self.resolution, body_width, bins, negative: self.negative }
    }

    pub(crate) fn to_runs(&self) -> Vec<BinRun> {
        let mut runs = Vec::new();
        for bins in self.bins.chunk_by(|a, b| a.width == b.width) {
            let width = bins[0].width;
            let mut flat = Vec::with_capacity(bins.len() * 2);
            let mut last = 0;
            for bin in bins {
                let place = bin.low / width;
                flat.push(place.saturating_sub(last).max(0) as u64);
                flat.push(bin.count);
                last = place;
            }
            runs.push(BinRun(width, flat));
        }
        runs
    }
}

/// The bins beyond the exact range, from the histogram of the whole (each within 0.1 %): its upper
/// bins, with as many samples as the exact histogram counted above its range.
fn bins_beyond_range(data: &SeriesData) -> Vec<Bin> {
    let mut missing = data.exact.above;
    if missing == 0 {
        return Vec::new();
    }
    let end = data.exact.upper_end().ns().max(0) as u64;
    let upper = data.whole.iter_recorded().filter(|step| step.value_iterated_to() >= end);
    let mut bins: Vec<Bin> = upper
        .map(|step| {
            let value = step.value_iterated_to();
            let (low, width) =
                (data.whole.lowest_equivalent(value), data.whole.equivalent_range(value));
            Bin { low: low as i64, width: width.max(1) as i64, count: step.count_at_value() }
        })
        .collect();
    for bin in bins.iter_mut().rev() {
        bin.count = bin.count.min(missing);
        missing -= bin.count;
    }
    bins.retain(|bin| bin.count > 0);
    bins
}

/// The same samples in bins of `width`.
pub(crate) fn widen_bins(bins: &[Bin], width: i64) -> Vec<Bin> {
    let mut wide: Vec<Bin> = Vec::new();
    for bin in bins {
        let low = bin.low.div_euclid(width) * width;
        match wide.last_mut().filter(|last| last.low == low) {
            Some(last) => last.count = last.count.saturating_add(bin.count),
            None => wide.push(Bin { low, width: width.max(bin.width), count: bin.count }),
        }
    }
    wide
}

/// The sum of several curves.
pub(crate) fn merge_curves<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Curve {
    let mut sum = Curve { resolution: 1, body_width: 1, bins: Vec::new(), negative: 0 };
    for curve in curves {
        sum.resolution = sum.resolution.max(curve.resolution);
        sum.body_width = sum.body_width.max(curve.body_width);
        sum.negative = sum.negative.saturating_add(curve.negative);
        sum.bins.extend(&curve.bins);
    }
    sum.bins.sort_unstable_by_key(|bin| (bin.low, bin.width));
    sum.bins = widen_bins(&sum.bins, sum.body_width);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::{ClockNs, Nanos, Sample, SeriesShape};

    fn data(latencies: impl IntoIterator<Item = i64>, range: i64, resolution: i64) -> SeriesData {
        let shape =
            SeriesShape { range: Nanos(range), resolution: Nanos(resolution), period: None };
        let mut data = SeriesData::new(shape);
        for (seq, latency) in latencies.into_iter().enumerate() {
            data.record_sample(
                &Sample { seq: seq as u64, due: ClockNs(0), woke: ClockNs(latency), cpu: 0 },
                0,
            );
        }
        data
    }

    #[test]
    fn outliers_beyond_the_range_are_on_the_curve() {
        let curve = Curve::from_data(&data([5_000, 5_100, 99_999, 6_300_000, -3], 50_000, 1_000));
        let exact = Bin { low: 5_000, width: 1_000, count: 2 };
        assert_eq!(curve.bins[0], exact);
        assert_eq!(curve.bins.len(), 3);
        assert!(
            curve.bins[2].low <= 6_300_000 && 6_300_000 < curve.bins[2].low + curve.bins[2].width
        );
        assert_eq!((curve.bins[1].count, curve.bins[2].count, curve.negative), (1, 1, 1));
    }

    #[test]
    fn a_curve_is_written_as_steps() {
        let curve = Curve::from_data(&data([5_000, 5_100, 9_000, 12_000], 50_000, 1_000));
        assert_eq!(curve.to_runs(), [BinRun(1_000, vec![5, 2, 4, 1, 3, 1])]);
    }

    proptest! {
        #[test]
        fn a_reduced_curve_keeps_all_samples_and_the_tail(
            latencies in proptest::collection::vec(-10i64..3_000_000, 1..400),
            limit in 1usize..200,
        ) {
            let full = Curve::from_data(&data(latencies.iter().copied(), 1_000_000, 7));
            let total =
                |curve: &Curve| curve.bins.iter().map(|b| b.count).sum::<u64>() + curve.negative;
            prop_assert_eq!(total(&full), latencies.len() as u64);
            let reduced = full.reduce_to(limit);
            prop_assert_eq!(total(&reduced), latencies.len() as u64);
            prop_assert!(reduced.bins.len() <= limit.max(8));
            prop_assert_eq!(reduced.bins.last(), full.bins.last());
            prop_assert!(reduced.bins.is_sorted_by_key(|b| b.low));
        }
    }
}
