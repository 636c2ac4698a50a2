//! Statistics of rounds, and of histograms that both tools provide.

/// The median; for an even number, the mean of the middle two. `NaN` if empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The median of a histogram of whole µs, by linear interpolation within its bin (the usual median
/// of grouped data).
pub fn grouped_median(bins: &[(u64, u64)]) -> f64 {
    let half = bins.iter().map(|(_, n)| *n).sum::<u64>() as f64 / 2.0;
    let mut before = 0.0;
    for (us, n) in bins {
        if before + *n as f64 >= half {
            return *us as f64 + (half - before) / *n as f64;
        }
        before += *n as f64;
    }
    f64::NAN
}

/// The mean of a histogram of whole µs, each sample in the middle of its bin.
pub fn grouped_mean(bins: &[(u64, u64)]) -> f64 {
    let count: u64 = bins.iter().map(|(_, n)| *n).sum();
    bins.iter().map(|(us, n)| (*us as f64 + 0.5) * *n as f64).sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(grouped_median(&[(10, 2), (11, 4), (12, 2)]), 11.5);
        assert_eq!(grouped_mean(&[(10, 1), (12, 1)]), 11.5);
    }
}
