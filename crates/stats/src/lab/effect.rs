//! The effect of an axis: pairs of cells that differ only in it.
//!
//! Latencies differ by factors, so a pair's effect is the ratio of its two figures, and the mean
//! effect is the geometric mean of the ratios. The interval is Student's. From three pairs on, each
//! pair counts as one observation, whatever its number of seeds: the seeds of a pair share its
//! cells, and the interval is about cells like these (Donner and Klar, "Design and Analysis of
//! Cluster Randomization Trials", 2000, section 7.1). For one or two pairs it is about these very
//! cells, from the spread of their seeds, which may differ in each pair: the degrees of freedom are
//! Welch's and Satterthwaite's (Satterthwaite, Biometrics Bulletin 2, 1946). Resampling pairs
//! instead would cover too seldom with so few. The tests below show the coverage of the intervals,
//! and where it is too low.

use crate::dispersion::mean;
use crate::effect::{EffectEstimate, Tested};
use punctual_bundle::lab::{CellDocument, LabDocument, SeedDocument, SeriesFigures};
use punctual_core::{BlockFigure, Equivalence};
use std::collections::BTreeSet;

/// Figures whose effects are computed.
pub const METRICS: [&str; 4] = ["p50", "p99", "p99.9", "max"];
/// The confidence of an interval.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// The number of pairs from which the interval is about cells like these, not only about these.
const SAMPLE_OF_PAIRS: usize = 3;

/// The effect of a value of an axis, relative to the first value.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisEffect {
    /// Its name in the lab file.
    pub axis: String,
    pub value: String,
    pub against: String,
    /// The phase and name of the series.
    pub series: (String, String),
    /// One for each of [`METRICS`]; `None` if no pair of cells has the figure.
    pub contrasts: Vec<Option<Contrast>>,
    /// The margins of equivalence that the cells' experiments state (`median:10%`; a block is a
    /// run), each with the result of the pairs of cells, or why there is none. Nothing else is
    /// called equivalent.
    pub margins: Vec<(String, Result<Tested, String>)>,
}

/// A figure with the value, relative to that without.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contrast {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// Its 95 % interval; `None` with too few differences.
    pub interval: Option<(f64, f64)>,
    /// The smallest and the largest ratio of a single pair of cells (over its seeds).
    pub range: (f64, f64),
    pub pairs: usize,
    /// The total number of seeds of all pairs.
    pub seeds: usize,
}

impl Contrast {
    /// Whether the interval excludes "no effect"; `None` without an interval.
    pub fn is_significant(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// The effects of all axes on all series, ordered by axis, value and series.
pub fn axis_effects(lab: &LabDocument) -> Vec<AxisEffect> {
    let mut found = Vec::new();
    for axis in lab.axes.iter().filter(|axis| axis.values.len() > 1) {
        for value in &axis.values[1..] {
            let all_series = lab.all_series();
            let effect_on = |series| axis_effect(lab, &axis.name, (&axis.values[0], value), series);
            found.extend(all_series.iter().map(effect_on));
        }
    }
    found
}

fn axis_effect(
    lab: &LabDocument,
    axis: &str,
    (first, value): (&str, &str),
    series: &(String, String),
) -> AxisEffect {
    let pairs: Vec<(&CellDocument, &CellDocument)> = lab
        .cells
        .iter()
        .filter(|cell| cell.axes.get(axis).is_some_and(|own| own == value))
        .filter_map(|cell| Some((find_partner(lab, cell, axis, first)?, cell)))
        .collect();
    let contrast = |metric: &&str| {
        let logs = pairs.iter().map(|(without, with)| log_ratios(without, with, series, metric));
        estimate_contrast(&logs.filter(|logs| !logs.is_empty()).collect::<Vec<_>>())
    };
    let stated = lab.cells.iter().flat_map(|cell| &cell.series);
    let stated = stated
        .filter(|one| (&one.figures.phase, &one.figures.series) == (&series.0, &series.1))
        .flat_map(|one| one.equivalence.iter().cloned());
    let stated: BTreeSet<String> = stated.collect();
    AxisEffect {
        axis: axis.to_owned(),
        value: value.to_owned(),
        against: first.to_owned(),
        series: series.clone(),
        contrasts: METRICS.iter().map(contrast).collect(),
        margins: stated
            .into_iter()
            .map(|of| (of.clone(), test_equivalence(&of, &pairs, series)))
            .collect(),
    }
}

/// Whether the pairs of cells are equivalent by a margin.
fn test_equivalence(
    margin: &str,
    pairs: &[(&CellDocument, &CellDocument)],
    series: &(String, String),
) -> Result<Tested, String> {
    let equivalence: Equivalence = margin.parse().map_err(|why| format!("{why}"))?;
    let metric = match equivalence.figure {
        BlockFigure::Median => "p50",
        BlockFigure::Worst => "max",
    };
    let pairs = pairs.iter().map(|(without, with)| paired_figures(without, with, series, metric));
    let pairs: Vec<Vec<[f64; 2]>> = pairs.filter(|seeds| !seeds.is_empty()).collect();
    let firsts: Vec<f64> = pairs.iter().flatten().map(|[first, _]| *first).collect();
    let seed_differences = |seeds: &Vec<[f64; 2]>| -> Vec<f64> {
        seeds.iter().map(|[first, other]| other - first).collect()
    };
    let differences: Vec<f64> = match pairs.len() {
        n if n >= SAMPLE_OF_PAIRS => {
            pairs.iter().map(|seeds| mean(&seed_differences(seeds))).collect()
        }
        _ => pairs.iter().flat_map(seed_differences).collect(),
    };
    let estimate = EffectEstimate::of_pairs(&differences)
        .ok_or_else(|| format!("{} pairs of runs show no spread", differences.len()))?;
    Ok(estimate.test_equivalence(equivalence.margin.margin_in_ns(mean(&firsts))))
}

/// The cell with this value of the axis that is otherwise the same.
pub(super) fn find_partner<'a>(
    lab: &'a LabDocument,
    cell: &CellDocument,
    axis: &str,
    value: &str,
) -> Option<&'a CellDocument> {
    let same = |other: &&CellDocument| {
        other.axes.len() == cell.axes.len()
            && other.axes.iter().all(|(name, own)| match name == axis {
                true => own == value,
                false => cell.axes.get(name) == Some(own),
            })
    };
    lab.cells.iter().find(same)
}

