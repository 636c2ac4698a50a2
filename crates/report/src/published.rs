//! Published results beside those of a run, in the words that terminal and page share.

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
    match (&result.compared, result.reproduced) {
        (Some(compared), Some(holds)) => Some(comparison(compared, holds)),
        _ => result.reason.as_deref().map(plain),
    }
}

fn comparison(compared: &Compared, holds: bool) -> String {
    let (left, right) =
        (amount(compared.left, &compared.unit), amount(compared.right, &compared.unit));
    let times =
        if compared.factor == 1.0 { String::new() } else { format!("{} × ", compared.factor) };
    match (compared.relation.as_str(), holds) {
        ("~", true) => format!("{left} is within a tenth of {times}{right}"),
        ("~", false) => format!("{left} is not within a tenth of {times}{right}"),
        (sign, true) => format!("{left} {} {times}{right}", plain(sign)),
        (sign, false) => format!("not {left} {} {times}{right}", plain(sign)),
    }
}
