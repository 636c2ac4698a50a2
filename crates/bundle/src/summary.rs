//! `summary.json`: the figures of a run, for programs. Times are integers or floats in ns. Absent
//! figures are `null`, never 0.

use crate::RanOn;
use crate::RunEnding;
use crate::answer::{Answer, Delays};
use crate::baseline::HeldAgainst;
use crate::calibration::Calibration;
pub use crate::judged::{ProofWord, VerdictWord};
use crate::load::CpuLoad;
use crate::manifest::PartGap;
use crate::meta::MeasureMeta;
use crate::state::ThreadUsage;
use crate::verdict::Verdict;
use punctual_core::event::Recorded;
use punctual_core::{AccountCost, CauseKind, Fact, Finding, Sha256Digest, Unfinished};
use punctual_plan::WorkloadKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-summary/2";

/// `summary.json`, and what `--json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The answer, which a user reads first. Computed from the rest and not stored in summary.json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Always [`SCHEMA`].
    pub schema: String,
    pub experiment: String,
    /// When the run began, UTC.
    pub created: jiff::Timestamp,
    /// The system that was measured; absent if it is the requesting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<RanOn>,
    /// The digest of all samples of all series (SHA-256 in hexadecimal); absent if a series has
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The ending; `null` if it was cut off.
    pub ending: Option<RunEnding>,
    pub phases: Vec<PhaseSummary>,
    /// The cost of a test point for each mechanism; empty unless measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<MechanismSummary>,
    pub findings: Vec<Finding>,
    /// The outcome of the requirements: `verdict` (`met`, `not-met`, `undecided`, `invalid`, or
    /// `null` without any) and `reasons`.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The comparison with earlier runs; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeldAgainst>,
    /// Whether the run was measured as requested, proof by proof; absent in older bundles, which
    /// did not judge it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<ValiditySummary>,
    /// Published results of the experiment beside the same figures here; absent if the experiment
    /// names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedSummary>,
    /// Gaps without measurement, in a run that was cut off and continued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapSummary>,
    /// The overhead of recording on the measurement, or why it was not measured; absent without a
    /// recording and in older bundles.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub calibration: Fact<Calibration>,
    /// The kernel events and test points recorded; absent if none were, or if they were not
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingSummary>,
}

/// A time span without measurement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GapSummary {
    /// When statistics were last saved, or when the run was interrupted, UTC.
    pub from: jiff::Timestamp,
    pub to: jiff::Timestamp,
    /// Its length in ns.
    pub length_ns: i64,
}

impl GapSummary {
    /// As a manifest has it.
    pub fn from_gap(gap: &PartGap) -> GapSummary {
        GapSummary { from: gap.from, to: gap.to, length_ns: gap.length().ns() }
    }
}

/// Published results beside those of this run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PublishedSummary {
    /// The authors and the system measured.
    pub source: String,
    pub results: Vec<ResultSummary>,
}

/// One published result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResultSummary {
    /// In words for people.
    pub what: String,
    pub published: String,
    /// The same figure here; `null` if none was requested, or if it cannot be determined (see
    /// `reason`).
    pub here: Option<FigureReading>,
    /// The trend that must be reproduced on any system, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Whether the trend was reproduced; `null` without a stated trend or if it cannot be
    /// determined.
    pub reproduced: Option<bool>,
    /// The figures that decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// Why the figure or the trend cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Two compared figures: `left` and `factor` times `right`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compared {
    pub left: f64,
    /// `<`, `<=`, `>`, `>=`, or `~` for "within a tenth of".
    pub relation: String,
    /// The factor applied to the right one.
    pub factor: f64,
    pub right: f64,
    pub unit: String,
    /// The 95 % interval of `left - right` by the samples of this run; absent if one of them has
    /// none (a minimum or maximum, a figure without an interval of its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// A figure of this run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureReading {
    /// The source of the figure, as written.
    pub of: String,
    /// In the unit of the figure.
    pub value: f64,
    /// `ns`, `count`, `ratio`, ….
    pub unit: String,
    /// The number of samples it is based on, where that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The number of series combined.
    pub series: usize,
    /// Its 95 % interval by the samples of this run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Kernel events and test points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecordingSummary {
    /// Coverage, sources and losses.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// Kernel events by group and name.
    pub events: BTreeMap<String, BTreeMap<String, u64>>,
    pub points: u64,
    pub calls: u64,
    /// Everything lost, from all sources.
    pub lost: u64,
    /// Events that contradict the known state without a loss to explain it. `None` if switches were
    /// not recorded, and in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradictions: Option<u64>,
}

/// The workload name whose series are mechanisms of writing a test point.
pub const TESTPOINT_COST: &str = WorkloadKind::TestpointCost.in_bundle();

