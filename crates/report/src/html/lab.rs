//! `punctual lab report`: the results of a lab as one page that opens without network.
//!
//! Reading order: the [`curves`] of all cells, the [`heat`] maps, the other [`tables`], and the
//! page put together here.

mod curves;
mod heat;
mod tables;

use super::curve::Curve;
use super::drawing::{self, Drawing};
use super::embedded::EmbeddedData;
use super::gather::Content;
use super::page::{fill, policy, script, style};
use super::recording::section::Data;
use super::scale::Scale;
use super::table::Table;
use super::text::{instant, name};
use super::{HtmlError, SIZE_LIMIT, Size, account, fitting};
use crate::sentence::lab as words;
use minijinja::Value;
use punctual_bundle::Bundle;
use punctual_bundle::lab::{CellDocument, LabDocument};
use punctual_bundle::summary::{Summary, VerdictWord};
use serde::Serialize;

const SCRIPT: [&str; 1] = [include_str!("assets/lab.js")];
/// Sentences below the verdict; the rest are counted.
const ITEMS: usize = 12;

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    about: Vec<(&'static str, String)>,
    banner: Option<Banner>,
    figure: Option<String>,
    to_do: Option<String>,
    /// The meaning and the limits of the figures.
    limits: Vec<String>,
    heat: Vec<Table>,
    drawing: Drawing,
    reduced: Option<String>,
    figures: Table,
    published: Vec<(String, Table)>,
    effects: Option<Table>,
    seeds: Option<Table>,
    cells: Table,
    worst: Option<Table>,
    version: &'static str,
    style: Value,
    script: Value,
    embedded: Value,
}

#[derive(Serialize)]
struct Banner {
    class: &'static str,
    mark: &'static str,
    text: String,
    items: Vec<String>,
}

/// The page. `pooled` are the bundles of the cells in order, all seeds combined (`None` for a cell
/// without one), `pages` the links to the page of each cell; `directory` is inserted into the
/// commands that the page shows.
///
/// # Errors
/// A template does not fit its data.
pub fn lab(
    lab: &LabDocument,
    pooled: &[Option<Bundle>],
    pages: &[Option<String>],
    directory: &str,
) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let summaries: Vec<Option<Summary>> =
        pooled.iter().map(|bundle| bundle.as_ref().map(punctual_stats::summarize)).collect();
    let mut content = curves::content(lab, pooled, &summaries);
    let page = |content: &Content<'_>, size: &Size| render(lab, content, size, pages, directory);
    fitting(&mut content, SIZE_LIMIT, page)
}

fn render(
    lab: &LabDocument,
    content: &Content<'_>,
    size: &Size,
    pages: &[Option<String>],
    directory: &str,
) -> Result<String, HtmlError> {
    let curves: Vec<Curve> =
        content.lines.iter().map(|line| line.curve.reduced(size.bins)).collect();
    let scale = Scale::of(content, &curves);
    let account = account::Data::default();
    let embedded =
        EmbeddedData::of(&[], content, &curves, scale, size, Data::of(&[], &[], 0, 0), &account)
            .to_text()
            .map_err(|why| HtmlError::Render(why.to_string()))?;
    // Without a script the series cannot be chosen: the first is drawn.
    let (first, first_curves) = curves::of_first_group(content, &curves);
    let (style, script) = (style(), script(&SCRIPT));
    let page = Page {
        policy: Value::from_safe_string(policy(&style, &script)),
        title: name(&lab.name),
        about: about(lab),
        banner: banner(lab),
        figure: words::figure(lab),
        to_do: words::to_do(lab, directory),
        limits: lab.limits.iter().map(|limit| name_whole(limit)).collect(),
        heat: heat::tables(lab),
        drawing: drawing::draw(&first, &first_curves, &scale),
        reduced: (content.left_out > 0).then(|| {
            format!("{} more curves are not shown: too many for one page.", content.left_out)
        }),
        figures: tables::figures(lab),
        published: tables::published(lab),
        effects: crate::tables::lab::effects(lab).unless_empty().map(Table::from),
        seeds: tables::seeds(lab, directory),
        cells: tables::cells(lab, directory, pages),
        worst: tables::worst(lab, pages),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(style),
        script: Value::from_safe_string(script),
        embedded: Value::from_safe_string(embedded),
    };
    fill("lab.html", &page, lab.timebase())
}

/// A sentence of bounded length.
fn name_whole(text: &str) -> String {
    super::text::clip(&crate::format::plain(text), 1_000)
}

fn about(lab: &LabDocument) -> Vec<(&'static str, String)> {
    let axis = |axis: &punctual_bundle::lab::AxisDocument| {
        let values: Vec<String> = axis.values.iter().map(|value| name(value)).collect();
        format!("{}: {}", name(&axis.name), values.join(", "))
    };
    let mut targets: Vec<String> = lab.cells.iter().map(|cell| name(&cell.target)).collect();
    targets.dedup();
    targets.truncate(6);
    let axes: Vec<String> = lab.axes.iter().map(axis).collect();
    vec![
        ("Extent", words::extent(lab)),
        ("Axes", if axes.is_empty() { "none".to_owned() } else { axes.join("; ") }),
        ("Run on", targets.join(", ")),
        ("First run", instant(lab.created)),
        ("Made with", format!("punctual {}", name(&lab.punctual))),
    ]
}

fn banner(lab: &LabDocument) -> Option<Banner> {
    let mut items: Vec<String> = Vec::new();
    let bad =
        lab.cells.iter().flat_map(|cell| cell.series.iter().map(move |series| (cell, series)));
    for (cell, series) in bad {
        let not_met = series.requirements.iter().filter(|r| r.verdict != VerdictWord::Met);
        items.extend(
            not_met.map(|requirement| name_whole(&words::requirement(cell, series, requirement))),
        );
    }
    items.extend(lab.cells.iter().flat_map(|cell| {
        cell.trouble.iter().map(|text| name_whole(&format!("{}: {text}", cell.name)))
    }));
    if items.len() > ITEMS {
        let more = items.len() - ITEMS;
        items.truncate(ITEMS);
        items.push(format!("and {more} more"));
    }
    let failed = lab.cells.iter().any(CellDocument::has_failed);
    let (class, mark, text) = match lab.verdict {
        Some(VerdictWord::NotMet) => ("bad", "✗", "A requirement is not met."),
        Some(VerdictWord::Invalid) => {
            ("bad", "!", "Invalid: a cell was not measured as requested.")
        }
        _ if failed => ("bad", "✗", "Not every cell is valid."),
        _ if !lab.finished => ("warn", "…", "Not every cell ran to completion."),
        Some(VerdictWord::Undecided) => {
            ("warn", "?", "The evidence does not decide every requirement.")
        }
        Some(VerdictWord::Met) => ("good", "✓", "Every requirement is met in every cell."),
        None => return None,
    };
    Some(Banner { class, mark, text: text.to_owned(), items })
}
