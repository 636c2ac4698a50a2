//! The effect of an axis: pairs of cells that differ in nothing else.
//!
//! Latencies differ by factors, so a pair's effect is the ratio of its two figures, and the mean effect is the geometric mean of the
//! ratios. Its interval is Student's. From three pairs on, each pair counts as one observation, whatever its number of seeds: seeds of
//! a pair have their cells in common, and the interval speaks of cells like these (Donner and Klar, "Design and Analysis of Cluster
//! Randomization Trials", 2000, section 7.1). Of one or two
//! pairs it speaks of these very cells, from the spread of their seeds. Resampling pairs instead covers too seldom with so few.

use punctual_bundle::lab::{CellDocument, LabDocument, SeriesFigures};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Figures whose effects are computed.
pub const METRICS: [&str; 4] = ["p50", "p99", "p99.9", "max"];
/// The confidence of an interval.
pub const CONFIDENCE: f64 = 0.95;
/// From so many pairs on the interval is about cells like these, not only about these.
const SAMPLE_OF_PAIRS: usize = 3;

/// What a value of an axis does, against the axis' first value.
#[derive(Clone, PartialEq, Debug)]
pub struct Effect {
    /// The axis.
    pub axis: String,
    /// The value.
    pub value: String,
    /// The axis' first value.
    pub against: String,
    /// The phase and name of the series.
    pub series: (String, String),
    /// One for each of [`METRICS`]; `None` where no pair of cells has the figure.
    pub contrasts: Vec<Option<Contrast>>,
}

/// A figure with the value against the same without.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contrast {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// Its 95 % interval; `None` where there are too few differences.
    pub interval: Option<(f64, f64)>,
    /// The smallest and the largest ratio of a single pair of cells (over its seeds).
    pub range: (f64, f64),
    /// Pairs of cells.
    pub pairs: usize,
    /// Seeds in all pairs together.
    pub seeds: usize,
}

impl Contrast {
    /// Whether the interval is clear of "no effect"; `None` without an interval.
    pub fn told_apart(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// The effects of all axes on all series, in the order of the axes, their values and the series.
pub fn effects(lab: &LabDocument) -> Vec<Effect> {
    let mut found = Vec::new();
    for axis in lab.axes.iter().filter(|axis| axis.values.len() > 1) {
        for value in &axis.values[1..] {
            for series in lab.series() {
                let effect = effect(lab, &axis.name, (&axis.values[0], value), &series);
                if effect.contrasts.iter().any(Option::is_some) {
                    found.push(effect);
                }
            }
        }
    }
    found
}

fn effect(lab: &LabDocument, axis: &str, (first, value): (&str, &str), series: &(String, String)) -> Effect {
    let pairs: Vec<(&CellDocument, &CellDocument)> = lab
        .cells
        .iter()
        .filter(|cell| cell.axes.get(axis).is_some_and(|own| own == value))
        .filter_map(|cell| Some((partner(lab, cell, axis, first)?, cell)))
        .collect();
    let contrast = |metric: &&str| {
        let logs = pairs.iter().map(|(without, with)| differences(without, with, series, metric));
        contrast(&logs.filter(|logs| !logs.is_empty()).collect::<Vec<_>>())
    };
    Effect {
        axis: axis.to_owned(),
        value: value.to_owned(),
        against: first.to_owned(),
        series: series.clone(),
        contrasts: METRICS.iter().map(contrast).collect(),
    }
}

/// The cell that has this value of the axis and is the same in all others.
fn partner<'a>(lab: &'a LabDocument, cell: &CellDocument, axis: &str, value: &str) -> Option<&'a CellDocument> {
    let same = |other: &&CellDocument| {
        other.axes.len() == cell.axes.len()
            && other.axes.iter().all(|(name, own)| match name == axis {
                true => own == value,
                false => cell.axes.get(name) == Some(own),
            })
    };
    lab.cells.iter().find(same)
}

/// The logarithm of the ratio of a figure, for each seed that both cells have.
fn differences(without: &CellDocument, with: &CellDocument, series: &(String, String), metric: &str) -> Vec<f64> {
    let figure = |all: &[SeriesFigures]| {
        let same = all.iter().find(|one| (&one.phase, &one.series) == (&series.0, &series.1))?;
        value(same, metric).filter(|ns| *ns > 0).map(|ns| (ns as f64).ln())
    };
    let of_seed = |with: &punctual_bundle::lab::SeedDocument| {
        let without = without.seeds.iter().find(|without| without.seed == with.seed)?;
        Some(figure(&with.series)? - figure(&without.series)?)
    };
    with.seeds.iter().filter_map(of_seed).collect()
}

