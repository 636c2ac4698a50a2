//! `punctual compare --report`: the comparison as a page without a script. Each series has its
//! differences drawn with their intervals, in a table, and in words.

use super::HtmlError;
use super::page::{fill, policy};
use super::table::Table;
use super::text::{clip, name};
use crate::format::counted;
use crate::sentence;
use crate::tables::comparison as tables;
use minijinja::Value;
use punctual_bundle::comparison::{Comparison, Difference, MetricComparison, SeriesComparison};
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Finding, Severity};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Series beyond this are counted and not shown.
const MAX_SERIES: usize = 500;
/// Places of one warning that are listed.
const PLACES: usize = 8;
const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 24.0;
const TOP: f64 = 8.0;

#[derive(Serialize)]
struct Page {
    policy: Value,
    title: String,
    sides: Vec<(String, Vec<String>)>,
    about: String,
    banner: Option<Banner>,
    gates: Option<Table>,
    series: Vec<Section>,
    left_out: usize,
    warnings: Vec<Warning>,
    version: &'static str,
    style: Value,
}

#[derive(Serialize)]
struct Banner {
    class: &'static str,
    text: &'static str,
}

#[derive(Serialize)]
struct Section {
    title: String,
    sentences: Vec<String>,
    table: Table,
    tests: Option<String>,
    forest: Forest,
}

#[derive(Serialize)]
pub(super) struct Warning {
    class: &'static str,
    severity: String,
    message: String,
    places: Vec<String>,
    /// Places beyond those.
    more: usize,
    remedy: Option<String>,
}

/// The differences as shares of the first side's figures, each with its interval.
#[derive(Serialize)]
struct Forest {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    zero: f64,
    bottom: f64,
    rows: Vec<Mark>,
    ticks: Vec<(f64, String)>,
    description: String,
}

#[derive(Serialize)]
struct Mark {
    label: String,
    y: f64,
    low: f64,
    at: f64,
    high: f64,
    /// An end that lies beyond the drawing, or nowhere.
    open_low: bool,
    open_high: bool,
    hue: usize,
}

/// The page.
pub fn comparison(comparison: &Comparison) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let sides = comparison
        .sides
        .iter()
        .map(|s| (name(&s.label), s.runs.iter().map(|run| name(run)).collect()));
    let title: Vec<String> = comparison.sides.iter().map(|side| name(&side.label)).collect();
    let page = Page {
        policy: Value::from_safe_string(policy(STYLE, "")),
        title: format!("Comparison of {}", sentence::listed(&title)),
        sides: sides.collect(),
        about: format!(
            "Each interval has {:.0} % confidence. The family-wise error rate, the probability of \
             any false difference, is 1 in {:.0} over {} (Holm's procedure).",
            comparison.confidence * 100.0,
            1.0 / comparison.error_rate,
            counted(comparison.tests, "test")
        ),
        banner: banner(comparison),
        gates: tables::gates(comparison).unless_empty().map(Table::from),
        series: comparison
            .series
            .iter()
            .take(MAX_SERIES)
            .map(|one| section(comparison, one))
            .collect(),
        left_out: comparison.series.len().saturating_sub(MAX_SERIES),
        warnings: warnings(&comparison.findings),
        version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(STYLE.to_owned()),
    };
    fill("comparison.html", &page, comparison.timebase())
}

fn banner(comparison: &Comparison) -> Option<Banner> {
    let (class, text) = match comparison.verdict? {
        VerdictWord::Met => ("good", "All requirements on the differences are met."),
        VerdictWord::NotMet => ("bad", "A requirement on a difference is not met."),
        VerdictWord::Invalid => ("bad", "A side was not measured as requested."),
        VerdictWord::Undecided => ("warn", "The data do not decide every requirement."),
    };
    Some(Banner { class, text })
}

/// Equal findings of several series are merged.
pub(super) fn warnings(findings: &[Finding]) -> Vec<Warning> {
    let mut all: Vec<Warning> = Vec::new();
    for finding in findings {
        let place = [Some(name(&finding.subject)), finding.evidence.clone()];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join(": ");
        match all.iter_mut().find(|warning| warning.message == finding.message) {
            Some(warning) => warning.places.push(place),
            None => all.push(Warning {
                class: match finding.severity {
                    Severity::Bad => "bad",
                    Severity::Warning => "warning",
                    _ => "",
                },
                severity: finding.severity.to_string(),
                message: finding.message.clone(),
                places: vec![place],
                more: 0,
                remedy: finding.remedy.clone(),
            }),
        }
    }
    for warning in &mut all {
        warning.more = warning.places.len().saturating_sub(PLACES);
        warning.places.truncate(PLACES);
    }
    all
}

fn section(comparison: &Comparison, one: &SeriesComparison) -> Section {
    let [a, b] = tables::labels(comparison, one);
    let names = if one.series == one.partner {
        name(&one.series)
    } else {
        format!("{}, {}", name(&one.series), name(&one.partner))
    };
    Section {
        title: format!("{names}: {} against {}", name(b), name(a)),
        sentences: sentence::of_series(comparison, one),
        table: tables::metrics(comparison, one).into(),
        tests: sentence::of_distributions(one),
        forest: forest(&one.metrics),
    }
}

fn forest(metrics: &[MetricComparison]) -> Forest {
    let of_a = |metric: &MetricComparison, end: Option<f64>| {
        end.zip(metric.a.filter(|a| *a > 0.0)).map(|(e, a)| e / a)
    };
    let shown: Vec<&MetricComparison> = metrics.iter().filter(|m| m.relative.is_some()).collect();
    let reach = |m: &&MetricComparison| {
        [m.relative, of_a(m, m.low), of_a(m, m.high)]
            .into_iter()
            .flatten()
            .map(f64::abs)
            .fold(0.0, f64::max)
    };
    // Up to three times the figure itself; what lies beyond has an arrow.
    let span = shown.iter().map(reach).fold(0.02, f64::max).min(3.0) * 1.08;
    let x = |share: f64| {
        LEFT + (share.clamp(-span, span) + span) / (2.0 * span) * (WIDTH - LEFT - RIGHT)
    };
    let rows = shown.iter().enumerate().map(|(k, m)| {
        let (low, high) =
            (of_a(m, m.low).unwrap_or(-f64::MAX), of_a(m, m.high).unwrap_or(f64::MAX));
        Mark {
            label: clip(&m.metric, 12),
            y: TOP + ROW * (k as f64 + 0.5),
            low: x(low),
            at: x(m.relative.unwrap_or(0.0)),
            high: x(high),
            open_low: low < -span,
            open_high: high > span,
            hue: match m.verdict {
                Difference::Lower => 2,
                Difference::Higher => 1,
                _ => 7,
            },
        }
    });
    let rows: Vec<Mark> = rows.collect();
    let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
    let step = steps.into_iter().find(|step| span / step <= 4.0).unwrap_or(1.0);
    let ticks = (-4..=4).map(|k| f64::from(k) * step).filter(|share| share.abs() <= span);
    let bottom = TOP + ROW * rows.len() as f64;
    Forest {
        width: WIDTH,
        height: bottom + 34.0,
        left: LEFT,
        right: WIDTH - RIGHT,
        zero: x(0.0),
        bottom,
        description: format!(
            "Differences of {} relative to the first side, with 95 % intervals; the table has the \
             figures.",
            counted(rows.len() as u64, "figure")
        ),
        rows,
        ticks: ticks.map(|share| (x(share), format!("{:+.0} %", share * 100.0))).collect(),
    }
}
