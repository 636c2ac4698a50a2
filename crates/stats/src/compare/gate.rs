//! Requirements on a difference, for pipelines: `p99.9:10us`, `max:5%`.

use super::quantile::Interval;
use punctual_bundle::summary::VerdictWord;
use punctual_core::{Margin, Metric};
use std::fmt;
use std::str::FromStr;

/// The outcome that must be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateKind {
    /// Fails if the other side is shown to be worse than the margin allows.
    FailIfWorse,
    /// Fails unless the other side is shown to be no worse than the margin allows.
    Require,
}

/// A requirement on the difference of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DifferenceGate {
    pub kind: GateKind,
    /// The figure: a percentile or the maximum.
    pub metric: Metric,
    /// The allowed regression.
    pub margin: Margin,
}

/// A figure and a margin as written: `p99.9:10us`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GateLimit {
    pub metric: Metric,
    /// The allowed regression.
    pub margin: Margin,
}

/// Why a text is not such a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Two parts are needed.
    #[error("write a figure and a margin, like `p99.9:10us` or `max:5%`")]
    NoMargin,
    /// Not a figure.
    #[error("{0}")]
    Metric(#[from] punctual_core::requirement::RequirementError),
    /// A figure without an interval.
    #[error("`{0}` cannot be compared: percentiles (`p99.9`) and `max` can")]
    NotCompared(String),
    /// Not a margin.
    #[error("`{0}` is not a margin: write a time (`10us`) or a percentage (`5%`)")]
    BadMargin(String),
}

impl FromStr for GateLimit {
    type Err = GateError;

    fn from_str(text: &str) -> Result<GateLimit, GateError> {
        let (metric, margin) = text.split_once(':').ok_or(GateError::NoMargin)?;
        let metric: Metric = metric.parse()?;
        if !matches!(metric, Metric::Percentile(_) | Metric::Max) {
            return Err(GateError::NotCompared(metric.to_string()));
        }
        let bad = || GateError::BadMargin(margin.trim().chars().take(40).collect());
        let margin = Margin::read(margin).ok_or_else(bad)?;
        Ok(GateLimit { metric, margin })
    }
}

impl GateLimit {
    /// As a gate: `fail-if-worse` or `require`.
    pub fn into_gate(self, kind: GateKind) -> DifferenceGate {
        DifferenceGate { kind, metric: self.metric, margin: self.margin }
    }
}

impl fmt::Display for DifferenceGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            GateKind::FailIfWorse => "fail-if-worse",
            GateKind::Require => "require",
        };
        write!(f, "{kind} {}:{}", self.metric, self.margin)
    }
}

impl DifferenceGate {
    /// The verdict from an interval of the difference, the deciding end, and the reason. `among` is
    /// the number of requirements of the kind.
    ///
    /// One side of the interval decides. *Fail if shown* is tested `among` times, each time with
    /// that share of the error; *must be shown* everywhere needs no such adjustment (an
    /// intersection–union test: Berger, Technometrics 24, 1982).
    pub(crate) fn judge_interval(
        &self,
        margin: f64,
        among: usize,
        error: f64,
        interval: impl Fn(f64) -> Interval,
    ) -> (VerdictWord, Option<f64>, String) {
        let finite = |end: f64| end.is_finite().then_some(end);
        match self.kind {
            GateKind::FailIfWorse => {
                let low = interval((2.0 * error / among.max(1) as f64).min(1.0)).low;
                match finite(low) {
                    None => (
                        VerdictWord::Undecided,
                        None,
                        "the data do not bound the difference".to_owned(),
                    ),
                    Some(low) if low > margin => {
                        (VerdictWord::NotMet, Some(low), "the regression is at least".to_owned())
                    }
                    Some(low) => (
                        VerdictWord::Met,
                        Some(low),
                        "a regression above the limit is not demonstrated".to_owned(),
                    ),
                }
            }
            GateKind::Require => {
                let two_sided = interval(2.0 * error);
                match (finite(two_sided.low), finite(two_sided.high)) {
                    (_, Some(high)) if high <= margin => {
                        (VerdictWord::Met, Some(high), "the regression is at most".to_owned())
                    }
                    (Some(low), _) if low > margin => {
                        (VerdictWord::NotMet, Some(low), "the regression is at least".to_owned())
                    }
                    (_, high) => (
                        VerdictWord::Undecided,
                        high,
                        "the data do not exclude a regression above the limit".to_owned(),
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gate(text: &str, kind: GateKind) -> DifferenceGate {
        text.parse::<GateLimit>().unwrap().into_gate(kind)
    }

    #[test]
    fn gate_limits_are_parsed_and_printed() {
        assert_eq!(gate("p99.9:10us", GateKind::Require).to_string(), "require p99.9:10us");
        assert_eq!(gate("max : 5%", GateKind::FailIfWorse).to_string(), "fail-if-worse max:5%");
        let wrong = |text: &str| text.parse::<GateLimit>().unwrap_err().to_string();
        assert!(wrong("max").contains("p99.9:10us"));
        assert!(wrong("mean:1us").contains("cannot be compared"));
        assert!(wrong("max:-1%").contains("not a margin"));
        assert!(wrong("max:5").contains("not a margin"));
        assert!(wrong("maxx:5%").contains("did you mean"));
    }

    #[test]
    fn one_end_of_the_interval_decides_a_gate() {
        let judge = |kind, low, high| {
            gate("max:10ns", kind).judge_interval(10.0, 1, 0.05, |_| Interval { low, high }).0
        };
        let ends = [(11.0, 20.0), (5.0, 20.0), (-5.0, 5.0), (f64::NEG_INFINITY, f64::INFINITY)];
        let worse = ends.map(|(low, high)| judge(GateKind::FailIfWorse, low, high));
        assert_eq!(
            worse,
            [VerdictWord::NotMet, VerdictWord::Met, VerdictWord::Met, VerdictWord::Undecided]
        );
        let required = ends.map(|(low, high)| judge(GateKind::Require, low, high));
        assert_eq!(
            required,
            [VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Met, VerdictWord::Undecided]
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<GateLimit>();
            let _ = format!("max:{text}").parse::<GateLimit>();
        }
    }
}
