//! The document of `punctual tail --json`: the evidence of a run about latencies longer than those
//! it observed. Times are in ns; unknown values are `null`. docs/reference/tail.md describes it for
//! readers in other languages.

use crate::Timebase;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of this shape. Additions keep it; changes raise it.
pub const SCHEMA: &str = "punctual-tail/2";

/// The tails of a bundle's series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tails {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub bundle: String,
    /// The timebase of its figures.
    #[serde(default)]
    pub timebase: Timebase,
    /// The confidence of every bound and interval.
    pub confidence: f64,
    /// In the order of the bundle.
    pub series: Vec<SeriesTail>,
    /// Warnings about the whole result.
    pub findings: Vec<Finding>,
}

/// The evidence about latencies longer than those of a series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeriesTail {
    /// `phase/series`.
    pub series: String,
    pub seen: ModelFreeTail,
    /// The result of the model, or why none is offered.
    pub model: Model,
    /// The causes of the tail from each source; empty without a recording.
    #[serde(default)]
    pub causes: Vec<TailCauses>,
}

/// The source of the causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseSource {
    /// The windows around the worst samples (`punctual explain`).
    Windows,
    /// The kernel's account of every sample (`NNNN.account.json`).
    Account,
}

/// The causes of the samples beyond the threshold. A sample counts for the cause that took most of
/// its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TailCauses {
    /// The source of the causes.
    pub source: CauseSource,
    /// The threshold of the model in ns; `null` if none was found. All windows are taken then, or
    /// the longest hundredth of an account.
    pub threshold: Option<f64>,
    /// Samples beyond the threshold, of known cause or not.
    pub beyond: Option<u64>,
    /// Those that the source holds.
    pub samples: u64,
    /// Those with known cause.
    pub known: u64,
    /// The causes, the most frequent first.
    pub causes: Vec<CauseShare>,
    /// Whether one cause has 90 % or more of the known samples.
    pub dominant: bool,
    /// The probability of such different sizes if the cause does not matter; `null` if too few are
    /// known, or only one cause.
    pub p: Option<f64>,
    /// Whether causes of different sizes mix; `null` as above.
    pub mixture: Option<bool>,
}

/// One cause of a tail.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CauseShare {
    /// The id of the cause in `punctual explain`, or of the part in an account.
    pub cause: String,
    /// The culprit, if known.
    pub who: Option<String>,
    pub count: u64,
    /// The share among the samples with known cause.
    pub share: f64,
    /// The median in ns; of an account, to the width of its buckets.
    pub median: f64,
    pub max: f64,
}

/// The results that need no model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelFreeTail {
    pub count: u64,
    /// Lost samples, which may have had any latency.
    pub lost: u64,
    pub overruns: u64,
    pub duration: Option<i64>,
    pub max: Option<i64>,
    /// The reciprocal of the mean number of long samples in a burst (the extremal index); `null` if
    /// the order of samples is unknown.
    pub extremal_index: Option<f64>,
    /// The effective sample size for the maximum; `null` if unknown.
    pub effective: Option<f64>,
    /// The upper bound of the probability that a sample exceeds the maximum, with `effective`
    /// samples, or `count` if that is unknown.
    pub beyond: Option<f64>,
    /// Bursts longer than the maximum occur at most once in this time.
    pub not_more_often_than: Option<f64>,
    /// The quantiles that the maximum bounds.
    pub quantiles: Vec<QuantileBound>,
}

/// Whether the maximum bounds a quantile from above.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuantileBound {
    /// The percentile as text: `99.999`.
    pub percentile: String,
    /// The number of independent samples needed.
    pub needed: u64,
    /// Whether that many exist.
    pub bounded: bool,
}

/// The result of a model of the tail.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Model {
    /// Whether the model is offered: every gate passed.
    pub accepted: bool,
    /// The reasons against it: the first failed gates, in words.
    pub refusals: Vec<String>,
    /// The gates that were evaluated.
    pub gates: Vec<ModelGate>,
    /// The distribution of block maxima.
    pub block_maxima: Option<BlockMaxima>,
    /// The distribution of peaks over a threshold.
    pub peaks: Option<Peaks>,
    /// Levels with their frequency of being exceeded; empty if the model is refused.
    pub levels: Vec<ReturnLevel>,
}

/// A condition for a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelGate {
    /// A stable word: `independent-peaks`.
    pub id: String,
    pub what: String,
    pub open: bool,
    /// The statistic, if any.
    pub statistic: Option<f64>,
    /// Its probability if the condition holds.
    pub p: Option<f64>,
}

/// A generalised extreme value distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockMaxima {
    pub blocks: u64,
    pub block_length: u64,
    /// μ in ns.
    pub location: f64,
    /// σ in ns.
    pub scale: f64,
    /// ξ: above 0 the tail is heavier than exponential; below 0 it is bounded.
    pub shape: f64,
    /// The probability of a fit this bad if the distribution is right (Anderson and Darling, by
    /// bootstrap).
    pub fit_p: f64,
}

/// A generalised Pareto distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Peaks {
    /// The threshold in ns.
    pub threshold: f64,
    /// Peaks of bursts above it.
    pub peaks: u64,
    /// σ in ns.
    pub scale: f64,
    /// ξ: above 0 the tail is heavier than exponential; below 0 it is bounded.
    pub shape: f64,
    /// As in [`BlockMaxima::fit_p`].
    pub fit_p: f64,
}

/// A latency with its frequency of being exceeded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReturnLevel {
    pub period: i64,
    /// The level from peaks over the threshold.
    pub level: f64,
    /// The lower end of its interval.
    pub low: f64,
    pub high: f64,
    /// The level from block maxima.
    pub by_block_maxima: f64,
}
