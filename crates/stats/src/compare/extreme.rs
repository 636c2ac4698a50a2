//! The difference of the maxima, without a model of the tail.
//!
//! If both sides are alike, each burst among the longest comes from a side with probability
//! proportional to its samples. So the probability that the `k` longest all come from A is
//! (n_A/N)^k: Rosenbaum's test (Ann. Math. Statist. 25, 1954). The shifts between the sides that it
//! does not reject are an interval; its ends are order statistics. With several runs per side the
//! runs' maxima are compared by Student's t, as runs differ by more than their samples.

use super::quantile::Interval;
use super::run::SideRuns;
use crate::dispersion::mean;
use crate::effect::EffectEstimate;
use crate::probability::binomial_at_least;

/// The maxima of two sides.
#[derive(Debug)]
pub(crate) enum Extremes<'a> {
    /// One run per side: the peaks of each, the longest first, and the samples of each.
    Peaks([&'a [i64]; 2], [f64; 2]),
    /// Several runs per side: the maximum of each.
    Maxima([Vec<f64>; 2]),
    /// One maximum per side and no other sample: shown without an interval.
    Single([f64; 2]),
}

impl Extremes<'_> {
    /// The maxima of two sides; `None` if one has no samples.
    pub(crate) fn from_sides<'a>(a: &'a SideRuns, b: &'a SideRuns) -> Option<Extremes<'a>> {
        if let ([a_run], [b_run]) = (a.runs.as_slice(), b.runs.as_slice()) {
            let both_have_peaks = !a_run.peaks.is_empty() && !b_run.peaks.is_empty();
            let counts = [a.measured_count() as f64, b.measured_count() as f64];
            let single = || Some(Extremes::Single([a_run.max? as f64, b_run.max? as f64]));
            let peaks = || Extremes::Peaks([&a_run.peaks, &b_run.peaks], counts);
            return both_have_peaks.then(peaks).or_else(single);
        }
        let maxima = [a, b]
            .map(|side| side.runs.iter().filter_map(|run| run.max).map(|max| max as f64).collect());
        let both_have_maxima = maxima.iter().all(|m: &Vec<f64>| !m.is_empty());
        both_have_maxima.then_some(Extremes::Maxima(maxima))
    }

    /// The displayed figures: the longest sample, or the mean of the runs' longest.
    pub(crate) fn shown_values(&self) -> [f64; 2] {
        match self {
            Extremes::Single(maxima) => *maxima,
            Extremes::Peaks(peaks, _) => {
                peaks.map(|peaks| peaks.first().map_or(0.0, |max| *max as f64))
            }
            Extremes::Maxima([a, b]) => [mean(a), mean(b)],
        }
    }

    /// The interval of `b − a` that misses with total probability `error`.
    pub(crate) fn difference_interval(&self, error: f64) -> Interval {
        match self {
            Extremes::Peaks(peaks, counts) => {
                let [a, b] = peaks.map(|p| p.iter().map(|peak| *peak as f64).collect::<Vec<_>>());
                of_peaks([&a, &b], *counts, error)
            }
            Extremes::Maxima(maxima) => of_maxima(maxima, error),
            Extremes::Single(_) => Interval::UNBOUNDED,
        }
    }

    /// Whether such data could show a difference at this error rate.
    pub(crate) fn can_decide(&self, error: f64) -> bool {
        match self {
            Extremes::Single(_) => false,
            Extremes::Maxima(maxima) => maxima.iter().map(Vec::len).sum::<usize>() > 2,
            Extremes::Peaks(peaks, [n_a, n_b]) => {
                let shares = [n_a / (n_a + n_b), n_b / (n_a + n_b)];
                let mut peaks_and_shares = peaks.iter().zip(shares);
                peaks_and_shares.any(|(peaks, share)| peaks.len() >= rank_of(error, share))
            }
        }
    }

    /// The interval of `b / a`: the same test for a factor between the tails instead of a shift.
    /// `None` if a maximum is not above 0.
    pub(crate) fn ratio_interval(&self, error: f64) -> Option<Interval> {
        let ln = |values: &[f64]| -> Option<Vec<f64>> {
            values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect()
        };
        let logs = match self {
            Extremes::Peaks([a, b], counts) => {
                let positive = |peaks: &[i64]| -> Vec<f64> {
                    peaks.iter().map_while(|p| (*p > 0).then(|| (*p as f64).ln())).collect()
                };
                let (a, b) = (positive(a), positive(b));
                (!a.is_empty() && !b.is_empty()).then(|| of_peaks([&a, &b], *counts, error))?
            }
            Extremes::Maxima([a, b]) => of_maxima(&[ln(a)?, ln(b)?], error),
            Extremes::Single(_) => return None,
        };
        Some(logs.exp())
    }

    /// The factor of data that would show that the longer side exceeds the other's maximum more
    /// often, if the observed rates are the true ones.
    pub fn more_data(&self, error: f64) -> Option<f64> {
        let Extremes::Peaks([a, b], [n_a, n_b]) = self else { return None };
        let (long, short, share) =
            if a[0] > b[0] { (a, b, n_a / (n_a + n_b)) } else { (b, a, n_b / (n_a + n_b)) };
        let beyond = long.iter().filter(|peak| **peak > short[0]).count();
        if beyond < 2 {
            return None;
        }
        // Conditional test of two Poisson rates: of all exceedances, too many come from one side.
        let is_significant = |times: &usize| {
            binomial_at_least((beyond * times) as u64, ((beyond + 1) * times) as u64, share)
                <= error / 2.0
        };
        (2..=200).find(is_significant).map(|times| times as f64)
    }
}

