//! Intervals between points, calls of functions, and the worst of both.

use crate::format::{count, counted, micros, micros_f64, percent};
use crate::html::table::{Cell, Column, Table};
use crate::html::text::name;
use punctual_bundle::intervals::{
    FunctionSummary, IntervalFigures, LimitSummary, PairSummary, PairsDocument, ScopeSummary,
    WorstInterval,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;

/// Percentiles with columns of their own; those that the count does not support are left blank.
const PERCENTILES: [&str; 2] = ["99", "99.9"];

/// Pairs; `None` where there are none.
pub fn intervals(document: &PairsDocument) -> Option<Table> {
    let row = |pair: &PairSummary| {
        let matching = format!("by {}, {}", pair.by, pair.rule);
        let mut row = vec![Cell::text(name(&pair.name)).sub(matching)];
        row.extend(figures(&pair.figures));
        let unmatched = pair.unmatched_from.saturating_add(pair.unmatched_to);
        let beginnings = format!(
            "{} without an end, {} without a beginning",
            count(pair.unmatched_from),
            count(pair.unmatched_to)
        );
        row.push(Cell { exact: Some(beginnings), ..Cell::count(unmatched) });
        row.push(Cell::count(pair.uncertain.count));
        row.push(limit(pair.limit.as_ref()));
        row
    };
    let mut columns = vec![Column::text("From → to")];
    columns.extend(figure_columns());
    columns.extend([
        Column::figures("Unmatched"),
        Column::figures("Uncertain").meaning("matches that span lost events; in no other figure"),
        Column::text("Limit"),
    ]);
    let rows: Vec<Vec<Cell>> = document.pairs.iter().map(row).collect();
    let caption = "Intervals between test points, in µs.".to_owned();
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: true })
}

/// Scopes of test points as a function report; `None` where there are none.
pub fn scopes(document: &PairsDocument) -> Option<Table> {
    let row = |scope: &ScopeSummary| {
        let share = scope
            .share
            .map_or_else(|| Cell::missing("–"), |share| Cell::figure(percent(share), share));
        let title = Cell::text(name(&scope.name));
        let oddities = oddities(scope);
        let title = if oddities.is_empty() { title } else { title.sub(oddities) };
        let mut row = vec![title, Cell::count(scope.figures.count), share];
        for (total, of) in
            [(scope.exclusive_total, &scope.exclusive), (scope.total, &scope.figures)]
        {
            row.extend([span(Some(total)), span(of.min), span(of.median), span(of.max)]);
        }
        row.push(Cell::count(scope.threads));
        row
    };
    let one_call = ["Min", "Median", "Max"];
    let mut columns = vec![
        Column::text("Scope"),
        Column::figures("Calls"),
        Column::figures("Share").meaning("of the exclusive time of all scopes"),
        Column::figures("Exclusive").meaning(
            "all calls together, while no scope that began later in the same thread was open; \
             then of one call",
        ),
    ];
    columns.extend(one_call.map(Column::figures));
    columns.push(
        Column::figures("Inclusive")
            .meaning("all calls together, from begin to end, recursion once; then of one call"),
    );
    columns.extend(one_call.map(Column::figures));
    columns.push(Column::figures("Threads"));
    let rows: Vec<Vec<Cell>> = document.scopes.iter().map(row).collect();
    let caption =
        "Scopes of test points, with and without the scopes within them, in µs.".to_owned();
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: true })
}

/// What makes a scope's figures other than they seem.
fn oddities(scope: &ScopeSummary) -> String {
    let all = [
        (scope.recursive, "within another of the same name"),
        (scope.overlapping, "overlapping one that began later"),
        (scope.open, "without an end"),
        (scope.uncertain, "uncertain, over missing points"),
    ];
    let said = all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n)));
    said.collect::<Vec<_>>().join("; ")
}

/// Probed functions; `None` where there are none.
pub fn functions(document: &PairsDocument) -> Option<Table> {
    let row = |function: &FunctionSummary| {
        let mut row = vec![Cell::text(name(&function.name)).sub(name(&function.object))];
        row.extend(figures(&function.figures));
        row.extend([
            mean(&function.exclusive).sub(format!("max {}", text(function.exclusive.max))),
            mean(&function.period),
            Cell::count(function.left),
            limit(function.limit.as_ref()),
        ]);
        row
    };
    let mut columns = vec![Column::text("Function")];
    columns.extend(figure_columns());
    columns.extend([
        Column::figures("Exclusive").meaning("mean time without the probed functions it called"),
        Column::figures("Period").meaning("mean time from entry to entry in one thread"),
        Column::figures("Left").meaning(
            "calls left by longjmp, an exception or the exit of the thread; in no other figure",
        ),
        Column::text("Limit"),
    ]);
    let rows: Vec<Vec<Cell>> = document.functions.iter().map(row).collect();
    let caption = "Probed functions, from entry to exit, in µs.".to_owned();
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: true })
}

