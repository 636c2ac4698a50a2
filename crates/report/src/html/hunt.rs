//! `punctual hunt report`: what a search found, as a page without a script.

use super::HtmlError;
use super::page::{fill, policy};
use super::table::{Cell, Column, Table};
use super::text::name;
use crate::format;
use crate::sentence::hunt as words;
use minijinja::Value;
use punctual_bundle::Timebase;
use punctual_bundle::hunt::{Against, Change, HuntCause, HuntDocument, Trial, TrialState};
use punctual_bundle::summary::VerdictWord;
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Trials beyond this are counted and not shown.
const MAX_TRIALS: usize = 2_000;

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    extent: String,
    required: Vec<(&'static str, String)>,
    causes: Table,
    failed: Option<Table>,
    against: Vec<(String, String, Table)>,
    coverage: Table,
    trials: Table,
    left_out: usize,
    no_bound: &'static str,
    version: &'static str,
    style: Value,
}

/// The page. `directory` stands in the commands that it names.
///
/// # Errors
/// A template does not fit its data.
pub fn hunt(document: &HuntDocument, directory: &str) -> Result<String, HtmlError> {
    let failed = document.trials.iter().filter(|trial| trial.state == TrialState::Failed);
    let failed: Vec<&Trial> = failed.collect();
    let required = document.required.iter().map(|required| {
        let class = if required.verdict == VerdictWord::Met { "good" } else { "bad" };
        (class, words::required(required))
    });
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        title: format!("Search on kernel {}", name(&document.kernel)),
        extent: words::extent(document),
        required: required.collect(),
        causes: causes(document, directory),
        failed: (!failed.is_empty()).then(|| failures(&failed)),
        against: document.against.iter().map(|against| of_against(document, against)).collect(),
        coverage: coverage(document),
        trials: trials(document),
        left_out: document.trials.len().saturating_sub(MAX_TRIALS),
        no_bound: words::NO_BOUND,
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("hunt.html", &page, Timebase::Virtual)
}

fn table(caption: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
    Table { caption: caption.to_owned(), columns, rows, sortable: false }
}

fn causes(document: &HuntDocument, directory: &str) -> Table {
    let row = |cause: &HuntCause| {
        let function = if cause.function.is_empty() { "–" } else { &cause.function };
        let stack = cause.stack.iter().map(|call| name(call)).collect::<Vec<_>>().join(" › ");
        let run = cause.least.file.as_ref().map_or(String::new(), |file| {
            name(&format!("punctual run {directory}/{file} --exact"))
        });
        vec![
            Cell::text(name(function)).sub(stack),
            Cell::text(words::kind(&cause.kind)),
            Cell::count(cause.longest),
            Cell::text(words::micros(document, cause.longest)),
            Cell::count(cause.trials),
            Cell::text(words::least(cause)),
            Cell { code: true, ..Cell::text(run) },
        ]
    };
    let columns = vec![
        Column::text("function").meaning("with the calls around it, where they are known"),
        Column::text("cause"),
        Column::figures("instructions"),
        Column::figures("virtual µs"),
        Column::figures("trials").meaning("that met it with at least a tenth of its longest"),
        Column::text("the smallest loads that show it"),
        Column::text("to run it again"),
    ];
    table(
        "Causes, the longest first, and the worst sample",
        columns,
        document.causes.iter().chain(&document.worst).map(row).collect(),
    )
}

fn failures(failed: &[&Trial]) -> Table {
    let rows = failed.iter().map(|trial| {
        vec![
            Cell::text(name(&trial.loads.join("; "))),
            Cell::text(name(trial.why.as_deref().unwrap_or(""))),
            Cell::text(name(trial.console.as_deref().unwrap_or(""))),
        ]
    });
    let columns = vec![Column::text("loads"), Column::text("why"), Column::text("console")];
    table(
        "Trials that failed: hung, panicked, ran out of memory, or otherwise",
        columns,
        rows.collect(),
    )
}

fn of_against(document: &HuntDocument, against: &Against) -> (String, String, Table) {
    let (here, there) = (name(&document.kernel), name(&against.kernel));
    let length = |length: u64| match length {
        0 => Cell::missing("not seen"),
        length => Cell::count(length),
    };
    let row = |change: &Change| {
        vec![
            Cell::text(name(if change.function.is_empty() { "–" } else { &change.function })),
            Cell::text(words::kind(&change.kind)),
            Cell::text(words::changed(change.change)),
            length(change.here),
            length(change.there),
        ]
    };
    let columns = vec![
        Column::text("function"),
        Column::text("cause"),
        Column::text("change"),
        Column::figures(&format!("{here}, instructions")),
        Column::figures(&format!("{there}, instructions")),
    ];
    let rows = against.changes.iter().map(row).collect();
    let title = format!("{here} against {there}");
    (title.clone(), words::against(against), table(&title, columns, rows))
}

/// Whenever a trial showed a longer one than all before.
fn coverage(document: &HuntDocument) -> Table {
    let mut rows = Vec::new();
    let (mut longest, mut worst) = (0, 0);
    for trial in &document.trials {
        let before = (longest, worst);
        longest = longest.max(trial.irqs_disabled.unwrap_or(0));
        worst = worst.max(trial.worst_ns.unwrap_or(0));
        if (longest, worst) != before {
            rows.push(vec![
                Cell::count(trial.number),
                Cell::text(trial.stage.clone()),
                Cell::count(longest),
                Cell::text(format::micros(punctual_core::Nanos(worst))),
            ]);
        }
    }
    let columns = vec![
        Column::figures("trial"),
        Column::text("stage"),
        Column::figures("longest with interrupts disabled, instructions"),
        Column::figures("worst sample, virtual µs"),
    ];
    table("The longest so far, by trial", columns, rows)
}

fn trials(document: &HuntDocument) -> Table {
    let rows = document.trials.iter().take(MAX_TRIALS).map(|trial| {
        let worst = trial.worst_ns.map_or(Cell::missing("none"), |ns| {
            Cell::figure(format::micros(punctual_core::Nanos(ns)), ns as f64)
        });
        vec![
            Cell::count(trial.number),
            Cell::text(trial.stage.clone()),
            Cell::text(name(&trial.loads.join("; "))),
            worst,
            trial.irqs_disabled.map_or(Cell::missing("none"), Cell::count),
            Cell::text(name(trial.why.as_deref().unwrap_or(""))),
        ]
    });
    let columns = vec![
        Column::figures("trial"),
        Column::text("stage"),
        Column::text("loads"),
        Column::figures("worst sample, virtual µs"),
        Column::figures("longest with interrupts disabled, instructions"),
        Column::text("remark"),
    ];
    table("All trials", columns, rows.collect())
}
