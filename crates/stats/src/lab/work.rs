//! The work of loads in the cells of a lab: the price of what makes latencies shorter, and how work
//! grows along an axis of numbers.

use super::effect::{Contrast, estimate_contrast, find_partner};
use punctual_bundle::Bundle;
use punctual_bundle::lab::{AxisDocument, CellDocument, LabDocument, SeedDocument, WorkFigures};
use punctual_bundle::load::LoadWork;

/// The kernel's count for all, in the words of a table.
const SWITCHES: &str = "context switches";

/// The work of each load of a run, by its own count; beside it the context switches of all CPUs.
pub fn work_figures(bundle: &Bundle) -> Vec<WorkFigures> {
    let mut all_work = Vec::new();
    for phase in bundle.phases.iter().map(|phase| &phase.meta) {
        let loads = phase.loads.iter().filter_map(|load| Some((load, load.work.known_value()?)));
        let load_work =
            loads.flat_map(|(load, work)| work.iter().map(move |work| (&load.name, work)));
        let begin = all_work.len();
        all_work.extend(load_work.map(|(load, work)| WorkFigures {
            phase: phase.name.clone(),
            load: load.clone(),
            work: work.clone(),
        }));
        let switches = phase.cpu_load.known_value().and_then(|load| load.switches);
        if let (Some(operations), Some(duration)) = (switches, phase.duration)
            && all_work.len() > begin
        {
            let seconds = duration.ns() as f64 / 1e9;
            let work = LoadWork { what: SWITCHES.to_owned(), operations, seconds, runs: 1 };
            all_work.push(WorkFigures { phase: phase.name.clone(), load: String::new(), work });
        }
    }
    all_work
}

/// Work that is compared between cells: of a load in a phase, or of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Throughput {
    pub phase: String,
    /// The load; empty: all.
    pub load: String,
    /// The stressor, or the counter.
    pub what: String,
}

impl Throughput {
    fn is_about(&self, of: &WorkFigures) -> bool {
        (&self.phase, &self.load, &self.what) == (&of.phase, &of.load, &of.work.what)
    }

    fn of_seed(&self, seed: &SeedDocument) -> Option<f64> {
        seed.work.iter().find(|of| self.is_about(of))?.work.per_second().filter(|rate| *rate > 0.0)
    }
}

/// The work of all cells, each once, in order.
pub fn list_throughputs(lab: &LabDocument) -> Vec<Throughput> {
    let mut all_throughputs: Vec<Throughput> = Vec::new();
    for of in lab.cells.iter().flat_map(|cell| &cell.seeds).flat_map(|seed| &seed.work) {
        if !all_throughputs.iter().any(|known| known.is_about(of)) {
            let WorkFigures { phase, load, work } = of.clone();
            all_throughputs.push(Throughput { phase, load, what: work.what });
        }
    }
    all_throughputs
}

/// This work in a cell, over all its seeds.
pub fn of_cell(cell: &CellDocument, of: &Throughput) -> Option<LoadWork> {
    let mut matching_work =
        cell.seeds.iter().flat_map(|seed| &seed.work).filter(|one| of.is_about(one));
    let mut sum = matching_work.next()?.work.clone();
    matching_work.for_each(|more| sum.add(&more.work));
    Some(sum)
}

/// The work with a value of an axis, over that with its first value.
#[derive(Clone, PartialEq, Debug)]
pub struct Price {
    pub axis: String,
    pub value: String,
    pub against: String,
    pub of: Throughput,
    /// The effect on work per second, by the same pairs and intervals as latencies.
    pub contrast: Contrast,
}

/// The cost, or the yield, of each value of each axis in work of each load.
pub fn estimate_prices(lab: &LabDocument) -> Vec<Price> {
    let (works, mut found) = (list_throughputs(lab), Vec::new());
    for axis in &lab.axes {
        for value in axis.values.iter().skip(1) {
            let against = &axis.values[0];
            found.extend(works.iter().filter_map(|of| {
                let contrast = contrast_between(lab, &axis.name, against, value, of)?;
                let (axis, value, against) = (axis.name.clone(), value.clone(), against.clone());
                Some(Price { axis, value, against, of: of.clone(), contrast })
            }));
        }
    }
    found
}

fn contrast_between(
    lab: &LabDocument,
    axis: &str,
    first: &str,
    value: &str,
    of: &Throughput,
) -> Option<Contrast> {
    let cells = lab.cells.iter().filter(|cell| cell.axes.get(axis).is_some_and(|own| own == value));
    let pairs = cells.filter_map(|with| {
        let cell_without = find_partner(lab, with, axis, first)?;
        let logs = with.seeds.iter().filter_map(|with| {
            let seed_without =
                cell_without.seeds.iter().find(|without| without.seed == with.seed)?;
            Some(of.of_seed(with)?.ln() - of.of_seed(seed_without)?.ln())
        });
        Some(logs.collect::<Vec<f64>>())
    });
    estimate_contrast(&pairs.filter(|logs| !logs.is_empty()).collect::<Vec<_>>())
}

