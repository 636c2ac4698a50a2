//! `punctual tail --report`: the tails as a page without a script: for each series the sentences,
//! the levels with their intervals, and every gate.

use super::HtmlError;
use super::comparison::{Warning, warnings};
use super::page::{fill, policy};
use super::table::Table;
use super::text::name;
use crate::sentence::tail as message;
use crate::tables::tail as tail_tables;
use minijinja::Value;
use punctual_bundle::tail::{SeriesTail, Tails};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Series beyond this number are counted but not shown.
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

pub fn tails(tails: &Tails) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
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
        levels: tail_tables::levels(&tail.model.levels).unless_empty().map(Table::from),
        gates: tail_tables::conditions(&tail.model.gates).unless_empty().map(Table::from),
    }
}
