//! Histories of runs: the verdict on the newest run, and where figures changed.

use super::{Document, Item, Title};
use crate::format::{count_text, count_with_noun, escape_unsafe};
use crate::html::plot::Plot;
use crate::html::scatter::{Scatter, ScatterSide};
use crate::html::text::format_name;
use crate::tables::{Face, Tone, trend as tables};
use crate::verdict::baseline;
use punctual_bundle::Timebase;
use punctual_bundle::baseline::{ProposedBound, TrendDocument, TrendFigure, TrendHistory};

/// Drawings of a history; figures that changed come first.
const DRAWINGS: usize = 24;
/// Omitted records that a terminal names.
const NAMED_RECORDS: usize = 3;

/// All histories kept in a directory.
pub fn build_trend_document(trend: &TrendDocument, directory: &str) -> Document {
    let mut document = Document::new("trend", format!("runs kept in {directory}"), Timebase::Own);
    if trend.histories.is_empty() {
        document.add_for_face(Face::Page, |document| {
            document.add_text(Tone::Plain, "No runs are kept there.");
        });
    }
    trend.histories.iter().for_each(|of| add_history(&mut document, of));
    if !trend.left_out.is_empty() {
        let count = count_with_noun(trend.left_out.len() as u64, "record");
        document.add_heading(format!("{count} left out"));
        let whys = trend.left_out.iter();
        document.add_list(NAMED_RECORDS, whys.map(|why| Item::new(Tone::Uncertain, why)));
    }
    document
}

fn add_history(document: &mut Document, history: &TrendHistory) {
    document.add_heading(tables::history_title(history));
    for (tone, words) in baseline::judge_newest(&history.held) {
        document.add_text(tone, words);
    }
    add_proposed_bounds(document, history);
    document.add_for_face(Face::Page, |document| {
        document.add_text(Tone::Plain, tables::format_extent(history));
        let (changed, same): (Vec<&TrendFigure>, Vec<&TrendFigure>) =
            history.figures.iter().partition(|figure| figure.levels.len() > 1);
        let drawn = changed.into_iter().chain(same).filter_map(draw_figure).take(DRAWINGS);
        let drawn: Vec<Plot> = drawn.map(Plot::Dots).collect();
        let not_drawn = history.figures.len() - drawn.len();
        document.add_plots(drawn);
        let meaning = "A dot is a run, a line the median of a level, a broken line a change.";
        document.add_text(Tone::Faint, meaning);
        if not_drawn > 0 {
            let text = format!("{not_drawn} of its figures are not drawn; the table has them.");
            document.add_text(Tone::Faint, text);
        }
    });
    document.add_table(Title::Heading, tables::level_table(history));
    document.add_for_face(Face::Page, |document| {
        document.add_table(Title::Folded, tables::run_table(history))
    });
}

/// The bounds of `--propose`, as keys of an experiment with what they promise.
fn add_proposed_bounds(document: &mut Document, history: &TrendHistory) {
    if history.proposed.is_empty() {
        return;
    }
    let proposed_bounds = history.proposed.iter();
    let together = proposed_bounds.clone().map(|bound| bound.false_alarms).sum::<f64>();
    document.add_heading("proposed bounds".to_owned());
    let mut places: Vec<&str> = proposed_bounds.map(|bound| bound.place.as_str()).collect();
    places.dedup();
    for place in places {
        let bounds_of_place: Vec<&ProposedBound> =
            history.proposed.iter().filter(|bound| bound.place == place).collect();
        let lines: Vec<String> =
            bounds_of_place.iter().map(|one| quote_text(&one.require)).collect();
        document.add_text(Tone::Strong, format!("require = [{}]", lines.join(", ")));
        let items =
            bounds_of_place.iter().map(|one| Item::new(Tone::Plain, baseline::of_bound(one)));
        document.add_list(bounds_of_place.len(), items);
        document.add_text(Tone::Faint, format!("of {}", escape_unsafe(place)));
    }
    let run_count = count_text((1.0 / together.min(1.0)).floor() as u64);
    document.add_text(
        Tone::Faint,
        format!(
            "All together: at most one false alarm in {run_count} runs. A changed experiment \
             begins a new history."
        ),
    );
}

/// A text of JSON, which is one of TOML.
fn quote_text(text: &str) -> String {
    serde_json::Value::from(escape_unsafe(text)).to_string()
}

/// A figure over the runs, with its levels; `None` if fewer than two runs have it.
fn draw_figure(figure: &TrendFigure) -> Option<Scatter> {
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
    let title = format_name(&figure.name);
    let across = ScatterSide::new("run", "count");
    let upwards = ScatterSide::new(&title, if figure.is_time { "ns" } else { "count" });
    let newest = figure.levels.last().and_then(|level| tables::format_change(figure, level));
    let caption = newest.map_or_else(|| title.clone(), |change| format!("{title}: {change}"));
    Scatter::from_points(caption, &across, &upwards, &points, &levels)
}
