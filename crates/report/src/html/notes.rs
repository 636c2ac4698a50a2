//! Results of measures besides their samples: counts against independent ones, the cost of the
//! clock, further figures and tables.

use super::ReportInput;
use super::table::{Cell, Column, Table};
use super::text::{clip, name};
use crate::format::plain;
use crate::notes::{allowed, number, unavailable};
use punctual_bundle::meta::MeasureMeta;
use punctual_core::{Fact, Figure, Validation};

/// Rows of any of these tables; the rest is counted.
const ROWS: usize = 200;
/// Tables of measures.
const TABLES: usize = 48;
/// Characters of a text.
const TEXT: usize = 400;

/// All tables in the order of reading; none without notes.
pub fn tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Table> {
    let measures = measures(inputs, labels);
    let mut tables: Vec<Table> =
        [validations(&measures), figures(&measures)].into_iter().flatten().collect();
    let own = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.tables.iter().map(move |table| (who, table)));
    tables.extend(own.take(TABLES).map(|(who, table)| {
        let title = format!("{}, of {who}", table.title.trim_end_matches('.'));
        Table::from(crate::tables::notes::own(title, table))
    }));
    tables
}

/// Every measure with what it is called: phase and name, and its bundle where there are several.
fn measures<'a>(
    inputs: &'a [ReportInput<'_>],
    labels: &[String],
) -> Vec<(String, &'a MeasureMeta)> {
    let mut all = Vec::new();
    for (input, label) in inputs.iter().zip(labels) {
        let bundle = if inputs.len() > 1 { format!("{label}: ") } else { String::new() };
        for phase in &input.bundle.phases {
            let called = |measure: &MeasureMeta| {
                format!("{bundle}{}/{}", name(&phase.meta.name), name(&measure.name))
            };
            all.extend(phase.meta.measures.iter().map(|measure| (called(measure), measure)));
        }
    }
    all
}

fn short(text: &str) -> String {
    clip(&plain(&clip(text, TEXT)), TEXT)
}

fn bounded(caption: &str, columns: Vec<Column>, mut rows: Vec<Vec<Cell>>) -> Option<Table> {
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let caption = if more > 0 {
        format!("{caption} {more} more rows are left out.")
    } else {
        caption.to_owned()
    };
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: false })
}

fn validations(measures: &[(String, &MeasureMeta)]) -> Option<Table> {
    let columns = vec![
        Column::text("Measure"),
        Column::text("What"),
        Column::figures("Reported").meaning("by the workload"),
        Column::figures("Counted").meaning("by an independent source"),
        Column::text("Verdict"),
        Column::text("Counted by"),
    ];
    let row = |who: &str, one: &Validation| {
        let counted = match &one.counted {
            Fact::Known(counted) => Cell::count(*counted),
            other => Cell::missing("unavailable").sub(short(&unavailable(other))),
        };
        let (verdict, class) = match one.agrees {
            Some(true) => ("agrees", "good"),
            Some(false) => ("differs", "bad"),
            None if one.counted.known().is_some() => ("undecided", "warn"),
            None => ("not counted", "warn"),
        };
        let source = Cell::text(short(&one.source));
        let source = match &one.explanation {
            Some(explanation) => source.sub(short(explanation)),
            None => source,
        };
        let verdict = Cell::default().badge(verdict, class);
        let verdict = match &one.tolerance {
            Some(tolerance) => verdict.sub(short(&allowed(tolerance))),
            None => verdict,
        };
        vec![
            Cell::text(who),
            Cell::text(short(&one.what)),
            Cell::count(one.claimed),
            counted,
            verdict,
            source,
        ]
    };
    let all = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.validations.iter().map(|one| row(who, one)));
    bounded("Counts of the workloads against independent counts.", columns, all.collect())
}

fn figures(measures: &[(String, &MeasureMeta)]) -> Option<Table> {
    let columns = vec![
        Column::text("Measure"),
        Column::text("Figure"),
        Column::figures("Value"),
        Column::figures("Of").meaning("number of events"),
    ];
    let figure = |who: &str, one: &Figure| {
        let value = Cell::figure(short(&number(one.value, &one.unit)), one.value);
        let of = one.count.map_or(Cell::default(), Cell::count);
        vec![Cell::text(who), Cell::text(short(&one.title)), value, of]
    };
    let mut rows = Vec::new();
    for (who, measure) in measures {
        if let Fact::Known(cost) = &measure.notes.clock_cost {
            let title =
                format!("one reading of the clock, median, in every sample: {}", cost.clock);
            let spread = format!("min {}, p99 {}, max {}", cost.min, cost.p99, cost.max);
            let value = Cell::figure(format!("{} ns", cost.median.ns()), cost.median.ns() as f64)
                .sub(spread);
            rows.push(vec![
                Cell::text(who),
                Cell::text(short(&title)),
                value,
                Cell::count(cost.count),
            ]);
        }
        rows.extend(measure.notes.figures.iter().map(|one| figure(who, one)));
    }
    bounded(
        "Cost of the clock, and further figures. Nothing is subtracted from any sample.",
        columns,
        rows,
    )
}
