//! Heat maps: for each series, the maximum and the percentiles over the axes.

use crate::format::micros_f64;
use crate::html::table::{Cell, Column, Table};
use crate::html::text::format_name;
use crate::tables::lab_figures::{cell_figure, figures_place, place_of};
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
pub(crate) fn heat_tables(lab: &LabDocument) -> Vec<Table> {
    let (rows, across) = arrange_axes(&lab.axes);
    let all_series = lab.all_series();
    // The phase is added if the series' name alone is ambiguous.
    let title = |series: &(String, String)| {
        let alike = all_series.iter().filter(|other| other.1 == series.1).count();
        format_name(&if alike > 1 {
            format!("{}, phase {}", series.1, series.0)
        } else {
            series.1.clone()
        })
    };
    all_series.iter().map(|series| heat_table(lab, series, &title(series), rows, across)).collect()
}

/// The axes in rows, and the last one in columns if there are several and it is short.
fn arrange_axes(axes: &[AxisDocument]) -> (&[AxisDocument], Option<&AxisDocument>) {
    match axes {
        [rows @ .., last] if !rows.is_empty() && last.values.len() <= COLUMNS => (rows, Some(last)),
        all => (all, None),
    }
}

fn heat_table(
    lab: &LabDocument,
    series: &(String, String),
    title: &str,
    rows: &[AxisDocument],
    across: Option<&AxisDocument>,
) -> Table {
    let values: Vec<Option<&String>> =
        across.map_or(vec![None], |axis| axis.values.iter().map(Some).collect());
    let mut columns = vec![Column::text(
        &rows.iter().map(|axis| format_name(&axis.name)).collect::<Vec<_>>().join(" · "),
    )];
    let shown_metrics: Vec<(&str, &str)> = METRICS
        .into_iter()
        .filter(|(metric, _)| {
            lab.cells.iter().any(|cell| cell_figure(cell, series, metric).is_some())
        })
        .collect();
    for (_, title) in &shown_metrics {
        columns.extend(values.iter().map(|value| match value {
            Some(value) => Column::figures(&format!("{title}, {}", format_name(value))),
            None => Column::figures(title),
        }));
    }
    let row_keys = value_combinations(lab, rows);
    let row = |key: &Vec<String>| {
        let words: Vec<String> = key.iter().map(|value| format_name(value)).collect();
        let mut cells =
            vec![Cell::text(if words.is_empty() { "all".to_owned() } else { words.join(" · ") })];
        for (metric, _) in &shown_metrics {
            let scale = HeatScale::from_cells(lab, series, metric);
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
fn value_combinations(lab: &LabDocument, rows: &[AxisDocument]) -> Vec<Vec<String>> {
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
    let Some(ns) = cell_figure(cell, series, metric) else {
        return match cell.state {
            CellState::Failed => Cell::missing_value("failed"),
            CellState::Waiting => Cell::missing_value("not run"),
            CellState::Done => Cell::missing_value("–"),
        };
    };
    let mut heat_cell = Cell {
        class: scale.colour_class(ns),
        exact: Some(format!("{ns} ns, {}", cell.name)),
        link: place_of(cell, series).and_then(|place| figures_place(lab, number, place)),
        ..Cell::figure(micros_f64(ns as f64), ns as f64)
    };
    if metric == "max" && verdict_of(cell, series) == Some(VerdictWord::NotMet) {
        heat_cell = heat_cell.with_badge("not met", "bad");
    }
    heat_cell
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
    fn from_cells(lab: &LabDocument, series: &(String, String), metric: &str) -> HeatScale {
        let logs = lab
            .cells
            .iter()
            .filter_map(|cell| cell_figure(cell, series, metric))
            .map(|ns| (ns.max(1) as f64).ln());
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        HeatScale { low, high }
    }

    fn colour_class(&self, ns: i64) -> &'static str {
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
            [
                scale.colour_class(10_000),
                scale.colour_class(300_000),
                scale.colour_class(10_000_000)
            ],
            ["heat0", "heat4", "heat9"]
        );
        let narrow = HeatScale { low: 10_000f64.ln(), high: 10_100f64.ln() };
        assert_eq!(narrow.colour_class(10_100), "heat0");
    }
}
