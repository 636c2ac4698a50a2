//! The answer of a comparison, before its tables: the verdict, the most important difference, what
//! to do.

use super::comparison::{metric_name, of_gate};
use super::format_p_value;
use super::format_range;
use crate::format::{count_with_noun, escape_unsafe, micros_f64};
use punctual_bundle::comparison::{
    Basis, Comparison, ComparisonAnswer, Difference, GateResult, MetricComparison, RatioInterval,
    SeriesComparison,
};
use punctual_bundle::summary::VerdictWord;

/// A figure of a series on a side.
type SideFigure<'c> = (&'c SeriesComparison, &'c MetricComparison);

/// The answer of a comparison.
pub fn answer_of(comparison: &Comparison) -> ComparisonAnswer {
    let significant: Vec<SideFigure<'_>> =
        all_figures(comparison).filter(|(_, metric)| is_significant(metric)).collect();
    ComparisonAnswer {
        noise: judge_noise(comparison, &significant),
        verdict: match comparison.verdict {
            Some(word) => of_gates(comparison, word),
            None => of_differences(comparison, &significant),
        },
        figure: strongest_difference(comparison, &significant),
        to_do: to_do(comparison),
    }
}

/// Regression, noise, or undecided, of two sides: one line. A single run of each side does
/// not show how much runs differ, so that a difference between two is no regression yet.
fn judge_noise(comparison: &Comparison, significant: &[SideFigure<'_>]) -> Option<String> {
    if comparison.sides.len() != 2 {
        return None;
    }
    let higher: Vec<SideFigure<'_>> = significant
        .iter()
        .copied()
        .filter(|(_, metric)| metric.verdict == Difference::Higher)
        .collect();
    let has_runs = |one: &SeriesComparison| one.basis == Basis::Runs;
    if let Some((one, metric)) = largest_figure(&higher) {
        let step = format_step(one, metric)?;
        let [a, b] = [&one.a, &one.b].map(|side| count_with_noun(side.runs as u64, "run"));
        return Some(match has_runs(one) {
            true => format!("regression: {step}, not noise: {a} and {b} differ by less"),
            false => format!(
                "cannot be told: {step}, but one run of a side does not show how runs differ; five \
                 of each decide"
            ),
        });
    }
    if let Some((one, metric)) = largest_figure(significant) {
        return Some(format!("no regression: {}", format_step(one, metric)?));
    }
    let tested_figures: Vec<SideFigure<'_>> =
        all_figures(comparison).filter(|(_, metric)| metric.p_adjusted.is_some()).collect();
    let (one, metric) = largest_figure(&tested_figures)?;
    let what = if has_runs(one) { "these runs do" } else { "one such run does" };
    Some(format!("noise: {} is within what {what}", format_step(one, metric)?))
}

/// `main/timer/cpu0 p99 +31 % (p = 0.0004)`.
fn format_step(one: &SeriesComparison, metric: &MetricComparison) -> Option<String> {
    let change = match metric.relative?.max(-1.0) {
        by if by >= 9.0 => format_ratio(by + 1.0),
        by => format!("{:+.0} %", by * 100.0),
    };
    let p = format_p_value(metric.p_adjusted);
    Some(format!("{} {} {change}{p}", escape_unsafe(&one.partner), escape_unsafe(&metric.metric)))
}

fn all_figures(comparison: &Comparison) -> impl Iterator<Item = SideFigure<'_>> {
    comparison.series.iter().flat_map(|one| one.metrics.iter().map(move |metric| (one, metric)))
}

fn is_significant(metric: &MetricComparison) -> bool {
    matches!(metric.verdict, Difference::Lower | Difference::Higher)
}

fn side_label(comparison: &Comparison, side: usize) -> String {
    comparison.sides.get(side).map_or_else(|| "?".to_owned(), |side| escape_unsafe(&side.label))
}

