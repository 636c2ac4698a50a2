//! The result of a comparison of a series: differences that are significant, those that are not,
//! and how much data would be needed for significance.

use super::{format_probability, format_range, join_words, p_is, spoken_duration};
use crate::format::{count_text, escape_unsafe, micros_f64};
use punctual_bundle::comparison::{
    Basis, Comparison, Difference, GateResult, MetricComparison, SeriesComparison,
};
use punctual_bundle::summary::VerdictWord;

/// The sentences about one series.
pub fn of_series(comparison: &Comparison, series: &SeriesComparison) -> Vec<String> {
    let label = |side: usize| {
        comparison.sides.get(side).map_or("?".to_owned(), |side| escape_unsafe(&side.label))
    };
    let (a, b) = (label(0), label(series.side));
    let mut sentence = Vec::new();
    if series.basis == Basis::Unknown && series.metrics.iter().any(|metric| metric.p.is_some()) {
        sentence.push("Valid only for independent samples, which is unknown here:".to_owned());
    }
    let before = sentence.len();
    sentence.extend(series.metrics.iter().filter_map(|metric| format_difference(&b, metric)));
    sentence.extend(format_suggestion(series, comparison));
    sentence.extend(format_distribution(&a, &b, series, sentence.len() == before));
    sentence.extend(format_open_figures(&a, &b, series));
    sentence.extend(format_unsupported(series));
    sentence
}

/// The tests of the distributions, in one line.
pub(crate) fn of_distributions(one: &SeriesComparison) -> Option<String> {
    // If figures differ, the distributions do: a test that does not detect it adds nothing.
    let differs = |verdict| matches!(verdict, Difference::Lower | Difference::Higher);
    let is_known = one.metrics.iter().any(|metric| differs(metric.verdict));
    let sentences: Vec<String> = one
        .distribution
        .iter()
        .filter(|test| !is_known || test.p_adjusted.is_some_and(|p| p <= 0.05))
        .filter_map(|test| {
            let p = test.p_adjusted?;
            let smallest_p = if test.least_p > 0.01 {
                format!(", with so few runs never below {}", format_probability(test.least_p))
            } else {
                String::new()
            };
            Some(format!("{}: {} ({}{smallest_p})", test.part, p_is(p), test.method))
        })
        .collect();
    let longer = one
        .superiority
        .map(|p| format!("a sample of the other side is longer in {:.1} % of pairs", p * 100.0));
    let sentences: Vec<String> = sentences.into_iter().chain(longer).collect();
    (!sentences.is_empty())
        .then(|| format!("distributions, all tests counted: {}", sentences.join("; ")))
}

pub(super) fn metric_name(metric: &str) -> String {
    match metric {
        "p50" => "median".to_owned(),
        "max" => "maximum".to_owned(),
        other => escape_unsafe(other),
    }
}

/// `B's p99.9 is 34–41 µs lower (12 %).`
fn format_difference(b: &str, metric: &MetricComparison) -> Option<String> {
    let way = match metric.verdict {
        Difference::Lower => "lower",
        Difference::Higher => "higher",
        _ => return None,
    };
    // The end nearer to zero, and the other, which may be unbounded.
    let (near, far) =
        if way == "lower" { (metric.high, metric.low) } else { (metric.low, metric.high) };
    let amount = match (near, far) {
        (Some(near), Some(far)) => format_range(near, far),
        (Some(near), None) => format!("at least {}", format_range(near, near)),
        _ => format_range(metric.difference?, metric.difference?),
    };
    let share =
        metric.relative.map_or(String::new(), |share| format!(" ({:.1} %)", share.abs() * 100.0));
    Some(format!("{b}'s {} is {amount} {way}{share}.", metric_name(&metric.metric)))
}

