//! The baseline of a run: earlier runs of the same experiment on the same kind of machine and
//! kernel, one small file each in a directory.

use crate::judged::VerdictWord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of a run's record. Additions keep it; changes raise it.
pub const RECORD: &str = "punctual-baseline/1";

/// The record of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BaselineRun {
    /// Always [`RECORD`].
    pub schema: String,
    /// When the run began, UTC.
    pub created: jiff::Timestamp,
    /// The processor's model and the number of CPUs: identical machines share a history.
    pub machine: String,
    pub experiment: String,
    /// SHA-256 of the experiment as run: a changed experiment begins a new history.
    pub digest: String,
    /// Version and preemption of the kernel, as `6.12 PREEMPT_RT`: updates within them share a
    /// history.
    pub kernel: String,
    /// The commit under test, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The bundle's directory at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The verdict without the baseline.
    #[serde(default)]
    pub verdict: Option<VerdictWord>,
    /// Whether the history begins here: earlier runs are no longer compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins: bool,
    /// Figures that were worse in this run; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Vec<FoundChange>>,
    pub figures: Vec<KeptFigure>,
    /// The machine, its kernel and its settings, one text each.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A change that was detected and still holds.
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
    /// Whether it is the requested figure of its series.
    #[serde(default)]
    pub is_main: bool,
}

/// The comparison of a run with those before it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeldAgainst {
    pub directory: String,
    /// The number of earlier runs.
    pub runs: u64,
    /// Why it was not compared; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_held: Option<String>,
    /// How many more runs are needed before figures can be judged; 0 if judged.
    pub missing: u64,
    /// Whether a run that cannot be judged yet is *undecided*. In older versions it always was.
    #[serde(default = "default_true")]
    pub required: bool,
    /// Records left out because they are unreadable or of another version of the experiment.
    #[serde(default)]
    pub left_out: u64,
    /// The worse figures, by name.
    #[serde(default)]
    pub worse: Vec<WorseFigure>,
    /// Figures far outside all earlier values, in too few runs to decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaps: Vec<LeapingFigure>,
    /// The smallest step of a figure that would be noticed within five runs; absent if there are
    /// too few runs or no step would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<SmallestStep>,
    /// Regression or noise; absent if not judged, and in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<NoiseAnswer>,
    /// A bound for the requested figure of the first series, by these runs and this one; absent of
    /// one run, and if the figure is worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<ProposedBound>,
}

/// A requirement that runs like those before violate with a stated probability.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct ProposedBound {
    /// `phase/measure`.
    pub place: String,
    /// As in `require`: `p99 < 43.1us`.
    pub require: String,
    /// Whether the figure is the requested one of its series.
    #[serde(default)]
    pub is_main: bool,
    /// Whether the figure is worse now: the bound is by the runs before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_change: bool,
    /// The runs that bear it.
    pub runs: u64,
    /// The highest probability that one more run like them violates it.
    pub false_alarms: f64,
    /// The model that this rests on; absent if it needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<BoundModel>,
    /// The number of runs that could bear the rate that was asked, if these cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// For a time, the share of cases in which one of three runs that are 30 % worse violates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noticed: Option<f64>,
    /// The factor by which three runs must be worse for that in 98 %; absent with too few runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surely: Option<f64>,
}

/// A model of how a figure differs from run to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundModel {
    /// Its logarithm is normally distributed; the bound is the upper 95 % limit.
    LogNormal,
}

/// Whether the newest run is a regression, noise, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseWord {
    Regression,
    Noise,
    /// Further runs decide.
    Open,
}

/// The one answer about the newest run, by the figure that decides it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NoiseAnswer {
    pub word: NoiseWord,
    pub figure: String,
    /// The distance from the runs before: a factor for times, else a difference.
    pub by: f64,
    /// Whether it is a time.
    pub is_time: bool,
    /// Whether `by` of a time is a difference in ns, as no ratio to 0 exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// When the first run of a new level began, and its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<jiff::Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The probability of as much evidence if nothing changed, over all figures.
    pub p: Option<f64>,
    /// Nine in ten of the runs before are this near to their median: a share of it for times, else
    /// a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// The runs before.
    pub runs: u64,
    /// Those at least as high, if it is noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_high: Option<u64>,
    /// Whether it is below all runs before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lowest: bool,
    /// The number of further runs like it that decide; absent if even 30 do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
}

