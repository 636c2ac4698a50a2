//! Values of [`punctual_core::Notes`] as text, the same in terminal and HTML.

use crate::format;
use punctual_core::{Cell, Fact, Tolerance};

/// A value with its unit. Whole numbers have no point, others their significant digits.
pub(crate) fn format_number(value: f64, unit: &str) -> String {
    let unit =
        if matches!(unit, "count" | "ratio" | "") { String::new() } else { format!(" {unit}") };
    format!("{}{unit}", plain_number(value))
}

/// Times from here on are shown in µs, as latencies are; shorter ones are costs of single
/// operations.
const LONG_NS: f64 = 10_000.0;

/// A figure of a measure, with its unit in words.
pub(crate) fn format_figure(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value.is_finite() && value.abs() >= LONG_NS => {
            format!("{} µs", format::micros_f64(value))
        }
        unit => format_number(value, &unit.replace("per-", "per ")),
    }
}

fn plain_number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let whole = value.fract() == 0.0 && value.abs() < 1e15;
    match (whole, value < 0.0) {
        (true, false) => format::count_text(value as u64),
        (true, true) => format!("-{}", format::count_text(-value as u64)),
        _ if value.abs() >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A table cell; the column heading has its unit.
pub(crate) fn format_cell(cell: &Cell) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Number(value) => plain_number(*value),
        Cell::Text(text) => format::escape_unsafe(text),
    }
}

/// The allowed difference between a count and a claim.
pub(crate) fn format_tolerance(tolerance: &Tolerance) -> String {
    if tolerance.is_exact() {
        return "allowed: no difference".to_owned();
    }
    let fewer = format!("{} fewer", format::count_text(tolerance.fewer));
    let upper_part = match tolerance.more {
        Some(more) => format!("{} more", format::count_text(more)),
        None => "any number more".to_owned(),
    };
    let because = match tolerance.because.join("; ") {
        because if because.is_empty() => because,
        because => format!(" ({because})"),
    };
    format!("allowed: {fewer}, {upper_part}{because}")
}

/// Why a count is unknown.
pub(crate) fn uncounted_reason<T>(fact: &Fact<T>) -> String {
    match fact {
        Fact::Known(_) => String::new(),
        Fact::Unavailable(why) => format!("not to be counted: {why}"),
        Fact::NotAsked => "not counted".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_shown_with_its_reasons() {
        assert_eq!(format_tolerance(&Tolerance::EXACT), "allowed: no difference");
        let some =
            Tolerance::EXACT.allow_fewer(4, "instants that had passed").any_more("others write");
        let words = "allowed: 4 fewer, any number more (4: instants that had passed; others write)";
        assert_eq!(format_tolerance(&some), words);
    }

    #[test]
    fn numbers_are_rounded_to_significant_digits() {
        assert_eq!(format_number(1_234_567.0, "count"), "1,234,567");
        assert_eq!(format_number(0.98765, "ratio"), "0.988");
        assert_eq!(format_number(-3.0, "ns"), "-3 ns");
        assert_eq!(format_number(1234.56, "ns"), "1234.6 ns");
        assert_eq!(format_number(f64::NAN, "ns"), "– ns");
        assert_eq!(format_figure(5_015_135_791.0, "ns"), "5,015,136 µs");
        assert_eq!(format_figure(31.5, "ns"), "31.500 ns");
        assert_eq!(format_figure(1.031, "per-cycle"), "1.031 per cycle");
        assert_eq!(format_figure(f64::INFINITY, "ns"), "– ns");
    }
}