/// The requirement with the gravest verdict, with its place and reason.
fn of_gates(comparison: &Comparison, word: VerdictWord) -> String {
    let of_word: Vec<&GateResult> =
        comparison.gates.iter().filter(|gate| gate.verdict == word).collect();
    let name = match word {
        VerdictWord::Met => {
            let requirement_count = count_with_noun(comparison.gates.len() as u64, "requirement");
            return format!("met: {requirement_count} on the differences");
        }
        VerdictWord::NotMet => "NOT MET",
        VerdictWord::Undecided => "UNDECIDED",
        VerdictWord::Invalid => "INVALID",
    };
    let Some(first) = of_word.first() else { return name.to_owned() };
    let further_gates = match of_word.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!(
        "{name}: {} on {} of {}: {}{further_gates}",
        escape_unsafe(&first.gate),
        escape_unsafe(&first.series),
        side_label(comparison, first.side),
        escape_unsafe(&of_gate(first))
    )
}

/// For each other side, the numbers of lower and of higher figures.
fn of_differences(comparison: &Comparison, significant: &[SideFigure<'_>]) -> String {
    let compared = |side: usize| {
        all_figures(comparison)
            .filter(|(one, m)| one.side == side && m.verdict != Difference::Unsupported)
            .count() as u64
    };
    let count = |side: usize, verdict: Difference| {
        significant.iter().filter(|(one, m)| one.side == side && m.verdict == verdict).count()
    };
    let first = side_label(comparison, 0);
    let of_side = |side: usize| {
        let other_label = side_label(comparison, side);
        let figure_count = count_with_noun(compared(side), "figure");
        match (count(side, Difference::Lower), count(side, Difference::Higher)) {
            (0, 0) if compared(side) == 0 => side_by_side(comparison, side, [&first, &other_label]),
            (0, 0) => format!(
                "no significant difference between {first} and {other_label} in {figure_count}"
            ),
            (lower, 0) => {
                format!("{other_label} has lower latency than {first} in {lower} of {figure_count}")
            }
            (0, higher) => format!(
                "{other_label} has higher latency than {first} in {higher} of {figure_count}"
            ),
            (lower, higher) => format!(
                "{other_label} differs from {first}: {lower} of {figure_count} are lower, \
                 {higher} are higher"
            ),
        }
    };
    let side_answers: Vec<String> = (1..comparison.sides.len()).map(of_side).collect();
    side_answers.join("; ")
}

/// The maxima of both sides: known, but not testable.
fn side_by_side(comparison: &Comparison, side: usize, [first, other]: [&str; 2]) -> String {
    let maxima = all_figures(comparison).filter(|(one, m)| one.side == side && m.metric == "max");
    let (mut a, mut b): (Vec<f64>, Vec<f64>) =
        maxima.filter_map(|(_, max)| max.a.zip(max.b)).unzip();
    let what = match a.len() {
        0 => return format!("{other}: no figure can be compared"),
        1 => "the maximum".to_owned(),
        n => format!("the median of {n} maxima"),
    };
    let [a, b] = [&mut a, &mut b].map(|all| micros_f64(median(all)));
    format!("{what} is {a} µs on {first} and {b} µs on {other}; one run a side has no interval")
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    match all.len() % 2 {
        1 => all[middle],
        _ => (all[middle - 1] + all[middle]) / 2.0,
    }
}

/// The significant difference with the largest factor, else the largest factor seen.
fn strongest_difference(comparison: &Comparison, significant: &[SideFigure<'_>]) -> Option<String> {
    let tested_figures: Vec<SideFigure<'_>> =
        all_figures(comparison).filter(|(_, m)| m.verdict != Difference::Unsupported).collect();
    let shown_figures: Vec<SideFigure<'_>> =
        all_figures(comparison).filter(|(_, m)| m.a.is_some()).collect();
    let (one, metric) = largest_figure(significant)
        .or_else(|| largest_figure(&tested_figures))
        .or_else(|| largest_figure(&shown_figures))?;
    Some(of_figure(comparison, one, metric))
}

/// The figure whose factor is farthest from 1.
fn largest_figure<'c>(all: &[SideFigure<'c>]) -> Option<SideFigure<'c>> {
    let weight =
        |(_, metric): &SideFigure<'_>| metric.ratio.map_or(0.0, |ratio| ratio.at.ln().abs());
    all.iter().copied().max_by(|one, other| weight(one).total_cmp(&weight(other)))
}

