//! Published results beside those of a run, in words that terminal and page share.

use crate::format::{escape_unsafe, span_text};
use crate::notes::format_number;
use punctual_bundle::summary::{Compared, ResultSummary};
use punctual_core::Nanos;

/// A figure of a run.
pub(crate) fn format_amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" => span_text(Nanos(value.round() as i64)),
        unit => escape_unsafe(&format_number((value * 100.0).round() / 100.0, unit)),
    }
}

/// Why a trend is reproduced or not, or why that is undecided.
pub(crate) fn trend_reason(result: &ResultSummary) -> Option<String> {
    match &result.compared {
        Some(compared) => Some(format_comparison(compared, result.reproduced)),
        None => result.reason.as_deref().map(escape_unsafe),
    }
}

fn format_comparison(compared: &Compared, holds: Option<bool>) -> String {
    let amount = |value| self::format_amount(value, &compared.unit);
    let (left, right) = (amount(compared.left), amount(compared.right));
    let times =
        if compared.factor == 1.0 { String::new() } else { format!("{} × ", compared.factor) };
    let text = match (compared.relation.as_str(), holds) {
        ("~", Some(true)) => format!("{left} is within a tenth of {times}{right}"),
        ("~", _) => format!("{left} is not within a tenth of {times}{right}"),
        (sign, Some(true)) => format!("{left} {} {times}{right}", escape_unsafe(sign)),
        (sign, Some(false)) => format!("not {left} {} {times}{right}", escape_unsafe(sign)),
        (_, None) => format!("{left} against {times}{right} decides nothing"),
    };
    match compared.interval {
        Some([low, high]) => {
            format!("{text}; difference {} to {} (95 %)", amount(low), amount(high))
        }
        None => text,
    }
}