/// A difference that is significant by itself, but not among all tests.
fn format_suggestion(series: &SeriesComparison, comparison: &Comparison) -> Option<String> {
    let seems = |metric: &&MetricComparison| {
        let (low, high) =
            (metric.low.unwrap_or(f64::NEG_INFINITY), metric.high.unwrap_or(f64::INFINITY));
        metric.verdict == Difference::NoSignificantDifference && (low > 0.0 || high < 0.0)
    };
    let names: Vec<String> =
        series.metrics.iter().filter(seems).map(|m| metric_name(&m.metric)).collect();
    let verb = if names.len() == 1 { "seems" } else { "seem" };
    let test_count = count_text(comparison.tests);
    (!names.is_empty()).then(|| {
        format!(
            "{} {verb} to differ, but not significantly at a family-wise error rate of 5 % (Holm, \
             {test_count} tests).",
            capitalize_first(&join_words(&names))
        )
    })
}

fn capitalize_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn format_distribution(a: &str, b: &str, series: &SeriesComparison, alone: bool) -> Option<String> {
    let differ = |part: &str| {
        let test = series.distribution.iter().find(|test| test.part == part)?;
        test.p_adjusted.filter(|p| *p <= 0.05)
    };
    match (differ("whole"), differ("tail")) {
        (Some(p), _) if alone => {
            Some(format!("The distributions of {a} and {b} differ ({}).", p_is(p)))
        }
        (None, Some(p)) if alone => Some(format!("The tails of {a} and {b} differ ({}).", p_is(p))),
        _ => None,
    }
}

/// `No significant difference in the maximum with 10 min of data; about 70 min would suffice.`
fn format_open_figures(a: &str, b: &str, series: &SeriesComparison) -> Option<String> {
    let excludes = |m: &MetricComparison| {
        m.low.is_some_and(|low| low > 0.0) || m.high.is_some_and(|high| high < 0.0)
    };
    let open: Vec<&MetricComparison> = series
        .metrics
        .iter()
        .filter(|m| m.verdict == Difference::NoSignificantDifference && !excludes(m))
        .collect();
    let names: Vec<String> = open.iter().map(|m| metric_name(&m.metric)).collect();
    if names.is_empty() {
        return None;
    }
    let duration =
        series.a.duration.zip(series.b.duration).map(|(a, b)| a.min(b) as f64).filter(|d| *d > 0.0);
    let data =
        duration.map_or("these data".to_owned(), |d| format!("{} of data", spoken_duration(d)));
    let enough = |m: &&MetricComparison| {
        let times = m.more_data?;
        let time =
            duration.map_or(format!("{times:.0} times as many"), |d| spoken_duration(d * times));
        Some(format!(
            "about {time} would make the difference in the {} significant",
            metric_name(&m.metric)
        ))
    };
    // First the figure that needs the least data.
    let mut soon: Vec<&MetricComparison> =
        open.iter().copied().filter(|m| m.more_data.is_some()).collect();
    soon.sort_by(|x, y| {
        x.more_data.unwrap_or(f64::MAX).total_cmp(&y.more_data.unwrap_or(f64::MAX))
    });
    let would: Vec<String> = soon.iter().take(2).filter_map(enough).collect();
    let would = if would.is_empty() {
        String::new()
    } else {
        format!("; if the observed difference is real, {}", join_words(&would))
    };
    let figures = if names.len() == 1 { "figure" } else { "figures" };
    Some(format!(
        "No significant difference between {a} and {b} in the {figures} {} with {data}{would}.",
        join_words(&names)
    ))
}

fn format_unsupported(series: &SeriesComparison) -> Option<String> {
    let reasons = series.metrics.iter().filter(|m| m.verdict == Difference::Unsupported);
    let sentence: Vec<String> = reasons
        .map(|m| {
            format!(
                "{}: {}",
                metric_name(&m.metric),
                escape_unsafe(m.reason.as_deref().unwrap_or("unknown"))
            )
        })
        .collect();
    (!sentence.is_empty()).then(|| format!("Not tested: {}.", sentence.join("; ")))
}

