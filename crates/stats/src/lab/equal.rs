//! Whether values of an axis are equivalent, by the margins of the experiment.

use super::effect::{partner, value};
use crate::equivalence::{self, Tested};
use punctual_bundle::lab::{CellDocument, LabDocument, SeriesFigures};
use punctual_core::{BlockFigure, Equivalence};

/// The number of pairs of cells from which each is one observation, whatever its number of seeds.
const SAMPLE_OF_PAIRS: usize = 3;

/// A margin with its outcome between a value of an axis and the first value.
#[derive(Clone, PartialEq, Debug)]
pub struct Equal {
    /// Its name in the lab file.
    pub axis: String,
    pub value: String,
    pub against: String,
    /// The phase and name of the series.
    pub series: (String, String),
    /// The margin in the plan: `median:10%`. A block is a run.
    pub margin: String,
    /// The result of the pairs of cells, or why there is none.
    pub tested: Result<Tested, String>,
}

/// The results for all margins stated by the cells' experiments; nothing else is called equivalent.
pub fn equivalences(lab: &LabDocument) -> Vec<Equal> {
    let mut found = Vec::new();
    for axis in lab.axes.iter().filter(|axis| axis.values.len() > 1) {
        for value in &axis.values[1..] {
            for series in lab.series() {
                let stated = lab.cells.iter().flat_map(|cell| &cell.series);
                let stated = stated.filter(|one| {
                    (&one.figures.phase, &one.figures.series) == (&series.0, &series.1)
                });
                let mut margins: Vec<&String> = stated.flat_map(|one| &one.equivalence).collect();
                margins.sort();
                margins.dedup();
                found.extend(margins.into_iter().map(|margin| Equal {
                    axis: axis.name.clone(),
                    value: value.clone(),
                    against: axis.values[0].clone(),
                    series: series.clone(),
                    margin: margin.clone(),
                    tested: tested(lab, &axis.name, (&axis.values[0], value), &series, margin),
                }));
            }
        }
    }
    found
}

fn tested(
    lab: &LabDocument,
    axis: &str,
    (first, second): (&str, &str),
    series: &(String, String),
    margin: &str,
) -> Result<Tested, String> {
    let of: Equivalence = margin.parse().map_err(|why| format!("{why}"))?;
    let with = lab.cells.iter().filter(|cell| cell.axes.get(axis).is_some_and(|own| own == second));
    let pairs = with.filter_map(|cell| Some((partner(lab, cell, axis, first)?, cell)));
    let pairs: Vec<Vec<(f64, f64)>> = pairs
        .map(|(without, with)| figures(without, with, series, of.figure))
        .filter(|seeds| !seeds.is_empty())
        .collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let firsts: Vec<f64> = pairs.iter().flatten().map(|(first, _)| *first).collect();
    let each = |seeds: &Vec<(f64, f64)>| -> Vec<f64> {
        seeds.iter().map(|(first, other)| other - first).collect()
    };
    let differences: Vec<f64> = match pairs.len() {
        n if n >= SAMPLE_OF_PAIRS => pairs.iter().map(|seeds| mean(&each(seeds))).collect(),
        _ => pairs.iter().flat_map(each).collect(),
    };
    equivalence::of_pairs(&differences, of.margin.ns(mean(&firsts)))
        .ok_or_else(|| format!("{} pairs of runs show no spread", differences.len()))
}

/// The figure without and with the value, for each seed that both cells have.
fn figures(
    without: &CellDocument,
    with: &CellDocument,
    series: &(String, String),
    figure: BlockFigure,
) -> Vec<(f64, f64)> {
    let metric = match figure {
        BlockFigure::Median => "p50",
        BlockFigure::Worst => "max",
    };
    let of = |all: &[SeriesFigures]| {
        let same = all.iter().find(|one| (&one.phase, &one.series) == (&series.0, &series.1))?;
        value(same, metric).map(|ns| ns as f64)
    };
    let of_seed = |with: &punctual_bundle::lab::SeedDocument| {
        let without = without.seeds.iter().find(|without| without.seed == with.seed)?;
        Some((of(&without.series)?, of(&with.series)?))
    };
    with.seeds.iter().filter_map(of_seed).collect()
}
