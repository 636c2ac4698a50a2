//! Figures and foreign names for people: nanoseconds become microseconds here, and nowhere else.

use crate::Nanos;

/// Microseconds with the digits that are significant: at least three, never finer than a
/// nanosecond. `0.512`, `9.87`, `13.5`, `104.2`, `2,075`.
pub fn micros_text(latency: Nanos) -> String {
    micros_f64(latency.ns() as f64)
}

/// Like [`micros_text`], for a mean or a deviation in ns.
pub fn micros_f64(ns: f64) -> String {
    let us = ns / 1e3;
    // A value that rounds up to the next decade gets that decade's digits: 9.996 becomes 10.0.
    match us.abs() {
        size if size < 0.9995 => format!("{us:.3}"),
        size if size < 9.995 => format!("{us:.2}"),
        size if size < 999.95 => format!("{us:.1}"),
        size if size < 1e15 => grouped_signed(us.round() as i64),
        _ => format!("{us:.3e}"),
    }
}

/// A count with a comma between thousands: `1,234,567`.
pub fn count_text(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of samples in short form: `1,000`, `100 k`, `10 M`.
pub fn short_count(n: u64) -> String {
    match n {
        0..10_000 => count_text(n),
        10_000..1_000_000 => format!("{} k", count_text(n.div_ceil(1_000))),
        _ => format!("{} M", count_text(n.div_ceil(1_000_000))),
    }
}

/// A count with its noun: `1 thread`, `1,234 threads`.
pub fn count_with_noun(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count_text(n), if n == 1 { "" } else { "s" })
}

fn grouped_signed(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", count_text(n.unsigned_abs()))
}

/// A share of 1 in percent: `2.3 %`; a value that is not 0 is never shown as 0: `< 0.1 %`.
pub fn percent_text(share: f64) -> String {
    match share * 100.0 {
        percent if !percent.is_finite() => "not a number".to_owned(),
        percent if percent > 0.0 && percent < 0.05 => "< 0.1 %".to_owned(),
        percent if percent.abs() < 1e6 => format!("{percent:.1} %"),
        percent => format!("{percent:.1e} %"),
    }
}

/// A duration for people: `350 ms`, `12.4 s`, `5 min 03 s`, `2 h 05 min`.
pub fn duration_text(span: Nanos) -> String {
    let ms = span.ns() / 1_000_000;
    let s = ms / 1_000;
    match s {
        _ if ms < 1_000 => format!("{ms} ms"),
        _ if s < 60 => format!("{}.{} s", s, ms % 1_000 / 100),
        _ if s < 3_600 => format!("{} min {:02} s", s / 60, s % 60),
        _ if s < 86_400 => format!("{} h {:02} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {:02} h", s / 86_400, s % 86_400 / 3_600),
    }
}

/// A span with the unit that suits it: `850 ns`, `12.3 µs`, `4.56 ms`, `20 s`, `10 min`, `3 h 20
/// min`.
pub fn span_text(span: Nanos) -> String {
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

/// An approximate span: in whole seconds below a minute.
pub fn rough_span_text(span: Nanos) -> String {
    match span.ns() / 1_000_000_000 {
        s @ 0..60 => format!("{s} s"),
        _ => duration_text(span),
    }
}

/// The first digits of a digest, enough to distinguish runs.
pub fn short_digest(digest: &str) -> String {
    escape_unsafe(digest).chars().take(12).collect()
}

/// A foreign name, safe on a terminal and on one line: control characters, and those that reorder
/// or hide text (bidirectional controls, zero-width characters), are written as `\u{…}`.
pub fn escape_unsafe(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if is_unsafe(c) { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// Unicode's bidirectional controls (UAX #9), zero-width and invisible characters, line separators,
/// and all control characters.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// [`escape_unsafe`], at most `width` columns wide; `…` (`~` in ASCII) marks a cut at the end.
pub fn clip_name(name: &str, width: usize, ascii: bool) -> String {
    clip_to_width(&escape_unsafe(name), width, ascii)
}

/// Cuts a text that is already safe to show at `width` columns.
pub fn clip_to_width(name: &str, width: usize, ascii: bool) -> String {
    if width_of(name) <= width {
        return name.to_owned();
    }
    let mut text = String::new();
    let mut used = 1;
    for c in name.chars() {
        used += width_of(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        text.push(c);
    }
    text.push(if ascii { '~' } else { '…' });
    text
}

/// The columns that a text takes on a terminal.
pub fn width_of(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_samples_are_short() {
        let short = [1_000, 99_001, 10_000_000].map(short_count);
        assert_eq!(short, ["1,000", "100 k", "10 M"]);
    }

    #[test]
    fn counted_nouns_are_singular_for_one() {
        assert_eq!(count_with_noun(0, "thread"), "0 threads");
        assert_eq!(count_with_noun(1, "thread"), "1 thread");
        assert_eq!(count_with_noun(1_234, "thread"), "1,234 threads");
    }

    #[test]
    fn microseconds_are_rounded_to_significant_digits() {
        for (ns, text) in [
            (0, "0.000"),
            (7, "0.007"),
            (512, "0.512"),
            (999, "0.999"),
            (1_000, "1.00"),
            (9_870, "9.87"),
            (9_996, "10.0"),
            (13_456, "13.5"),
            (104_249, "104.2"),
            (999_960, "1,000"),
            (2_074_600, "2,075"),
            (-1_500, "-1.50"),
            (i64::MAX, "9.223e15"),
        ] {
            assert_eq!(micros_text(Nanos(ns)), text);
        }
    }

    #[test]
    fn counts_have_separators_and_durations_two_units() {
        assert_eq!(
            (count_text(0), count_text(999), count_text(1_000), count_text(1_234_567)),
            ("0".into(), "999".into(), "1,000".into(), "1,234,567".into())
        );
        let sentence: Vec<String> = [350, 12_400, 303_000, 7_500_000, 180_000_000]
            .map(|ms| duration_text(Nanos::from_millis(ms)))
            .into();
        assert_eq!(sentence, ["350 ms", "12.4 s", "5 min 03 s", "2 h 05 min", "2 d 02 h"]);
    }

    #[test]
    fn spans_are_shown_in_a_suitable_unit() {
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
        let spans: Vec<String> = spans.map(|ns| span_text(Nanos(ns))).into();
        assert_eq!(
            spans.join(", "),
            "850 ns, 12.3 µs, 100 µs, 4.56 ms, 20 s, 10 min, 3 h 20 min, −5 µs"
        );
    }

    #[test]
    fn small_shares_are_not_shown_as_zero() {
        let shares = [0.0, 0.0004, 0.0006, 0.034, 0.62, 2.5].map(percent_text);
        assert_eq!(shares.join(", "), "0.0 %, < 0.1 %, 0.1 %, 3.4 %, 62.0 %, 250.0 %");
    }

    #[test]
    fn hostile_names_are_escaped() {
        assert_eq!(escape_unsafe("a\u{1b}[31m\n\u{202e}x"), "a\\u{1b}[31m\\n\\u{202e}x");
        assert_eq!(clip_name("abcdefgh", 5, false), "abcd…");
        assert_eq!(clip_name("abcde", 5, true), "abcde");
        assert_eq!(clip_name("日本語日本語", 5, false), "日本…");
    }

    proptest! {
        #[test]
        fn clipped_names_fit_into_the_width(name in "\\PC{0,40}", width in 1usize..30) {
            prop_assert!(width_of(&clip_name(&name, width, false)) <= width);
        }
    }
}
