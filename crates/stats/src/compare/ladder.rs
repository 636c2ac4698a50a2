//! Samples by rank, from single ones or from histograms.

use crate::Distribution;

/// The number of points of a curve per power of ten.
const CURVE: f64 = 16.0;

/// Distinct values, ascending, each with the number of samples up to it.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

#[derive(Clone, Copy, Debug)]
struct Rung {
    low: i64,
    high: i64,
    cumulative: u64,
}

impl Ladder {
    /// From samples in any order.
    pub fn of_samples(samples: &[i64]) -> Ladder {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let mut rungs = Vec::new();
        let mut cumulative = 0;
        for run in sorted.chunk_by(|a, b| a == b) {
            cumulative += run.len() as u64;
            rungs.push(Rung { low: run[0], high: run[0], cumulative });
        }
        Ladder { rungs }
    }

    /// From a histogram: values are known to the width of their bucket.
    pub(crate) fn of_distribution(distribution: &Distribution) -> Ladder {
        let mut cumulative = 0u64;
        let rungs = distribution.occupied_buckets().map(|(low, high, count)| {
            cumulative = cumulative.saturating_add(count);
            Rung { low: low.ns(), high: high.ns(), cumulative }
        });
        Ladder { rungs: rungs.collect() }
    }

    pub fn merge(all: &[&Ladder]) -> Ladder {
        let mut parts: Vec<(i64, i64, u64)> =
            all.iter().flat_map(|ladder| ladder.rung_parts()).collect();
        // Consecutive sorted runs, which a stable sort merges.
        parts.sort_by_key(|(low, high, _)| (*high, *low));
        let mut cumulative = 0u64;
        let rungs = parts.into_iter().map(|(low, high, count)| {
            cumulative = cumulative.saturating_add(count);
            Rung { low, high, cumulative }
        });
        Ladder { rungs: rungs.collect() }
    }

    fn rung_parts(&self) -> impl Iterator<Item = (i64, i64, u64)> + '_ {
        let before = std::iter::once(0).chain(self.rungs.iter().map(|rung| rung.cumulative));
        self.rungs
            .iter()
            .zip(before)
            .map(|(rung, before)| (rung.low, rung.high, rung.cumulative - before))
    }

    /// The distinct values (upper ends of buckets), ascending, with their samples.
    pub(crate) fn distinct_values(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.rung_parts().map(|(_, high, count)| (high, count))
    }

    pub fn count(&self) -> u64 {
        self.rungs.last().map_or(0, |rung| rung.cumulative)
    }

    /// The bounds of the sample with this rank, from 1 upwards.
    pub(crate) fn at_rank(&self, rank: u64) -> Option<(i64, i64)> {
        let place = self.rungs.partition_point(|rung| rung.cumulative < rank.max(1));
        self.rungs.get(place).map(|rung| (rung.low, rung.high))
    }

    /// The value at this rank from the top, from 1: the upper end of its bucket.
    pub(crate) fn at_rank_from_top(&self, rank: u64) -> Option<i64> {
        let from_bottom = self.count().checked_sub(rank.max(1))? + 1;
        self.at_rank(from_bottom).map(|(_, high)| high)
    }

    /// The number of samples at or below a value, at the resolution of the buckets.
    pub(crate) fn at_or_below(&self, value: i64) -> u64 {
        let place = self.rungs.partition_point(|rung| rung.high <= value);
        place.checked_sub(1).map_or(0, |last| self.rungs[last].cumulative)
    }

    /// Latency by the share of longer samples, for a plot: [`CURVE`] points per power of ten, and
    /// the maximum with the share of one sample.
    pub(crate) fn tail_curve(&self) -> Vec<(f64, i64)> {
        let n = self.count();
        let Some((_, max)) = self.at_rank(n).filter(|_| n > 0) else { return Vec::new() };
        let shares = (0..).map(|k| 10f64.powf(-f64::from(k) / CURVE));
        let inner = shares.skip(1).take_while(|share| share * n as f64 > 1.0).filter_map(|share| {
            let rank = n - (share * n as f64).floor() as u64;
            Some((share, self.at_rank(rank.max(1))?.1))
        });
        let first = self.at_rank(1).map(|(low, _)| (1.0, low));
        first.into_iter().chain(inner).chain([(1.0 / n as f64, max)]).collect()
    }

    /// The share of samples above a value.
    pub(crate) fn share_above(&self, value: i64) -> f64 {
        let n = self.count();
        if n == 0 { 0.0 } else { (n - self.at_or_below(value)) as f64 / n as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_gives_the_ranks_of_sorted_samples() {
        let a = Ladder::of_samples(&[5, 1, 5, -3]);
        assert_eq!(
            (a.count(), a.at_rank(1), a.at_rank(3), a.at_rank(5)),
            (4, Some((-3, -3)), Some((5, 5)), None)
        );
        assert_eq!(
            (a.at_rank_from_top(1), a.at_rank_from_top(4), a.at_rank_from_top(5)),
            (Some(5), Some(-3), None)
        );
        assert_eq!((a.at_or_below(4), a.at_or_below(5), a.at_or_below(-9)), (2, 4, 0));
        let both = Ladder::merge(&[&a, &Ladder::of_samples(&[2])]);
        assert_eq!((both.count(), both.at_rank(3)), (5, Some((2, 2))));
        assert_eq!((Ladder::default().count(), Ladder::default().at_rank_from_top(1)), (0, None));
    }
}
