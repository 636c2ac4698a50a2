//! The variation of a share compared with that for independent samples: the design effect, from
//! contiguous blocks.
//!
//! Long latencies come in bursts, so the number of samples beyond a latency varies more than a
//! binomial count. The run is divided into few long blocks ("batch means": Schmeiser, "Batch Size
//! Effects in the Analysis of Simulation Output", Operations Research 1982, shows that 10 to 30
//! batches serve best); the ratio φ of the counts' variance to the binomial one divides the number
//! of samples (Kish, "Survey Sampling", 1965; quantiles: Woodruff, "Confidence Intervals for
//! Medians and Other Position Measures", JASA 1952).

pub const BLOCKS: usize = 24;
/// The minimum number of samples per block; shorter runs have fewer blocks.
const SHORTEST: usize = 50;
/// The minimum number of blocks: with fewer, their variance is meaningless.
const FEWEST: usize = 6;
/// The maximum accepted correlation of neighbouring blocks.
const STRONGEST: f64 = 0.8;

/// The spread of a share of samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    /// The ratio of its variance to that of independent samples.
    pub factor: f64,
    /// The degrees of freedom of that ratio; infinite if it is assumed.
    pub df: f64,
}

impl Spread {
    pub(crate) const INDEPENDENT: Spread = Spread { factor: 1.0, df: f64::INFINITY };
}

/// The length of a block for `n` samples; `None` if they are too few to divide.
pub(crate) fn block_length(n: usize) -> Option<usize> {
    let count = (n / SHORTEST).min(BLOCKS);
    (count >= FEWEST).then(|| n / count)
}

/// The spread of the share of samples above `bound`, over blocks of this length; at least that of
/// independent samples.
pub(crate) fn spread_above(samples: &[i64], bound: i64, length: usize) -> Spread {
    let counts = counts_above(samples, bound, length);
    let Some((mean, variance)) = mean_and_variance(&counts) else { return Spread::INDEPENDENT };
    let binomial = mean * (1.0 - mean / length as f64);
    let df = counts.len() as f64 - 1.0;
    let factor = if binomial > 0.0 {
        (variance * variance_inflation(&counts) / binomial).max(1.0)
    } else {
        1.0
    };
    Spread { factor, df }
}

/// The number of samples above a bound, per block.
pub(crate) fn counts_above(samples: &[i64], bound: i64, length: usize) -> Vec<f64> {
    let above = |block: &[i64]| block.iter().filter(|sample| **sample > bound).count() as f64;
    samples.chunks_exact(length.max(1)).map(above).collect()
}

/// The factor by which correlated neighbouring blocks increase the variance of their mean: (1 +
/// r)/(1 − r), as of a first-order autoregression with correlation r (Priestley, "Spectral Analysis
/// and Time Series", 1981, section 5.3.2).
pub(crate) fn variance_inflation(blocks: &[f64]) -> f64 {
    let Some(r) = correlation_of_neighbours(blocks).map(|r| r + 1.0 / blocks.len() as f64) else {
        return 1.0;
    };
    let r = r.clamp(0.0, STRONGEST);
    (1.0 + r) / (1.0 - r)
}

/// The correlation of blocks with their successors; its bias is about minus one over their number.
pub(crate) fn correlation_of_neighbours(blocks: &[f64]) -> Option<f64> {
    let (mean, variance) = mean_and_variance(blocks)?;
    let product: f64 = blocks.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (variance > 0.0).then(|| product / (variance * (blocks.len() - 1) as f64))
}

/// The mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mean and variance; `None` for fewer than two values.
pub(crate) fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    let (n, mean) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (mean, squares / (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn bursts_increase_the_dispersion_factor() {
        let mut random = Random::from_seed(1);
        let single: Vec<i64> = (0..48_000).map(|_| i64::from(random.next_unit() < 0.01)).collect();
        let in_tens: Vec<i64> = single.iter().flat_map(|v| [*v; 10]).collect();
        let spread =
            |samples: &[i64]| spread_above(samples, 0, block_length(samples.len()).unwrap()).factor;
        assert!(spread(&single) < 2.0, "{}", spread(&single));
        assert!((5.0..20.0).contains(&spread(&in_tens)), "{}", spread(&in_tens));
    }

    #[test]
    fn too_few_samples_are_taken_as_independent() {
        assert_eq!(spread_above(&[], 0, 1), Spread::INDEPENDENT);
        assert_eq!(spread_above(&[5; 100], 5, 10).factor, 1.0);
        assert_eq!((block_length(0), block_length(299), block_length(300)), (None, None, Some(50)));
        assert_eq!(block_length(600_000), Some(25_000));
    }
}
