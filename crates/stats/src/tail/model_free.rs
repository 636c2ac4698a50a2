//! Results without a model: the share of a distribution that the longest of this many samples
//! bounds.
//!
//! If a sample exceeds a bound with probability p, none of n independent ones does with (1 − p)^n.
//! That is 5 % at p = 1 − 0.05^(1/n), about 3/n (the rule of three: Hanley and Lippman-Hand, JAMA
//! 249, 1983). So the maximum is above the q quantile with 95 % from n = ln 0.05 / ln q on.

use crate::cluster::extremal_index;
use crate::compare::run::ComparedRun;

pub const ERROR: f64 = 0.05;
/// Commonly requested quantiles.
const PERCENTILES: [(&str, f64); 5] =
    [("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999), ("99.999", 0.99999), ("99.9999", 0.999999)];
/// The number of longest samples that the extremal index is estimated from.
const LONGEST: u64 = 1_000;

/// The results that need no model.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelFreeTail {
    pub count: u64,
    /// Lost samples, which may have had any latency.
    pub lost: u64,
    pub overruns: u64,
    pub duration: Option<i64>,
    pub max: Option<i64>,
    /// The reciprocal of the mean number of long samples in a burst; `None` if the order of samples
    /// is unknown.
    pub extremal_index: Option<f64>,
    /// The effective sample size for the maximum; `None` if unknown.
    pub effective: Option<f64>,
    /// The upper bound of the probability that a sample exceeds the maximum, with `effective`
    /// samples, or `count` if that is unknown.
    pub beyond: Option<f64>,
    /// Bursts longer than the maximum occur at most once in this time.
    pub not_more_often_than: Option<f64>,
    /// The quantiles that the maximum bounds.
    pub quantiles: Vec<QuantileBound>,
}

/// Whether the maximum bounds a quantile from above.
#[derive(Clone, PartialEq, Debug)]
pub struct QuantileBound {
    /// The percentile as text: `99.999`.
    pub percentile: String,
    /// The number of independent samples needed.
    pub needed: u64,
    /// Whether that many exist.
    pub bounded: bool,
}

/// The number of independent samples from which their maximum bounds a quantile.
pub(crate) fn samples_to_bound(quantile: f64) -> u64 {
    (ERROR.ln() / quantile.ln()).ceil() as u64
}

/// The bounds of a run without a model.
pub fn bound_run(run: &ComparedRun) -> ModelFreeTail {
    let count = run.ladder.count().max(run.samples.len() as u64);
    let index = index(run);
    let effective = index.map(|index| index * count as f64);
    let trusted = effective.unwrap_or(count as f64);
    let has_samples = count > 0 && run.max.is_some();
    ModelFreeTail {
        count,
        lost: run.lost,
        overruns: run.overruns,
        duration: run.duration,
        max: run.max,
        extremal_index: index,
        effective,
        beyond: has_samples.then(|| -(ERROR.ln() / trusted.max(1.0)).exp_m1()),
        not_more_often_than: run
            .duration
            .filter(|d| has_samples && *d > 0)
            .map(|d| d as f64 / -ERROR.ln()),
        quantiles: PERCENTILES.map(|(name, q)| quantile_bound(name, q, trusted)).into(),
    }
}

fn quantile_bound(name: &str, quantile: f64, samples: f64) -> QuantileBound {
    let needed = samples_to_bound(quantile);
    QuantileBound { percentile: name.to_owned(), needed, bounded: samples >= needed as f64 }
}

/// The extremal index of the longest samples; `None` if their order is not fully known, or with too
/// few.
fn index(run: &ComparedRun) -> Option<f64> {
    let n = run.samples.len() as u64;
    if n < LONGEST || n != run.ladder.count() {
        return None;
    }
    let bound = run.ladder.at_rank_from_top((n / 100).min(LONGEST))?;
    let above = run.samples.iter().enumerate().filter(|(_, sample)| **sample > bound);
    Some(extremal_index(&above.map(|(k, _)| k as u64).collect::<Vec<u64>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_number_of_samples_for_a_quantile_bound_follows_the_formula() {
        let all: Vec<u64> = PERCENTILES.iter().map(|(_, q)| samples_to_bound(*q)).collect();
        assert_eq!(all, [299, 2_995, 29_956, 299_572, 2_995_731]);
    }

    #[test]
    fn bursts_reduce_the_effective_sample_size_of_a_maximum() {
        let mut random = Random::from_seed(41);
        let single: Vec<i64> =
            (0..30_000).map(|_| (-1e4 * random.next_unit().ln()) as i64).collect();
        let seen = bound_run(&ComparedRun::of_samples(single.clone()));
        assert!(
            seen.effective.unwrap() > 27_000.0
                && seen.quantiles[1].bounded
                && !seen.quantiles[3].bounded,
            "{seen:?}"
        );
        assert!((seen.beyond.unwrap() / (3.0 / seen.effective.unwrap()) - 1.0).abs() < 0.01);
        let bursts: Vec<i64> = single.iter().flat_map(|v| [*v; 5]).collect();
        assert!(bound_run(&ComparedRun::of_samples(bursts)).extremal_index.unwrap() < 0.3);
        assert_eq!(bound_run(&ComparedRun::of_samples(Vec::new())).beyond, None);
    }
}
