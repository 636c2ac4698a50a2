//! The long plot: one line for each five minutes of a series.

use super::ShowOptions;
use super::paint::TextPage;
use super::table;
use crate::format::escape_unsafe;
use crate::tables::{Cell, Column, Table};
use punctual_bundle::SampleLine;
use punctual_core::Nanos;

/// A longer time without measurement between two lines is shown.
const GAP: Nanos = Nanos::from_secs(5);

/// All lines of these series by name, one series after the other, in UTC.
pub fn long_plot(series: &[(String, Vec<SampleLine>)], options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    for (name, lines) in series.iter().filter(|(_, lines)| !lines.is_empty()) {
        out.push_gap();
        let heading = format!(
            "{}  ({}; each line from the time shown, UTC)",
            escape_unsafe(name),
            out.unit_name()
        );
        out.push_line(&heading);
        let columns = vec![
            Column::text("from", 0),
            Column::figures("minutes", 4),
            Column::figures("samples", 1),
            Column::figures("lost", 0),
            Column::figures("overruns", 3),
            Column::figures("p50", 2),
            Column::figures("p99", 0),
            Column::figures("p99.9", 2),
            Column::figures("max", 0),
        ];
        let mut rows = Vec::new();
        let mut before: Option<&SampleLine> = None;
        for line in lines {
            rows.extend(before.and_then(|before| gap_row(before, line)));
            rows.push(line_row(line));
            before = Some(line);
        }
        let table =
            Table::new("lines", columns).with_rows(rows).with_row_limit(usize::MAX, usize::MAX);
        table::write_body(&mut out, &table);
    }
    out.finish()
}

fn format_time(ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(ns.into())
        .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn line_row(line: &SampleLine) -> Vec<Cell> {
    let latency = |ns: Option<Nanos>| Cell::time_or(ns.map(|ns| ns.ns() as f64), "none");
    let mut row = vec![Cell::text(format_time(line.start)), minutes_cell(line.length)];
    let losses = &line.losses;
    row.extend([losses.recorded, losses.dropped, losses.skipped].map(Cell::count));
    row.extend([50.0, 99.0, 99.9].map(|p| latency(line.percentile(p))));
    row.push(latency(line.max).with_strong_tone());
    row
}

fn minutes_cell(length: Nanos) -> Cell {
    let minutes = length.as_secs_f64() / 60.0;
    Cell::figure(minutes, format!("{minutes:.1}"))
}

/// A row for a time without measurement.
fn gap_row(before: &SampleLine, line: &SampleLine) -> Option<Vec<Cell>> {
    let end = before.start.saturating_add(before.length.ns());
    let missing = Nanos(line.start.saturating_sub(end));
    (missing > GAP).then(|| {
        let mut row = vec![
            Cell::text(format!("{}  gap", format_time(end))).with_strong_tone(),
            minutes_cell(missing),
        ];
        row.extend((0..7).map(|_| Cell::default()));
        row
    })
}
