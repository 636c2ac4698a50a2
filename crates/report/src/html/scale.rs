//! The initial scale of the histograms: the width of a bin and the kind of latency axis. Script and
//! drawing use the same.

use super::curve::Curve;
use super::gather::PageSeries;
use super::percentiles::PER_DECADE;
use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Scale {
    /// The finest width (ns) in which all curves can be compared.
    pub finest: i64,
    /// The initial width: a microsecond, as usual in such plots, unless all samples lie within a
    /// few.
    pub width: i64,
    /// Whether the latency axis is initially logarithmic: if the worst latency would compress the
    /// rest into a corner.
    pub log: bool,
    /// The end of the bulk of the samples: the highest p99.9, or the last percentile of shorter
    /// series.
    pub bulk: i64,
    pub max: i64,
}

impl Scale {
    pub(crate) fn from_curves(content: &PageSeries<'_>, curves: &[Curve]) -> Scale {
        let finest = curves
            .iter()
            .map(|curve| curve.body_width.max(1))
            .reduce(common_width)
            .unwrap_or(1_000);
        let bulk_of = |points: &[i64]| points.get(3 * PER_DECADE).or(points.last()).copied();
        let bulk =
            content.lines.iter().filter_map(|line| bulk_of(&line.percentiles)).max().unwrap_or(0);
        let max = curves
            .iter()
            .filter_map(|c| c.bins.last())
            .map(|bin| bin.low.saturating_add(bin.width))
            .max()
            .unwrap_or(1);
        let width = if bulk > 30_000 { at_least(finest, 1_000) } else { finest };
        // 1 - 10^(-5/16) = 51 %: the point of the curve next to the median.
        let mut middles: Vec<i64> =
            content.lines.iter().filter_map(|line| line.percentiles.get(5).copied()).collect();
        middles.sort_unstable();
        let middle = middles.get(middles.len() / 2).copied().unwrap_or(0);
        let log = max > bulk.saturating_mul(6) || max > middle.saturating_mul(40);
        Scale { finest, width, log, bulk, max }
    }
}

/// The smallest width that is a multiple of both, unless it is much coarser than they are.
fn common_width(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let multiple = (a / x).saturating_mul(b);
    if multiple <= a.max(b).saturating_mul(10) { multiple } else { a.max(b) }
}

/// The smallest of 1, 2, 5, 10, 20, … times `width` that is at least `floor`.
fn at_least(width: i64, floor: i64) -> i64 {
    let steps = (0..18).flat_map(|decade| [1, 2, 5].map(|step| step * 10i64.pow(decade)));
    steps.map(|step| width.saturating_mul(step)).find(|w| *w >= floor).unwrap_or(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_bin_widths_are_multiples_of_the_originals() {
        assert_eq!(
            [
                common_width(1_000, 1_000),
                common_width(1_000, 10_000),
                common_width(250, 1_000),
                common_width(1_000, 1_500)
            ],
            [1_000, 10_000, 1_000, 3_000]
        );
        assert_eq!(common_width(997, 1_009), 1_009, "no common width is near");
        assert_eq!(
            [
                at_least(1, 1_000),
                at_least(100, 1_000),
                at_least(250, 1_000),
                at_least(5_000, 1_000)
            ],
            [1_000, 1_000, 1_250, 5_000]
        );
    }
}