/// The worst of all pairs and functions, with what ran meanwhile.
pub fn worst(document: &PairsDocument, rows: usize) -> Option<Table> {
    let pairs =
        document.pairs.iter().flat_map(|pair| pair.worst.iter().map(move |one| (&pair.name, one)));
    let calls =
        document.functions.iter().flat_map(|f| f.worst.iter().map(move |one| (&f.name, one)));
    let mut all: Vec<(&String, &WorstInterval)> = pairs.chain(calls).collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.latency));
    let began = document.covered.began;
    let row = |(title, one): &(&String, &WorstInterval)| {
        let since = Nanos(one.from.saturating_sub(began)).as_secs_f64();
        let exact =
            format!("{} ns; from {} to {} ns on CLOCK_MONOTONIC", one.latency, one.from, one.to);
        vec![
            Cell {
                exact: Some(exact),
                ..Cell::figure(micros(Nanos(one.latency)), one.latency as f64)
            },
            Cell::text(name(title)),
            Cell::text(format!("{} ({})", name(&one.task), one.tid)),
            Cell::figure(format!("{since:.6}"), since),
            text_cell(shares(one)),
            Cell { class: "wide", ..text_cell(ran(one)) },
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().take(rows).map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!(
            "The {} longest of all intervals and calls, in µs. The {} longest of each have \
             details.",
            rows.len(),
            super::super::DETAIL.explained
        ),
        columns: vec![
            Column::figures("Took"),
            Column::text("What"),
            Column::text("Thread"),
            Column::figures("Began, s").meaning("since the recording began"),
            Column::text("State of the thread"),
            Column::text("What ran on its CPUs")
                .meaning("the time of a task includes its interrupts"),
        ],
        rows,
        sortable: true,
    })
}

/// Limits that are not met, in sentences.
pub fn violated(document: &PairsDocument) -> Vec<String> {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.limit, pair.figures.max));
    let functions = document.functions.iter().map(|f| (&f.name, &f.limit, f.figures.max));
    let sentence = |(title, limit, max): (&String, &Option<LimitSummary>, Option<i64>)| {
        let limit = limit.as_ref().filter(|limit| limit.verdict == VerdictWord::NotMet)?;
        let times = counted(limit.violations, "time");
        Some(format!(
            "{} {}: violated {times}, the longest took {} µs.",
            name(title),
            limit.limit,
            text(max)
        ))
    };
    pairs.chain(functions).filter_map(sentence).collect()
}

fn text_cell(text: String) -> Cell {
    if text.is_empty() { Cell::missing("–") } else { Cell::text(text) }
}

fn shares(one: &WorstInterval) -> String {
    let share = |share: &punctual_bundle::intervals::Share| {
        format!("{} {}", share.state, micros(Nanos(share.ns)))
    };
    one.states.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn ran(one: &WorstInterval) -> String {
    let ran = |ran: &punctual_bundle::intervals::Ran| {
        let kind = if ran.kind == "task" { String::new() } else { format!("{} ", ran.kind) };
        let who = if ran.kind == "idle" { String::new() } else { name(&ran.who) };
        format!("{kind}{who} {} on CPU {}", micros(Nanos(ran.ns)), ran.cpu)
    };
    one.ran.iter().take(6).map(ran).collect::<Vec<_>>().join(", ")
}

fn figure_columns() -> Vec<Column> {
    let mut columns: Vec<Column> = ["Count", "Min", "Mean", "Median"].map(Column::figures).into();
    columns.extend(PERCENTILES.map(|percentile| Column::figures(&format!("p{percentile}"))));
    columns.push(Column::figures("Max"));
    columns
}

fn figures(of: &IntervalFigures) -> Vec<Cell> {
    let mut cells = vec![Cell::count(of.count), span(of.min), mean(of), span(of.median)];
    cells.extend(PERCENTILES.map(|percentile| span(of.percentiles.get(percentile).copied())));
    cells.push(span(of.max));
    cells
}

fn span(ns: Option<i64>) -> Cell {
    match ns {
        Some(ns) => {
            Cell { exact: Some(format!("{ns} ns")), ..Cell::figure(micros(Nanos(ns)), ns as f64) }
        }
        None => Cell::missing("–"),
    }
}

fn mean(of: &IntervalFigures) -> Cell {
    of.mean.map_or_else(|| Cell::missing("–"), |mean| Cell::figure(micros_f64(mean), mean))
}

fn text(ns: Option<i64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| micros(Nanos(ns)))
}

fn limit(limit: Option<&LimitSummary>) -> Cell {
    let Some(limit) = limit else { return Cell::missing("none") };
    let cell = Cell::text(limit.limit.clone());
    let cell = match limit.verdict {
        VerdictWord::Met => cell.badge("✓ met", "good"),
        VerdictWord::NotMet => {
            cell.badge(format!("✗ violated {}", counted(limit.violations, "time")), "bad")
        }
        VerdictWord::Undecided => cell.badge("? undecided", "warn"),
        VerdictWord::Invalid => cell.badge("! invalid", "bad"),
    };
    match &limit.reason {
        Some(reason) => cell.sub(name(reason)),
        None => cell,
    }
}
