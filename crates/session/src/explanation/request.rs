//! The request of an explanation.

use punctual_core::{MonotonicNs, Nanos};
use std::str::FromStr;

/// The samples to explain.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Series, by name or `phase/name`; none: all.
    pub series: Vec<String>,
    /// Pairs and functions of a recording instead of series.
    pub pairs: Vec<String>,
    /// The maximum number of samples of each series; `None`: all.
    pub worst: Option<usize>,
    pub min_latency: Nanos,
    /// Of the moments of a trace: those of threads of this name or id.
    pub thread: Option<String>,
    /// Those that this interval touches.
    pub at: Option<TraceInstant>,
    /// Whether to count the events of all long samples and of ordinary ones.
    pub coincidences: bool,
}

/// An instant of a trace, by a stamp as the trace shows it, or an interval between two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceInstant {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// It is an interval of the user's, and no stamp.
    pub is_range: bool,
}

impl FromStr for TraceInstant {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceInstant, String> {
        let cannot = || {
            format!(
                "`{text}` is neither a timestamp of a trace nor an interval: write seconds as the \
                 trace has them (17000.012110), or µs of a latency tracer (54984us), or two of \
                 them with `..` between"
            )
        };
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let is_range = text.contains("..");
        let ((from, _), (to, step)) =
            (parse_stamp(from).ok_or_else(cannot)?, parse_stamp(to).ok_or_else(cannot)?);
        // The digits that a stamp lacks may follow it.
        let step = if is_range { 1 } else { step };
        let to = to.checked_add(step - 1).filter(|to| *to >= from).ok_or_else(cannot)?;
        Ok(TraceInstant { from: MonotonicNs(from), to: MonotonicNs(to), is_range })
    }
}

/// A stamp in ns, and the step of its last digit.
fn parse_stamp(text: &str) -> Option<(i64, i64)> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix("us") {
        Some(number) => (number, 1_000),
        None => (text, 1_000_000_000),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let step = unit / 10i64.checked_pow(fraction.len() as u32).filter(|step| *step <= unit)?;
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    Some((whole.checked_add(step.checked_mul(fraction)?)?, step))
}

impl Wanted {
    /// Whether a series is requested.
    pub fn is_requested(&self, phase: &str, series: &str) -> bool {
        self.series.is_empty() || self.series.iter().any(|name| is_called(name, phase, series))
    }
}

/// Whether a series has this name, with or without its phase.
pub fn is_called(name: &str, phase: &str, series: &str) -> bool {
    name == series
        || name.strip_suffix(series).and_then(|rest| rest.strip_suffix('/')) == Some(phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_trace_s_own_and_an_interval_has_two() {
        let at = |text: &str| text.parse::<TraceInstant>().ok().map(|at| (at.from.0, at.to.0));
        let second = 1_000_000_000;
        assert_eq!(at("17000.012110"), Some((17_000_012_110_000, 17_000_012_110_999)));
        assert_eq!(at("54984us"), Some((54_984_000, 54_984_999)));
        assert_eq!(at("3.5us"), Some((3_500, 3_599)));
        assert_eq!(at("1..2.000000000"), Some((second, 2 * second)));
        for wrong in ["", "x", "2..1", "-1", "1.1234567891", "99999999999999999999", "1..", "1.x"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
