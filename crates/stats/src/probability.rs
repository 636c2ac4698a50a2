//! Distribution functions on top of statrs, which requires the caller to stay where its series
//! converge.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::{beta, erf, gamma};

/// The variance from which the normal distribution approximates a binomial count (the error of a
/// probability is below 0.002).
const NORMAL_FROM: f64 = 150.0;
/// The share up to which a count is taken as Poisson: its variance is then at most 2 % too large.
const POISSON_TO: f64 = 0.02;

/// The standard normal distribution function.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * erf::erfc(-z / std::f64::consts::SQRT_2)
}

/// The value that a standard normal variable exceeds with this probability.
pub(crate) fn normal_upper(probability: f64) -> f64 {
    std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * probability.clamp(1e-300, 1.0 - 1e-16))
}

/// The value that Student's t with `df` degrees of freedom exceeds with this probability; infinite
/// degrees are the normal distribution.
pub(crate) fn student_upper(df: f64, probability: f64) -> f64 {
    if !df.is_finite() || df > 1e6 {
        return normal_upper(probability);
    }
    let probability = probability.clamp(1e-15, 0.5);
    StudentsT::new(0.0, 1.0, df.max(1.0)).map_or(f64::INFINITY, |t| -t.inverse_cdf(probability))
}

/// The probability that Student's t with `df` degrees of freedom is further from 0 than `t`, on
/// either side.
pub(crate) fn student_two_sided(df: f64, t: f64) -> f64 {
    if !df.is_finite() {
        return 2.0 * normal_cdf(-t.abs());
    }
    StudentsT::new(0.0, 1.0, df.max(1.0)).map_or(1.0, |d| 2.0 * d.cdf(-t.abs()))
}

/// The probability that a χ² variable with `df` degrees of freedom exceeds `x`.
pub(crate) fn chi_squared_beyond(df: f64, x: f64) -> f64 {
    if x <= 0.0 || df <= 0.0 { 1.0 } else { gamma::gamma_ur(df / 2.0, x / 2.0).clamp(0.0, 1.0) }
}

/// The probability that the binomial count of `n` trials with probability `share` is below `rank`,
/// extended to real numbers.
fn binomial_below(n: f64, share: f64, rank: f64) -> f64 {
    if rank <= 0.0 {
        return 0.0;
    }
    let (mean, variance) = (n * share, n * share * (1.0 - share));
    if rank >= n + 1.0 {
        1.0
    } else if variance > NORMAL_FROM {
        normal_cdf((rank - 0.5 - mean) / variance.sqrt())
    } else if share <= POISSON_TO {
        // P(Poisson(m) < k) = Q(k, m).
        if mean <= 0.0 { 1.0 } else { gamma::gamma_ur(rank, mean) }
    } else {
        beta::beta_reg(n - rank + 1.0, rank, 1.0 - share)
    }
}

/// The largest real rank, counted from the top, such that the count of samples beyond the quantile
/// is below it with at most `probability`. It grows with the probability; 0 if even the first rank
/// has more.
pub(crate) fn rank_at(n: f64, share: f64, probability: f64) -> f64 {
    // No request is further out than this, and a thousandth of a rank is precise enough.
    let (mean, deviation) = (n * share, (n * share * (1.0 - share)).sqrt());
    let (mut low, mut high) =
        ((mean - 40.0 - 9.0 * deviation).max(0.0), (mean + 40.0 + 9.0 * deviation).min(n + 1.0));
    while high - low > 1e-3 {
        let middle = 0.5 * (low + high);
        if binomial_below(n, share, middle) <= probability { low = middle } else { high = middle }
    }
    low
}

/// The probability that Kolmogorov's statistic exceeds `x`: 2·Σ (−1)^(k−1)·exp(−2k²x²) (Smirnov
/// 1948).
pub(crate) fn kolmogorov_beyond(x: f64) -> f64 {
    if x < 0.2 {
        return 1.0;
    }
    let term =
        |k: i32| (if k % 2 == 1 { 2.0 } else { -2.0 }) * (-2.0 * f64::from(k * k) * x * x).exp();
    (1..=40).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// P(Binomial(n, share) ≥ k), the share within 0 and 1.
pub(crate) fn binomial_at_least(k: u64, n: u64, share: f64) -> f64 {
    let mut sum = 0.0;
    for k in k..=n {
        let of_both = k as f64 * share.ln() + (n - k) as f64 * (1.0 - share).ln();
        let term = (ln_choose(n, k) + of_both).exp();
        sum += term;
        // Beyond the mean each term is smaller than the one before.
        if term <= sum * 1e-12 && k as f64 > n as f64 * share {
            break;
        }
    }
    f64::min(sum, 1.0)
}

/// The logarithm of the number of ways to choose `k` of `n`.
pub(crate) fn ln_choose(n: u64, k: u64) -> f64 {
    let ln_factorial = |n: u64| gamma::ln_gamma(n as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    /// Reference values: R 4.2.2, `qnorm`, `qt`, `pchisq`.
    #[test]
    fn distributions_agree_with_r() {
        near(normal_upper(0.025), 1.959963985, 1e-8);
        near(student_upper(4.0, 0.025), 2.776445105, 1e-6);
        near(student_upper(23.0, 0.005), 2.807335684, 1e-6);
        near(student_upper(f64::INFINITY, 0.025), 1.959963985, 1e-8);
        near(chi_squared_beyond(10.0, 18.30703805), 0.05, 1e-8);
        near(student_two_sided(4.0, 2.776445105), 0.05, 1e-8);
    }

    /// The 5 % point of Kolmogorov's distribution is 1.3581 (Smirnov 1948).
    #[test]
    fn kolmogorov_tail_matches_published_values() {
        near(kolmogorov_beyond(1.3581), 0.05, 1e-5);
        near(kolmogorov_beyond(1.6276), 0.01, 1e-5);
    }

    /// Conover, "Practical Nonparametric Statistics": the 95 % interval of the median of 16 runs
    /// from the 4th to the 13th.
    #[test]
    fn confidence_ranks_match_exact_order_statistics() {
        assert_eq!((rank_at(16.0, 0.5, 0.025) + 1e-3).floor(), 4.0);
        assert_eq!(rank_at(16.0, 0.5, 0.975).ceil(), 13.0);
        // Fewer than 3.7 samples are expected beyond: no upper end.
        assert!(rank_at(1_000.0, 0.003, 0.025) < 1.0);
        assert!(rank_at(1_000.0, 0.004, 0.025) >= 1.0);
    }

    #[test]
    fn approximations_join_without_a_step() {
        for (n, share) in [(900.0, 0.3), (20_000.0, 0.0101), (10_300.0, 0.02)] {
            let by_normal = n * share - 1.96 * f64::sqrt(n * share * (1.0 - share)) + 0.5;
            near(rank_at(n, share, 0.025) / by_normal, 1.0, 0.01);
        }
    }
}
