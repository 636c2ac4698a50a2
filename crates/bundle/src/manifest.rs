//! `bundle.json`: what the directory is and whether its run ended.

use crate::baseline::HeldAgainst;
use crate::calibration::Calibration;
use crate::exit::CommandEnd;
use crate::intervals::LimitSummary;
use crate::observed::ObservedSeries;
use crate::ran_on::RanOn;
use crate::verdict::Verdict;
use punctual_core::{Fact, Nanos, Published};
use serde::{Deserialize, Serialize};

/// The word in `bundle.json` by which a bundle is known.
pub const FORMAT: &str = "punctual-bundle";

/// `bundle.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`FORMAT`].
    pub format: String,
    /// The version of the layout ([`crate::FORMAT_VERSION`] of the writer).
    pub version: u32,
    /// The version of punctual that wrote it.
    pub punctual: String,
    pub experiment: String,
    /// The file in the bundle that holds the experiment as written; absent for imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment_file: Option<String>,
    /// What was published of this experiment, to set beside what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// `run`, or `import: <format>`.
    pub origin: String,
    /// Where it took place, where that is not the requesting system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RanOn>,
    /// The name of the system that it was measured on; absent in imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// What recording does to what is measured; absent where nothing was recorded.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub calibration: Fact<Calibration>,
    /// When the run began, UTC (RFC 3339).
    pub created: jiff::Timestamp,
    /// When nothing was measured, of a run that was cut off and continued: in the manifest of a
    /// later part, from the end of the part before to its own begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// How it ended; absent while it runs and for ever when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// How the command ended that was measured or recorded; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandEnd>,
    /// What became of the limits on intervals of its recording, each under the name of what it
    /// limits; absent in bundles of versions that had only findings about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<(String, LimitSummary)>>,
    /// The samples that punctual itself delayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedSeries>,
    /// What became of it beside earlier runs; absent where it was held against none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeldAgainst>,
    /// What could not be written, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<String>,
    /// What became of what was asked, when the run ended; absent in bundles of versions that did
    /// not store it.
    #[serde(rename = "result", default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A span of time between two parts of a run, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// When statistics were last saved, or the run was interrupted.
    pub from: jiff::Timestamp,
    pub to: jiff::Timestamp,
}

impl Gap {
    pub fn length(&self) -> Nanos {
        let length = self.to.as_nanosecond() - self.from.as_nanosecond();
        Nanos(i64::try_from(length).unwrap_or(i64::MAX).max(0))
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ending {
    pub at: jiff::Timestamp,
    pub outcome: Outcome,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// How a run came to its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Completed,
    /// A signal requested the end; what was measured until then is whole.
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
        /// The place of the sample in its series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// A load whose end was to stop the run ended.
    StoppedByLoad {
        /// By its name in the experiment.
        load: String,
        how: String,
        /// Whether it did so with success.
        success: bool,
    },
    Failed {
        why: String,
    },
    /// Of a trace: it breaks off, and what followed is not known.
    CutOff {
        why: String,
    },
}

impl Outcome {
    /// Whether something failed: such a run can be continued.
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
