//! The exact histogram in bins of one microsecond, as the older tools have them: latencies
//! truncated to whole µs.

use punctual_core::{LinearHistogram, Nanos};

/// The non-empty bins: latency in µs and count, ascending.
pub fn occupied_bins(exact: &LinearHistogram) -> Vec<(u64, u64)> {
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (edge, n) in exact.occupied_bins() {
        let us = to_whole_micros(edge);
        match bins.last_mut().filter(|(last, _)| *last == us) {
            Some((_, count)) => *count += n,
            None => bins.push((us, n)),
        }
    }
    bins
}

/// The rows of its bins in whole µs, ascending, including empty ones: every bin if they are at
/// least 1 µs wide, else every µs. Never more rows than bins.
pub(crate) fn rows_of_bins(exact: &LinearHistogram) -> impl Iterator<Item = u64> {
    let width = exact.resolution.ns().max(1) as u64;
    let end = exact.upper_end().ns().max(0) as u64;
    let (count, step) = if width >= 1_000 {
        (exact.bins.len() as u64, width)
    } else {
        (end.div_ceil(1_000), 1_000)
    };
    (0..count).map(move |k| k.saturating_mul(step) / 1_000)
}

/// A latency in whole µs; negative ones count as 0.
pub(crate) fn to_whole_micros(latency: Nanos) -> u64 {
    (latency.ns() / 1_000).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_bins_are_converted_to_whole_microseconds() {
        let mut fine = LinearHistogram::new(Nanos(2_500), Nanos(300));
        [0, 299, 300, 900, 1_000, 1_200, 2_400].into_iter().for_each(|ns| fine.record(Nanos(ns)));
        assert_eq!(
            occupied_bins(&fine),
            [(0, 5), (1, 1), (2, 1)],
            "1,000 ns lie in the bin that begins at 900"
        );
        assert_eq!(rows_of_bins(&fine).collect::<Vec<_>>(), [0, 1, 2]);
        let mut wide = LinearHistogram::new(Nanos(5_000), Nanos(2_500));
        [0, 2_500, 7_400].into_iter().for_each(|ns| wide.record(Nanos(ns)));
        assert_eq!(occupied_bins(&wide), [(0, 1), (2, 1), (5, 1)]);
        assert_eq!(rows_of_bins(&wide).collect::<Vec<_>>(), [0, 2, 5]);
    }
}
