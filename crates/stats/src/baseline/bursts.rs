//! The similarity of consecutive runs.
//!
//! If long latencies come in bursts, a few consecutive runs are high by chance more often than in
//! random order. What matters is whether *high* runs follow one another, so runs are scored by
//! their exceedance (Savage, 1956: the mean of exponential order statistics), in which medium ones
//! hardly count.

/// The maximum distance of runs that are assumed to be related.
const LAGS: usize = 4;

/// The factor by which bursts in these runs widen the sum of `window` runs: its standard deviation
/// over that of as many independent ones (Newey and West, 1987), 1 at least.
pub(crate) fn burst_factor(values: &[Option<f64>], window: usize) -> f64 {
    let correlations = lag_correlations(&exceedance_scores(values));
    let weighted_correlation =
        |(lag, r): (usize, &f64)| (1.0 - (lag + 1) as f64 / window as f64).max(0.0) * r;
    let covariances: f64 = correlations.iter().enumerate().map(weighted_correlation).sum();
    (1.0 + 2.0 * covariances).max(1.0).sqrt()
}

/// By distance from 1 on; all 0 if every run is the same.
fn lag_correlations(scores: &[f64]) -> [f64; LAGS] {
    let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
    let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
    std::array::from_fn(|lag| {
        let pairs = scores.iter().zip(scores.iter().skip(lag + 1));
        let together: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
        if squares > 1e-9 { together / squares } else { 0.0 }
    })
}

/// The score of each run with a value, in order; equal values share the mean rank.
fn exceedance_scores(values: &[Option<f64>]) -> Vec<f64> {
    let finite_values: Vec<f64> =
        values.iter().copied().flatten().filter(|v| v.is_finite()).collect();
    let mut sorted = finite_values.clone();
    sorted.sort_by(f64::total_cmp);
    let rank_scale = sorted.len() as f64 + 1.0;
    let score = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let upto = sorted.partition_point(|other| other <= value);
        -(1.0 - (below + upto + 1) as f64 / 2.0 / rank_scale).ln()
    };
    finite_values.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u32>, window: usize) -> f64 {
        let values: Vec<_> = values.into_iter().map(|value| Some(f64::from(value))).collect();
        burst_factor(&values, window)
    }

    #[test]
    fn high_runs_in_a_row_widen_their_sum() {
        let in_a_row = (0..60).map(|run| if run % 20 < 5 { 100 } else { run % 7 });
        let apart = (0..60).map(|run| if run % 4 == 0 { 100 } else { run % 7 });
        assert!(of(in_a_row.clone(), 5) > 1.3, "{}", of(in_a_row, 5));
        assert_eq!(of(apart, 5), 1.0);
    }

    #[test]
    fn single_runs_and_equal_values_are_not_widened() {
        assert_eq!(of((0..60).map(|run| run % 30), 1), 1.0);
        assert_eq!((of([7; 60], 5), of([], 5), of([1], 5)), (1.0, 1.0, 1.0));
    }

    /// Bursts of low runs give no reason to expect high ones.
    #[test]
    fn low_runs_in_a_row_count_little() {
        let low = (0..60u32).map(|run| if run % 20 < 5 { 0 } else { 50 + run * 17 % 31 });
        let high = (0..60u32).map(|run| if run % 20 < 5 { 100 } else { 50 + run * 17 % 31 });
        assert!(of(low.clone(), 5) < of(high, 5), "{}", of(low, 5));
    }

    #[test]
    fn correlated_runs_widen_a_sum_by_newey_west() {
        // Pairs of equal runs: the correlation at a distance of 1 is about 1/2, at others about 0.
        let pairs = (0..400u32).map(|run| (run / 2).wrapping_mul(0x9e37_79b9) >> 8);
        let widened = of(pairs, 2);
        // NW: 1 + 2 * (1 - 1/2) * 1/2 times the variance of two independent ones.
        assert!((widened - 1.5f64.sqrt()).abs() < 0.1, "{widened}");
    }
}