/// A figure in ns without and with the value, for each seed that both cells have.
fn paired_figures(
    without: &CellDocument,
    with: &CellDocument,
    series: &(String, String),
    metric: &str,
) -> Vec<[f64; 2]> {
    let figure = |all: &[SeriesFigures]| {
        let same = all.iter().find(|one| (&one.phase, &one.series) == (&series.0, &series.1))?;
        figure_value(same, metric).map(|ns| ns as f64)
    };
    let of_seed = |with: &SeedDocument| {
        let seed_without = without.seeds.iter().find(|without| without.seed == with.seed)?;
        Some([figure(&seed_without.series)?, figure(&with.series)?])
    };
    with.seeds.iter().filter_map(of_seed).collect()
}

/// The logarithm of its ratio for each of these seeds.
pub(super) fn log_ratios(
    without: &CellDocument,
    with: &CellDocument,
    series: &(String, String),
    metric: &str,
) -> Vec<f64> {
    let figure_pairs = paired_figures(without, with, series, metric).into_iter();
    figure_pairs
        .filter(|both| both.iter().all(|ns| *ns > 0.0))
        .map(|[a, b]| b.ln() - a.ln())
        .collect()
}

/// A figure by its name.
pub fn figure_value(figures: &SeriesFigures, metric: &str) -> Option<i64> {
    match metric {
        "max" => figures.max,
        "min" => figures.min,
        "p50" => figures.median,
        percentile => figures.percentiles.get(percentile.trim_start_matches('p')).copied(),
    }
}

