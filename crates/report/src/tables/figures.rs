//! The figures of series.

use super::{Cell, Column, Face, Table, Tone, Value, percentiles};
use crate::format::{count_text, escape_unsafe};
use punctual_bundle::summary::{CorrectedSummary, SeriesSummary, Summary, VerdictWord};
use std::collections::BTreeMap;

const NAME: usize = 28;
/// Series in a terminal; beyond it, those with the largest maxima.
pub(crate) const SHOWN_SERIES: usize = 32;

/// A row of the table for a series.
pub(crate) struct FigureRow<'a> {
    pub name: String,
    pub summary: &'a SeriesSummary,
    /// Whether its run was interrupted.
    pub cut_off: bool,
}

/// One row per series, the worst first if there are many; below it the figures corrected for
/// coordinated omission, if they differ.
pub(crate) fn figure_table<'a>(
    title: impl Into<String>,
    series: impl Iterator<Item = FigureRow<'a>>,
) -> Table {
    let mut series: Vec<FigureRow<'_>> = series.collect();
    if series.len() > SHOWN_SERIES {
        series.sort_by_key(|row| std::cmp::Reverse(row.summary.max));
    }
    let summaries: Vec<&SeriesSummary> = series.iter().map(|row| row.summary).collect();
    let shown_percentiles =
        percentiles::sort_keys(summaries.iter().flat_map(|s| s.percentiles.keys()));
    let stated = summaries.iter().any(|s| !s.requirements.is_empty());
    // For a workload both are the missed periods: one column is enough.
    let overruns_differ = summaries.iter().any(|s| s.overruns != s.skipped);
    let mut table = Table::new(title, figure_columns(&shown_percentiles, stated, overruns_differ))
        .with_rows(
            series.iter().map(|of| figure_row(of, &shown_percentiles, stated, overruns_differ)),
        )
        .with_row_limit(SHOWN_SERIES, usize::MAX);
    table.sortable = series.len() > 1;
    let mut needs: Vec<_> = summaries
        .iter()
        .flat_map(|s| &s.unsupported_percentiles)
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .collect();
    needs.sort_by_key(|(_, n)| **n);
    if !needs.is_empty() && summaries.iter().any(|s| s.count > 0) {
        let needs = needs.iter().map(|(p, n)| format!("p{} {}", escape_unsafe(p), count_text(**n)));
        let missing =
            if shown_percentiles.is_empty() { "percentiles" } else { "further percentiles" };
        let needs = needs.collect::<Vec<_>>().join(", ");
        table.add_remark(Tone::Faint, format!("too few samples for {missing}; needed: {needs}"));
    }
    if summaries.iter().any(|s| larger_corrected(s).is_some()) {
        table.beside = "corrected";
        table.add_remark(
            Tone::Faint,
            "corrected: with the latencies that a periodic task would have seen in the periods \
             missed while late (coordinated omission)",
        );
    }
    table
}

/// Every series with its phase.
pub(crate) fn named_series(summary: &Summary) -> impl Iterator<Item = (String, &SeriesSummary)> {
    summary.phases.iter().flat_map(|phase| {
        phase.series.iter().map(|series| (format!("{}/{}", phase.name, series.name), series))
    })
}

