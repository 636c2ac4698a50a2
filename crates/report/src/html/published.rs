//! Published results beside those of the run.

use super::ReportInput;
use super::table::{Cell, Column, Table};
use super::text::{clip, name};
use crate::format::{count, plain};
use crate::published::{amount, because};
use punctual_bundle::summary::{PublishedSummary, Reading, ResultSummary};

/// Rows of such a table; the rest is counted.
const ROWS: usize = 200;
/// Characters of a text.
const TEXT: usize = 400;

/// A table for each bundle whose experiment has published figures.
pub fn tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Table> {
    let known = inputs.iter().zip(labels);
    let of = known.filter_map(|(input, label)| Some((label, input.summary.published.as_ref()?)));
    of.map(|(label, published)| table(published, (inputs.len() > 1).then_some(label))).collect()
}

fn table(published: &PublishedSummary, label: Option<&String>) -> Table {
    let more = published.results.len().saturating_sub(ROWS);
    let more = if more > 0 { format!(" {more} more are not shown.") } else { String::new() };
    let label = label.map_or(String::new(), |label| format!("{}: ", name(label)));
    Table {
        caption: format!(
            "{label}Published figures: {}. Absolute figures depend on the machine; the trend must \
             be reproduced.{more}",
            short(published.source.trim_end_matches('.'))
        ),
        columns: vec![
            Column::text("Result"),
            Column::text("Published"),
            Column::figures("Here"),
            Column::text("Shape"),
            Column::text("Because"),
        ],
        rows: published.results.iter().take(ROWS).map(row).collect(),
        sortable: false,
    }
}

fn row(result: &ResultSummary) -> Vec<Cell> {
    let shape = match (&result.shape, result.reproduced) {
        (None, _) => Cell::default(),
        (Some(_), Some(true)) => Cell::default().badge("trend reproduced", "good"),
        (Some(_), Some(false)) => Cell::default().badge("trend not reproduced", "bad"),
        (Some(_), None) => Cell::default().badge("open", "warn"),
    };
    let because = Cell::text(because(result).unwrap_or_default());
    let because = match &result.shape {
        Some(shape) => because.sub(short(shape)),
        None => because,
    };
    let here = result.here.as_ref().map_or(Cell::missing("–"), reading);
    vec![
        Cell::text(short(&result.what)),
        Cell::text(short(&result.published)),
        here,
        shape,
        because,
    ]
}

fn reading(here: &Reading) -> Cell {
    let cell = Cell::figure(amount(here.value, &here.unit), here.value);
    let of = match (here.count, here.series) {
        (Some(samples), 1) => format!("of {}", count(samples)),
        (Some(samples), series) => format!("of {} in {series} series", count(samples)),
        (None, _) => return cell,
    };
    cell.sub(of)
}

fn short(text: &str) -> String {
    clip(&plain(&clip(text, TEXT)), TEXT)
}
