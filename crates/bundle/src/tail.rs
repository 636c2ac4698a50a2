//! What `punctual tail --json` prints: what a run shows about latencies longer than those it
//! observed. Times are in ns; what is not known is `null`. docs/reference/tail.md describes it for
//! readers in other languages.

use crate::Timebase;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-tail/2";

/// The tails of a bundle's series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tails {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub bundle: String,
    /// Whose time its figures are in.
    #[serde(default)]
    pub timebase: Timebase,
    /// The confidence of every bound and interval.
    pub confidence: f64,
    /// In the order of the bundle.
    pub series: Vec<SeriesTail>,
    /// Warnings about all of it.
    pub findings: Vec<Finding>,
}

/// What can be said of latencies longer than those of a series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeriesTail {
    /// `phase/series`.
    pub series: String,
    pub seen: Seen,
    /// What a model adds, or why none is offered.
    pub model: Model,
    /// Which causes make up the tail, by everything that knows it; empty where nothing was
    /// recorded.
    #[serde(default)]
    pub causes: Vec<TailCauses>,
}

/// Where causes are known from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseSource {
    /// The windows around the worst samples (`punctual explain`).
    Windows,
    /// The account that the kernel kept of every sample (`NNNN.account.json`).
    Account,
}

/// The causes of the samples beyond the threshold. A sample counts for the cause that took the most
/// of its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TailCauses {
    /// Where they are known from.
    pub source: CauseSource,
    /// The threshold of the model, in ns; `null` where none was found: then windows are all taken,
    /// and of an account the longest hundredth.
    pub threshold: Option<f64>,
    /// Samples beyond it, known or not.
    pub beyond: Option<u64>,
    /// Those of them that the source holds.
    pub samples: u64,
    /// Those whose cause is known.
    pub known: u64,
    /// The causes, the most frequent first.
    pub causes: Vec<CauseShare>,
    /// Whether one has nine tenths or more of what is known.
    pub dominant: bool,
    /// The probability of sizes that differ so much if the cause does not matter; `null` where too
    /// few are known, or one cause alone.
    pub p: Option<f64>,
    /// Whether causes of different sizes mix; `null` as above.
    pub mixture: Option<bool>,
}

/// One cause of a tail.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CauseShare {
    /// The word of `punctual explain`, or that of an account's part.
    pub cause: String,
    /// Who, where that is known.
    pub who: Option<String>,
    pub count: u64,
    /// Of those whose cause is known.
    pub share: f64,
    /// Their median in ns; of an account, to the width of its buckets.
    pub median: f64,
    pub max: f64,
}

/// What needs no model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Seen {
    pub count: u64,
    /// Samples lost: they could have been anything.
    pub lost: u64,
    pub overruns: u64,
    pub duration: Option<i64>,
    pub max: Option<i64>,
    /// One over the mean number of long samples in a burst (the extremal index); `null` where the
    /// order of samples is not known.
    pub extremal_index: Option<f64>,
    /// The effective sample size for the maximum; `null` where not known.
    pub effective: Option<f64>,
    /// A sample is longer than the maximum with at most this probability; with `effective`
    /// samples, or `count` where that is not known.
    pub beyond: Option<f64>,
    /// Bursts longer than the maximum come at most once in this time.
    pub not_more_often_than: Option<f64>,
    /// Which quantiles the maximum bounds.
    pub quantiles: Vec<QuantileBound>,
}

/// Whether the maximum bounds a quantile from above.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuantileBound {
    /// The percentile as text: `99.999`.
    pub percentile: String,
    /// The independent samples that it takes.
    pub needed: u64,
    /// Whether there are as many.
    pub bounded: bool,
}

/// The result of a model of the tail.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Model {
    /// Whether it is offered: every gate is open.
    pub accepted: bool,
    /// Why not: the first gates that are shut, in words.
    pub refusals: Vec<String>,
    /// Every gate that was come to.
    pub gates: Vec<Gate>,
    /// The distribution of block maxima.
    pub block_maxima: Option<BlockMaxima>,
    /// The distribution of peaks over a threshold.
    pub peaks: Option<Peaks>,
    /// Levels and how often they are exceeded; none where the model is refused.
    pub levels: Vec<ReturnLevel>,
}

/// A condition for a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gate {
    /// A stable word: `independent-peaks`.
    pub id: String,
    pub what: String,
    pub open: bool,
    /// The statistic, where there is one.
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
    /// ξ: above 0 the tail is heavier than exponential, below 0 it ends.
    pub shape: f64,
    /// The probability of so bad a fit if the distribution is right (Anderson and Darling, by
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
    /// ξ: above 0 the tail is heavier than exponential, below 0 it ends.
    pub shape: f64,
    /// As in [`BlockMaxima::fit_p`].
    pub fit_p: f64,
}

/// A latency and how often it is exceeded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReturnLevel {
    pub period: i64,
    /// The level by peaks over the threshold.
    pub level: f64,
    /// The lower end of its interval.
    pub low: f64,
    pub high: f64,
    /// The level by block maxima.
    pub by_block_maxima: f64,
}
