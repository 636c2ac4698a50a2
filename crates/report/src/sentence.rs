//! Conclusions from figures, in plain sentences: the same in terminal, page and pipeline.

mod comparison;
mod comparison_answer;
pub mod exact;
pub mod explain;
pub mod lab;
pub mod tune;

pub use comparison::of_series;
pub(crate) use comparison::{of_distributions, of_gate};
pub use comparison_answer::answer_of;
pub(crate) use comparison_answer::{format_ratio, format_ratio_interval};

use crate::format::micros_f64;
use punctual_bundle::summary::GapSummary;

/// Gaps that are shown; the rest are counted.
const GAPS: usize = 4;

/// The periods without measurement of a run that was interrupted and continued.
pub(crate) fn format_gaps(gaps: &[GapSummary]) -> Vec<String> {
    let instant = |at: jiff::Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let one = |gap: &GapSummary| {
        format!(
            "GAP: nothing was measured from {} to {} ({}); figures are over what was measured",
            instant(gap.from),
            instant(gap.to),
            spoken_duration(gap.length_ns as f64)
        )
    };
    let mut gap_sentences: Vec<String> = gaps.iter().take(GAPS).map(one).collect();
    if let Some(more) = gaps.len().checked_sub(GAPS).filter(|more| *more > 0) {
        gap_sentences.push(format!("GAP: and {more} more (--json has them)"));
    }
    gap_sentences
}

/// A duration with two digits: `45 s`, `70 min`, `5 h`, `12 d`.
pub(crate) fn spoken_duration(ns: f64) -> String {
    let s = ns / 1e9;
    let round = |value: f64| {
        let step = if value >= 100.0 { 10f64.powf(value.log10().floor() - 1.0) } else { 1.0 };
        format!("{:.0}", (value / step).round() * step)
    };
    match s {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{} s", round(s)),
        s if s < 7_200.0 => format!("{} min", round(s / 60.0)),
        s if s < 172_800.0 => format!("{} h", round(s / 3_600.0)),
        s => format!("{} d", round(s / 86_400.0)),
    }
}

/// A range without its sign: `34–41 µs`; a single figure if both ends are formatted alike.
pub(crate) fn format_range(low: f64, high: f64) -> String {
    let (low, high) =
        if low.abs() <= high.abs() { (low.abs(), high.abs()) } else { (high.abs(), low.abs()) };
    let (low, high) = (micros_f64(low), micros_f64(high));
    if low == high { format!("{low} µs") } else { format!("{low}–{high} µs") }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A probability with its sign: `p = 0.0310`, `p < 0.0001`.
pub(crate) fn p_is(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".to_owned() } else { format!("p = {}", format_probability(p)) }
}

/// A probability in brackets, as short as it can be: ` (p = 0.03)`; empty if unknown.
pub(crate) fn format_p_value(p: Option<f64>) -> String {
    match p {
        None => String::new(),
        Some(p) if p < 0.0001 => " (p < 0.0001)".to_owned(),
        Some(p) if p < 0.00095 => format!(" (p = {p:.4})"),
        Some(p) if p < 0.0095 => format!(" (p = {p:.3})"),
        Some(p) => format!(" (p = {p:.2})"),
    }
}

/// A probability: `0.031`, `< 0.0001`.
pub(crate) fn format_probability(p: f64) -> String {
    if p < 1e-4 {
        "< 0.0001".to_owned()
    } else if p < 0.1 {
        format!("{p:.4}")
    } else {
        format!("{p:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_sentences_are_rounded() {
        let text = [4.2e9, 45e9, 4.2e12, 8.9e12, 1e15].map(spoken_duration);
        assert_eq!(text, ["4.2 s", "45 s", "70 min", "2 h", "12 d"]);
        assert_eq!(
            (format_range(-41_000.0, -34_000.0), format_range(5.0, 5.0)),
            ("34.0–41.0 µs".into(), "0.005 µs".into())
        );
        let words: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(
            [join_words(&words[..0]), join_words(&words[..1]), join_words(&words)],
            ["", "a", "a, b and c"]
        );
        assert_eq!([0.5, 0.031, 1e-9].map(format_probability), ["0.50", "0.0310", "< 0.0001"]);
    }
}
