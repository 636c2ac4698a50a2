//! Stated requirements on a series: `max < 100us`, `p99.9 < 60us`, `overruns == 0`.

use crate::Nanos;
use crate::words::{format_suggestion, nearest_word};
use std::fmt;
use std::str::FromStr;

/// The figure of a requirement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Metric {
    Min,
    Mean,
    /// Largest latency (`max`, `p100`).
    Max,
    Stddev,
    /// A percentile above 0 and below 100 (`p99.9`, `median`).
    Percentile(f64),
    /// A percentile corrected for coordinated omission (`corrected p99.9`).
    CorrectedPercentile(f64),
    Count,
    /// Releases that passed while the previous cycle still ran. For a workload, which has no cycle
    /// for them, the skipped releases.
    Overruns,
    Skipped,
    /// Lost samples.
    Lost,
    /// Page faults of the measuring thread.
    Faults,
    /// Involuntary context switches of the measuring thread.
    Switches,
}

impl Metric {
    /// Whether the figure is a time (else a count).
    pub fn is_time(self) -> bool {
        !matches!(
            self,
            Metric::Count
                | Metric::Overruns
                | Metric::Skipped
                | Metric::Lost
                | Metric::Faults
                | Metric::Switches
        )
    }
}

/// The comparison of the figure with the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundComparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
}

impl BoundComparison {
    /// Longer spellings first, so that `<=` is not parsed as `<`.
    const SPELLINGS: [(&'static str, BoundComparison); 5] = [
        ("<=", BoundComparison::LessOrEqual),
        (">=", BoundComparison::GreaterOrEqual),
        ("==", BoundComparison::Equal),
        ("<", BoundComparison::Less),
        (">", BoundComparison::Greater),
    ];

    /// Whether `figure` has this relation to `bound`.
    pub fn is_satisfied(self, figure: f64, bound: f64) -> bool {
        match self {
            BoundComparison::Less => figure < bound,
            BoundComparison::LessOrEqual => figure <= bound,
            BoundComparison::Greater => figure > bound,
            BoundComparison::GreaterOrEqual => figure >= bound,
            BoundComparison::Equal => figure == bound,
        }
    }
}

/// A requirement: a metric, a comparison and a bound (ns for a time, else a count).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Requirement {
    pub metric: Metric,
    pub comparison: BoundComparison,
    /// The bound: nanoseconds for a time, a plain number for a count.
    pub bound: i64,
}

