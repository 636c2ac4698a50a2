//! `punctual trend --report`: the histories of a directory, as a page without a script.

use super::HtmlError;
use super::page::{fill, policy};
use super::scatter::{Line, Scatter, Side, of_points};
use super::table::Table;
use super::text::{name, sentence};
use crate::format::count;
use crate::tables::Tone;
use crate::tables::trend as tables;
use crate::verdict::baseline;
use minijinja::Value;
use punctual_bundle::Timebase;
use punctual_bundle::baseline::{TrendDocument, TrendFigure, TrendHistory};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Drawings of a history; figures that changed come first.
const DRAWINGS: usize = 24;
const HISTORIES: usize = 100;
/// Omitted records that are named.
const NAMED: usize = 20;

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    histories: Vec<History>,
    left_out: Vec<String>,
    more: Vec<String>,
    version: &'static str,
    style: Value,
}

#[derive(Serialize)]
struct History {
    title: String,
    extent: String,
    /// The verdict on the newest run: each sentence with the class of its banner.
    verdict: Vec<(&'static str, String)>,
    scatters: Vec<Scatter>,
    not_drawn: usize,
    levels: Table,
    runs: Table,
}

/// The page.
///
/// # Errors
/// A template does not fit its data.
pub fn trend(document: &TrendDocument, directory: &str) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let beyond = |all: usize, shown: usize, what: &str| {
        let more = all.saturating_sub(shown) as u64;
        (more > 0).then(|| format!("{} more {what} are not shown; --json has all.", count(more)))
    };
    let more = [
        beyond(document.histories.len(), HISTORIES, "histories"),
        beyond(document.left_out.len(), NAMED, "records that were left out"),
    ];
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        title: format!("Runs kept in {}", name(directory)),
        histories: document.histories.iter().take(HISTORIES).map(history).collect(),
        left_out: document.left_out.iter().take(NAMED).map(|why| sentence(why)).collect(),
        more: more.into_iter().flatten().collect(),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("trend.html", &page, Timebase::Own)
}

fn history(history: &TrendHistory) -> History {
    let verdict = baseline::newest(&history.held).into_iter();
    let (changed, same): (Vec<&TrendFigure>, Vec<&TrendFigure>) =
        history.figures.iter().partition(|figure| figure.levels.len() > 1);
    let scatters: Vec<Scatter> =
        changed.into_iter().chain(same).filter_map(drawing).take(DRAWINGS).collect();
    History {
        title: tables::title(history),
        extent: tables::extent(history),
        verdict: verdict.map(|(tone, words)| (class(tone), sentence(&words))).collect(),
        not_drawn: history.figures.len() - scatters.len(),
        scatters,
        levels: tables::levels(history).into(),
        runs: tables::runs(history).into(),
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        _ => "warn",
    }
}

/// A figure over the runs, with its levels; `None` if fewer than two runs have it.
fn drawing(figure: &TrendFigure) -> Option<Scatter> {
    // The first run is number 1, and a level ends half-way between two runs.
    let numbered = figure.values.iter().enumerate().map(|(run, value)| (run as f64 + 1.0, value));
    let points: Vec<(f64, f64)> = numbered
        .filter_map(|(run, value)| Some((run, value.filter(|v| v.is_finite() && *v >= 0.0)?)))
        .collect();
    let levels: Vec<([f64; 2], Option<f64>)> = figure
        .levels
        .iter()
        .map(|level| (level.runs.map(|run| run as f64 + 0.5), level.median))
        .collect();
    let title = name(&figure.name);
    let unit = if figure.is_time { "ns" } else { "count" };
    let across = Side { title: "run".to_owned(), unit: "count".to_owned() };
    let upwards = Side { title: title.clone(), unit: unit.to_owned() };
    let newest = figure.levels.last().and_then(|level| tables::change(figure, level));
    let caption = newest.map_or_else(|| title.clone(), |change| format!("{title}: {change}"));
    of_points(caption, &across, &upwards, &points, Line::Levels(&levels))
}
