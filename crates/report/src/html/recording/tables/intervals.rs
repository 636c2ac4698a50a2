//! Intervals between points, calls of functions, and the worst of both.

use crate::format::{count_with_noun, micros_text};
use crate::html::table::{Cell, Column, Table};
use crate::html::text::format_name;
use punctual_bundle::intervals::{LimitSummary, PairsDocument, WorstInterval};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;

/// The worst of all pairs and functions, with the threads that ran meanwhile.
pub(crate) fn worst_table(document: &PairsDocument, rows: usize) -> Option<Table> {
    let pairs =
        document.pairs.iter().flat_map(|pair| pair.worst.iter().map(move |one| (&pair.name, one)));
    let calls =
        document.functions.iter().flat_map(|f| f.worst.iter().map(move |one| (&f.name, one)));
    let mut worst_intervals: Vec<(&String, &WorstInterval)> = pairs.chain(calls).collect();
    worst_intervals.sort_by_key(|(_, one)| std::cmp::Reverse(one.latency));
    let began = document.covered.began;
    let row = |(title, one): &(&String, &WorstInterval)| {
        let since = Nanos(one.from.saturating_sub(began)).as_secs_f64();
        let exact =
            format!("{} ns; from {} to {} ns on CLOCK_MONOTONIC", one.latency, one.from, one.to);
        vec![
            Cell {
                exact: Some(exact),
                ..Cell::figure(micros_text(Nanos(one.latency)), one.latency as f64)
            },
            Cell::text(format_name(title)),
            Cell::text(format!("{} ({})", format_name(&one.task), one.tid)),
            Cell::figure(format!("{since:.6}"), since),
            text_cell(format_shares(one)),
            Cell { class: "wide", ..text_cell(format_tasks(one)) },
        ]
    };
    let rows: Vec<Vec<Cell>> = worst_intervals.iter().take(rows).map(row).collect();
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
            Column::figures("Began, s").with_meaning("since the recording began"),
            Column::text("State of the thread"),
            Column::text("What ran on its CPUs")
                .with_meaning("the time of a task includes its interrupts"),
        ],
        rows,
        sortable: true,
    })
}

/// Sentences about limits that are exceeded.
pub(crate) fn violated_limits(document: &PairsDocument) -> Vec<String> {
    let pairs = document.pairs.iter().map(|pair| (&pair.name, &pair.limit, pair.figures.max));
    let functions = document.functions.iter().map(|f| (&f.name, &f.limit, f.figures.max));
    let sentence = |(title, limit, max): (&String, &Option<LimitSummary>, Option<i64>)| {
        let limit = limit.as_ref().filter(|limit| limit.verdict == VerdictWord::NotMet)?;
        let times = count_with_noun(limit.violations, "time");
        Some(format!(
            "{} {}: violated {times}, the longest took {} µs.",
            format_name(title),
            limit.limit,
            format_micros(max)
        ))
    };
    pairs.chain(functions).filter_map(sentence).collect()
}

fn text_cell(text: String) -> Cell {
    if text.is_empty() { Cell::missing_value("–") } else { Cell::text(text) }
}

fn format_shares(one: &WorstInterval) -> String {
    let share = |share: &punctual_bundle::intervals::StateShare| {
        format!("{} {}", share.state, micros_text(Nanos(share.ns)))
    };
    one.states.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn format_tasks(one: &WorstInterval) -> String {
    let ran = |ran: &punctual_bundle::intervals::RanTask| {
        let kind = if ran.kind == "task" { String::new() } else { format!("{} ", ran.kind) };
        let who = if ran.kind == "idle" { String::new() } else { format_name(&ran.who) };
        format!("{kind}{who} {} on CPU {}", micros_text(Nanos(ran.ns)), ran.cpu)
    };
    one.ran.iter().take(6).map(ran).collect::<Vec<_>>().join(", ")
}

fn format_micros(ns: Option<i64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| micros_text(Nanos(ns)))
}
