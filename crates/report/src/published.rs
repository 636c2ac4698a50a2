//! Published results beside those of a run, in words that terminal and page share.

use crate::format::{plain, span};
use crate::notes::number;
use punctual_bundle::summary::{Compared, ResultSummary};
use punctual_core::Nanos;

/// A figure of a run.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "ns" => span(Nanos(value.round() as i64)),
        unit => plain(&number((value * 100.0).round() / 100.0, unit)),
    }
}

/// Why a trend is reproduced or not, or why that is undecided.
pub(crate) fn because(result: &ResultSummary) -> Option<String> {
    match &result.compared {
        Some(compared) => Some(comparison(compared, result.reproduced)),
        None => result.reason.as_deref().map(plain),
    }
}

fn comparison(compared: &Compared, holds: Option<bool>) -> String {
    let amount = |value| self::amount(value, &compared.unit);
    let (left, right) = (amount(compared.left), amount(compared.right));
    let times =
        if compared.factor == 1.0 { String::new() } else { format!("{} × ", compared.factor) };
    let text = match (compared.relation.as_str(), holds) {
        ("~", Some(true)) => format!("{left} is within a tenth of {times}{right}"),
        ("~", _) => format!("{left} is not within a tenth of {times}{right}"),
        (sign, Some(true)) => format!("{left} {} {times}{right}", plain(sign)),
        (sign, Some(false)) => format!("not {left} {} {times}{right}", plain(sign)),
        (_, None) => format!("{left} against {times}{right} decides nothing"),
    };
    match compared.interval {
        Some([low, high]) => {
            format!("{text}; difference {} to {} (95 %)", amount(low), amount(high))
        }
        None => text,
    }
}