/// The reason for the verdict on a difference requirement: `the regression is at least 12.0 µs;
/// allowed are 10.0 µs`.
pub(crate) fn of_gate(gate: &GateResult) -> String {
    let bound = gate.bound.filter(|_| gate.verdict != VerdictWord::Undecided);
    let bound = match (
        bound,
        gate.reason.ends_with("by at least") || gate.reason.ends_with("by at most"),
    ) {
        (Some(bound), true) => format!(" {} µs", micros_f64(bound)),
        _ => String::new(),
    };
    let margin = gate
        .margin
        .map_or(String::new(), |margin| format!("; allowed are {} µs", micros_f64(margin)));
    format!("{}{bound}{margin}", gate.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_bundle::comparison::{ComparisonSide, SCHEMA, SideFigures};

    fn metric(
        name: &str,
        difference: f64,
        low: Option<f64>,
        high: Option<f64>,
        verdict: Difference,
    ) -> MetricComparison {
        MetricComparison {
            metric: name.into(),
            a: Some(300_000.0),
            b: Some(300_000.0 + difference),
            difference: Some(difference),
            low,
            high,
            relative: Some(difference / 300_000.0),
            ratio: None,
            measured: None,
            p: Some(0.001),
            p_adjusted: Some(0.01),
            verdict,
            more_data: None,
            reason: None,
        }
    }

    fn sentence(metrics: Vec<MetricComparison>, basis: Basis) -> String {
        let figures = SideFigures {
            runs: 1,
            count: 600_000,
            duration: Some(600_000_000_000),
            ..SideFigures::default()
        };
        let series = SeriesComparison {
            side: 1,
            series: "main/timer".into(),
            partner: "main/timer".into(),
            a: figures.clone(),
            b: figures,
            basis,
            corrected: false,
            metrics,
            distribution: Vec::new(),
            superiority: None,
            resolution: 0,
        };
        let side = |label: &str| ComparisonSide {
            label: label.into(),
            runs: vec!["x".into()],
            timebase: Default::default(),
        };
        let comparison = Comparison {
            schema: SCHEMA.into(),
            sides: vec![side("A"), side("B")],
            confidence: 0.95,
            error_rate: 0.05,
            tests: 14,
            ..Comparison::default()
        };
        of_series(&comparison, &series).join("\n")
    }

    #[test]
    fn an_open_difference_is_reported_with_the_data_it_needs() {
        let mut max =
            metric("max", -9_000.0, None, Some(20_000.0), Difference::NoSignificantDifference);
        max.more_data = Some(7.0);
        let lower = metric("p99.9", -37_500.0, Some(-41_000.0), Some(-34_000.0), Difference::Lower);
        insta::assert_snapshot!(sentence(vec![lower, max], Basis::Blocks), @"
        B's p99.9 is 34.0–41.0 µs lower (12.5 %).
        No significant difference between A and B in the figure maximum with 10 min of data; if the observed difference is real, about 70 min would make the difference in the maximum significant.
        ");
    }

    #[test]
    fn what_is_uncertain_is_marked() {
        let seems =
            metric("p50", 100.0, Some(10.0), Some(190.0), Difference::NoSignificantDifference);
        let mut none = metric("p99.99", 0.0, None, None, Difference::Unsupported);
        none.reason = Some("it needs 100000 samples on each side and one has 600".into());
        let open_end = metric("p99", 5_000.0, Some(2_000.0), None, Difference::Higher);
        insta::assert_snapshot!(sentence(vec![seems, open_end, none], Basis::Unknown), @"
        Valid only for independent samples, which is unknown here:
        B's p99 is at least 2.00 µs higher (1.7 %).
        Median seems to differ, but not significantly at a family-wise error rate of 5 % (Holm, 14 tests).
        Not tested: p99.99: it needs 100000 samples on each side and one has 600.
        ");
    }
}
