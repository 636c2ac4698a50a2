//! How things are written in the report, beyond what [`crate::format`] writes for terminal and page
//! alike.

use crate::format::{count, plain};
use punctual_core::Nanos;

/// Names of tasks, series and files are cut at this many characters: the page has a bound.
pub const NAME_LENGTH: usize = 120;

/// A text of several lines in which nothing hides: control characters and those that reorder or
/// hide what is read are written out ([`plain`]); line ends of other systems mean line ends.
pub fn visible(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| plain(&line.trim_end_matches('\r').replace('\t', "    ")))
        .collect();
    lines.join("\n")
}

/// At most `limit` characters, with an ellipsis where some are missing.
pub fn clip(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name: visible, on one line, of bounded length.
pub fn name(text: &str) -> String {
    if text.trim().is_empty() {
        return "(no name)".to_owned();
    }
    clip(&plain(&clip(text, NAME_LENGTH)), NAME_LENGTH)
}

/// A span with the unit that suits it: `850 ns`, `12.3 µs`, `4.56 ms`, `20 s`, `10 min`, `3 h 20
/// min`.
pub fn span(span: Nanos) -> String {
    let ns = span.ns();
    let size = ns.unsigned_abs();
    let sign = if ns < 0 { "−" } else { "" };
    let scaled = |unit: u64, name: &str| {
        let value = size as f64 / unit as f64;
        let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        format!("{sign}{text} {name}")
    };
    let minutes = size / 60_000_000_000;
    match size {
        0..1_000 => format!("{sign}{size} ns"),
        1_000..1_000_000 => scaled(1_000, "µs"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "ms"),
        1_000_000_000..120_000_000_000 => scaled(1_000_000_000, "s"),
        120_000_000_000..7_200_000_000_000 => scaled(60_000_000_000, "min"),
        _ if minutes.is_multiple_of(60) => format!("{sign}{} h", minutes / 60),
        _ => format!("{sign}{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A number of samples in few characters: `1,000`, `100 k`, `10 M`.
pub fn short_count(n: u64) -> String {
    match n {
        0..10_000 => count(n),
        10_000..1_000_000 => format!("{} k", count(n.div_ceil(1_000))),
        _ => format!("{} M", count(n.div_ceil(1_000_000))),
    }
}

/// A share as a percentage; small ones keep a digit, to differ from zero.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "not a number".to_owned(),
        p if p > 0.0 && p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// An instant, UTC, to the second.
pub fn instant(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!(
            [short_count(1_000), short_count(99_001), short_count(10_000_000)],
            ["1,000", "100 k", "10 M"]
        );
        let spans = [
            850,
            12_300,
            100_000,
            4_560_000,
            20_000_000_000,
            600_000_000_000,
            12_000_000_000_000,
            -5_000,
        ];
        let spans: Vec<String> = spans.map(|ns| span(Nanos(ns))).into();
        assert_eq!(
            spans.join(", "),
            "850 ns, 12.3 µs, 100 µs, 4.56 ms, 20 s, 10 min, 3 h 20 min, −5 µs"
        );
        assert_eq!(
            [0.0, 0.0004, 0.034, 0.62].map(percent).join(", "),
            "0.0 %, < 0.1 %, 3.4 %, 62 %"
        );
    }

    #[test]
    fn nothing_hides() {
        assert_eq!(visible("plain äöü 🐧\r\n\tline"), "plain äöü 🐧\n    line");
        assert_eq!(visible("a\u{202e}b\u{1b}[31m\0"), "a\\u{202e}b\\u{1b}[31m\\u{0}");
        assert_eq!(
            (name("two\nlines"), name(" ")),
            ("two\\nlines".to_owned(), "(no name)".to_owned())
        );
        assert_eq!(name(&"\0".repeat(1_000)).chars().count(), NAME_LENGTH + 1);
    }
}
