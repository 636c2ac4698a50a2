//! The offered percentiles, and the number of samples that each needs.

/// The percentiles of every summary, ascending.
pub const OFFERED: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// A percentile is supported when at least this many samples are expected beyond it.
///
/// The number of samples beyond the true percentile is binomial, B(n, 1 − p). With fewer than ten
/// expected, the estimate is one of the last order statistics and moves with every single sample;
/// from ten on, the relative standard error of the share beyond it is below 1/√10 ≈ 32 %, and the
/// usual normal approximation of that share holds: the "success-failure condition" n·p ≥ 10 and
/// n·(1 − p) ≥ 10 (Diez, Çetinkaya-Rundel, Barr: OpenIntro Statistics, 4th edition, section 6.1;
/// for confidence limits of percentiles from order statistics see Conover: Practical Nonparametric
/// Statistics, section 3.2).
pub(crate) const BEYOND: u64 = 10;

/// The number of samples from which a percentile (above 0, below 100) is supported.
pub fn samples_needed(percentile: f64) -> u64 {
    let tail = percentile.min(100.0 - percentile).max(f64::MIN_POSITIVE);
    // 100 − 99.9 is not exactly 0.1: the factor keeps 10 000.0000006 from becoming 10 001.
    (BEYOND as f64 * 100.0 / tail * (1.0 - 1e-9)).ceil() as u64
}

/// The percentile as written in summaries: `99.9`.
pub fn percentile_key(percentile: f64) -> String {
    percentile.to_string()
}

/// The rank (from 1) of a percentile among `n` sorted samples: the smallest with at least that
/// share at or below it (definition 1 of Hyndman and Fan, "Sample Quantiles in Statistical
/// Packages", 1996). 0 only if `n` is 0.
pub fn percentile_rank(percentile: f64, n: u64) -> u64 {
    let exact = percentile / 100.0 * n as f64;
    ((exact * (1.0 - 1e-12)).ceil() as u64).clamp(1, n.max(1)).min(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supported_percentile_has_ten_samples_beyond() {
        let counts: Vec<u64> = OFFERED.iter().map(|p| samples_needed(*p)).collect();
        assert_eq!(counts, [20, 40, 100, 200, 1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(samples_needed(1.0), 1_000, "low percentiles need as many below");
    }

    #[test]
    fn percentile_ranks_follow_the_definition() {
        assert_eq!(percentile_rank(50.0, 10), 5);
        assert_eq!(percentile_rank(50.0, 11), 6);
        assert_eq!(percentile_rank(99.9, 1_000), 999);
        assert_eq!(percentile_rank(99.9, 1_001), 1_000);
        assert_eq!(percentile_rank(99.999, 1_000_000), 999_990);
        assert_eq!(
            (percentile_rank(0.001, 5), percentile_rank(99.999, 5), percentile_rank(50.0, 0)),
            (1, 5, 0)
        );
    }
}
