//! The figures of series.

use super::{Cell, Column, Face, Table, Tone, Value, percentiles};
use crate::format::{count, plain};
use punctual_bundle::summary::{CorrectedSummary, SeriesSummary, Summary, VerdictWord};
use std::collections::BTreeMap;

const NAME: usize = 28;
/// Series in a terminal; beyond it, those with the largest maxima.
pub(crate) const SHOWN_SERIES: usize = 32;

/// A row of the table for a series.
pub struct FigureRow<'a> {
    pub name: String,
    pub summary: &'a SeriesSummary,
    /// Whether its run was interrupted.
    pub cut_off: bool,
}

/// One row per series, the worst first if there are many; below it the figures corrected for
/// coordinated omission, if they differ.
pub fn table<'a>(title: impl Into<String>, series: impl Iterator<Item = FigureRow<'a>>) -> Table {
    let mut series: Vec<FigureRow<'_>> = series.collect();
    if series.len() > SHOWN_SERIES {
        series.sort_by_key(|row| std::cmp::Reverse(row.summary.max));
    }
    let summaries: Vec<&SeriesSummary> = series.iter().map(|row| row.summary).collect();
    let shown = percentiles::sorted(summaries.iter().flat_map(|s| s.percentiles.keys()));
    let stated = summaries.iter().any(|s| !s.requirements.is_empty());
    // For a workload both are the missed periods: one column is enough.
    let apart = summaries.iter().any(|s| s.overruns != s.skipped);
    let mut table = Table::new(title, columns(&shown, stated, apart))
        .rows(series.iter().map(|of| row(of, &shown, stated, apart)))
        .shown(SHOWN_SERIES, usize::MAX);
    table.sortable = series.len() > 1;
    let mut needs: Vec<_> = summaries
        .iter()
        .flat_map(|s| &s.unsupported_percentiles)
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .collect();
    needs.sort_by_key(|(_, n)| **n);
    if !needs.is_empty() && summaries.iter().any(|s| s.count > 0) {
        let needs = needs.iter().map(|(p, n)| format!("p{} {}", plain(p), count(**n)));
        let missing = if shown.is_empty() { "percentiles" } else { "further percentiles" };
        let needs = needs.collect::<Vec<_>>().join(", ");
        table.remark(Tone::Faint, format!("too few samples for {missing}; needed: {needs}"));
    }
    if summaries.iter().any(|s| larger(s).is_some()) {
        table.beside = "corrected";
        table.remark(
            Tone::Faint,
            "corrected: with the latencies that a periodic task would have seen in the periods \
             missed while late (coordinated omission)",
        );
    }
    table
}

/// Every series with its phase.
pub fn named(summary: &Summary) -> impl Iterator<Item = (String, &SeriesSummary)> {
    summary.phases.iter().flat_map(|phase| {
        phase.series.iter().map(|series| (format!("{}/{}", phase.name, series.name), series))
    })
}

/// The corrected figures, if any of them is larger than the plain one: a smaller one would only
/// show that short waits were filled in.
fn larger(s: &SeriesSummary) -> Option<&CorrectedSummary> {
    s.corrected.as_ref().filter(|of| {
        let plain = |p: &String| s.percentiles.get(p);
        s.mean.is_none_or(|mean| of.mean > mean)
            || of.percentiles.iter().any(|(p, ns)| plain(p).is_none_or(|plain| ns > plain))
    })
}

/// Whether a page moves this common percentile to the details.
pub(crate) fn is_detail(percentile: &str) -> bool {
    percentile.parse::<f64>().is_ok_and(|p| p < 99.0 && p != 50.0)
}

const SKIPPED: &str = "missed periods (coordinated omission): the corrected figures include them";

