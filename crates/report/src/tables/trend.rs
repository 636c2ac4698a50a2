//! Figures of a history: the level that each has now, and the changes before it.

use super::{Cell, Column, Table, Tone};
use crate::format::{count, counted, micros, plain};
use punctual_bundle::baseline::{TrendFigure, TrendHistory, TrendLevel, TrendRun};
use punctual_core::Nanos;

pub fn title(history: &TrendHistory) -> String {
    let parts = [&history.experiment, &history.machine, &history.kernel].map(|part| plain(part));
    let [experiment, machine, kernel] = parts;
    format!("{experiment}, {machine}, kernel {kernel}")
}

/// Of how many runs it is, from when to when.
pub fn extent(history: &TrendHistory) -> String {
    let day = |run: &TrendRun| run.created.strftime("%F").to_string();
    let runs = counted(history.runs.len() as u64, "run");
    match (history.runs.first(), history.runs.last()) {
        (Some(first), Some(last)) => format!("{runs}, {} to {}", day(first), day(last)),
        _ => runs,
    }
}

/// A line for each run, the newest first.
pub fn runs(history: &TrendHistory) -> Table {
    let columns = vec![
        Column::figures("run", 0),
        Column::text("began", 0).meaning("UTC"),
        Column::text("commit", 1),
        Column::text("verdict", 0).meaning("of its requirements, without the baseline"),
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
    Table::new("all runs, the newest first", columns).rows(rows).shown(1_000, 1_000)
}

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
    let shown = of_level(figure, level);
    let change = level
        .by
        .zip(shown)
        .map_or_else(|| Cell::text(""), |(by, words)| Cell::figure(by, words).tone(tone));
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
    between(level.interval?, figure.is_time)
}

/// How far a level is from the one before, in words; `None` for the first.
pub fn change(figure: &TrendFigure, level: &TrendLevel) -> Option<String> {
    let by = of_level(figure, level)?;
    let runs = counted((level.runs[1] - level.runs[0]) as u64, "run");
    Some(match interval_words(figure, level) {
        Some(interval) => format!("{by} (95 %: {interval}), {runs}"),
        None => format!("{by}, {runs}"),
    })
}

/// A value in words: µs, or a count.
pub fn value_words(value: f64, is_time: bool) -> String {
    match is_time {
        true => micros(Nanos(value as i64)),
        false => count(value.max(0.0) as u64),
    }
}

/// How far a level is from the one before.
fn of_level(figure: &TrendFigure, level: &TrendLevel) -> Option<String> {
    let place = figure.levels.iter().position(|other| other.runs == level.runs)?;
    let before = place.checked_sub(1).and_then(|place| figure.levels[place].median);
    let medians = before.zip(level.median).map(|(before, now)| [before, now]);
    by_words(level.by?, figure.is_time, medians)
}

/// A factor, or a difference; from a level of 0 to another there is no factor: their difference.
pub fn by_words(by: f64, is_time: bool, medians: Option<[f64; 2]>) -> Option<String> {
    match (is_time, medians) {
        (false, _) => Some(format!("{by:+.0}")),
        (true, _) if is_factor(by) => Some(format!("×{by:.2}")),
        (true, medians) => {
            let [before, now] = medians?;
            let sign = if now < before { "-" } else { "+" };
            Some(format!("{sign}{} µs", value_words((now - before).abs(), true)))
        }
    }
}

/// The ends of an interval; none where one of them is no factor.
pub fn between(interval: [f64; 2], is_time: bool) -> Option<String> {
    let is_known = !is_time || interval.into_iter().all(is_factor);
    let [low, high] = is_known.then(|| interval.map(|end| by_words(end, is_time, None)))?;
    Some(format!("{} to {}", low?, high?))
}

fn is_factor(by: f64) -> bool {
    by.is_finite() && by > 0.0
}
