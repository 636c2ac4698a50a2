//! What `punctual compare --json` prints: two sides, series by series. Times are in ns; what is not
//! known is `null`, and so is an end of an interval that the data do not bound.
//! docs/reference/compare.md describes it for readers in other languages.

use crate::Timebase;
use crate::summary::VerdictWord;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-comparison/2";

/// One side against one or several others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The verdict in words and what decided it; absent until it is displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ComparisonAnswer>,
    /// The sides: the first is what the others are compared with.
    pub sides: Vec<Side>,
    /// The confidence of each interval by itself.
    pub confidence: f64,
    /// The rate at which at least one difference is claimed anywhere in this comparison although
    /// there is none.
    pub error_rate: f64,
    /// How many tests share that rate (Holm's procedure).
    pub tests: u64,
    /// Each series that both sides have.
    pub series: Vec<SeriesComparison>,
    /// What was required, and what became of it.
    pub gates: Vec<GateResult>,
    /// All of it together; `null` where nothing was required.
    pub verdict: Option<VerdictWord>,
    /// What weakens the comparison: series without a partner, unknown autocorrelation, damaged
    /// bundles, ….
    pub findings: Vec<Finding>,
}

/// What a user reads first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComparisonAnswer {
    /// The verdict in one sentence, with its reason and place.
    pub verdict: String,
    /// The difference of most weight, in one sentence; `null` where nothing is compared.
    pub figure: Option<String>,
    /// What to do, the strongest first; at most three.
    pub to_do: Vec<String>,
}

/// One side: a run, or several runs of the same.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// What it is called: by what differs between the sides, never two the same.
    pub label: String,
    pub runs: Vec<String>,
    /// Whose time its figures are in.
    #[serde(default)]
    pub timebase: Timebase,
}

impl Comparison {
    /// Whose time all figures are in.
    pub fn timebase(&self) -> Timebase {
        Timebase::together(self.sides.iter().map(|side| side.timebase))
    }
}

/// A series of the first side and its partner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeriesComparison {
    /// The number of the other side in [`Comparison::sides`].
    pub side: usize,
    /// `phase/series` on the first side.
    pub series: String,
    /// `phase/series` on the other side: the same, unless matched by hand.
    pub partner: String,
    /// What the first side holds.
    pub a: SideFigures,
    /// What the other side holds.
    pub b: SideFigures,
    /// How samples that depend on each other were taken into account.
    pub basis: Basis,
    /// Whether periods were missed on a side: the percentiles then include the samples that these
    /// would have had.
    #[serde(default)]
    pub corrected: bool,
    /// The figures, one by one.
    pub metrics: Vec<MetricComparison>,
    /// The tests of whole and tail.
    pub distribution: Vec<DistributionTest>,
    /// The probability that a sample of the other side is longer than one of the first, ties
    /// counted half (Vargha and Delaney's A).
    pub superiority: Option<f64>,
    /// Differences smaller than this are not claimed: the coarser of the two clocks' steps.
    pub resolution: i64,
}

/// How samples that depend on each other were taken into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// From blocks of the kept samples of one run a side.
    Blocks,
    /// From the differences between runs of the same side.
    Runs,
    /// Not at all on at least one side: only a histogram is there.
    Unknown,
}

/// What one side of a series holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SideFigures {
    /// How many runs it rests on.
    pub runs: usize,
    /// Samples in all of them.
    pub count: u64,
    pub lost: u64,
    pub overruns: u64,
    /// The time measured, in ns; `null` where not known.
    pub duration: Option<i64>,
    /// As many independent samples would know the median as well; `null` where that is not known.
    pub effective: Option<f64>,
    /// Its distribution, for a plot: the share of samples that are longer, and the latency in ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, i64)>,
}

/// One figure on both sides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MetricComparison {
    /// `p99.9`, `max`.
    pub metric: String,
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// `b − a`.
    pub difference: Option<f64>,
    /// The interval of the difference, of [`Comparison::confidence`] by itself; `null` where not
    /// bounded.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The difference as a share of `a`.
    pub relative: Option<f64>,
    /// `b / a`, where both are above 0.
    #[serde(default)]
    pub ratio: Option<Ratio>,
    /// Both figures as measured, where those that are compared are corrected for missed periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<[f64; 2]>,
    /// The probability of a difference at least as large if there were none.
    pub p: Option<f64>,
    /// The same with all tests of the comparison counted.
    pub p_adjusted: Option<f64>,
    pub verdict: Difference,
    /// How many times as much data would make the observed difference significant, if it is the
    /// true one.
    pub more_data: Option<f64>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How many times as long, with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// `b / a`.
    pub at: f64,
    /// The lower end of its interval, of [`Comparison::confidence`] by itself; above 0; `null`
    /// where not bounded.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// What is known of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The other side is lower.
    Lower,
    /// The other side is higher.
    Higher,
    /// No significant difference with these data: no proof that they are equal.
    NoSignificantDifference,
    /// The data do not support the figure.
    Unsupported,
}

/// A test of two distributions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DistributionTest {
    /// `whole` or `tail`.
    pub part: String,
    /// What was done: `block permutation`, `run permutation`, `histogram`.
    pub method: String,
    /// The statistic: the largest distance of the two distribution functions; in the tail, the
    /// largest standardised difference.
    pub statistic: f64,
    /// Its probability if both were the same; `null` with a reason.
    pub p: Option<f64>,
    /// The same with all tests of the comparison counted.
    pub p_adjusted: Option<f64>,
    /// The smallest that this many runs can show.
    pub least_p: f64,
}

/// A requirement on the difference, and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GateResult {
    /// As stated: `fail-if-worse p99.9:10us`.
    pub gate: String,
    /// `phase/series`.
    pub series: String,
    /// The number of the other side.
    pub side: usize,
    pub verdict: VerdictWord,
    /// The end of the interval that decided, in ns.
    pub bound: Option<f64>,
    /// The margin in ns for this series.
    pub margin: Option<f64>,
    /// Why it came out so.
    pub reason: String,
}
