//! Intervals between points, scopes of test points, and calls of functions.

use super::{Cell, Column, Face, Table, Tone, percentiles};
use crate::format::{count_text, count_with_noun};
use punctual_bundle::intervals::{
    FunctionSummary, IntervalFigures, LimitSummary, PairsDocument, ScopeSummary,
};
use punctual_bundle::summary::VerdictWord;

const NAME: usize = 40;

/// Pairs: requested ones, scopes, and points with their successors.
pub(crate) fn pair_table(document: &PairsDocument) -> Table {
    let pairs = &document.pairs;
    let shown_percentiles = percentile_keys(pairs.iter().map(|pair| &pair.figures));
    let mut columns =
        vec![Column::text("from->to", 0).at_most(NAME), Column::text("matched by", 6)];
    columns.extend(figure_columns(&shown_percentiles));
    columns.extend([
        Column::figures("no end", 0),
        Column::figures("no begin", 0),
        Column::figures("uncertain", 0).with_meaning("matches that span lost events"),
        Column::text("limit", 0).with_only_face(Face::Page),
    ]);
    let rows = pairs.iter().map(|pair| {
        let matching = Cell::text(format!("{}, {}", pair.by, pair.rule));
        let mut row = vec![Cell::name(&pair.name), matching];
        row.extend(figure_cells(&pair.figures, &shown_percentiles));
        row.extend([pair.unmatched_from, pair.unmatched_to].map(Cell::count));
        row.push(Cell::loss_count(Some(pair.uncertain.count)));
        row.push(limit_cell(pair.limit.as_ref()));
        row
    });
    let mut table = Table::new("pairs", columns).with_rows(rows).with_sorting();
    remark_missing_percentiles(&mut table, pairs.iter().map(|pair| &pair.figures));
    if pairs.iter().any(|pair| pair.uncertain.count > 0) {
        table.add_remark(
            Tone::Faint,
            "uncertain: matches that span lost events, which may include the true partner; in no \
             other figure",
        );
    }
    table
}

/// Scopes with the most exclusive time first. Min, median and max including inner scopes are in the
/// table of pairs if there is no room for both.
pub(crate) fn scope_table(document: &PairsDocument) -> Table {
    let columns = vec![
        Column::text("scope", 0).at_most(NAME),
        Column::figures("calls", 0),
        Column::figures("share", 0).with_explanation("of the exclusive time of all scopes"),
        Column::figures("exclusive", 1).with_explanation(
            "a thread's time while no scope that began later was open, all calls together, then of \
             one call",
        ),
        Column::figures("min", 5),
        Column::figures("median", 3),
        Column::figures("max", 0),
        Column::figures("inclusive", 2).with_explanation(
            "all calls together from begin to end, recursion once, then of one call",
        ),
        Column::figures("min", 7),
        Column::figures("median", 6),
        Column::figures("max", 4),
        Column::figures("threads", 8),
    ];
    let rows = document.scopes.iter().map(|scope| {
        let whole = |ns: Option<i64>| Cell::time_or(ns.map(|ns| ns as f64), "–");
        let one_call = |of: &IntervalFigures| [of.min, of.median, of.max].map(whole);
        let share = scope
            .share
            .map_or_else(|| Cell::absent("–"), |share| Cell::share(share).with_strong_tone());
        let mut row = vec![Cell::name(&scope.name), Cell::count(scope.figures.count), share];
        row.push(Cell::time(scope.exclusive_total));
        row.extend(one_call(&scope.exclusive));
        row.push(Cell::time(scope.total));
        row.extend(one_call(&scope.figures));
        row.push(Cell::count(scope.threads));
        row
    });
    let title = "scopes, with and without those within them";
    let mut table = Table::new(title, columns).with_rows(rows).with_sorting();
    for (name, n, what) in document.scopes.iter().take(NAME).flat_map(scope_oddities) {
        table.add_remark(Tone::Uncertain, format!("{name}: {} {what}", count_text(n)));
    }
    table
}

/// Reasons to read a scope's figures with care.
fn scope_oddities(scope: &ScopeSummary) -> impl Iterator<Item = (&String, u64, &'static str)> {
    let all_oddities = [
        (scope.recursive, "within another one of the same name: `inclusive` has them once"),
        (
            scope.overlapping,
            "ended while a scope that began later was open, which counts the time from its \
             start on",
        ),
        (scope.open, "had no end: the time of these is in no figure"),
        (scope.uncertain, "uncertain: they reach over missing points and are in no figure"),
    ];
    all_oddities.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| (&scope.name, n, what))
}