/// The corrected figures, if any of them is larger than the plain one: a smaller one would only
/// show that short waits were filled in.
fn larger_corrected(s: &SeriesSummary) -> Option<&CorrectedSummary> {
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
fn figure_columns(shown: &[String], stated: bool, apart: bool) -> Vec<Column> {
    let mut columns = vec![Column::text("series", 0).at_most(NAME).with_shrinking()];
    if stated {
        columns.push(Column::text("verdict", 0).with_only_face(Face::Page));
    }
    columns.extend([
        Column::figures("CPU", 6).at_most(12).with_only_face(Face::Terminal),
        Column::text("scheduling", 8).at_most(18).with_only_face(Face::Terminal),
        Column::figures("samples", 0),
        Column::figures("min", 0),
        Column::figures("mean", 2),
    ]);
    columns.extend(shown.iter().map(|p| match is_detail(p) {
        true => percentiles::percentile_column(p).with_only_face(Face::Terminal),
        false => percentiles::percentile_column(p),
    }));
    columns.extend([
        Column::figures("max", 0).with_meaning("the worst of all samples, exact"),
        Column::figures("std dev", 8),
    ]);
    match apart {
        false => columns.push(Column::figures("overruns", 0).with_meaning(SKIPPED)),
        true => columns.extend([
            Column::figures("overruns", 0).with_meaning(
                "releases that passed while the cycle before ran, whose cycle came late",
            ),
            Column::figures("skipped", 0).with_meaning(SKIPPED),
        ]),
    }
    columns
        .extend([Column::figures("lost", 0)
            .with_meaning("samples lost after the measurement: in no figure")]);
    columns
}

fn figure_row(of: &FigureRow<'_>, shown: &[String], stated: bool, apart: bool) -> Vec<Cell> {
    let s = of.summary;
    let corrected = larger_corrected(s);
    let corrected_cell = |cell: Cell, plain: Option<f64>, corrected: Option<f64>| Cell {
        beside: corrected.filter(|ns| plain.is_none_or(|plain| *ns > plain)).map(Value::Time),
        ..cell
    };
    let whole = |ns: Option<i64>| Cell::time_or(ns.map(|ns| ns as f64), "none");
    let mut cells = vec![header_cell(of)];
    if stated {
        cells.push(verdict_cell(s));
    }
    let scheduling = if s.real_time { Tone::Plain } else { Tone::Bad };
    cells.extend([
        Cell::text(&s.cpus),
        Cell::text(&s.scheduling).with_tone(scheduling),
        Cell { beside: corrected.map(|c| Value::Count(c.count)), ..Cell::count(s.count) },
        whole(s.min),
        corrected_cell(Cell::time_or(s.mean, "none"), s.mean, corrected.map(|c| c.mean)),
    ]);
    cells.extend(shown.iter().map(|p| {
        let percentile_of = |all: &BTreeMap<String, i64>| all.get(p).map(|ns| *ns as f64);
        let cell =
            percentiles::percentile_cell(p, &s.percentiles, &s.unsupported_percentiles, s.count);
        corrected_cell(
            cell,
            percentile_of(&s.percentiles),
            corrected.and_then(|c| percentile_of(&c.percentiles)),
        )
    }));
    let stddev = match s.stddev {
        None if s.count > 0 => Cell::from(Value::Unknown),
        stddev => Cell::time_or(stddev, "none"),
    };
    cells.extend([max_cell(s), stddev, Cell::loss_count(s.overruns)]);
    cells.extend(apart.then(|| Cell::loss_count(s.skipped)));
    cells.push(Cell::loss_count(s.lost));
    cells
}

/// The maximum of a series; its lower bound if the sample had not ended.
pub(crate) fn max_cell(s: &SeriesSummary) -> Cell {
    let max = Cell::time_or(s.max.map(|ns| ns as f64), "none").with_strong_tone();
    match is_max_not_ended(s) {
        true => max.with_label("not ended", Tone::Uncertain),
        false => max,
    }
}

/// Whether the maximum is the lower bound of a sample that had not ended.
pub(crate) fn is_max_not_ended(s: &SeriesSummary) -> bool {
    s.unfinished.is_some_and(|one| !one.ended && s.max == Some(one.at_least.ns()))
}

fn header_cell(of: &FigureRow<'_>) -> Cell {
    let s = of.summary;
    let cpus = if s.cpus.is_empty() { String::new() } else { format!("CPU {} · ", s.cpus) };
    let mut cell = Cell::name(&of.name).sub(format!("{cpus}{}", s.scheduling));
    if !s.real_time {
        cell = cell.with_label("not real-time", Tone::Uncertain);
    }
    if of.cut_off {
        cell = cell.with_label("cut off", Tone::Uncertain);
    }
    cell
}

/// The verdicts on a series in short: the gravest, and on how many requirements.
fn verdict_cell(s: &SeriesSummary) -> Cell {
    let all_verdicts = || s.requirements.iter().map(|r| r.verdict);
    let Some(gravest) = VerdictWord::gravest_verdict(all_verdicts()) else {
        return Cell::absent("none");
    };
    let number = all_verdicts().filter(|verdict| *verdict == gravest).count();
    let requirement_count = s.requirements.len();
    let count_words = if number == requirement_count {
        requirement_count.to_string()
    } else {
        format!("{number} of {requirement_count}")
    };
    let mut cell = Cell::from(gravest);
    if let Value::Verdict(_, word) = &mut cell.value {
        *word = format!("{count_words} {word}");
    }
    cell
}
