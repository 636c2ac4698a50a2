//! `bundle.json`: what the directory is and whether its run ended.

use crate::calibration::Calibration;
use crate::ran_on::RanOn;
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
    /// The experiment's name.
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
}

/// A span of time between two parts of a run, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// When statistics were last saved, or the run was interrupted.
    pub from: jiff::Timestamp,
    /// When it went on.
    pub to: jiff::Timestamp,
}

impl Gap {
    /// How long it is.
    pub fn length(&self) -> Nanos {
        let length = self.to.as_nanosecond() - self.from.as_nanosecond();
        Nanos(i64::try_from(length).unwrap_or(i64::MAX).max(0))
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// When, UTC.
    pub at: jiff::Timestamp,
    /// How.
    pub outcome: Outcome,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// How a run came to its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything planned was done.
    Completed,
    /// A signal requested the end; what was measured until then is whole.
    Interrupted,
    /// A sample exceeded its `stop_above`.
    StoppedAbove {
        /// As `phase/series`.
        series: String,
        /// The latency in ns.
        latency: i64,
    },
    /// A load whose end was to stop the run ended.
    StoppedByLoad {
        /// By its name in the experiment.
        load: String,
        /// How it ended.
        how: String,
    },
    /// Something failed.
    Failed {
        /// What.
        why: String,
    },
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Completed => f.write_str("completed"),
            Outcome::Interrupted => {
                f.write_str("interrupted; what was measured until then is whole")
            }
            Outcome::StoppedAbove { series, latency } => {
                write!(
                    f,
                    "stopped: {series} had a latency of {} µs, above its stop_above",
                    *latency as f64 / 1e3
                )
            }
            Outcome::StoppedByLoad { load, how } => write!(f, "stopped: the load {load} {how}"),
            Outcome::Failed { why } => write!(f, "failed: {why}"),
        }
    }
}
