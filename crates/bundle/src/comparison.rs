//! The document of `punctual compare --json`: two sides, series by series. Times are in ns; unknown
//! values are `null`, and so is an unbounded end of an interval. docs/reference/compare.md
//! describes it for readers in other languages.

use crate::Timebase;
use crate::summary::VerdictWord;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of this shape. Additions keep it; changes raise it.
pub const SCHEMA: &str = "punctual-comparison/2";

/// One side against one or several others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct Comparison {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The verdict in words with its reason; absent until displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ComparisonAnswer>,
    /// The sides; the others are compared with the first.
    pub sides: Vec<ComparisonSide>,
    /// The confidence of each interval on its own.
    pub confidence: f64,
    /// The family-wise error rate: the probability of at least one false difference in this
    /// comparison.
    pub error_rate: f64,
    /// The number of tests that share that rate (Holm's procedure).
    pub tests: u64,
    /// Each series that both sides have.
    pub series: Vec<SeriesComparison>,
    /// The requirements with their outcomes.
    pub gates: Vec<GateResult>,
    /// The combined verdict; `null` without requirements.
    pub verdict: Option<VerdictWord>,
    /// Weaknesses of the comparison: series without a partner, unknown autocorrelation, damaged
    /// bundles, ….
    pub findings: Vec<Finding>,
}

/// The answer, which a user reads first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComparisonAnswer {
    /// Regression, noise, or neither; absent with other than two sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// The verdict in one sentence, with its reason and place.
    pub verdict: String,
    /// The most significant difference in one sentence; `null` if nothing is compared.
    pub figure: Option<String>,
    /// Recommended actions, the most effective first; at most three.
    pub to_do: Vec<String>,
}

/// One side: a run, or several equivalent runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComparisonSide {
    /// A unique label, made of the differences between the sides.
    pub label: String,
    pub runs: Vec<String>,
    /// The timebase of its figures.
    #[serde(default)]
    pub timebase: Timebase,
}

impl Comparison {
    /// The timebase of all figures.
    pub fn timebase(&self) -> Timebase {
        Timebase::common_timebase(self.sides.iter().map(|side| side.timebase))
    }
}

/// A series of the first side and its partner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeriesComparison {
    /// The index of the other side in [`Comparison::sides`].
    pub side: usize,
    /// `phase/series` on the first side.
    pub series: String,
    /// `phase/series` on the other side: the same, unless matched by hand.
    pub partner: String,
    /// The figures of the first side.
    pub a: SideFigures,
    /// The figures of the other side.
    pub b: SideFigures,
    /// How the dependence between samples was taken into account.
    pub basis: Basis,
    /// Whether periods were missed on a side: the percentiles then include the missing samples.
    #[serde(default)]
    pub corrected: bool,
    /// The figures, one by one.
    pub metrics: Vec<MetricComparison>,
    /// The tests of whole and tail.
    pub distribution: Vec<DistributionTest>,
    /// The probability that a sample of the other side exceeds one of the first, ties counted half
    /// (Vargha and Delaney's A).
    pub superiority: Option<f64>,
    /// Smaller differences are not claimed: the coarser resolution of the two clocks.
    pub resolution: i64,
}

/// How the dependence between samples was taken into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Blocks of the kept samples, one run per side.
    Blocks,
    /// The differences between runs of the same side.
    Runs,
    /// Not considered on at least one side, which has only a histogram.
    Unknown,
}

/// The figures of one side of a series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct SideFigures {
    /// The number of runs.
    pub runs: usize,
    /// Samples in all runs.
    pub count: u64,
    pub lost: u64,
    pub overruns: u64,
    /// The measured time in ns; `null` if unknown.
    pub duration: Option<i64>,
    /// The effective sample size for the median; `null` if unknown.
    pub effective: Option<f64>,
    /// Its distribution for a plot: the share of longer samples, and the latency in ns.
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
    /// The interval of the difference, with [`Comparison::confidence`] on its own; `null` if
    /// unbounded.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The difference as a share of `a`.
    pub relative: Option<f64>,
    /// `b / a`, if both are above 0.
    #[serde(default)]
    pub ratio: Option<RatioInterval>,
    /// Both figures as measured, if the compared ones are corrected for missed periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<[f64; 2]>,
    /// The probability of a difference at least this large by chance.
    pub p: Option<f64>,
    /// The same, adjusted for all tests of the comparison.
    pub p_adjusted: Option<f64>,
    pub verdict: Difference,
    /// How many times as much data would make the observed difference significant, if it is the
    /// true one.
    pub more_data: Option<f64>,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A ratio with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RatioInterval {
    /// `b / a`.
    pub at: f64,
    /// The lower end of its interval, with [`Comparison::confidence`] on its own; above 0; `null`
    /// if unbounded.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The result for a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The other side is lower.
    Lower,
    /// The other side is higher.
    Higher,
    /// No significant difference with these data: no proof that they are equal.
    NoSignificantDifference,
    /// The data are not sufficient for the figure.
    Unsupported,
}

/// A test of two distributions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DistributionTest {
    /// `whole` or `tail`.
    pub part: String,
    /// The test: `block permutation`, `run permutation`, `histogram`.
    pub method: String,
    /// The statistic: the largest distance between the two distribution functions; in the tail, the
    /// largest standardised difference.
    pub statistic: f64,
    /// Its probability if both were equal; `null` with a reason.
    pub p: Option<f64>,
    /// The same, adjusted for all tests of the comparison.
    pub p_adjusted: Option<f64>,
    /// The smallest p that this many runs can show.
    pub least_p: f64,
}

/// A requirement on the difference, with its outcome.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GateResult {
    /// As stated: `fail-if-worse p99.9:10us`.
    pub gate: String,
    /// `phase/series`.
    pub series: String,
    /// The index of the other side.
    pub side: usize,
    pub verdict: VerdictWord,
    /// The end of the interval that decided, in ns.
    pub bound: Option<f64>,
    /// The margin in ns for this series.
    pub margin: Option<f64>,
    /// The reason for the outcome.
    pub reason: String,
}