/// The number of peaks that all come from one side by chance with at most half the error.
fn rank_of(error: f64, share: f64) -> usize {
    ((error / 2.0).ln() / share.ln()).ceil().max(1.0) as usize
}

fn of_peaks([a, b]: [&[f64]; 2], [n_a, n_b]: [f64; 2], error: f64) -> Interval {
    let at = |peaks: &[f64], share: f64| peaks.get(rank_of(error, share) - 1).copied();
    let (k_a, k_b) = (at(a, n_a / (n_a + n_b)), at(b, n_b / (n_a + n_b)));
    let (max_a, max_b) = (a[0], b[0]);
    Interval {
        low: k_b.map_or(f64::NEG_INFINITY, |peak| peak - max_a),
        high: k_a.map_or(f64::INFINITY, |peak| max_b - peak),
    }
}

fn of_maxima([a, b]: &[Vec<f64>; 2], error: f64) -> Interval {
    let Some(estimate) = EffectEstimate::of_alike_sides([a, b]) else { return Interval::UNBOUNDED };
    let [low, high] = estimate.confidence_interval(error);
    Interval { low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_of_six_are_no_chance() {
        // 2·0.5^6 = 0.031: with as many samples on both sides, six peaks beyond the other's maximum
        // differ at 95 %.
        let from = |max: i64| (0..10).map(|k| (max - k) as f64).collect::<Vec<f64>>();
        let (a, b) = (from(100), from(94));
        let apart = of_peaks([&a, &b], [1e6, 1e6], 0.05);
        assert_eq!((apart.low, apart.high), (89.0 - 100.0, 94.0 - 95.0));
        let b = from(95);
        assert_eq!(of_peaks([&a, &b], [1e6, 1e6], 0.05).high, 0.0);
        assert_eq!(of_peaks([&a[..3], &b], [1e6, 1e6], 0.05).high, f64::INFINITY);
    }

    #[test]
    fn runs_are_compared_as_student_does() {
        // R 4.2.2: t.test(c(12, 15, 14), c(10, 9, 11), var.equal = TRUE): 95 % interval 0.7400366
        // to 6.5932968.
        let interval = of_maxima(&[vec![10.0, 9.0, 11.0], vec![12.0, 15.0, 14.0]], 0.05);
        assert!(
            (interval.low - 0.7400366).abs() < 1e-5 && (interval.high - 6.5932968).abs() < 1e-5,
            "{interval:?}"
        );
    }

    #[test]
    fn more_data_is_suggested_only_if_the_rates_differ() {
        let peaks = |a: &[i64], b: &[i64]| Extremes::Peaks([a, b], [1e5, 1e5]).more_data(0.05);
        assert_eq!(peaks(&[10, 9, 3], &[8, 2]), Some(14.0));
        assert_eq!(peaks(&[10, 3], &[8, 2]), None);
    }
}
