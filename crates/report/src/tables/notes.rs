//! Results of measures besides their samples: counts compared with independent counts, the cost of
//! the clock, further figures and tables.

use super::{Cell, Column, Table, Tone, Value};
use crate::notes::{self, format_cell, format_tolerance, uncounted_reason};
use punctual_bundle::meta::MeasureMeta;
use punctual_core::{Fact, Figure, Validation};

/// The maximum width of a cell's text in a terminal.
const WIDEST: usize = 60;
/// The maximum number of columns; a hostile bundle may hold any number.
const COLUMNS: usize = 24;

/// Counts of workloads compared with independent counts; each measure has its name.
pub(crate) fn validation_table(measures: &[(String, &MeasureMeta)]) -> Table {
    let columns = vec![
        Column::text("measure", 0),
        Column::text("what", 0),
        Column::figures("reported", 0).with_meaning("by the workload"),
        Column::figures("counted", 0).with_meaning("by an independent source"),
        Column::text("verdict", 0),
        Column::text("counted by", 0),
    ];
    let row = |who: &str, one: &Validation| {
        let counted = match &one.counted {
            Fact::Known(counted) => Cell::count(*counted),
            other => Cell::absent("unavailable").sub(uncounted_reason(other)),
        };
        vec![
            Cell::text(who),
            Cell::text(&one.what),
            Cell::count(one.claimed),
            counted,
            Cell { sub: one.tolerance.as_ref().map(format_tolerance), ..agreement_cell(one) },
            Cell { sub: one.explanation.clone(), ..Cell::text(&one.source) },
        ]
    };
    let rows = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.validations.iter().map(|one| row(who, one)));
    let title = "counts of the workloads against independent counts";
    Table::new(title, columns).with_rows(rows).with_row_limit(40, 200)
}

/// Whether a count agrees with a claim.
pub(crate) fn agreement_cell(one: &Validation) -> Cell {
    match one.agrees {
        Some(true) => Cell::verdict("✓", "agrees", Tone::Good),
        Some(false) => Cell::verdict("✗", "differs", Tone::Bad),
        None if one.counted.known_value().is_some() => {
            Cell::verdict("?", "undecided", Tone::Uncertain)
        }
        None => Cell::verdict("?", "not counted", Tone::Uncertain),
    }
}

/// The cost of the clock, and further figures.
pub(crate) fn figure_table(measures: &[(String, &MeasureMeta)]) -> Table {
    let columns = vec![
        Column::text("measure", 0),
        Column::text("figure", 0),
        Column::figures("value", 0),
        Column::figures("of", 0).with_meaning("number of events"),
    ];
    let figure = |who: &str, one: &Figure| {
        let mut value = Cell::figure(one.value, notes::format_figure(one.value, &one.unit));
        if let Some([low, high]) = one.interval {
            let [low, high] = [low, high].map(|end| notes::format_figure(end, &one.unit));
            value = value.sub(format!("{low} to {high}"));
        }
        let event_count = one.count.map_or_else(Cell::default, Cell::count);
        vec![Cell::text(who), Cell::text(&one.title), value, event_count]
    };
    let mut rows = Vec::new();
    for (who, measure) in measures {
        if let Fact::Known(cost) = &measure.notes.clock_cost {
            let title =
                format!("one reading of the clock, median, in every sample: {}", cost.clock);
            let spread = format!("min {}, p99 {}, max {}", cost.min, cost.p99, cost.max);
            let median = cost.median.ns();
            let value = Cell::figure(median as f64, format!("{median} ns")).sub(spread);
            rows.push(vec![Cell::text(who), Cell::text(title), value, Cell::count(cost.count)]);
        }
        rows.extend(measure.notes.figures.iter().map(|one| figure(who, one)));
    }
    let title = "cost of the clock, and further figures; nothing is subtracted from any sample";
    Table::new(title, columns).with_rows(rows).with_row_limit(40, 200)
}

/// Units that only mark a plain number.
const COUNTS: [&str; 3] = ["count", "id", "number"];

/// A table of a measure, called `title`. Its times use the common unit.
pub(crate) fn measure_table(title: String, of: &punctual_core::Table) -> Table {
    let is_time = |column: &punctual_core::Column| column.unit == "ns";
    let column = |(k, column): (usize, &punctual_core::Column)| {
        // Later columns are hidden first.
        let dispensable = k.min(u8::MAX.into()) as u8;
        let name = crate::format::clip_name(&column.name, 24, false);
        match column.unit.as_str() {
            "" => Column::text(name, dispensable).at_most(WIDEST),
            unit if unit == "ns" || COUNTS.contains(&unit) => {
                Column::figures(name, dispensable).at_most(WIDEST)
            }
            unit => {
                let unit = crate::format::clip_name(unit, 16, false);
                Column::figures(format!("{name} ({unit})"), dispensable).at_most(WIDEST)
            }
        }
    };
    let columns: Vec<Column> = of.columns.iter().take(COLUMNS).enumerate().map(column).collect();
    // An id is no quantity.
    let is_id = |place: usize| {
        let column = of.columns.get(place);
        column.is_some_and(|of| of.name == "tid" || matches!(&*of.unit, "id" | "number"))
    };
    let value = |(place, value): (usize, &punctual_core::Cell)| match value {
        punctual_core::Cell::Nothing => Cell::default(),
        punctual_core::Cell::Number(number) if is_id(place) => {
            Cell::figure(*number, format!("{number:.0}"))
        }
        punctual_core::Cell::Number(ns)
            if ns.is_finite() && of.columns.get(place).is_some_and(is_time) =>
        {
            Value::Time(*ns).into()
        }
        punctual_core::Cell::Number(number) => Cell::figure(*number, format_cell(value)),
        punctual_core::Cell::Text(text) => Cell::text(text),
    };
    let row = |row: &Vec<punctual_core::Cell>| {
        let mut cells: Vec<Cell> = row.iter().take(columns.len()).enumerate().map(value).collect();
        cells.resize_with(columns.len(), Cell::default);
        cells
    };
    let rows: Vec<Vec<Cell>> = of.rows.iter().map(row).collect();
    Table::new(title, columns).with_rows(rows).with_sorting().with_row_limit(40, 200)
}
