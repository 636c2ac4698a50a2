//! Figures of a history: the level that each has now, and the changes before it.

use super::{Cell, Column, Table, Tone};
use crate::format::{count, micros};
use punctual_bundle::baseline::{TrendFigure, TrendHistory, TrendLevel};
use punctual_core::Nanos;

/// A line for each level of each figure, the newest last.
pub fn levels(history: &TrendHistory) -> Table {
    let columns = vec![
        Column::text("figure", 0).shrinking(),
        Column::text("since", 0),
        Column::figures("runs", 2),
        Column::figures("median", 0).meaning("of the runs of that level: µs, or a count"),
        Column::figures("change", 0).meaning("from the level before: a factor, or a difference"),
        Column::text("95 %", 1).meaning("the interval of the change"),
        Column::text("with it changed", 3).wide(),
    ];
    let rows = history.figures.iter().flat_map(|figure| {
        figure.levels.iter().enumerate().map(|(place, level)| row(history, figure, level, place))
    });
    Table::new("levels of each figure, times in µs", columns).rows(rows)
}

fn row(
    history: &TrendHistory,
    figure: &TrendFigure,
    level: &TrendLevel,
    place: usize,
) -> Vec<Cell> {
    let since =
        history.runs.get(level.runs[0]).map(|run| run.created.strftime("%F %R").to_string());
    let name = if place == 0 { Cell::name(figure.name.clone()) } else { Cell::text("") };
    let is_worse = level.by.is_some_and(|by| by > if figure.is_time { 1.0 } else { 0.0 });
    let tone = match level.by {
        None => Tone::Plain,
        Some(_) if is_worse => Tone::Bad,
        Some(_) => Tone::Good,
    };
    let change = level.by.map_or_else(
        || Cell::text(""),
        |by| Cell::figure(by, by_words(by, figure.is_time)).tone(tone),
    );
    let interval = level.interval.map(|of| of.map(|end| by_words(end, figure.is_time)));
    vec![
        name,
        Cell::text(since.unwrap_or_default()),
        Cell::count((level.runs[1] - level.runs[0]) as u64),
        level.median.map_or_else(
            || Cell::absent("no run has it"),
            |median| Cell::figure(median, value_words(median, figure.is_time)),
        ),
        change,
        Cell::text(interval.map_or(String::new(), |[low, high]| format!("{low} to {high}"))),
        Cell::text(level.changed.join("; ")),
    ]
}

/// A value in words: µs, or a count.
pub fn value_words(value: f64, is_time: bool) -> String {
    match is_time {
        true => micros(Nanos(value as i64)),
        false => count(value.max(0.0) as u64),
    }
}

/// A change in words.
pub fn by_words(by: f64, is_time: bool) -> String {
    if is_time { format!("×{by:.2}") } else { format!("{by:+.0}") }
}
