//! Many tests with one family-wise error rate: Holm, "A simple sequentially rejective multiple test
//! procedure", Scand. J. Statist. 6 (1979).

use super::series::ERROR;
use punctual_bundle::comparison::{Difference, SeriesComparison};

/// Adjusted probabilities in the given order: each is significant if it is below the common rate.
pub(crate) fn adjust_holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut so_far: f64 = 0.0;
    for (done, k) in order.into_iter().enumerate() {
        so_far = so_far.max((p.len() - done) as f64 * p[k]).min(1.0);
        adjusted[k] = so_far;
    }
    adjusted
}

/// Adjusts all tests of a comparison and decides each figure. Returns the number of tests.
pub fn decide_differences(series: &mut [SeriesComparison]) -> u64 {
    let of_metrics = series.iter().flat_map(|s| s.metrics.iter().filter_map(|m| m.p));
    let of_tests = series.iter().flat_map(|s| s.distribution.iter().filter_map(|t| t.p));
    let p: Vec<f64> = of_metrics.chain(of_tests).collect();
    let mut adjusted = adjust_holm(&p).into_iter();
    for metric in series.iter_mut().flat_map(|s| &mut s.metrics).filter(|m| m.p.is_some()) {
        metric.p_adjusted = adjusted.next();
        let seen_difference = metric.difference.unwrap_or(0.0);
        if metric.p_adjusted.is_some_and(|p| p <= ERROR) {
            metric.verdict =
                if seen_difference < 0.0 { Difference::Lower } else { Difference::Higher };
        }
    }
    for test in series.iter_mut().flat_map(|s| &mut s.distribution).filter(|t| t.p.is_some()) {
        test.p_adjusted = adjusted.next();
    }
    p.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R 4.2.2: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
    #[test]
    fn holm_is_as_in_r() {
        let adjusted = adjust_holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-12), "{adjusted:?}");
        assert!(adjust_holm(&[]).is_empty());
    }
}
