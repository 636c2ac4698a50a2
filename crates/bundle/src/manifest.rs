//! `bundle.json`: identifies the directory and states whether its run ended.

use crate::baseline::HeldAgainst;
use crate::calibration::Calibration;
use crate::exit::CommandEnd;
use crate::intervals::LimitSummary;
use crate::observed::ObservedSeries;
use crate::ran_on::RanOn;
use crate::verdict::Verdict;
use punctual_core::{Fact, Nanos, PublishedResults};
use serde::{Deserialize, Serialize};

/// The format name in `bundle.json` that identifies a bundle.
pub const FORMAT: &str = "punctual-bundle";

/// `bundle.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct Manifest {
    /// Always [`FORMAT`].
    pub format: String,
    /// The version of the layout ([`crate::FORMAT_VERSION`] of the writer).
    pub version: u32,
    /// The version of punctual that wrote it.
    pub punctual: String,
    pub experiment: String,
    /// The file that holds the experiment as written; absent for imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment_file: Option<String>,
    /// Published results of this experiment, to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedResults>,
    /// `run`, or `import: <format>`.
    pub origin: String,
    /// The system that was measured; absent if it is the requesting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RanOn>,
    /// The name of the measured system; absent in imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The overhead of recording on the measurement; absent without a recording.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub calibration: Fact<Calibration>,
    /// When the run began, UTC (RFC 3339).
    pub created: jiff::Timestamp,
    /// Gaps without measurement, in a run that was cut off and continued: in the manifest of a
    /// later part, from the end of the previous part to its own start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<PartGap>,
    /// The ending; absent while it runs, and permanently if it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<RunEnding>,
    /// The end of the measured or recorded command; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandEnd>,
    /// The outcome of each interval limit of its recording, by the name of the limited interval;
    /// absent in older bundles, which had only findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<(String, LimitSummary)>>,
    /// The samples delayed by punctual itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedSeries>,
    /// The comparison with earlier runs; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeldAgainst>,
    /// Output that could not be written, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<String>,
    /// The verdict at the end of the run; absent in older bundles.
    #[serde(rename = "result", default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A span of time between two parts of a run, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartGap {
    /// When statistics were last saved, or the run was interrupted.
    pub from: jiff::Timestamp,
    pub to: jiff::Timestamp,
}

impl PartGap {
    pub fn length(&self) -> Nanos {
        let length = self.to.as_nanosecond() - self.from.as_nanosecond();
        Nanos(i64::try_from(length).unwrap_or(i64::MAX).max(0))
    }
}

/// The end of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunEnding {
    pub at: jiff::Timestamp,
    pub outcome: Outcome,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// The way a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Completed,
    /// A signal requested the end; the results until then are complete.
    Interrupted,
    /// A sample exceeded its `stop_above`.
    StoppedAbove {
        /// As `phase/series`.
        series: String,
        /// The latency in ns.
        latency: i64,
        /// The limit in ns; absent in what other tools wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<i64>,
        /// The index of the sample in its series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// A load configured to end the run has ended.
    StoppedByLoad {
        /// Its name in the experiment.
        load: String,
        how: String,
        /// Whether it did so with success.
        success: bool,
    },
    Failed {
        why: String,
    },
    /// For traces: it breaks off, and the rest is unknown.
    CutOff {
        why: String,
    },
}

impl Outcome {
    /// Whether the run failed, so that it can be continued.
    pub fn is_failure(&self) -> bool {
        match self {
            Outcome::Failed { .. } => true,
            Outcome::StoppedByLoad { success, .. } => !success,
            Outcome::Completed
            | Outcome::Interrupted
            | Outcome::StoppedAbove { .. }
            | Outcome::CutOff { .. } => false,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Completed => f.write_str("completed"),
            Outcome::Interrupted => {
                f.write_str("interrupted; what was measured until then is whole")
            }
            Outcome::StoppedAbove { series, latency, .. } => {
                write!(
                    f,
                    "stopped: {series} had a latency of {} µs, above its stop_above",
                    *latency as f64 / 1e3
                )
            }
            Outcome::StoppedByLoad { load, how, .. } => write!(f, "stopped: the load {load} {how}"),
            Outcome::Failed { why } => write!(f, "failed: {why}"),
            Outcome::CutOff { why } => write!(f, "cut off: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_failed_is_a_failure() {
        let load = |success| Outcome::StoppedByLoad {
            load: "success".into(),
            how: "ended without success".into(),
            success,
        };
        assert!(load(false).is_failure() && !load(true).is_failure());
        assert!(!Outcome::Interrupted.is_failure());
    }
}
