//! `punctual compare --report`: the comparison as a page without a script. The differences of each
//! series are drawn with their intervals, in a table, and in words.

use super::HtmlError;
use super::overlaid::{self, Overlaid};
use super::page::{fill, policy};
use super::table::Table;
use super::text::{clip, name};
use crate::format::counted;
use crate::sentence;
use crate::tables::comparison as tables;
use minijinja::Value;
use punctual_bundle::comparison::{
    Comparison, Difference, MetricComparison, Ratio, SeriesComparison,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Finding, Severity};
use serde::Serialize;

const STYLE: &str = include_str!("assets/report.css");
/// Series beyond this number are counted but not shown.
const MAX_SERIES: usize = 500;
/// Places listed for one warning.
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
    verdict: Option<String>,
    figure: Option<String>,
    to_do: Vec<String>,
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
    curves: Option<Overlaid>,
}

#[derive(Serialize)]
pub(super) struct Warning {
    class: &'static str,
    severity: String,
    message: String,
    places: Vec<String>,
    more: usize,
    remedy: Option<String>,
}

/// The figures of the other side as multiples of the first side's, each with its interval.
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
    /// Whether an end is outside of the drawing, or unbounded.
    open_low: bool,
    open_high: bool,
    hue: usize,
}

pub fn comparison(comparison: &Comparison) -> Result<String, HtmlError> {
    if !super::BUILT {
        return Err(HtmlError::LeftOut);
    }
    let sides = comparison
        .sides
        .iter()
        .map(|s| (name(&s.label), s.runs.iter().map(|run| name(run)).collect()));
    let title: Vec<String> = comparison.sides.iter().map(|side| name(&side.label)).collect();
    let answer = comparison.answer.as_ref();
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
        verdict: answer.map(|answer| answer.verdict.clone()),
        figure: answer.and_then(|answer| answer.figure.clone()),
        to_do: answer.map_or_else(Vec::new, |answer| answer.to_do.clone()),
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
        curves: overlaid::draw([name(a), name(b)], [&one.a.curve, &one.b.curve]),
    }
}

fn forest(metrics: &[MetricComparison]) -> Forest {
    let shown: Vec<(&MetricComparison, Ratio)> =
        metrics.iter().filter_map(|m| Some((m, m.ratio?))).collect();
    let reach = |(_, ratio): &(&MetricComparison, Ratio)| {
        [Some(ratio.at), ratio.low, ratio.high]
            .into_iter()
            .flatten()
            .map(|end| end.ln().abs())
            .fold(0.0, f64::max)
    };
    // Up to a factor of 100; an arrow marks values beyond it.
    let span = shown.iter().map(reach).fold(1.02f64.ln(), f64::max).min(100f64.ln()) * 1.08;
    let x = |ratio: f64| {
        let ln = if ratio > 0.0 { ratio.ln() } else { f64::NEG_INFINITY };
        LEFT + (ln.clamp(-span, span) + span) / (2.0 * span) * (WIDTH - LEFT - RIGHT)
    };
    let rows = shown.iter().enumerate().map(|(k, (m, ratio))| {
        let (low, high) = (ratio.low.unwrap_or(0.0), ratio.high.unwrap_or(f64::MAX));
        Mark {
            label: clip(&m.metric, 12),
            y: TOP + ROW * (k as f64 + 0.5),
            low: x(low),
            at: x(ratio.at),
            high: x(high),
            open_low: low < (-span).exp(),
            open_high: high > span.exp(),
            hue: match m.verdict {
                Difference::Lower => 2,
                Difference::Higher => 1,
                _ => 7,
            },
        }
    });
    let rows: Vec<Mark> = rows.collect();
    // The finest step with at most four ticks per side.
    let steps = [1.01f64, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0];
    let step = steps.into_iter().find(|step| span / step.ln() <= 4.0).unwrap_or(10.0);
    let ticks = (-4..=4).map(|k| step.powi(k)).filter(|ratio| ratio.ln().abs() <= span);
    let bottom = TOP + ROW * rows.len() as f64;
    Forest {
        width: WIDTH,
        height: bottom + 34.0,
        left: LEFT,
        right: WIDTH - RIGHT,
        zero: x(1.0),
        bottom,
        description: format!(
            "{} of the other side as multiples of the first side's, on a logarithmic axis, with \
             95 % intervals; the table has the figures.",
            counted(rows.len() as u64, "figure")
        ),
        rows,
        ticks: ticks.map(|ratio| (x(ratio), sentence::factor(ratio))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_bundle::comparison::Difference;

    fn metric(ratio: Ratio) -> MetricComparison {
        MetricComparison {
            metric: "p99".into(),
            a: Some(1.0),
            b: Some(ratio.at),
            difference: None,
            low: None,
            high: None,
            relative: None,
            ratio: Some(ratio),
            measured: None,
            p: None,
            p_adjusted: None,
            verdict: Difference::Lower,
            more_data: None,
            reason: None,
        }
    }

    #[test]
    fn the_ratio_axis_is_logarithmic() {
        let half = metric(Ratio { at: 0.5, low: Some(0.25), high: Some(1.0) });
        let double = metric(Ratio { at: 2.0, low: Some(1.0), high: Some(4.0) });
        let drawn = forest(&[half, double]);
        let [half, double] = drawn.rows.as_slice() else { panic!("two rows") };
        assert!((drawn.zero - half.at - (double.at - drawn.zero)).abs() < 1e-9);
        assert_eq!((half.high, double.low), (drawn.zero, drawn.zero));
        assert!(!half.open_low && !double.open_high);
        let open = forest(&[metric(Ratio { at: 0.5, low: None, high: Some(0.9) })]);
        assert!(open.rows[0].open_low && open.rows[0].low == open.left);
    }
}