impl NoiseAnswer {
    /// An answer that has only its word.
    pub fn from_word(word: NoiseWord) -> NoiseAnswer {
        NoiseAnswer {
            word,
            figure: String::new(),
            by: 0.0,
            is_time: false,
            is_difference: false,
            since: None,
            commit: None,
            p: None,
            spread: None,
            runs: 0,
            as_high: None,
            is_lowest: false,
            more: None,
        }
    }
}

/// The default of flags that older versions did not write.
pub(crate) fn default_true() -> bool {
    true
}

/// A figure outside all earlier values by more than any two consecutive runs differed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeapingFigure {
    pub figure: String,
    /// The number of earlier runs, and their median in ns or as a count.
    pub runs: u64,
    pub before: f64,
    /// The distance of the newest run from the median.
    pub by: f64,
    pub is_time: bool,
    /// Whether `by` of a time is a difference in ns, as no ratio to 0 exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// How many more such runs decide.
    pub more: u64,
}

/// A figure that became worse.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorseFigure {
    pub figure: String,
    /// The median of the earlier runs, in ns or as a count.
    pub before: f64,
    /// The median of the runs since.
    pub now: f64,
    /// A factor for times, else a difference.
    pub by: f64,
    /// The 95 % interval of `by`.
    pub interval: [f64; 2],
    /// Whether it is a time.
    pub is_time: bool,
    /// Whether `by` of a time is a difference in ns, as no ratio to 0 exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// When the first run of the new level began.
    pub since: jiff::Timestamp,
    /// Runs at the new level, including this one.
    pub runs: u64,
    /// Other changes between the last run before it and that run, as `what: before -> after`.
    #[serde(default)]
    pub changed: Vec<String>,
}

/// A step large enough to be noticed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SmallestStep {
    pub figure: String,
    /// A factor for times, else a difference.
    pub by: f64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// The name and version of the output of `punctual trend --json`. Additions keep it; changes raise
/// it.
pub const TREND: &str = "punctual-trend/1";

/// All histories of a directory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendDocument {
    /// Always [`TREND`].
    pub schema: String,
    /// One for each experiment, machine and kernel.
    pub histories: Vec<TrendHistory>,
    /// Records that were left out, each with its reason.
    pub left_out: Vec<String>,
}

/// Runs of one experiment on one kind of machine and kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendHistory {
    pub experiment: String,
    pub machine: String,
    /// The kernel's version and preemption.
    pub kernel: String,
    /// The comparison of the newest run, as in a bundle.
    pub held: HeldAgainst,
    /// When the accepted run began, which starts the history; absent if none was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<jiff::Timestamp>,
    /// The runs, oldest first.
    pub runs: Vec<TrendRun>,
    /// Each figure of the newest run.
    pub figures: Vec<TrendFigure>,
    /// The bounds of `--propose`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<ProposedBound>,
}

/// A run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendRun {
    pub created: jiff::Timestamp,
    /// The commit under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The verdict without the baseline.
    pub verdict: Option<VerdictWord>,
}

/// A figure over all runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendFigure {
    pub name: String,
    /// Whether it is a time in ns (else a count).
    pub is_time: bool,
    /// Its value in each run; `null` for runs without it.
    pub values: Vec<Option<f64>>,
    /// Its levels: a single one if nothing changed.
    pub levels: Vec<TrendLevel>,
}

/// The runs between two changes of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrendLevel {
    /// The index of its first run and the one after its last.
    pub runs: [usize; 2],
    /// The median; `null` if no run has the figure.
    pub median: Option<f64>,
    /// The distance from the previous level: a factor for times, else a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<f64>,
    /// Whether `by` of a time is a difference in ns, as no ratio to 0 exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_difference: bool,
    /// The 95 % interval of `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Other changes at the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}