/// The cost of writing a test point with one mechanism: the time between two written back to back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MechanismSummary {
    /// `clock`, `ring`, `syscall`, ….
    pub name: String,
    pub count: u64,
    pub min_ns: Option<i64>,
    /// The median; `null` without samples.
    pub median_ns: Option<i64>,
    /// The 99th percentile, where the count supports it.
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// The measurements between one set of loads and the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// Its name in the experiment.
    pub name: String,
    /// Its duration in ns.
    pub duration: Option<i64>,
    /// Mean CPU load during the phase.
    pub cpu_load: Fact<CpuLoad>,
    pub series: Vec<SeriesSummary>,
    /// The measures with their validation, clock cost and further figures.
    #[serde(default)]
    pub measures: Vec<MeasureMeta>,
    /// For imports: the causes of delay that the source states for a series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed_by: Vec<Delays>,
}

/// The figures of one measuring thread, or of a part of its work.
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
    /// The CPUs measured, as a CPU list.
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
    /// Percentiles that the count does not support, with the number of samples they need.
    pub unsupported_percentiles: BTreeMap<String, u64>,
    /// The figures corrected for coordinated omission; `null` if they do not differ.
    pub corrected: Option<CorrectedSummary>,
    /// Intervals that were to be measured: `count + skipped + lost`; `null` if the source of an
    /// import does not record it.
    pub expected: Option<u64>,
    /// Releases that passed while the previous cycle still ran. For a workload, which has no cycle
    /// for them, the skipped releases. `null` if the source does not record it.
    pub overruns: Option<u64>,
    /// Skipped releases, which have no sample: missed periods. `null` if the source of an import
    /// does not record it.
    #[serde(default)]
    pub skipped: Option<u64>,
    /// Samples lost after measurement; `null` if the source of an import does not record it.
    pub lost: Option<u64>,
    /// Samples beyond the range of the exact histogram (all other figures include them).
    pub above_range: u64,
    pub negative: u64,
    /// The width of the exact histogram's bins, in ns.
    pub resolution: i64,
    /// The period, in ns.
    pub period: Option<i64>,
    /// The digest of all samples; absent if the series was cut off, and in older bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256Digest>,
    /// Page faults and context switches of the measuring thread.
    pub usage: Fact<ThreadUsage>,
    /// The worst samples, the highest latency first.
    pub worst: Vec<WorstSample>,
    /// A sample still running when the measurement ended, if it may decide: `max` is its lower
    /// bound if that exceeds every finished sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// The breakdown of the time of all samples; absent if not requested.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub account: Fact<AccountSummary>,
    /// The stated requirements with their outcomes.
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

/// The breakdown of a series' time into main parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AccountSummary {
    pub samples: u64,
    /// Samples without kernel events: all of their time is unattributed.
    pub unattributed: u64,
    /// Lost kernel records, on all CPUs of the run.
    pub lost: u64,
    pub cost: Fact<AccountCost>,
    pub whole: AccountBand,
    /// Percentile bands, ascending, without empty ones.
    pub bands: Vec<AccountBand>,
}

/// The samples between two percentiles. A latency bucket (1.6 % wide) that spans two bands counts
/// in proportion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AccountBand {
    pub from: f64,
    pub to: f64,
    pub count: f64,
    /// The lower edge of its first bucket.
    pub low_ns: u64,
    /// The upper edge of its last bucket.
    pub high_ns: u64,
    /// Mean ns per sample of each part, by name; parts that took no time are left out.
    pub mean_ns: BTreeMap<String, f64>,
    /// For each part, the number of samples in which it was the longest.
    pub longest: BTreeMap<String, f64>,
    /// The part that took most of the time.
    pub dominant: Option<CauseKind>,
    /// Its share of the time, 0 to 1.
    pub share: f64,
}

/// One of the worst samples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstSample {
    /// Its latency in ns.
    pub latency: i64,
    /// Its index in the series.
    pub seq: u64,
    /// The due time in ns on the series' clock.
    pub due: i64,
    /// The CPU number of the kernel.
    pub cpu: u32,
}

/// A requirement with its outcome.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequirementSummary {
    pub requirement: String,
    pub verdict: VerdictWord,
    /// The figure that was compared, in ns or as a count.
    pub figure: Option<f64>,
    /// Samples beyond the bound at the histogram's resolution (0.1 %); absent if the bound is not
    /// on latencies.
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
    /// Each proof: those of the run first, then by phase.
    pub proofs: Vec<Proof>,
}

/// The combined result of all proofs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValidityWord {
    /// Every proof holds or was waived.
    Valid,
    /// No proof fails, and at least one is unknown.
    Undecided,
    Invalid,
    /// The bundle holds no evidence: it is an import.
    NotRecorded,
}

/// One proof.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// The property to be proved.
    pub proof: ProofWord,
    /// Its subject: `run`, a phase, `phase/series`, `phase/load`.
    pub subject: String,
    pub outcome: ProofOutcome,
    /// The evidence, in a sentence.
    pub why: String,
}

/// The outcome of a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofOutcome {
    /// The evidence shows it.
    Holds,
    /// It fails: the run is invalid.
    Fails,
    /// Unknown: a requirement cannot be met with it.
    Unknown,
    /// It fails, but the experiment does not depend on it: it states no requirement and does not
    /// insist. Two runs that differ in it are not compared as equals.
    Waived,
    /// The bundle does not hold the evidence.
    NotRecorded,
}