/// `main/timer/cpu3: p99.9 512 µs on 6.1, 40.2 µs on 6.12: ×0.08 (95 % interval ×0.07 to ×0.09),
/// 460–480 µs lower`.
fn of_figure(comparison: &Comparison, one: &SeriesComparison, metric: &MetricComparison) -> String {
    let side_figure = |label: String, ns: Option<f64>, measured: Option<f64>| {
        let figure = ns.map_or("not known".to_owned(), |ns| format!("{} µs", micros_f64(ns)));
        let measured = measured.filter(|measured| Some(*measured) != ns);
        let measured =
            measured.map_or(String::new(), |ns| format!(" (measured {})", micros_f64(ns)));
        format!("{figure} on {label}{measured}")
    };
    let measured = |k: usize| metric.measured.map(|both| both[k]);
    let corrected = if metric.measured.is_some() { ", corrected for missed periods," } else { "" };
    let times =
        metric.ratio.map_or(String::new(), |ratio| format!(": {}", format_ratio_interval(&ratio)));
    let amount = match (metric.verdict, metric.low.zip(metric.high)) {
        (Difference::Lower, Some((low, high))) => format!(", {} lower", format_range(low, high)),
        (Difference::Higher, Some((low, high))) => format!(", {} higher", format_range(low, high)),
        (Difference::NoSignificantDifference, _) => ", not significant".to_owned(),
        _ => String::new(),
    };
    format!(
        "{}: {}{corrected} {}, {}{times}{amount}",
        escape_unsafe(&one.partner),
        metric_name(&metric.metric),
        side_figure(side_label(comparison, 0), metric.a, measured(0)),
        side_figure(side_label(comparison, one.side), metric.b, measured(1)),
    )
}

/// `×0.08 (95 % interval ×0.07 to ×0.09)`.
pub(crate) fn format_ratio_interval(ratio: &RatioInterval) -> String {
    if ratio.low.is_none() && ratio.high.is_none() {
        return format!("{}, without an interval", format_ratio(ratio.at));
    }
    let end = |end: Option<f64>| end.map_or("unbounded".to_owned(), format_ratio);
    format!("{} (95 % interval {} to {})", format_ratio(ratio.at), end(ratio.low), end(ratio.high))
}

/// A ratio with two digits or more: `×0.0017`, `×0.2`, `×1`, `×37.4`.
pub(crate) fn format_ratio(ratio: f64) -> String {
    let decimals = match ratio {
        r if r >= 100.0 => 0,
        r if r >= 10.0 => 1,
        r if r >= 0.1 => 2,
        // Limits the number of decimals of a ratio near zero.
        r => (1.0 - r.max(1e-9).log10().floor()) as usize,
    };
    let text = format!("{ratio:.decimals$}");
    match text.contains('.') {
        true => format!("×{}", text.trim_end_matches('0').trim_end_matches('.')),
        false => format!("×{text}"),
    }
}

/// Ways to make the comparison more conclusive.
fn to_do(comparison: &Comparison) -> Vec<String> {
    let has = |id: &str| comparison.findings.iter().any(|found| found.id == id);
    let single = comparison.series.iter().any(|one| one.basis != Basis::Runs);
    let unequal = "Measure the side again that was not measured as requested.";
    let several = "Give several runs for each side, five or more: --a A1 A2 … --b B1 B2 …";
    let mut advice = Vec::new();
    advice.extend(has("unequal-sides").then(|| unequal.to_owned()));
    advice.extend(single.then(|| several.to_owned()));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_shown_with_its_interval() {
        let open = RatioInterval { at: 0.5, low: None, high: Some(0.75) };
        assert_eq!(format_ratio_interval(&open), "×0.5 (95 % interval unbounded to ×0.75)");
        let all = [0.001_72, 0.04, 0.2, 1.0, 25.0, 37.42, 125.0, 0.0].map(format_ratio);
        assert_eq!(all, ["×0.0017", "×0.04", "×0.2", "×1", "×25", "×37.4", "×125", "×0"]);
    }
}
