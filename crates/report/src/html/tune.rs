//! `punctual tune report`: the results of a tuning as a page without a script: a forest plot of the
//! effects, on a logarithmic axis.

use super::HtmlError;
use super::page::{fill, policy};
use super::table::Table;
use super::text::name;
use crate::format::micros_f64;
use crate::sentence::tune as words;
use crate::tables::tune as tables;
use crate::tables::verdict_words;
use minijinja::Value;
use punctual_bundle::Timebase;
use punctual_bundle::tune::{Answer, Ratio, TuningDocument};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    extent: String,
    banner: &'static str,
    answer: String,
    cost: Option<String>,
    required: Option<(&'static str, String)>,
    ended: Option<String>,
    ticks: Vec<Tick>,
    rows: Vec<Row>,
    set: Option<Row>,
    untouched: Option<String>,
    with_set: Option<String>,
    metric: String,
    settings: Table,
    meaning: String,
    not_tried: Vec<(String, String)>,
    apply: Option<String>,
    version: &'static str,
    style: Value,
}

/// A mark of the axis.
#[derive(Serialize)]
struct Tick {
    /// From the left, in percent.
    at: f64,
    label: String,
    /// Whether it marks the factor 1: no effect.
    is_one: bool,
}

/// A line of the plot.
#[derive(Serialize)]
struct Row {
    name: String,
    class: &'static str,
    answer: &'static str,
    words: String,
    /// The ends of the interval, and the estimate, in percent.
    place: Option<[f64; 3]>,
}

/// The page. `directory` is inserted into the commands that it shows.
///
/// # Errors
/// A template does not fit its data.
pub fn tune(document: &TuningDocument, directory: &str) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let reach = tables::reach(document);
    let row = |name: String, answer: Answer, effect: Option<&Ratio>| Row {
        name,
        class: class(answer),
        answer: answer.words(),
        words: effect.map_or_else(|| "too few blocks".to_owned(), words::ratio),
        place: effect.map(|of| [of.interval[0], of.interval[1], of.ratio].map(|f| at(f, reach))),
    };
    let of_setting = tables::by_effect(document).into_iter();
    let of_setting = of_setting.map(|of| row(name(&of.name), of.answer, of.effect.as_ref()));
    let set = document.set.as_ref();
    let micros = |ns: Option<f64>| ns.map(|ns| format!("{} µs", micros_f64(ns)));
    let is_better = set.is_some_and(|set| set.answer == Answer::Better);
    let required = document.required.as_ref().map(|of| {
        let (sign, _) = verdict_words(of.verdict);
        (sign, words::required(of))
    });
    let not_tried = document.not_tried.iter().map(|left| (&left.name, &left.why));
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        title: format!("Tuning of {}", name(&document.experiment)),
        extent: words::extent(document),
        banner: if is_better { "good" } else { "" },
        answer: words::answer(document),
        cost: words::cost(document),
        required,
        ended: words::ended(document, directory),
        ticks: ticks(reach),
        rows: of_setting.collect(),
        set: set.map(|set| row(name(&set.settings.join(", ")), set.answer, set.effect.as_ref())),
        untouched: micros(set.and_then(|set| set.untouched)),
        with_set: micros(set.and_then(|set| set.with_set)),
        metric: name(&document.metric),
        settings: tables::settings(document).into(),
        meaning: words::meaning(document),
        not_tried: words::by_reason(not_tried)
            .into_iter()
            .map(|(of, why)| (name(&of), name(why)))
            .collect(),
        apply: is_better.then(|| format!("punctual tune apply {directory}")),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("tune.html", &page, Timebase::Own)
}

fn class(answer: Answer) -> &'static str {
    match answer {
        Answer::Better => "good",
        Answer::Worse => "bad",
        Answer::NoEffect => "none",
        Answer::NotResolved => "open",
    }
}

/// The position of a factor, in percent of the width.
fn at(factor: f64, reach: f64) -> f64 {
    let part = (factor.ln() / reach.ln()).clamp(-1.0, 1.0);
    // Leave room for the mark at either end.
    50.0 + 47.0 * part
}

fn ticks(reach: f64) -> Vec<Tick> {
    let all = [0.01, 0.03, 0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0, 100.0];
    let inside = all.into_iter().filter(|factor: &f64| {
        let size = factor.max(1.0 / *factor);
        // On a wide axis the inner marks would overlap.
        size <= reach && (reach < 3.0 || size == 1.0 || size >= 2.0)
    });
    let tick = |factor: f64| Tick {
        at: at(factor, reach),
        label: format!("×{factor}"),
        is_one: factor == 1.0,
    };
    inside.map(tick).collect()
}