/// The values of an axis, if they are ascending positive numbers, at least three.
pub fn numeric_values(axis: &AxisDocument) -> Option<Vec<f64>> {
    let axis_numbers: Vec<f64> =
        axis.values.iter().map(|value| value.parse().ok()).collect::<Option<_>>()?;
    let ascends = axis_numbers.is_sorted_by(|a, b| a < b)
        && axis_numbers.iter().all(|n| n.is_finite() && *n > 0.0);
    (axis_numbers.len() > 2 && ascends).then_some(axis_numbers)
}

/// Where work stops growing along each axis of [`numeric_values`]: the value up to which the 95 %
/// interval of each step is above ×1, and from which to every later value it holds or is below ×1,
/// and excludes growth in proportion. `None` where the cells do not show that.
pub fn find_knees(lab: &LabDocument) -> Vec<(String, Throughput, Option<String>)> {
    let axes = lab.axes.iter().filter_map(|axis| Some((axis, numeric_values(axis)?)));
    let (works, mut found) = (list_throughputs(lab), Vec::new());
    for (axis, numbers) in axes {
        for of in works.iter().filter(|of| !of.load.is_empty()) {
            let knee = find_knee(lab, axis, &numbers, of).map(|at| axis.values[at].clone());
            found.push((axis.name.clone(), of.clone(), knee));
        }
    }
    found
}

fn find_knee(lab: &LabDocument, axis: &AxisDocument, n: &[f64], of: &Throughput) -> Option<usize> {
    let interval = |from: usize, to: usize| {
        contrast_between(lab, &axis.name, &axis.values[from], &axis.values[to], of)?.interval
    };
    let mut at = 0;
    while at + 1 < n.len() && interval(at, at + 1)?.0 > 1.0 {
        at += 1;
    }
    let is_flat = |beyond: usize| {
        let ends = interval(at, beyond);
        ends.is_some_and(|(low, high)| low <= 1.0 && high < n[beyond] / n[at])
    };
    (at > 0 && at + 1 < n.len() && (at + 1..n.len()).all(is_flat)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lab_of;

    /// Cells with this work a second, for each seed.
    fn worked(cells: &[(&str, &[f64])]) -> LabDocument {
        let maxima = |rates: &[f64]| vec![1_000; rates.len()];
        let of: Vec<(&str, Vec<i64>)> = cells.iter().map(|(v, r)| (*v, maxima(r))).collect();
        let mut lab = lab_of("workers", &of);
        for (cell, (_, rates)) in lab.cells.iter_mut().zip(cells) {
            for (seed, rate) in cell.seeds.iter_mut().zip(*rates) {
                let work = LoadWork {
                    what: "cpu".to_owned(),
                    operations: (rate * 1_000.0) as u64,
                    seconds: 1_000.0,
                    runs: 1,
                };
                seed.work = vec![WorkFigures { phase: "a".into(), load: "b".into(), work }];
            }
        }
        lab
    }

    #[test]
    fn the_price_of_a_value_is_the_ratio_of_the_work_with_its_interval() {
        let lab = worked(&[("none", &[100.0, 102.0, 98.0]), ("rt", &[80.0, 81.0, 79.0])]);
        let [price] = estimate_prices(&lab).try_into().expect("one");
        let (low, high) = price.contrast.interval.expect("three seeds");
        assert!((price.contrast.ratio - 0.8).abs() < 0.01, "{price:?}");
        assert!(0.75 < low && high < 0.85, "{price:?}");
        let sum = of_cell(&lab.cells[1], &price.of).expect("its work");
        assert_eq!((sum.operations, sum.runs, sum.per_second()), (240_000, 3, Some(80.0)));
    }

    #[test]
    fn a_knee_is_named_only_where_the_cells_show_one() {
        let knee = |cells: &[(&str, &[f64])]| {
            let [(_, _, knee)] = find_knees(&worked(cells)).try_into().expect("one");
            knee
        };
        let (one, two): (&[f64], &[f64]) = (&[100.0, 101.0, 99.0], &[199.0, 201.0, 200.0]);
        let flat: &[f64] = &[200.0, 199.0, 202.0];
        assert_eq!(knee(&[("1", one), ("2", two), ("4", flat), ("8", flat)]).as_deref(), Some("2"));
        let four: &[f64] = &[400.0, 402.0, 398.0];
        assert_eq!(knee(&[("1", one), ("2", two), ("4", four)]), None, "it grows to the end");
        assert_eq!(knee(&[("1", two), ("2", flat), ("4", flat)]), None, "it never grows");
        assert_eq!(knee(&[("1", &[1.0]), ("2", &[2.0]), ("4", &[2.0])]), None, "no interval");
        let wide: &[f64] = &[50.0, 400.0, 200.0];
        assert_eq!(knee(&[("1", one), ("2", wide), ("4", wide)]), None, "too wide to decide");
        assert_eq!(knee(&[("1", one), ("2", two), ("4", wide)]), None, "it may still grow");
        assert!(
            find_knees(&worked(&[("b", one), ("c", two), ("d", flat)])).is_empty(),
            "no numbers"
        );
    }
}
