//! Figures of a history: the current level of each, and earlier changes.

use super::{Cell, Column, Table, Tone};
use crate::format::{count_text, count_with_noun, escape_unsafe, micros_text};
use punctual_bundle::baseline::{TrendFigure, TrendHistory, TrendLevel, TrendRun};
use punctual_core::Nanos;

pub(crate) fn history_title(history: &TrendHistory) -> String {
    let parts =
        [&history.experiment, &history.machine, &history.kernel].map(|part| escape_unsafe(part));
    let [experiment, machine, kernel] = parts;
    format!("{experiment}, {machine}, kernel {kernel}")
}

/// The number of runs and their period.
pub(crate) fn format_extent(history: &TrendHistory) -> String {
    let day = |run: &TrendRun| run.created.strftime("%F").to_string();
    let runs = count_with_noun(history.runs.len() as u64, "run");
    let accepted = history.accepted.map_or(String::new(), |of| {
        format!("; compared with the runs since {}, which was accepted", of.strftime("%F %R UTC"))
    });
    match (history.runs.first(), history.runs.last()) {
        (Some(first), Some(last)) => format!("{runs}, {} to {}{accepted}", day(first), day(last)),
        _ => runs,
    }
}

/// One row per run, the newest first.
pub(crate) fn run_table(history: &TrendHistory) -> Table {
    let columns = vec![
        Column::figures("run", 0),
        Column::text("began", 0).with_meaning("UTC"),
        Column::text("commit", 1),
        Column::text("verdict", 0).with_meaning("of its requirements, without the baseline"),
    ];
    let row = |(place, run): (usize, &TrendRun)| {
        vec![
            Cell::count(place as u64 + 1),
            Cell::text(run.created.strftime("%F %R").to_string()),
            run.commit.clone().map_or_else(|| Cell::absent("not named"), Cell::name),
            run.verdict.map_or_else(|| Cell::absent("none asked"), Cell::from),
        ]
    };
    let rows = history.runs.iter().enumerate().rev().map(row);
    Table::new("all runs, the newest first", columns).with_rows(rows).with_row_limit(1_000, 1_000)
}

/// One row per level of each figure, the newest last.
pub(crate) fn level_table(history: &TrendHistory) -> Table {
    let columns = vec![
        Column::text("figure", 0).with_shrinking(),
        Column::text("since", 0),
        Column::figures("runs", 2),
        Column::figures("median", 0).with_meaning("of the runs of that level: µs, or a count"),
        Column::figures("change", 0)
            .with_meaning("from the level before: a factor, or a difference"),
        Column::text("95 %", 1).with_meaning("the interval of the change"),
        Column::text("with it changed", 3).with_wide_texts(),
    ];
    let rows = history.figures.iter().flat_map(|figure| {
        figure
            .levels
            .iter()
            .enumerate()
            .map(|(place, level)| level_row(history, figure, level, place))
    });
    Table::new("levels of each figure, times in µs", columns).with_rows(rows)
}

fn level_row(
    history: &TrendHistory,
    figure: &TrendFigure,
    level: &TrendLevel,
    place: usize,
) -> Vec<Cell> {
    let since =
        history.runs.get(level.runs[0]).map(|run| run.created.strftime("%F %R").to_string());
    let name = if place == 0 { Cell::name(figure.name.clone()) } else { Cell::text("") };
    let is_worse = level
        .by
        .is_some_and(|by| by > if figure.is_time && !level.is_difference { 1.0 } else { 0.0 });
    let tone = match level.by {
        None => Tone::Plain,
        Some(_) if is_worse => Tone::Bad,
        Some(_) => Tone::Good,
    };
    let change = level.by.map_or_else(
        || Cell::text(""),
        |by| Cell::figure(by, by_words(by, figure.is_time, level.is_difference)).with_tone(tone),
    );
    vec![
        name,
        Cell::text(since.unwrap_or_default()),
        Cell::count((level.runs[1] - level.runs[0]) as u64),
        level.median.map_or_else(
            || Cell::absent("no run has it"),
            |median| Cell::figure(median, value_words(median, figure.is_time)),
        ),
        change,
        Cell::text(interval_words(figure, level).unwrap_or_default()),
        Cell::text(level.changed.join("; ")),
    ]
}

fn interval_words(figure: &TrendFigure, level: &TrendLevel) -> Option<String> {
    let [low, high] = level.interval?.map(|end| by_words(end, figure.is_time, level.is_difference));
    Some(format!("{low} to {high}"))
}

/// The change from the previous level, in words; `None` for the first.
pub fn format_change(figure: &TrendFigure, level: &TrendLevel) -> Option<String> {
    let change_words = by_words(level.by?, figure.is_time, level.is_difference);
    let runs = count_with_noun((level.runs[1] - level.runs[0]) as u64, "run");
    Some(match interval_words(figure, level) {
        Some(interval) => format!("{change_words} (95 %: {interval}), {runs}"),
        None => format!("{change_words}, {runs}"),
    })
}

/// A value in words: µs, or a count.
pub(crate) fn value_words(value: f64, is_time: bool) -> String {
    match is_time {
        true => micros_text(Nanos(value as i64)),
        false => count_text(value.max(0.0) as u64),
    }
}

/// A ratio of times, or a difference: of counts, and of times without a ratio.
pub(crate) fn by_words(by: f64, is_time: bool, is_difference: bool) -> String {
    match (is_time, is_difference) {
        (false, _) => format!("{by:+.0}"),
        (true, false) if by < 10.0 => format!("×{by:.2}"),
        (true, false) => format!("×{by:.0}"),
        (true, true) if by < 0.0 => format!("-{} µs", micros_text(Nanos(-by as i64))),
        (true, true) => format!("+{} µs", micros_text(Nanos(by as i64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_a_level_of_0_there_is_a_difference_and_no_factor() {
        let level = |place: usize, by, is_difference| TrendLevel {
            runs: [place * 5, place * 5 + 5],
            median: Some(9_000.0 * place as f64),
            by,
            is_difference,
            interval: by.map(|by| [by; 2]),
            changed: Vec::new(),
        };
        let figure = |is_difference| TrendFigure {
            name: "timer p99".to_owned(),
            is_time: true,
            values: Vec::new(),
            levels: vec![level(0, None, false), level(1, Some(9_000.0), is_difference)],
        };
        let words = |of: TrendFigure| format_change(&of, &of.levels[1]).expect("a change");
        assert_eq!(words(figure(true)), "+9.00 µs (95 %: +9.00 µs to +9.00 µs), 5 runs");
        assert!(words(figure(false)).starts_with("×9000"), "a ratio is one");
        assert_eq!(format_change(&figure(true), &figure(true).levels[0]), None);
    }
}
