//! The difference of a percentile, with its interval.
//!
//! Each side: order statistics whose ranks are binomial limits for the effective sample size
//! (Woodruff 1952; see [`crate::dispersion`]). The difference: from both sides' limits, each
//! with its own skewness (Zou and Donner, "Construction of confidence intervals about effect
//! measures", Statistics in Medicine 27, 2008: MOVER). It needs no resampling and no random
//! numbers.

use super::ladder::Ladder;
use super::run::SideRuns;
use crate::dispersion::{Spread, block_length, spread_above};
use crate::effect::pooled_variance;
use crate::percentiles;
use crate::probability::{normal_cdf, rank_at, student_upper};

/// An interval; infinite if the data do not bound it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub(crate) const UNBOUNDED: Interval = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// The interval of the values whose logarithms these are.
    pub(crate) fn exp(self) -> Interval {
        Interval { low: self.low.exp(), high: self.high.exp() }
    }

    /// Wider by the resolution of a clock on both sides.
    pub(crate) fn widen_by(self, step: f64) -> Interval {
        Interval { low: self.low - step, high: self.high + step }
    }
}

/// The percentile of a side with its uncertainty.
#[derive(Clone, Debug)]
pub(crate) struct Quantile<'a> {
    ladder: &'a Ladder,
    /// The figure, as everywhere in punctual: the upper end of the bucket at its rank.
    pub value: f64,
    /// The share of samples beyond it.
    share: f64,
    /// The spread of that share.
    pub spread: Spread,
}

impl Quantile<'_> {
    /// The percentile (above 0, below 100); `None` without samples.
    pub(crate) fn from_side<'a>(
        side: &'a SideRuns,
        percentile: f64,
        spread: Spread,
    ) -> Option<Quantile<'a>> {
        let (_, value) =
            side.ladder.at_rank(percentiles::percentile_rank(percentile, side.count()).max(1))?;
        Some(Quantile {
            ladder: &side.ladder,
            value: value as f64,
            share: 1.0 - percentile / 100.0,
            spread,
        })
    }

    /// The interval that misses the true percentile with total probability `error`.
    fn confidence_interval(&self, error: f64) -> Interval {
        // Student's t for a variance that is itself estimated, as the normal probability of the
        // same limit.
        let tail = normal_cdf(-student_upper(self.spread.df, error / 2.0));
        let n = self.ladder.count() as f64 / self.spread.factor;
        let at_rank_from_top = |rank: f64| {
            let rank = rank.max(0.0);
            if rank < 1.0 { None } else { self.ladder.at_rank_from_top(rank as u64) }
        };
        let high = at_rank_from_top((rank_at(n, self.share, tail) * self.spread.factor).floor());
        let low =
            at_rank_from_top((rank_at(n, self.share, 1.0 - tail) * self.spread.factor).ceil());
        Interval {
            low: low.map_or(f64::NEG_INFINITY, |low| (low as f64).min(self.value)),
            high: high.map_or(f64::INFINITY, |high| (high as f64).max(self.value)),
        }
    }
}

/// An interval that covers `b − a` except with this probability of error.
pub(crate) fn difference_interval(a: &Quantile, b: &Quantile, error: f64) -> Interval {
    let (of_a, of_b) = (a.confidence_interval(error), b.confidence_interval(error));
    let seen_difference = b.value - a.value;
    Interval {
        low: seen_difference - (b.value - of_b.low).hypot(of_a.high - a.value),
        high: seen_difference + (of_b.high - b.value).hypot(a.value - of_a.low),
    }
}

/// An interval that covers `b / a` except with this probability of error: that of the logarithms,
/// which preserve order statistics, so its ends are possible values. `None` if a figure is not
/// above 0.
pub(crate) fn ratio_interval(a: &Quantile, b: &Quantile, error: f64) -> Option<Interval> {
    if a.value <= 0.0 || b.value <= 0.0 {
        return None;
    }
    // A limit at or below 0 bounds no factor.
    let ln = |of: Interval| {
        let low = if of.low > 0.0 { of.low.ln() } else { f64::NEG_INFINITY };
        Interval { low, high: of.high.ln() }
    };
    let (of_a, of_b) = (ln(a.confidence_interval(error)), ln(b.confidence_interval(error)));
    let (ln_a, ln_b) = (a.value.ln(), b.value.ln());
    let logs = Interval {
        low: ln_b - ln_a - (ln_b - of_b.low).hypot(of_a.high - ln_a),
        high: ln_b - ln_a + (of_b.high - ln_b).hypot(ln_a - of_a.low),
    };
    Some(logs.exp())
}

/// The spread of the share beyond a percentile, for both sides: between runs if there are several,
/// else over the blocks of the only one.
pub(crate) fn estimate_spreads(a: &SideRuns, b: &SideRuns, percentile: f64) -> [Spread; 2] {
    if a.runs.len() + b.runs.len() > 2 {
        return between_runs(a, b, percentile);
    }
    [a, b].map(|side| within_run(side, percentile))
}

/// Over the blocks of a side's only run.
fn within_run(side: &SideRuns, percentile: f64) -> Spread {
    let Some(run) = side.runs.first() else { return Spread::INDEPENDENT };
    let bound = side.ladder.at_rank(percentiles::percentile_rank(percentile, side.count()).max(1));
    match (block_length(run.samples.len()), bound) {
        (Some(length), Some((low, _))) => {
            spread_above(&run.samples, just_below_ties(side, low, percentile), length)
        }
        _ => Spread::INDEPENDENT,
    }
}

/// With ties at the percentile, the bound above or below them, whichever gives a share nearer to
/// the intended one: a share of 0 or 1 has no spread.
fn just_below_ties(side: &SideRuns, value: i64, percentile: f64) -> i64 {
    let requested = 1.0 - percentile / 100.0;
    let off = |bound: i64| (side.ladder.share_above(bound).max(1e-12) / requested).ln().abs();
    let below = value.saturating_sub(1);
    if off(below) < off(value) { below } else { value }
}

/// Between runs, with one variance for both sides, as in Student's test: few runs give few degrees
/// of freedom.
fn between_runs(a: &SideRuns, b: &SideRuns, percentile: f64) -> [Spread; 2] {
    let sides = [a, b];
    let shares = sides.map(|side| {
        let bound = side
            .ladder
            .at_rank(percentiles::percentile_rank(percentile, side.count()).max(1))
            .map_or(0, |(low, _)| low);
        let bound = just_below_ties(side, bound, percentile);
        side.runs.iter().map(|run| run.ladder.share_above(bound)).collect::<Vec<f64>>()
    });
    let Some((of_run, df)) = pooled_variance([&shares[0], &shares[1]]) else {
        return [Spread::INDEPENDENT; 2];
    };
    let share = 1.0 - percentile / 100.0;
    let binomial = share * (1.0 - share);
    sides.map(|side| {
        let variance = of_run / side.runs.len() as f64;
        Spread { factor: (variance * side.count() as f64 / binomial).max(1.0), df }
    })
}
