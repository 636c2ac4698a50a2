//! What `punctual tune --json` prints and its directory keeps: the effect of each setting on the
//! asked figure. Times are in ns; what is not known is `null`. docs/tune.md describes it.

use crate::summary::VerdictWord;
use punctual_core::Nanos;
use serde::{Deserialize, Serialize};

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-tuning/1";

/// What became of a setting, or of a set of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The figure is smaller with it.
    Better,
    /// The figure is larger with it.
    Worse,
    /// The figure is the same with it, to within the stated margin.
    NoEffect,
    /// The blocks that were measured show none of these.
    NotResolved,
}

impl Answer {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Answer::Better => "better",
            Answer::Worse => "worse",
            Answer::NoEffect => "no effect",
            Answer::NotResolved => "not resolved in the time",
        }
    }
}

/// The effect on the figure, as a factor: the figure with the setting over the figure without it,
/// so that less than 1 is better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ratio {
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// The probability of an effect at least as large by chance, if there is none.
    pub p: f64,
    /// The same, adjusted for all settings that were tested together (Holm).
    pub p_adjusted: f64,
    /// The blocks of time from which it was computed, of both kinds together.
    pub blocks: u64,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedSetting {
    pub name: String,
    /// The value that was tried, in words.
    pub value: String,
    /// What it may do besides what it is for: `low`, `medium`, `high`.
    pub risk: String,
    pub answer: Answer,
    /// The effect; `null` where too few blocks were measured for any figure.
    pub effect: Option<Ratio>,
    /// The round of screening that gave the answer, from 1; 0 where none was completed.
    pub round: u32,
    /// How many more blocks would resolve it; `null` where it is resolved, or where that is not
    /// known.
    pub more_blocks: Option<u64>,
    /// How long those would take.
    pub more_time: Option<Nanos>,
}

/// The set of all settings that are better, against the untouched machine, in blocks of its own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedSet {
    pub settings: Vec<String>,
    pub answer: Answer,
    /// The effect; `null` where too few pairs of blocks were measured.
    pub effect: Option<Ratio>,
    /// The figure of the untouched machine, in ns: the median of its blocks in these pairs.
    pub untouched: Option<f64>,
    /// The figure with the set, in ns.
    pub with_set: Option<f64>,
    /// What the set costs, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<TunedCost>,
}

/// What the set costs: how often a command runs from begin to end, per second, in the same pairs of
/// blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedCost {
    pub command: String,
    /// What became of it: *worse* is fewer runs.
    pub answer: Answer,
    /// Runs per second with the set over those without it, so that less than 1 is a cost; `null`
    /// where too few pairs of blocks have both.
    pub effect: Option<Ratio>,
    /// Runs per second of the untouched machine: the median of its blocks in these pairs.
    pub untouched: Option<f64>,
    /// The same with the set.
    pub with_set: Option<f64>,
    /// Why the last block without a throughput has none; absent where all have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Why no more was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuningEnd {
    /// Nothing was left to ask.
    Complete,
    Time,
    /// Too many blocks could not be used.
    BlocksFailed,
    /// It was interrupted, or goes on: `punctual tune --resume` goes on with it.
    Interrupted,
}

/// A setting that was not tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotTried {
    pub name: String,
    pub why: String,
}

/// In how many blocks a requirement held.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedRequirement {
    /// The requirement, as it was stated.
    pub requirement: String,
    /// Blocks of the untouched machine in which it held, and all of them.
    pub untouched: [u64; 2],
    /// The same of the blocks with the recommended set; none where none is recommended.
    pub recommended: [u64; 2],
    /// Whether it held in every block of the machine as recommended: with the set, or untouched
    /// where none is; undecided without a block.
    pub verdict: VerdictWord,
}

/// A block as the directory of a tuning keeps it, a line of JSON each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its number, from 1.
    pub number: u64,
    /// What for: `pilot`, `screen`, `control`, `confirm`.
    pub purpose: String,
    pub on: Vec<String>,
    /// The figure, in ns; `null` where it cannot be used.
    pub figure: Option<f64>,
    /// The largest of those that the figure is the mean of, where a boot had several blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// Why it cannot be used.
    pub why: Option<String>,
    /// Runs per second of the command that shows the cost; absent where it was not run beside this
    /// block, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Why there are none although it was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_throughput: Option<String>,
    /// From the beginning of the tuning to the end of this block.
    pub elapsed: Nanos,
}

/// All that a tuning found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TuningDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub experiment: String,
    /// The release of the kernel; `null` where it is not known.
    pub kernel: Option<String>,
    /// The virtual machine that was booted for each block; absent where it was this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The figure, as `p99.9`.
    pub metric: String,
    /// Each setting, in the order in which they were offered.
    pub settings: Vec<TunedSetting>,
    /// The best set against the untouched machine; `null` where no setting is better.
    pub set: Option<TunedSet>,
    /// The settings to keep: those of the set where it is better, else none.
    pub recommended: Vec<String>,
    /// What was not tried, and why.
    pub not_tried: Vec<NotTried>,
    /// What was required of the figure; `null` where nothing was.
    pub required: Option<TunedRequirement>,
    /// The standard deviation of the logarithm of the figure between blocks of the same settings;
    /// `null` where too few were measured.
    pub spread: Option<f64>,
    /// The smallest effect that was to be found, as a factor.
    pub smallest: f64,
    /// Effects within this factor, up or down, count as none.
    pub margin: f64,
    /// The rate of tunings in which any setting is called better or worse although it is not.
    pub error_rate: f64,
    /// Blocks that were measured and used.
    pub blocks: u64,
    /// Blocks that could not be used.
    pub failed: u64,
    /// Blocks that were measured anew, because the controls beside them showed a drift.
    pub repeated: u64,
    /// The time from the first block to the end of the last.
    pub elapsed: Nanos,
    /// Why no more was measured.
    pub ended: TuningEnd,
}
