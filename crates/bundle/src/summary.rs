//! `summary.json`: the figures of a run, for programs. Times are integers or floats in ns; absent
//! figures are `null`, never 0.

use crate::Ending;
use crate::RanOn;
use crate::answer::{Answer, Delays};
use crate::baseline::HeldAgainst;
use crate::calibration::Calibration;
pub use crate::judged::{ProofWord, VerdictWord};
use crate::load::CpuLoad;
use crate::manifest::Gap;
use crate::meta::MeasureMeta;
use crate::state::ThreadUsage;
use crate::verdict::Verdict;
use punctual_core::event::Recorded;
use punctual_core::{AccountCost, Digest, Fact, Finding, MainPart, Unfinished};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-summary/2";

/// `summary.json`, and what `--json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// What a user reads first. It is computed from the rest, and in no summary.json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Always [`SCHEMA`].
    pub schema: String,
    pub experiment: String,
    /// When the run began, UTC.
    pub created: jiff::Timestamp,
    /// Where it took place, where that is not the requesting system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RanOn>,
    /// The digest of all samples of all series (SHA-256 in hexadecimal digits); absent where a
    /// series has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How it ended; `null` when it was cut off.
    pub ending: Option<Ending>,
    pub phases: Vec<PhaseSummary>,
    /// What test points cost, by the way they are written; not there unless that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<MechanismSummary>,
    pub findings: Vec<Finding>,
    /// What became of what was asked: `verdict` (`met`, `not-met`, `undecided`, `invalid`, or
    /// `null` where nothing was) and `reasons`.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What became of it beside earlier runs; absent where it was held against none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeldAgainst>,
    /// Whether it was measured as requested, proof by proof; absent in what was written before
    /// that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<ValiditySummary>,
    /// What was published of the experiment, with the same figures here; absent where the
    /// experiment names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedSummary>,
    /// When nothing was measured, of a run that was cut off and continued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapSummary>,
    /// What recording does to what is measured, or why that was not measured; absent where nothing
    /// was recorded, and in what was written before it was measured.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub calibration: Fact<Calibration>,
    /// What was recorded of kernel events and test points; absent where nothing was, or where it
    /// was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingSummary>,
}

/// A span of time in which nothing was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GapSummary {
    /// When statistics were last saved, or the run was interrupted, UTC.
    pub from: jiff::Timestamp,
    pub to: jiff::Timestamp,
    /// How long it is, in ns.
    pub length_ns: i64,
}

impl GapSummary {
    /// As a manifest has it.
    pub fn of(gap: &Gap) -> GapSummary {
        GapSummary { from: gap.from, to: gap.to, length_ns: gap.length().ns() }
    }
}

/// Published results beside those of this run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedSummary {
    /// By whom, of which system.
    pub source: String,
    pub results: Vec<ResultSummary>,
}

/// One published result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResultSummary {
    /// In words for people.
    pub what: String,
    pub published: String,
    /// The same figure here; `null` where none was requested, or where it cannot be determined
    /// (see `reason`).
    pub here: Option<Reading>,
    /// What must come out anywhere, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Whether that came out; `null` where no trend was stated or where it cannot be determined.
    pub reproduced: Option<bool>,
    /// The figures that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// Why the figure or the trend cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Two figures held against each other: `left` and `factor` times `right`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compared {
    pub left: f64,
    /// `<`, `<=`, `>`, `>=`, or `~` for "within a tenth of".
    pub relation: String,
    /// How many times the right one was meant.
    pub factor: f64,
    pub right: f64,
    pub unit: String,
    /// The 95 % interval of their difference, left less right, by the samples of this run; absent
    /// where one of them has none (a minimum or maximum, a figure without an interval of its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// A figure of this run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// Where it was read, as written.
    pub of: String,
    /// In the unit of the figure.
    pub value: f64,
    /// `ns`, `count`, `ratio`, ….
    pub unit: String,
    /// How many samples it is of, where that is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of how many series it was put together.
    pub series: usize,
    /// Its 95 % interval, by the samples of this run; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Kernel events and test points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecordingSummary {
    /// What is covered, from where, and what was lost.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// Kernel events by group and name.
    pub events: BTreeMap<String, BTreeMap<String, u64>>,
    pub points: u64,
    pub calls: u64,
    /// Everything lost, from all sources.
    pub lost: u64,
    /// Events that contradict what was known before, with no loss to explain it. `None` where
    /// switches were not recorded, and in what was written before it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradictions: Option<u64>,
}

/// The word of the workload whose series are ways to write a test point.
pub const TESTPOINT_COST: &str = "testpoint-cost";

/// What writing a test point costs in one way: the distance in time of two of them directly after
/// one another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MechanismSummary {
    /// `clock`, `ring`, `syscall`, ….
    pub name: String,
    pub count: u64,
    pub min_ns: Option<i64>,
    /// `null` without any.
    pub median_ns: Option<i64>,
    /// The 99th percentile, where the count supports it.
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
    /// Why it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// What was measured between one set of loads and the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// By its name in the experiment.
    pub name: String,
    /// How long it lasted, in ns.
    pub duration: Option<i64>,
    /// Mean CPU load over it.
    pub cpu_load: Fact<CpuLoad>,
    pub series: Vec<SeriesSummary>,
    /// The measures, with their validations, clock cost, further figures.
    #[serde(default)]
    pub measures: Vec<MeasureMeta>,
    /// In an import, what its source states of the delays of a series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed_by: Vec<Delays>,
}