/// Why a text is not a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    /// No comparison in it.
    #[error(
        "a requirement is a figure, a comparison (<, <=, ==, >=, >) and a bound, like `max < \
         100us`"
    )]
    NoComparison,
    /// The figure is unknown.
    #[error("`{word}` is not a figure of a series{}", format_suggestion(*near))]
    UnknownMetric { word: String, near: Option<&'static str> },
    /// An invalid percentile.
    #[error("`{0}` is not a percentile above 0 and up to 100")]
    BadPercentile(String),
    /// The bound is not a duration.
    #[error("{0}")]
    BadDuration(#[from] crate::units::DurationError),
    /// The bound is not a count.
    #[error("`{0}` is not a whole number")]
    BadCount(String),
}

const NAMES: [(&str, Metric); 13] = [
    ("min", Metric::Min),
    ("mean", Metric::Mean),
    ("avg", Metric::Mean),
    ("max", Metric::Max),
    ("stddev", Metric::Stddev),
    ("median", Metric::Percentile(50.0)),
    ("count", Metric::Count),
    ("overruns", Metric::Overruns),
    ("skipped", Metric::Skipped),
    ("lost", Metric::Lost),
    ("faults", Metric::Faults),
    ("switches", Metric::Switches),
    ("corrected median", Metric::CorrectedPercentile(50.0)),
];

fn parse_metric(word: &str) -> Result<Metric, RequirementError> {
    if let Some((_, metric)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Ok(*metric);
    }
    let (corrected, bare) = match word.strip_prefix("corrected ") {
        Some(rest) => (true, rest.trim_start()),
        None => (false, word),
    };
    let number = bare.strip_prefix('p').filter(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    let Some(number) = number else {
        let word: String = word.chars().take(40).collect();
        let near = nearest_word(&word, NAMES.iter().map(|(name, _)| *name).chain(["p99.9"]));
        return Err(RequirementError::UnknownMetric { word, near });
    };
    match number.parse::<f64>() {
        Ok(p) if p == 100.0 && !corrected => Ok(Metric::Max),
        Ok(p) if p > 0.0 && p < 100.0 && corrected => Ok(Metric::CorrectedPercentile(p)),
        Ok(p) if p > 0.0 && p < 100.0 => Ok(Metric::Percentile(p)),
        _ => Err(RequirementError::BadPercentile(bare.chars().take(40).collect())),
    }
}

impl FromStr for Metric {
    type Err = RequirementError;

    /// Parses `max`, `p99.9`, `median`, ….
    fn from_str(text: &str) -> Result<Metric, RequirementError> {
        parse_metric(text.trim())
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Requirement, RequirementError> {
        let place = text.find(['<', '>', '=']).ok_or(RequirementError::NoComparison)?;
        let (word, rest) = text.split_at(place);
        let spelling =
            BoundComparison::SPELLINGS.iter().find(|(spelling, _)| rest.starts_with(spelling));
        let (spelling, comparison) = spelling.ok_or(RequirementError::NoComparison)?;
        let metric = parse_metric(word.trim())?;
        let bound = rest[spelling.len()..].trim();
        let bound = if metric.is_time() {
            bound.parse::<Nanos>()?.ns()
        } else {
            let count = bound.replace('_', "");
            count
                .parse()
                .ok()
                .filter(|n: &i64| *n >= 0)
                .ok_or_else(|| RequirementError::BadCount(bound.chars().take(40).collect()))?
        };
        Ok(Requirement { metric, comparison: *comparison, bound })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Percentile(p) => write!(f, "p{p}"),
            Metric::CorrectedPercentile(p) => write!(f, "corrected p{p}"),
            other => {
                let name = NAMES.iter().find(|(_, metric)| metric == other);
                f.write_str(name.map_or("?", |(name, _)| name))
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelling = BoundComparison::SPELLINGS
            .iter()
            .find(|(_, c)| *c == self.comparison)
            .map_or("?", |(s, _)| s);
        write!(f, "{} {spelling} ", self.metric)?;
        if self.metric.is_time() {
            write!(f, "{}", Nanos(self.bound))
        } else {
            write!(f, "{}", self.bound)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requirements_are_parsed_and_printed() {
        for (text, printed) in [
            ("max < 100us", "max < 100us"),
            ("p99.9<60us", "p99.9 < 60us"),
            ("overruns == 0", "overruns == 0"),
            ("skipped==0", "skipped == 0"),
            ("p100 <= 1ms", "max <= 1ms"),
            ("corrected p99 < 1ms", "corrected p99 < 1ms"),
            ("median < 0.5ms", "p50 < 500us"),
            ("count >= 1_000", "count >= 1000"),
        ] {
            let requirement: Requirement = text.parse().unwrap();
            assert_eq!(requirement.to_string(), printed);
            assert_eq!(printed.parse(), Ok(requirement));
        }
    }

    #[test]
    fn an_invalid_requirement_is_refused_with_the_reason() {
        let wrong = |text: &str| text.parse::<Requirement>().unwrap_err().to_string();
        assert!(wrong("max 100us").contains("comparison"));
        assert!(wrong("maxx < 100us").contains("did you mean `max`"));
        assert!(wrong("p101 < 1us").contains("percentile"));
        assert!(wrong("max < 100").contains("no unit"));
        assert!(wrong("overruns == 1us").contains("whole number"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Requirement>();
        }
    }
}