/// `apart`: overruns and skipped releases differ.
fn columns(shown: &[String], stated: bool, apart: bool) -> Vec<Column> {
    let mut columns = vec![Column::text("series", 0).at_most(NAME).shrinking()];
    if stated {
        columns.push(Column::text("verdict", 0).only(Face::Page));
    }
    columns.extend([
        Column::figures("CPU", 6).at_most(12).only(Face::Terminal),
        Column::text("scheduling", 8).at_most(18).only(Face::Terminal),
        Column::figures("samples", 0),
        Column::figures("min", 0),
        Column::figures("mean", 2),
    ]);
    columns.extend(shown.iter().map(|p| match is_detail(p) {
        true => percentiles::column(p).only(Face::Terminal),
        false => percentiles::column(p),
    }));
    columns.extend([
        Column::figures("max", 0).meaning("the worst of all samples, exact"),
        Column::figures("std dev", 8),
    ]);
    match apart {
        false => columns.push(Column::figures("overruns", 0).meaning(SKIPPED)),
        true => columns.extend([
            Column::figures("overruns", 0)
                .meaning("releases that passed while the cycle before ran, whose cycle came late"),
            Column::figures("skipped", 0).meaning(SKIPPED),
        ]),
    }
    columns.extend([
        Column::figures("lost", 0).meaning("samples lost after the measurement: in no figure")
    ]);
    columns
}

fn row(of: &FigureRow<'_>, shown: &[String], stated: bool, apart: bool) -> Vec<Cell> {
    let s = of.summary;
    let corrected = larger(s);
    let beside = |cell: Cell, plain: Option<f64>, corrected: Option<f64>| Cell {
        beside: corrected.filter(|ns| plain.is_none_or(|plain| *ns > plain)).map(Value::Time),
        ..cell
    };
    let whole = |ns: Option<i64>| Cell::time_or(ns.map(|ns| ns as f64), "none");
    let mut cells = vec![header(of)];
    if stated {
        cells.push(verdicts(s));
    }
    let scheduling = if s.real_time { Tone::Plain } else { Tone::Bad };
    cells.extend([
        Cell::text(&s.cpus),
        Cell::text(&s.scheduling).tone(scheduling),
        Cell { beside: corrected.map(|c| Value::Count(c.count)), ..Cell::count(s.count) },
        whole(s.min),
        beside(Cell::time_or(s.mean, "none"), s.mean, corrected.map(|c| c.mean)),
    ]);
    cells.extend(shown.iter().map(|p| {
        let of = |all: &BTreeMap<String, i64>| all.get(p).map(|ns| *ns as f64);
        let cell = percentiles::cell(p, &s.percentiles, &s.unsupported_percentiles, s.count);
        beside(cell, of(&s.percentiles), corrected.and_then(|c| of(&c.percentiles)))
    }));
    let stddev = match s.stddev {
        None if s.count > 0 => Cell::from(Value::Unknown),
        stddev => Cell::time_or(stddev, "none"),
    };
    cells.extend([max(s), stddev, Cell::losses(s.overruns)]);
    cells.extend(apart.then(|| Cell::losses(s.skipped)));
    cells.push(Cell::losses(s.lost));
    cells
}

/// The maximum of a series; its lower bound if the sample had not ended.
pub fn max(s: &SeriesSummary) -> Cell {
    let max = Cell::time_or(s.max.map(|ns| ns as f64), "none").strong();
    match is_max_not_ended(s) {
        true => max.label("not ended", Tone::Uncertain),
        false => max,
    }
}

/// Whether the maximum is the lower bound of a sample that had not ended.
pub(crate) fn is_max_not_ended(s: &SeriesSummary) -> bool {
    s.unfinished.is_some_and(|one| !one.ended && s.max == Some(one.at_least.ns()))
}

fn header(of: &FigureRow<'_>) -> Cell {
    let s = of.summary;
    let cpus = if s.cpus.is_empty() { String::new() } else { format!("CPU {} · ", s.cpus) };
    let mut cell = Cell::name(&of.name).sub(format!("{cpus}{}", s.scheduling));
    if !s.real_time {
        cell = cell.label("not real-time", Tone::Uncertain);
    }
    if of.cut_off {
        cell = cell.label("cut off", Tone::Uncertain);
    }
    cell
}

/// The verdicts on a series in short: the gravest, and on how many requirements.
fn verdicts(s: &SeriesSummary) -> Cell {
    let all = || s.requirements.iter().map(|r| r.verdict);
    let Some(gravest) = VerdictWord::gravest(all()) else { return Cell::absent("none") };
    let number = all().filter(|verdict| *verdict == gravest).count();
    let of = s.requirements.len();
    let many = if number == of { of.to_string() } else { format!("{number} of {of}") };
    let mut cell = Cell::from(gravest);
    if let Value::Verdict(_, word) = &mut cell.value {
        *word = format!("{many} {word}");
    }
    cell
}
