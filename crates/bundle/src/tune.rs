//! The document of `punctual tune`, printed by `--json` and kept in its directory: the effect of
//! each setting on the requested figure. Times are in ns; unknown values are `null`. See
//! docs/tune.md.

use crate::summary::VerdictWord;
use punctual_core::Nanos;
use serde::{Deserialize, Serialize};

/// The name and version of this shape. Additions keep it; changes raise it.
pub const SCHEMA: &str = "punctual-tuning/2";

/// The effect of a setting, or of a set of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneAnswer {
    /// The figure is smaller with it.
    Better,
    /// The figure is larger with it.
    Worse,
    /// The figure is the same within the stated margin.
    NoEffect,
    /// The measured blocks show none of these.
    NotResolved,
}

impl TuneAnswer {
    /// In words.
    pub fn to_words(self) -> &'static str {
        match self {
            TuneAnswer::Better => "better",
            TuneAnswer::Worse => "worse",
            TuneAnswer::NoEffect => "no effect",
            TuneAnswer::NotResolved => "not resolved in the time",
        }
    }
}

/// The effect on the figure as a factor: the figure with the setting over the figure without it.
/// Below 1 is better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectFactor {
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// The probability of an effect at least this large by chance.
    pub p: f64,
    /// The same, adjusted for all settings tested together (Holm).
    pub p_adjusted: f64,
    /// The number of pairs that it is computed from: a block with it, and those without it beside.
    pub pairs: u64,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedSetting {
    pub name: String,
    /// The tried value, for display.
    pub value: String,
    /// The risk of side effects: `low`, `medium`, `high`.
    pub risk: String,
    pub answer: TuneAnswer,
    /// The effect; `null` if too few blocks were measured.
    pub effect: Option<EffectFactor>,
    /// The screening round that gave the answer, from 1; 0 if none was completed.
    pub round: u32,
    /// How many more blocks would resolve it; `null` if it is resolved, or if that is unknown.
    pub more_blocks: Option<u64>,
    /// The time those would take.
    pub more_time: Option<Nanos>,
}

/// All settings that are better, as a set against the untouched machine, in separate blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedSet {
    pub settings: Vec<String>,
    pub answer: TuneAnswer,
    /// The effect; `null` if too few pairs of blocks were measured.
    pub effect: Option<EffectFactor>,
    /// The figure of the untouched machine, in ns: the median of its blocks in these pairs.
    pub untouched: Option<f64>,
    /// The figure with the set, in ns.
    pub with_set: Option<f64>,
}

/// Why measuring ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuningEnd {
    /// No question was left open.
    Complete,
    Time,
    /// Too many blocks were unusable.
    BlocksFailed,
    /// It was interrupted or is still running: `punctual tune --resume` continues it.
    Interrupted,
}

/// A setting that was not tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotTried {
    pub name: String,
    pub why: String,
}

/// The number of blocks in which a requirement held.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TunedRequirement {
    /// The requirement as stated.
    pub requirement: String,
    /// Blocks of the untouched machine in which it held, and all of them.
    pub untouched: [u64; 2],
    /// The same for blocks with the recommended set; zero without one.
    pub recommended: [u64; 2],
    /// Whether it held in every block of the machine as recommended (with the set, or untouched
    /// without one); undecided without a block.
    pub verdict: VerdictWord,
}

/// A block, as one line of JSON in the directory of a tuning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Its number, from 1.
    pub number: u64,
    /// Its purpose: `screen`, `control`, `confirm`.
    pub purpose: String,
    pub on: Vec<String>,
    /// The figure in ns; `null` if it is unusable.
    pub figure: Option<f64>,
    /// Why it is unusable.
    pub why: Option<String>,
    /// From the start of the tuning to the end of this block.
    pub elapsed: Nanos,
}

/// All results of a tuning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TuningDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    pub experiment: String,
    /// The kernel release; `null` if unknown.
    pub kernel: Option<String>,
    /// The virtual machine that was booted for each block; absent if this machine was tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The figure, as `p99.9`.
    pub metric: String,
    /// Each setting, in the order offered.
    pub settings: Vec<TunedSetting>,
    /// The best set against the untouched machine; `null` if no setting is better.
    pub set: Option<TunedSet>,
    /// The settings to keep: those of the set if it is better, else none.
    pub recommended: Vec<String>,
    /// The settings not tried, with reasons.
    pub not_tried: Vec<NotTried>,
    /// The requirement on the figure; `null` without one.
    pub required: Option<TunedRequirement>,
    /// The standard deviation of the logarithm of the figure between blocks of the same settings;
    /// `null` if too few were measured.
    pub spread: Option<f64>,
    /// The smallest effect to be found, as a factor: smaller ones, up or down, count as none.
    pub margin: f64,
    /// The rate of tunings that wrongly call any setting better or worse.
    pub error_rate: f64,
    /// Blocks measured and used.
    pub blocks: u64,
    /// Unusable blocks.
    pub failed: u64,
    /// The time from the first block to the end of the last.
    pub elapsed: Nanos,
    /// Why measuring ended.
    pub ended: TuningEnd,
}
