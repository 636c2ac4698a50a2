//! Heat maps: for each series, the maximum and the percentiles over the axes.

use crate::format::micros_f64;
use crate::html::table::{Cell, Column, Table};
use crate::html::text::name;
use crate::tables::lab_figures::{figure, figures_place, place_of};
use punctual_bundle::lab::{AxisDocument, CellDocument, CellState, LabDocument};
use punctual_bundle::summary::VerdictWord;

/// Figures of a map, the maximum first.
const METRICS: [(&str, &str); 5] =
    [("max", "worst"), ("p99.9", "p99.9"), ("p99", "p99"), ("p50", "median"), ("min", "min")];
/// An axis with more values than this becomes rows.
const COLUMNS: usize = 6;
const CLASSES: [&str; 10] =
    ["heat0", "heat1", "heat2", "heat3", "heat4", "heat5", "heat6", "heat7", "heat8", "heat9"];

/// A map for each series.
pub fn tables(lab: &LabDocument) -> Vec<Table> {
    let (rows, across) = arrangement(&lab.axes);
    let all = lab.series();
    // The phase is added if the series' name alone is ambiguous.
    let title = |series: &(String, String)| {
        let alike = all.iter().filter(|other| other.1 == series.1).count();
        name(&if alike > 1 {
            format!("{}, phase {}", series.1, series.0)
        } else {
            series.1.clone()
        })
    };
    all.iter().map(|series| table(lab, series, &title(series), rows, across)).collect()
}

/// The axes in rows, and the last one in columns if there are several and it is short.
fn arrangement(axes: &[AxisDocument]) -> (&[AxisDocument], Option<&AxisDocument>) {
    match axes {
        [rows @ .., last] if !rows.is_empty() && last.values.len() <= COLUMNS => (rows, Some(last)),
        all => (all, None),
    }
}

fn table(
    lab: &LabDocument,
    series: &(String, String),
    title: &str,
    rows: &[AxisDocument],
    across: Option<&AxisDocument>,
) -> Table {
    let values: Vec<Option<&String>> =
        across.map_or(vec![None], |axis| axis.values.iter().map(Some).collect());
    let mut columns = vec![Column::text(
        &rows.iter().map(|axis| name(&axis.name)).collect::<Vec<_>>().join(" · "),
    )];
    let shown: Vec<(&str, &str)> = METRICS
        .into_iter()
        .filter(|(metric, _)| lab.cells.iter().any(|cell| figure(cell, series, metric).is_some()))
        .collect();
    for (_, title) in &shown {
        columns.extend(values.iter().map(|value| match value {
            Some(value) => Column::figures(&format!("{title}, {}", name(value))),
            None => Column::figures(title),
        }));
    }
    let row_keys = keys(lab, rows);
    let row = |key: &Vec<String>| {
        let words: Vec<String> = key.iter().map(|value| name(value)).collect();
        let mut cells =
            vec![Cell::text(if words.is_empty() { "all".to_owned() } else { words.join(" · ") })];
        for (metric, _) in &shown {
            let scale = HeatScale::of(lab, series, metric);
            cells.extend(values.iter().map(|value| {
                let found = cell_of(lab, rows, key, across, *value);
                found.map_or(Cell::default(), |(number, cell)| {
                    of_cell(lab, number, cell, series, metric, &scale)
                })
            }));
        }
        cells
    };
    Table {
        caption: format!(
            "{title}: latency in µs; the colour scale of each metric is logarithmic, from its \
             smallest to its largest value. Each value links to its cell.",
        ),
        columns,
        rows: row_keys.iter().map(row).collect(),
        sortable: true,
    }
}

/// The combinations of values of these axes that cells have, in the order of the cells.
fn keys(lab: &LabDocument, rows: &[AxisDocument]) -> Vec<Vec<String>> {
    let mut keys: Vec<Vec<String>> = Vec::new();
    for cell in &lab.cells {
        let key: Vec<String> = rows
            .iter()
            .map(|axis| cell.axes.get(&axis.name).cloned().unwrap_or_default())
            .collect();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn cell_of<'a>(
    lab: &'a LabDocument,
    rows: &[AxisDocument],
    key: &[String],
    across: Option<&AxisDocument>,
    value: Option<&String>,
) -> Option<(usize, &'a CellDocument)> {
    lab.cells.iter().enumerate().find(|(_, cell)| {
        rows.iter()
            .zip(key)
            .all(|(axis, requested)| cell.axes.get(&axis.name).is_some_and(|own| own == requested))
            && across.is_none_or(|axis| cell.axes.get(&axis.name) == value)
    })
}

/// A figure that links to all figures of its cell.
fn of_cell(
    lab: &LabDocument,
    number: usize,
    cell: &CellDocument,
    series: &(String, String),
    metric: &str,
    scale: &HeatScale,
) -> Cell {
    let Some(ns) = figure(cell, series, metric) else {
        return match cell.state {
            CellState::Failed => Cell::missing("failed"),
            CellState::Waiting => Cell::missing("not run"),
            CellState::Done => Cell::missing("–"),
        };
    };
    let mut made = Cell {
        class: scale.class(ns),
        exact: Some(format!("{ns} ns, {}", cell.name)),
        link: place_of(cell, series).and_then(|place| figures_place(lab, number, place)),
        ..Cell::figure(micros_f64(ns as f64), ns as f64)
    };
    if metric == "max" && verdict_of(cell, series) == Some(VerdictWord::NotMet) {
        made = made.badge("not met", "bad");
    }
    made
}

/// The worst verdict on a series of a cell.
fn verdict_of(cell: &CellDocument, series: &(String, String)) -> Option<VerdictWord> {
    cell.series[place_of(cell, series)?]
        .requirements
        .iter()
        .map(|r| r.verdict)
        .find(|verdict| *verdict == VerdictWord::NotMet)
}

/// Colours by the logarithm of a latency, from the smallest to the largest of all cells.
struct HeatScale {
    low: f64,
    high: f64,
}

impl HeatScale {
    fn of(lab: &LabDocument, series: &(String, String), metric: &str) -> HeatScale {
        let logs = lab
            .cells
            .iter()
            .filter_map(|cell| figure(cell, series, metric))
            .map(|ns| (ns.max(1) as f64).ln());
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        HeatScale { low, high }
    }

    fn class(&self, ns: i64) -> &'static str {
        // A total range of a factor of 2 or less deserves no alarming colours.
        let span = (self.high - self.low).max(2f64.ln());
        let share = ((ns.max(1) as f64).ln() - self.low) / span;
        CLASSES[((share * 10.0) as usize).min(9)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_map_colours_are_logarithmic() {
        let scale = HeatScale { low: 10_000f64.ln(), high: 10_000_000f64.ln() };
        assert_eq!(
            [scale.class(10_000), scale.class(300_000), scale.class(10_000_000)],
            ["heat0", "heat4", "heat9"]
        );
        let narrow = HeatScale { low: 10_000f64.ln(), high: 10_100f64.ln() };
        assert_eq!(narrow.class(10_100), "heat0");
    }
}