/// The contrast from `pairs`: the differences of each pair of cells, none empty.
pub(super) fn estimate_contrast(pairs: &[Vec<f64>]) -> Option<Contrast> {
    let means: Vec<f64> = pairs.iter().map(|differences| mean(differences)).collect();
    let estimate = match means.len() {
        n if n >= SAMPLE_OF_PAIRS => EffectEstimate::of_pairs(&means),
        _ => EffectEstimate::of_groups(pairs),
    };
    // Without any spread, it is unknown.
    let known_estimate = estimate.filter(|estimate| estimate.error > 0.0);
    (!means.is_empty()).then(|| Contrast {
        ratio: mean(&means).exp(),
        interval: known_estimate
            .map(|of| of.confidence_interval(1.0 - CONFIDENCE).map(f64::exp).into()),
        range: (
            means.iter().copied().fold(f64::INFINITY, f64::min).exp(),
            means.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp(),
        ),
        pairs: means.len(),
        seeds: pairs.iter().map(Vec::len).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_factor_is_found_with_its_interval() {
        let mut random = Random::from_seed(3);
        let pairs: Vec<Vec<f64>> = (0..6)
            .map(|_| (0..5).map(|_| 2f64.ln() + (random.next_unit() - 0.5) * 0.2).collect())
            .collect();
        let contrast = estimate_contrast(&pairs).unwrap();
        let (low, high) = contrast.interval.unwrap();
        assert!((contrast.ratio - 2.0).abs() < 0.1, "{contrast:?}");
        assert!(low < 2.0 && 2.0 < high && low > 1.8 && high < 2.2, "{contrast:?}");
        assert_eq!(
            (contrast.is_significant(), contrast.pairs, contrast.seeds),
            (Some(true), 6, 30)
        );
    }

    /// A lab whose axis has no mean effect. Logarithms of maxima follow Gumbel's distribution, as
    /// with maxima of tails that fall by a power.
    struct Simulated {
        pairs: usize,
        seeds: usize,
        /// The spread of maxima without the value of the axis, and with it.
        spread: (f64, f64),
        /// The factor of additional spread in the first pair.
        first: f64,
        /// The standard deviation of the effect over pairs: axes interact.
        interaction: f64,
    }

    impl Simulated {
        fn draw(&self, random: &mut Random) -> Vec<Vec<f64>> {
            // Minus Euler's constant, the mean of Gumbel's distribution.
            let gumbel =
                |random: &mut Random| -(-random.next_unit().ln()).ln() - 0.577_215_664_901_532_9;
            let bell = |random: &mut Random| (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
            let pair = |k: usize| {
                let of_pair = self.interaction * bell(random);
                let first = if k == 0 { self.first } else { 1.0 };
                let mut seed = || self.spread.1 * gumbel(random) - self.spread.0 * gumbel(random);
                (0..self.seeds).map(|_| of_pair + first * seed()).collect()
            };
            (0..self.pairs).map(pair).collect()
        }

        /// The share of intervals that contain the true effect, zero.
        fn coverage(&self) -> f64 {
            let mut random = Random::from_seed((self.pairs * 100 + self.seeds) as u64);
            covering(|| self.draw(&mut random), 0.0)
        }
    }

    /// The number of labs; the standard deviation of a share of 95 % is then 0.7 %.
    const LABS: usize = 1_000;

    fn covering(mut draw: impl FnMut() -> Vec<Vec<f64>>, truth: f64) -> f64 {
        let holds = |c: Contrast| {
            c.interval.is_some_and(|(low, high)| (low.ln()..=high.ln()).contains(&truth))
        };
        (0..LABS).filter(|_| estimate_contrast(&draw()).is_some_and(holds)).count() as f64
            / LABS as f64
    }

    #[test]
    fn intervals_cover_at_about_their_rate() {
        let shapes = [(1, 2), (1, 10), (2, 2), (2, 10), (3, 1), (3, 4), (6, 3), (11, 5)];
        for (pairs, seeds) in shapes {
            let interaction = if pairs < SAMPLE_OF_PAIRS { 0.0 } else { 0.5 };
            let of =
                |spread, first| Simulated { pairs, seeds, spread, first, interaction }.coverage();
            let alike = of((0.5, 0.5), 1.0);
            assert!((0.925..=0.99).contains(&alike), "{pairs} pairs of {seeds} seeds: {alike}");
            // PREEMPT_RT's maxima hardly vary, those of a standard kernel do: the ratios are
            // skewed.
            let skewed = of((0.5, 0.05), 1.0);
            assert!(
                (0.91..=0.99).contains(&skewed),
                "{pairs} pairs of {seeds} seeds, skewed: {skewed}"
            );
            // A loaded pair varies more than an idle one. From three pairs on, this makes intervals
            // wider than needed.
            let uneven = of((0.5, 0.5), 8.0);
            assert!(
                (0.925..=1.0).contains(&uneven),
                "{pairs} pairs of {seeds} seeds, uneven: {uneven}"
            );
        }
    }

    /// The warning in docs/lab.md: a value that reduces by 99 % in half of the cells and not at all
    /// in the others, by the number of pairs.
    #[test]
    fn intervals_of_few_pairs_cover_too_rarely_if_axes_interact() {
        let coverage = |pairs: usize| {
            let mut random = Random::from_seed(pairs as u64);
            let effect = 0.01f64.ln();
            let mut pair = || {
                let of_pair = if random.next_unit() < 0.5 { effect } else { 0.0 };
                (0..4).map(|_| of_pair + 0.3 * (random.next_unit() - 0.5)).collect::<Vec<f64>>()
            };
            covering(|| (0..pairs).map(|_| pair()).collect(), effect / 2.0)
        };
        let (three, twenty) = (coverage(3), coverage(20));
        assert!(
            (0.70..=0.80).contains(&three),
            "three pairs are alike in a quarter of the labs: {three}"
        );
        assert!(twenty >= 0.92, "{twenty}");
    }

    #[test]
    fn a_single_pair_has_no_interval() {
        let alone = estimate_contrast(&[vec![1.0]]).unwrap();
        assert_eq!((alone.interval, alone.is_significant()), (None, None));
        let equal = estimate_contrast(&[vec![0.5, 0.5], vec![0.5, 0.5]]).unwrap();
        assert_eq!(equal.interval, None, "no spread at all tells nothing");
        assert!(estimate_contrast(&[]).is_none());
    }
}
