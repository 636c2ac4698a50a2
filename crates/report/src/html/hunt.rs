//! `punctual hunt report`: the findings of a search as a page without a script.

use super::HtmlError;
use super::page::{fill, policy};
use super::scatter::{Line, Scatter, Side, of_points};
use super::table::{Cell, Column, Table};
use super::text::name;
use crate::format;
use crate::sentence::hunt as words;
use crate::tables::hunt as tables;
use minijinja::Value;
use punctual_bundle::Timebase;
use punctual_bundle::hunt::{Against, HuntDocument, Trial};
use punctual_bundle::summary::VerdictWord;
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Trials beyond this number are counted but not shown.
const MAX_TRIALS: usize = 2_000;

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    extent: String,
    required: Vec<(&'static str, String)>,
    figure: Option<String>,
    minimised: Option<String>,
    causes: Table,
    failed: Option<Table>,
    against: Vec<(String, String, Table)>,
    scatters: Vec<Scatter>,
    coverage: Table,
    trials: Table,
    left_out: usize,
    no_bound: &'static str,
    version: &'static str,
    style: Value,
}

/// The page. `directory` is inserted into the commands that it shows.
///
/// # Errors
/// A template does not fit its data.
pub fn hunt(document: &HuntDocument, directory: &str) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let required = document.required.iter().map(|required| {
        let class = if required.verdict == VerdictWord::Met { "good" } else { "bad" };
        (class, words::required(required))
    });
    let failed = (!document.failures.is_empty()).then(|| {
        ("bad", format!("{} below.", format::counted(document.failures.len() as u64, "failure")))
    });
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        title: format!("Search on kernel {}", name(&document.kernel)),
        extent: words::extent(document),
        required: required.chain(failed).collect(),
        figure: words::figure(document),
        minimised: words::minimised(document),
        causes: tables::causes(document, directory).into(),
        failed: (!document.failures.is_empty()).then(|| failures(document, directory)),
        against: document.against.iter().map(|against| of_against(document, against)).collect(),
        scatters: drawings(document),
        coverage: tables::coverage(document).into(),
        trials: trials(document),
        left_out: document.trials.len().saturating_sub(MAX_TRIALS),
        no_bound: words::NO_BOUND,
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("hunt.html", &page, Timebase::Virtual)
}

/// The result of each trial, and the longest so far.
fn drawings(document: &HuntDocument) -> Vec<Scatter> {
    let over = |title: &str, unit: &str, of: &dyn Fn(&Trial) -> Option<f64>| {
        let points = document.trials.iter().filter_map(|one| Some((one.number as f64, of(one)?)));
        let points: Vec<(f64, f64)> = points.collect();
        let side =
            |title: &str, unit: &str| Side { title: title.to_owned(), unit: unit.to_owned() };
        let caption = format!("{title}, by trial; the line is the longest so far");
        of_points(caption, &side("trial", "count"), &side(title, unit), &points, Line::Largest)
    };
    let disabled = over("longest with interrupts disabled, instructions", "count", &|trial| {
        trial.irqs_disabled.map(|length| length as f64)
    });
    let worst = over("worst sample", "ns", &|trial| trial.worst_ns.map(|ns| ns as f64));
    disabled.into_iter().chain(worst).collect()
}

fn table(caption: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
    Table { caption: caption.to_owned(), columns, rows, sortable: false }
}

fn failures(document: &HuntDocument, directory: &str) -> Table {
    let rows = document.failures.iter().map(|failure| {
        let console = failure.console.as_deref().unwrap_or("");
        let run = failure.file.as_ref().map(|file| format!("punctual run {directory}/{file}"));
        vec![
            Cell::text(words::what(&failure.what)),
            Cell::count(failure.trials),
            Cell::text(name(&failure.why)),
            Cell::text(name(&failure.loads.join("; "))),
            Cell::text(name(console)),
            Cell::text(name(&run.unwrap_or_default())),
        ]
    });
    let columns = vec![
        Column::text("failure"),
        Column::figures("trials"),
        Column::text("why"),
        Column::text("loads, of the trial with the fewest"),
        Column::text("its console"),
        Column::text("to run it again"),
    ];
    table("What trials ended with, or ran into, instead of being late", columns, rows.collect())
}

fn of_against(document: &HuntDocument, against: &Against) -> (String, String, Table) {
    let (here, there) = (name(&document.kernel), name(&against.kernel));
    let title = format!("{here} against {there}");
    (title, words::against(against), tables::against(document, against, false).into())
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
