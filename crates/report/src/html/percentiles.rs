//! The percentile curve: latency over `log10(1 / (1 - p))`, where each further nine takes the same
//! width.

use punctual_core::Nanos;
use punctual_stats::{Distribution, percentiles};

/// Points in each decade of rarity.
pub(crate) const PER_DECADE: usize = 16;

/// Latencies (ns) at `p = 1 - 10^(-k / PER_DECADE)` for k = 0, 1, … while one sample in `10^(k /
/// PER_DECADE)` exists. The maximum lies at `log10(count)`, seldom on this grid: the caller adds
/// it.
pub(crate) fn percentile_points(distribution: &Distribution) -> Vec<i64> {
    points_of_steps(distribution.cumulative_curve())
}

/// The same for several distributions combined.
pub(crate) fn merged_points(distributions: &[&Distribution]) -> Vec<i64> {
    let mut steps: Vec<(Nanos, u64)> = Vec::new();
    for distribution in distributions {
        let mut below = 0;
        steps.extend(distribution.cumulative_curve().map(|(latency, cumulative)| {
            let count = cumulative - below;
            below = cumulative;
            (latency, count)
        }));
    }
    steps.sort_unstable();
    let mut total = 0u64;
    steps.iter_mut().for_each(|(_, count)| {
        total = total.saturating_add(*count);
        *count = total;
    });
    points_of_steps(steps.into_iter())
}

/// Walks once along (latency, cumulative count).
fn points_of_steps(steps: impl Iterator<Item = (Nanos, u64)>) -> Vec<i64> {
    let steps: Vec<(Nanos, u64)> = steps.collect();
    let Some((_, count)) = steps.last().copied().filter(|(_, count)| *count > 0) else {
        return Vec::new();
    };
    let last = ((count as f64).log10() * PER_DECADE as f64).floor() as usize;
    let mut place = 0;
    let point = |k: usize| {
        let percentile = 100.0 * (1.0 - 10f64.powf(-(k as f64) / PER_DECADE as f64));
        let rank = percentiles::percentile_rank(percentile, count);
        while steps[place].1 < rank && place + 1 < steps.len() {
            place += 1;
        }
        steps[place].0.ns()
    };
    (0..=last).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{ClockNs, Sample, SeriesData, SeriesShape};

    fn distribution(latencies: impl Iterator<Item = i64>) -> Distribution {
        let mut data = SeriesData::new(SeriesShape {
            range: Nanos::MILLI,
            resolution: Nanos::MICRO,
            period: None,
        });
        latencies.for_each(|ns| {
            data.record_sample(&Sample { seq: 0, due: ClockNs(0), woke: ClockNs(ns), cpu: 0 }, 0)
        });
        Distribution::from_series(&data)
    }

    #[test]
    fn the_percentile_curve_ends_with_the_samples() {
        let points = percentile_points(&distribution(1..=1_000));
        assert_eq!(points.len(), 3 * PER_DECADE + 1);
        assert_eq!((points[0], points[PER_DECADE], points[2 * PER_DECADE]), (1, 900, 990));
        assert!(points.is_sorted());
        assert!(super::percentile_points(&distribution(0..0)).is_empty());
    }

    #[test]
    fn curves_of_several_series_add_up() {
        let (odd, even) =
            (distribution((1..1_000).step_by(2)), distribution((2..=1_000).step_by(2)));
        assert_eq!(merged_points(&[&odd, &even]), percentile_points(&distribution(1..=1_000)));
    }
}
