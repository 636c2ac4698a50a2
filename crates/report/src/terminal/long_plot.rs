//! The long plot: a line for each five minutes of a series.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format::{count, micros, plain};
use punctual_bundle::Line;
use punctual_core::Nanos;

/// Where nothing was measured for longer than this between two lines, that is shown.
const GAP: Nanos = Nanos::from_secs(5);

/// All lines of these series by name, one series after the other, in UTC.
pub fn long_plot(series: &[(String, Vec<Line>)], options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    for (name, lines) in series.iter().filter(|(_, lines)| !lines.is_empty()) {
        out.gap();
        out.line(&format!("{}  (µs; each line from the time shown, UTC)", plain(name)));
        let columns = vec![
            Column::left("from", 0),
            Column::right("min", 4),
            Column::right("samples", 1),
            Column::right("lost", 0),
            Column::right("missed", 3),
            Column::right("p50", 2),
            Column::right("p99", 0),
            Column::right("p99.9", 2),
            Column::right("max", 0),
        ];
        let mut rows = Vec::new();
        let mut before: Option<&Line> = None;
        for line in lines {
            rows.extend(before.and_then(|before| gap(before, line)));
            rows.push(row(line));
            before = Some(line);
        }
        table::write(&mut out, columns, rows);
    }
    out.finish()
}

fn time(ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(ns.into())
        .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn row(line: &Line) -> Vec<Cell> {
    let percentile = |p| line.percentile(p).map_or("-".to_owned(), micros);
    let minutes = format!("{:.1}", line.length.as_secs_f64() / 60.0);
    vec![
        Cell::plain(time(line.start)),
        Cell::plain(minutes),
        Cell::plain(count(line.losses.recorded)),
        Cell::plain(count(line.losses.dropped)),
        Cell::plain(count(line.losses.overruns)),
        Cell::plain(percentile(50.0)),
        Cell::plain(percentile(99.0)),
        Cell::plain(percentile(99.9)),
        Cell(line.max.map_or("-".to_owned(), micros), Tone::Strong),
    ]
}

/// A row for a time in which nothing was measured.
fn gap(before: &Line, line: &Line) -> Option<Vec<Cell>> {
    let end = before.start.saturating_add(before.length.ns());
    let missing = Nanos(line.start.saturating_sub(end));
    (missing > GAP).then(|| {
        let mut row = vec![
            Cell(format!("{}  gap", time(end)), Tone::Strong),
            Cell::plain(format!("{:.1}", missing.as_secs_f64() / 60.0)),
        ];
        row.extend((0..7).map(|_| Cell::plain("")));
        row
    })
}
