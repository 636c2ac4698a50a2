//! Published results beside those of a run.

use super::{Cell, Column, Table, Tone};
use crate::format::count_text;
use crate::published::{format_amount, trend_reason};
use punctual_bundle::summary::{FigureReading, PublishedSummary, ResultSummary};

const TEXT: usize = 44;

pub(crate) fn published_table(published: &PublishedSummary) -> Table {
    let columns = vec![
        Column::text("result", 0).at_most(TEXT),
        Column::text("published", 0).at_most(TEXT),
        Column::figures("measured", 0),
        Column::text("trend", 0),
        Column::text("reason", 1).at_most(TEXT).with_listing(),
    ];
    let rows = published.results.iter().map(result_row);
    let mut table = Table::new("published and measured figures", columns)
        .with_rows(rows)
        .with_row_limit(200, 200);
    table.add_remark(Tone::Faint, format!("published: {}", published.source.trim_end_matches('.')));
    table.add_remark(
        Tone::Faint,
        "absolute figures depend on the machine; the trend must be reproduced",
    );
    table
}

fn result_row(result: &ResultSummary) -> Vec<Cell> {
    let trend = match (&result.shape, result.reproduced) {
        (None, _) => Cell::default(),
        (Some(_), Some(true)) => Cell::verdict("✓", "reproduced", Tone::Good),
        (Some(_), Some(false)) => Cell::verdict("✗", "not reproduced", Tone::Bad),
        (Some(_), None) => Cell::verdict("?", "open", Tone::Uncertain),
    };
    let because = Cell::text(trend_reason(result).unwrap_or_default());
    vec![
        Cell::text(&result.what),
        Cell::text(&result.published),
        result.here.as_ref().map_or_else(|| Cell::absent("–"), reading_cell),
        trend,
        Cell { sub: result.shape.clone(), ..because },
    ]
}

fn reading_cell(here: &FigureReading) -> Cell {
    let cell = Cell::figure(here.value, format_amount(here.value, &here.unit));
    match (here.count, here.series) {
        (Some(samples), 1) => cell.sub(format!("of {}", count_text(samples))),
        (Some(samples), series) => {
            cell.sub(format!("of {} in {series} series", count_text(samples)))
        }
        (None, _) => cell,
    }
}
