//! The exact histogram: equal bins from zero to a stated range, and counts of values outside of it.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Bin `k` counts latencies in `[k·resolution, (k+1)·resolution)`. Nothing is lost: latencies
/// outside of the bins are counted separately.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinearHistogram {
    /// The width of a bin; at least 1 ns.
    pub resolution: Nanos,
    /// The counts, from latency 0 upwards.
    pub bins: Vec<u64>,
    /// Latencies beyond the last bin.
    pub above: u64,
    pub below: u64,
}

impl LinearHistogram {
    /// Bins from 0 up to and including the one that contains `range`.
    pub fn new(range: Nanos, resolution: Nanos) -> LinearHistogram {
        let resolution = Nanos(resolution.ns().max(1));
        let bins = vec![0; (range.ns().max(0) / resolution.ns()) as usize + 1];
        LinearHistogram { resolution, bins, above: 0, below: 0 }
    }

    pub fn record(&mut self, latency: Nanos) {
        self.record_n(latency, 1);
    }

    /// Counts `n` samples of one latency.
    pub fn record_n(&mut self, latency: Nanos, n: u64) {
        if latency.ns() < 0 {
            self.below += n;
            return;
        }
        match self.bins.get_mut((latency.ns() / self.resolution.ns()) as usize) {
            Some(bin) => *bin += n,
            None => self.above += n,
        }
    }

    pub fn inside_count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// All samples, inside and outside.
    pub fn total_count(&self) -> u64 {
        self.inside_count() + self.above + self.below
    }

    /// The lower edges and counts of the non-empty bins, ascending.
    pub fn occupied_bins(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let width = self.resolution;
        self.bins
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(move |(k, n)| (width * k as i64, *n))
    }

    /// The exclusive upper end of the last bin.
    pub fn upper_end(&self) -> Nanos {
        self.resolution * self.bins.len() as i64
    }

    /// The lower edges of the fullest bins: usually one; several in a tie; none if all are empty.
    pub fn modal_bins(&self) -> Vec<Nanos> {
        let fullest = self.bins.iter().copied().max().filter(|n| *n > 0);
        self.occupied_bins().filter(|(_, n)| Some(*n) == fullest).map(|(edge, _)| edge).collect()
    }

    /// Adds another histogram of the same resolution; counts beyond this one's range go to `above`.
    pub fn add(&mut self, other: &LinearHistogram) {
        other.occupied_bins().for_each(|(edge, n)| self.record_n(edge, n));
        self.above += other.above;
        self.below += other.below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_histogram_counts_latencies_outside_of_its_range() {
        let mut h = LinearHistogram::new(Nanos::from_micros(3), Nanos::MICRO);
        [0, 999, 1_000, 3_999, 4_000, -1].into_iter().for_each(|ns| h.record(Nanos(ns)));
        assert_eq!((h.bins.clone(), h.above, h.below), (vec![2, 1, 0, 1], 1, 1));
        assert_eq!(h.modal_bins(), [Nanos::ZERO]);
    }

    proptest! {
        #[test]
        fn a_histogram_counts_every_latency(
            latencies in proptest::collection::vec(-10i64..10_000, 0..200),
            res in 1i64..500,
            range in 0i64..5_000,
        ) {
            let mut h = LinearHistogram::new(Nanos(range), Nanos(res));
            latencies.iter().for_each(|ns| h.record(Nanos(*ns)));
            prop_assert_eq!(h.total_count(), latencies.len() as u64);
            prop_assert_eq!(
                h.inside_count(),
                latencies.iter().filter(|ns| **ns >= 0 && Nanos(**ns) < h.upper_end())
                    .count() as u64
            );
        }
    }
}
