//! `punctual tail --html`: the tails as a page without a script: for each series the sentences, the
//! levels with their intervals, and every gate.

use super::HtmlError;
use super::comparison::{Warning, warnings};
use super::page::{fill, policy};
use super::table::{Cell, Column, Table};
use super::text::name;
use crate::format::micros_f64;
use crate::sentence::{probability, spoken, tail as message};
use minijinja::Value;
use punctual_bundle::tail::{Gate, ReturnLevel, SeriesTail, Tails};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Series beyond this are counted and not shown.
const MAX_SERIES: usize = 500;

#[derive(Serialize)]
struct Page {
    policy: Value,
    bundle: String,
    series: Vec<Section>,
    left_out: usize,
    warnings: Vec<Warning>,
    version: &'static str,
    style: Value,
}

#[derive(Serialize)]
struct Section {
    title: String,
    seen: Vec<String>,
    causes: Vec<String>,
    accepted: bool,
    model: Vec<String>,
    refusals: Vec<String>,
    levels: Option<Table>,
    gates: Option<Table>,
}

/// The page.
pub fn tails(tails: &Tails) -> Result<String, HtmlError> {
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        bundle: name(&tails.bundle),
        series: tails.series.iter().take(MAX_SERIES).map(section).collect(),
        left_out: tails.series.len().saturating_sub(MAX_SERIES),
        warnings: warnings(&tails.findings),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("tail.html", &page, tails.timebase)
}

fn section(tail: &SeriesTail) -> Section {
    Section {
        title: name(&tail.series),
        seen: message::of_seen(&tail.seen),
        causes: message::of_causes(tail),
        accepted: tail.model.accepted,
        model: message::of_model(tail),
        refusals: message::refusals(tail),
        levels: levels(&tail.model.levels),
        gates: gates(&tail.model.gates),
    }
}

fn levels(levels: &[ReturnLevel]) -> Option<Table> {
    let row = |level: &ReturnLevel| {
        let figure = |ns: f64| Cell::figure(micros_f64(ns), ns);
        let period = Cell::figure(spoken(level.period as f64), level.period as f64);
        vec![
            period,
            figure(level.level),
            figure(level.low),
            figure(level.high),
            figure(level.by_block_maxima),
        ]
    };
    let columns = vec![
        Column::text("Once in"),
        Column::figures("Level (µs)").meaning("by peaks over a threshold"),
        Column::figures("from (µs)").meaning("lower end of the 95 % interval"),
        Column::figures("to (µs)").meaning("upper end of the 95 % interval"),
        Column::figures("By block maxima (µs)").meaning("the other model, which must agree"),
    ];
    let caption = "Return levels of bursts, with 95 % intervals".to_owned();
    (!levels.is_empty()).then(|| Table {
        caption,
        columns,
        rows: levels.iter().map(row).collect(),
        sortable: false,
    })
}

fn gates(gates: &[Gate]) -> Option<Table> {
    let row = |gate: &Gate| {
        let verdict = if gate.open { ("met", "good") } else { ("not met", "warn") };
        vec![
            Cell::text(gate.what.clone()),
            Cell::default().badge(verdict.0, verdict.1),
            gate.p.map_or(Cell::missing("–"), |p| Cell::figure(probability(p), p)),
        ]
    };
    let columns = vec![Column::text("Condition"), Column::text(""), Column::figures("p")];
    let caption = "Conditions of the model".to_owned();
    (!gates.is_empty()).then(|| Table {
        caption,
        columns,
        rows: gates.iter().map(row).collect(),
        sortable: false,
    })
}
