//! What a run is held against: earlier runs of the same experiment on the same kind of machine and
//! kernel, a small file for each in a directory of theirs.

use crate::judged::VerdictWord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of a run's record; additions keep it, changes raise it.
pub const RECORD: &str = "punctual-baseline/1";

/// What is kept of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BaselineRun {
    /// Always [`RECORD`].
    pub schema: String,
    /// When the run began, UTC.
    pub created: jiff::Timestamp,
    /// The processor's model and the number of CPUs: machines that are alike share a history.
    pub machine: String,
    pub experiment: String,
    /// SHA-256 of the experiment as it was run: another version of it is another experiment.
    pub digest: String,
    /// Version and preemption of the kernel, as `6.12 PREEMPT_RT`: an update within them is held
    /// against what was before.
    pub kernel: String,
    /// What was tried, by its commit; absent where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The directory of the bundle, as it was named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// What became of what was asked, without the baseline.
    #[serde(default)]
    pub verdict: Option<VerdictWord>,
    /// Whether the history begins here: what was before is no longer held against anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins: bool,
    /// Figures that were worse in it; absent in records of older versions, which did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Vec<FoundChange>>,
    pub figures: Vec<KeptFigure>,
    /// The machine, its kernel and its settings, a text for each.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A change that was found and has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FoundChange {
    pub figure: String,
    /// When the first run of the new level began.
    pub since: jiff::Timestamp,
}

/// A figure of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KeptFigure {
    /// `phase/series p99`, `phase/series missed periods`, …
    pub name: String,
    /// In ns, or a count.
    pub value: f64,
    /// Whether it is a time.
    pub is_time: bool,
    /// Whether it is the one of its series that was asked for.
    #[serde(default)]
    pub is_main: bool,
}

/// What became of a run beside those before it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeldAgainst {
    pub directory: String,
    /// How many runs there were before it.
    pub runs: u64,
    /// Why it was held against none of them; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_held: Option<String>,
    /// How many more are needed before anything is judged; 0 where it was.
    pub missing: u64,
    /// Whether a run that cannot be judged yet is *undecided*. Older versions knew nothing else.
    #[serde(default = "always")]
    pub required: bool,
    /// Records that were left out, as they cannot be read or are of another version of the
    /// experiment.
    #[serde(default)]
    pub left_out: u64,
    /// The figures that are worse, by their names.
    #[serde(default)]
    pub worse: Vec<WorseFigure>,
    /// Figures far outside of everything before, in too few runs to decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaps: Vec<LeapingFigure>,
    /// The smallest step of a figure that would be noticed within five runs; absent where there are
    /// too few runs, or where none would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<SmallestStep>,
}

/// The value of flags that older versions did not write.
pub(crate) fn always() -> bool {
    true
}

/// A figure outside of everything before, by more than any two runs one after the other differed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeapingFigure {
    pub figure: String,
    /// Runs before, and their median, in ns or as a count.
    pub runs: u64,
    pub before: f64,
    /// How far the newest run is from it.
    pub by: f64,
    pub is_time: bool,
    /// Whether `by` of a time is a difference in ns: there is no ratio from 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// How many more such runs decide.
    pub more: u64,
}

/// A figure that is worse than it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorseFigure {
    pub figure: String,
    /// The median of the runs before, in ns or as a count.
    pub before: f64,
    /// The median of the runs since.
    pub now: f64,
    /// A factor where it is a time, else a difference.
    pub by: f64,
    /// The 95 % interval of that.
    pub interval: [f64; 2],
    /// Whether it is a time.
    pub is_time: bool,
    /// Whether `by` of a time is a difference in ns: there is no ratio from 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// When the first run of the new level began.
    pub since: jiff::Timestamp,
    /// Runs of the new level, this one among them.
    pub runs: u64,
    /// What else changed between the last run before it and that run, as `what: before -> after`.
    #[serde(default)]
    pub changed: Vec<String>,
}

/// A step that would be noticed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SmallestStep {
    pub figure: String,
    /// A factor where it is a time, else a difference.
    pub by: f64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// The name and version of what `punctual trend --json` prints; additions keep it, changes raise
/// it.
pub const TREND: &str = "punctual-trend/1";

/// All histories of a directory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendDocument {
    /// Always [`TREND`].
    pub schema: String,
    /// One for each experiment, machine and kernel.
    pub histories: Vec<TrendHistory>,
    /// Records that were left out, each with the reason.
    pub left_out: Vec<String>,
}

/// Runs of one experiment on one kind of machine and kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendHistory {
    pub experiment: String,
    pub machine: String,
    /// The kernel's version and preemption.
    pub kernel: String,
    /// What the newest run is held against: as in a bundle.
    pub held: HeldAgainst,
    /// When the run began that was accepted, with which the history begins; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<jiff::Timestamp>,
    /// When each run began, from the oldest to the newest.
    pub runs: Vec<TrendRun>,
    /// Each figure of the newest run.
    pub figures: Vec<TrendFigure>,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendRun {
    pub created: jiff::Timestamp,
    /// What was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What became of what was asked, without the baseline.
    pub verdict: Option<VerdictWord>,
}

/// A figure over all runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendFigure {
    pub name: String,
    /// Whether it is a time, in ns, or a count.
    pub is_time: bool,
    /// Its value in each run; `null` where a run does not have it.
    pub values: Vec<Option<f64>>,
    /// Its levels: one where nothing changed.
    pub levels: Vec<TrendLevel>,
}

/// Runs between two changes of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendLevel {
    /// The first of its runs, by its place, and the one after the last.
    pub runs: [usize; 2],
    /// The median; `null` where none of them has the figure.
    pub median: Option<f64>,
    /// How far it is from the level before: a factor for times, else a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// Whether `by` of a time is a difference in ns: there is no ratio from 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// The 95 % interval of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// What else changed with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}