pub fn function_table(document: &PairsDocument) -> Table {
    let functions = &document.functions;
    let shown_percentiles = percentile_keys(functions.iter().map(|function| &function.figures));
    let mut columns = vec![Column::text("function", 0).at_most(NAME)];
    columns.extend(figure_columns(&shown_percentiles));
    columns.extend([
        Column::figures("exclusive mean", 1)
            .with_explanation("without the probed functions that it called"),
        Column::figures("exclusive max", 4),
        Column::figures("period mean", 6).with_explanation("from call to call in one thread"),
        Column::figures("left", 0).with_explanation(
            "by longjmp, an exception or the end of the thread, in no other figure",
        ),
        Column::text("limit", 0).with_only_face(Face::Page),
    ]);
    let rows = functions.iter().map(|function| row_of(function, &shown_percentiles));
    let mut table = Table::new("functions", columns).with_rows(rows).with_sorting();
    remark_missing_percentiles(&mut table, functions.iter().map(|function| &function.figures));
    let unknown = functions.iter().fold(0u64, |sum, f| sum.saturating_add(f.exclusive_unknown));
    if unknown > 0 {
        let calls = count_with_noun(unknown, "call");
        table.add_remark(
            Tone::Uncertain,
            format!("the exclusive time of {calls} is unknown: inner calls may be missing"),
        );
    }
    table
}

fn row_of(function: &FunctionSummary, shown: &[String]) -> Vec<Cell> {
    let mut row = vec![Cell::name(&function.name).sub(&function.object)];
    row.extend(figure_cells(&function.figures, shown));
    let exclusive = &function.exclusive;
    let times = [exclusive.mean, exclusive.max.map(|ns| ns as f64), function.period.mean];
    row.extend(times.map(|ns| Cell::time_or(ns, "–")));
    row.push(Cell::loss_count(Some(function.left)));
    row.push(limit_cell(function.limit.as_ref()));
    row
}

/// Values of points over the whole recording.
pub(crate) fn value_table(document: &PairsDocument) -> Table {
    let mut columns = vec![Column::text("point", 0).at_most(NAME)];
    columns.extend(["count", "min", "mean", "max"].map(|heading| Column::figures(heading, 0)));
    let rows = document.values.iter().map(|curve| {
        let buckets = &curve.buckets;
        let count: u64 = buckets.iter().map(|bucket| bucket.count).sum();
        let sum: f64 = buckets.iter().map(|bucket| bucket.mean * bucket.count as f64).sum();
        let min = buckets.iter().map(|bucket| bucket.min).min().unwrap_or_default();
        let max = buckets.iter().map(|bucket| bucket.max).max().unwrap_or_default();
        let mean = sum / count.max(1) as f64;
        let second = if curve.index > 0 { " (second)" } else { "" };
        vec![
            Cell::name(format!("{}{second}", curve.point)),
            Cell::count(count),
            Cell::figure(min as f64, min.to_string()),
            Cell::figure(mean, format!("{mean:.1}")),
            Cell::figure(max as f64, max.to_string()),
        ]
    });
    Table::new("values of points", columns).with_rows(rows).with_sorting()
}

fn percentile_keys<'a>(all: impl Iterator<Item = &'a IntervalFigures>) -> Vec<String> {
    percentiles::sort_keys(all.flat_map(|figures| figures.percentiles.keys()))
}

fn figure_columns(shown: &[String]) -> Vec<Column> {
    let columns = [("count", 0), ("min", 0), ("mean", 2)];
    let mut columns: Vec<Column> =
        columns.map(|(of, dispensable)| Column::figures(of, dispensable)).into();
    columns.extend(shown.iter().map(|p| percentiles::percentile_column(p)));
    columns.push(Column::figures("max", 0));
    columns
}

fn figure_cells(of: &IntervalFigures, shown: &[String]) -> Vec<Cell> {
    let whole = |ns: Option<i64>| Cell::time_or(ns.map(|ns| ns as f64), "–");
    let mut cells = vec![Cell::count(of.count), whole(of.min), Cell::time_or(of.mean, "–")];
    cells.extend(shown.iter().map(|p| {
        percentiles::percentile_cell(p, &of.percentiles, &of.unsupported_percentiles, of.count)
    }));
    cells.push(whole(of.max).with_strong_tone());
    cells
}

fn remark_missing_percentiles<'a>(
    table: &mut Table,
    mut all: impl Iterator<Item = &'a IntervalFigures>,
) {
    if all.any(|figures| figures.count > 0 && figures.percentiles.is_empty()) {
        let text = "a percentile needs at least ten intervals beyond it (docs/reference/json.md)";
        table.add_remark(Tone::Faint, text);
    }
}

fn limit_cell(limit: Option<&LimitSummary>) -> Cell {
    let Some(limit) = limit else { return Cell::absent("none") };
    let (sign, word) = match limit.verdict {
        VerdictWord::Met => ("✓", "met".to_owned()),
        VerdictWord::NotMet => {
            ("✗", format!("violated {}", count_with_noun(limit.violations, "time")))
        }
        VerdictWord::Undecided => ("?", "undecided".to_owned()),
        VerdictWord::Invalid => ("!", "invalid".to_owned()),
    };
    let text = Cell::text(&limit.limit).with_label(format!("{sign} {word}"), limit.verdict.into());
    Cell { sub: limit.reason.clone(), ..text }
}
