//! Histories of runs: the verdict on the newest run, and where figures changed.

use super::{Document, Item, Title};
use crate::format::{count, counted, plain};
use crate::html::plot::Plot;
use crate::html::scatter::{Scatter, ScatterSide};
use crate::html::text::name;
use crate::tables::{Face, Tone, trend as tables};
use crate::verdict::baseline;
use punctual_bundle::Timebase;
use punctual_bundle::baseline::{ProposedBound, TrendDocument, TrendFigure, TrendHistory};

/// Drawings of a history; figures that changed come first.
const DRAWINGS: usize = 24;
/// Omitted records that a terminal names.
const NAMED_RECORDS: usize = 3;

/// All histories kept in a directory.
pub fn trend(trend: &TrendDocument, directory: &str) -> Document {
    let mut document = Document::new("trend", format!("runs kept in {directory}"), Timebase::Own);
    if trend.histories.is_empty() {
        document.only(Face::Page, |document| {
            document.text(Tone::Plain, "No runs are kept there.");
        });
    }
    trend.histories.iter().for_each(|of| history(&mut document, of));
    if !trend.left_out.is_empty() {
        let count = counted(trend.left_out.len() as u64, "record");
        document.heading(format!("{count} left out"));
        let whys = trend.left_out.iter();
        document.list(NAMED_RECORDS, whys.map(|why| Item::new(Tone::Uncertain, why)));
    }
    document
}

fn history(document: &mut Document, history: &TrendHistory) {
    document.heading(tables::title(history));
    for (tone, words) in baseline::newest(&history.held) {
        document.text(tone, words);
    }
    proposed(document, history);
    document.only(Face::Page, |document| {
        document.text(Tone::Plain, tables::extent(history));
        let (changed, same): (Vec<&TrendFigure>, Vec<&TrendFigure>) =
            history.figures.iter().partition(|figure| figure.levels.len() > 1);
        let drawn = changed.into_iter().chain(same).filter_map(drawing).take(DRAWINGS);
        let drawn: Vec<Plot> = drawn.map(Plot::Dots).collect();
        let not_drawn = history.figures.len() - drawn.len();
        document.plots(drawn);
        let meaning = "A dot is a run, a line the median of a level, a broken line a change.";
        document.text(Tone::Faint, meaning);
        if not_drawn > 0 {
            let text = format!("{not_drawn} of its figures are not drawn; the table has them.");
            document.text(Tone::Faint, text);
        }
    });
    document.table(Title::Heading, tables::levels(history));
    document.only(Face::Page, |document| document.table(Title::Folded, tables::runs(history)));
}

/// The bounds of `--propose`, as keys of an experiment with what they promise.
fn proposed(document: &mut Document, history: &TrendHistory) {
    if history.proposed.is_empty() {
        return;
    }
    let all = history.proposed.iter();
    let together = all.clone().map(|bound| bound.false_alarms).sum::<f64>();
    document.heading("proposed bounds".to_owned());
    let mut places: Vec<&str> = all.map(|bound| bound.place.as_str()).collect();
    places.dedup();
    for place in places {
        let own: Vec<&ProposedBound> =
            history.proposed.iter().filter(|bound| bound.place == place).collect();
        let lines: Vec<String> = own.iter().map(|one| quoted(&one.require)).collect();
        document.text(Tone::Strong, format!("require = [{}]", lines.join(", ")));
        let items = own.iter().map(|one| Item::new(Tone::Plain, baseline::of_bound(one)));
        document.list(own.len(), items);
        document.text(Tone::Faint, format!("of {}", plain(place)));
    }
    let of = count((1.0 / together.min(1.0)).floor() as u64);
    document.text(
        Tone::Faint,
        format!(
            "All together: at most one false alarm in {of} runs. A changed experiment begins a new \
             history."
        ),
    );
}

/// A text of JSON, which is one of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(plain(text)).to_string()
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
    let across = ScatterSide::new("run", "count");
    let upwards = ScatterSide::new(&title, if figure.is_time { "ns" } else { "count" });
    let newest = figure.levels.last().and_then(|level| tables::change(figure, level));
    let caption = newest.map_or_else(|| title.clone(), |change| format!("{title}: {change}"));
    Scatter::of(caption, &across, &upwards, &points, &levels)
}