/// A figure by its name.
pub fn value(figures: &SeriesFigures, metric: &str) -> Option<i64> {
    match metric {
        "max" => figures.max,
        "min" => figures.min,
        "p50" => figures.median,
        percentile => figures.percentiles.get(percentile.trim_start_matches('p')).copied(),
    }
}

/// `pairs`: the differences of each pair of cells, none empty.
fn contrast(pairs: &[Vec<f64>]) -> Option<Contrast> {
    let means: Vec<f64> = pairs.iter().map(|differences| mean(differences.iter().copied())).collect();
    let seeds = pairs.iter().map(Vec::len).sum();
    (!means.is_empty()).then(|| Contrast {
        ratio: mean(means.iter().copied()).exp(),
        interval: interval(pairs, &means),
        range: (
            means.iter().copied().fold(f64::INFINITY, f64::min).exp(),
            means.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp(),
        ),
        pairs: means.len(),
        seeds,
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

/// `None` where nothing tells how far the differences spread.
fn interval(pairs: &[Vec<f64>], means: &[f64]) -> Option<(f64, f64)> {
    let n = means.len() as f64;
    let (error, freedom) = if means.len() >= SAMPLE_OF_PAIRS {
        ((variance(means) / n).sqrt(), n - 1.0)
    } else {
        if pairs.iter().any(|seeds| seeds.len() < 2) {
            return None;
        }
        let of_means: f64 = pairs.iter().map(|seeds| variance(seeds) / seeds.len() as f64).sum();
        (of_means.sqrt() / n, pairs.iter().map(|seeds| seeds.len() as f64 - 1.0).sum())
    };
    let reach = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * error;
    let centre = mean(means.iter().copied());
    reach.is_finite().then(|| ((centre - reach).exp(), (centre + reach).exp()))
}

/// Of a sample of at least two.
fn variance(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Random;

    #[test]
    fn a_factor_is_found_with_its_interval() {
        let mut random = Random::seeded(3);
        let pairs: Vec<Vec<f64>> =
            (0..6).map(|_| (0..5).map(|_| 2f64.ln() + (random.unit() - 0.5) * 0.2).collect()).collect();
        let contrast = contrast(&pairs).unwrap();
        let (low, high) = contrast.interval.unwrap();
        assert!((contrast.ratio - 2.0).abs() < 0.1, "{contrast:?}");
        assert!(low < 2.0 && 2.0 < high && low > 1.8 && high < 2.2, "{contrast:?}");
        assert_eq!((contrast.told_apart(), contrast.pairs, contrast.seeds), (Some(true), 6, 30));
    }

    /// How many of 400 intervals hold the true effect (none), with so many pairs and seeds.
    fn covering(pairs: usize, seeds: usize, of_cells: f64) -> usize {
        let mut random = Random::seeded((pairs * 100 + seeds) as u64);
        let mut pair = || {
            let of_cell = (random.unit() - 0.5) * of_cells;
            (0..seeds).map(|_| of_cell + (random.unit() - 0.5) * 0.5).collect::<Vec<f64>>()
        };
        let mut drawn = || (0..pairs).map(|_| pair()).collect::<Vec<_>>();
        (0..400).filter(|_| contrast(&drawn()).is_some_and(|c| c.told_apart() == Some(false))).count()
    }

    #[test]
    fn intervals_cover_at_about_their_rate() {
        for (pairs, seeds, of_cells) in [(8, 4, 0.5), (3, 10, 0.5), (6, 1, 0.5), (1, 10, 0.0), (2, 3, 0.0)] {
            let covered = covering(pairs, seeds, of_cells);
            // 380 of 400 are expected; 4.4 is their standard deviation, and a uniform distribution is no normal one.
            assert!((362..=396).contains(&covered), "{pairs} pairs of {seeds} seeds: {covered} of 400");
        }
    }

    #[test]
    fn one_pair_with_one_seed_has_no_interval() {
        let alone = contrast(&[vec![1.0]]).unwrap();
        assert_eq!((alone.interval, alone.told_apart()), (None, None));
        assert!(contrast(&[]).is_none());
    }
}