/// The figures of one measuring thread, or of a part of what it does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// Its name, unique in its phase.
    pub name: String,
    /// The measure that it belongs to; empty in bundles that do not record it.
    #[serde(default)]
    pub measure: String,
    /// The kind of workload: `timer`, `syscall`, ….
    pub workload: String,
    /// The parameters of the workload.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Where it was measured, as a CPU list.
    pub cpus: String,
    /// The scheduling in force: `SCHED_FIFO 80`.
    pub scheduling: String,
    /// Whether it ran with real-time scheduling.
    pub real_time: bool,
    pub count: u64,
    pub min: Option<i64>,
    pub mean: Option<f64>,
    pub max: Option<i64>,
    /// Standard deviation of the samples as a population.
    pub stddev: Option<f64>,
    /// Median (from the histogram of the whole: within 0.1 %).
    pub median: Option<i64>,
    /// Lower edges of the fullest bins of the exact histogram.
    pub modes: Vec<i64>,
    /// The percentiles that the count supports, by their number as text: `"99.9"`.
    pub percentiles: BTreeMap<String, i64>,
    /// Those that it does not, with the number of samples that would.
    pub unsupported_percentiles: BTreeMap<String, u64>,
    /// The view corrected for coordinated omission; `null` where it does not differ.
    pub corrected: Option<CorrectedSummary>,
    /// Intervals that there were to measure: `count + skipped + lost`; `null` where an import's
    /// source does not record it.
    pub expected: Option<u64>,
    /// Releases that passed while the cycle before still ran; of a workload, which has no cycle for
    /// them, the skipped ones. `null` where the source does not record it.
    pub overruns: Option<u64>,
    /// Skipped releases, without a sample of their own: missed periods. `null` where an import's
    /// source does not record it.
    #[serde(default)]
    pub skipped: Option<u64>,
    /// Samples measured and lost on the way; `null` where an import's source does not record it.
    pub lost: Option<u64>,
    /// Samples beyond the exact histogram's range (they are in every other figure).
    pub above_range: u64,
    pub negative: u64,
    /// The width of the exact histogram's bins, in ns.
    pub resolution: i64,
    /// The period, in ns.
    pub period: Option<i64>,
    /// The digest of all samples; absent where the series was cut off, and in bundles of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Page faults and context switches of the measuring thread.
    pub usage: Fact<ThreadUsage>,
    /// The worst samples, the latest first.
    pub worst: Vec<WorstSample>,
    /// A sample that had not ended with the measurement, where it may decide: `max` is then its
    /// lower bound, if that is longer than every finished one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// Where the time of all samples went; absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub account: Fact<AccountSummary>,
    /// The stated requirements and what became of them.
    pub requirements: Vec<RequirementSummary>,
}

/// Percentiles of the view corrected for coordinated omission.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CorrectedSummary {
    /// Samples including the added ones.
    pub count: u64,
    /// In ns.
    pub mean: f64,
    /// In ns.
    pub median: i64,
    /// As in [`SeriesSummary::percentiles`].
    pub percentiles: BTreeMap<String, i64>,
}

/// Where the time of the samples of a series went, in main parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AccountSummary {
    pub samples: u64,
    /// Those of them without kernel events: all of their time is unattributed.
    pub unattributed: u64,
    /// Kernel records that were lost, on all CPUs of the run.
    pub lost: u64,
    pub cost: Fact<AccountCost>,
    pub whole: AccountBand,
    /// Bands of percentiles, ascending, without those that no sample falls into.
    pub bands: Vec<AccountBand>,
}

/// The samples between two percentiles. A bucket of latencies (1.6 % wide) that lies in two bands
/// counts in proportion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AccountBand {
    pub from: f64,
    pub to: f64,
    pub count: f64,
    /// Where its first bucket begins.
    pub low_ns: u64,
    /// Where its last one ends.
    pub high_ns: u64,
    /// Mean ns a sample of each part, by its word; parts that took nothing are left out.
    pub mean_ns: BTreeMap<String, f64>,
    /// Of how many samples each part was the longest one.
    pub longest: BTreeMap<String, f64>,
    /// The part that took most of the time.
    pub dominant: Option<MainPart>,
    /// Its share of the time, 0 to 1.
    pub share: f64,
}

/// One of the worst samples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstSample {
    /// Its latency in ns.
    pub latency: i64,
    /// Its place in the series.
    pub seq: u64,
    /// When it was due, ns on the series' clock.
    pub due: i64,
    /// By its number in the kernel.
    pub cpu: u32,
}

/// A requirement and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequirementSummary {
    pub requirement: String,
    pub verdict: VerdictWord,
    /// The figure that was compared, in ns or as a count.
    pub figure: Option<f64>,
    /// Samples beyond the bound, as the histogram resolves them (0.1 %); absent where the bound is
    /// not on latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    /// Why it is undecided or invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a run was measured as requested.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValiditySummary {
    pub verdict: ValidityWord,
    /// Each proof, those of the run first, then phase by phase.
    pub proofs: Vec<Proof>,
}

/// All proofs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValidityWord {
    /// Every proof holds, or was waived.
    Valid,
    /// No proof fails and one cannot be known.
    Undecided,
    Invalid,
    /// The bundle holds no evidence: it is an import.
    NotRecorded,
}

/// One proof.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// What is to be proved.
    pub proof: ProofWord,
    /// What it is about: `run`, a phase, `phase/series`, `phase/load`.
    pub subject: String,
    pub outcome: ProofOutcome,
    /// What shows that, in a sentence.
    pub why: String,
}

/// What became of a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofOutcome {
    /// The evidence shows that it was so.
    Holds,
    /// It fails: the run is invalid.
    Fails,
    /// It cannot be known: no requirement is met by it.
    Unknown,
    /// It fails, and the experiment can do without: it states no requirement and does not insist.
    /// Two runs of which one lacks it are not compared as equals.
    Waived,
    /// The bundle does not hold the evidence.
    NotRecorded,
}
