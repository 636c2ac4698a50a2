//! Requests to a tuning, and to a machine.

use punctual_bundle::tune::TuningEnd;
use punctual_core::Nanos;

/// The request to a tuning.
#[derive(Clone, PartialEq, Debug)]
pub struct TuningOptions {
    /// The smallest effect to be found, as a factor above 1; smaller ones count as none.
    pub smallest: f64,
    /// The rate of tunings with any wrong *better* or *worse*.
    pub error: f64,
    /// The time limit.
    pub within: Nanos,
    /// The duration of a block, without its preparation.
    pub block: Nanos,
    pub seed: u64,
}

impl Default for TuningOptions {
    fn default() -> TuningOptions {
        TuningOptions {
            smallest: 1.3,
            error: crate::compare::series::ERROR,
            within: Nanos(3_600_000_000_000),
            block: Nanos(10_000_000_000),
            seed: 1,
        }
    }
}

/// The purpose of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockPurpose {
    /// With one of the screened settings.
    Screen,
    /// Without any of the screened settings, beside them.
    Control,
    /// The set of all adopted settings, or the untouched machine beside it.
    Confirm,
}

impl BlockPurpose {
    pub const fn word(self) -> &'static str {
        match self {
            BlockPurpose::Screen => "screen",
            BlockPurpose::Control => "control",
            BlockPurpose::Confirm => "confirm",
        }
    }
}

/// A block to be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRequest {
    pub purpose: BlockPurpose,
    /// The round of screening, from 1; 0 outside of rounds.
    pub round: u32,
    /// The group of blocks.
    pub group: usize,
    /// For each candidate, whether it is set.
    pub on: Vec<bool>,
}

/// A measured block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredBlock {
    /// The figure in ns; `None` if unusable.
    pub figure: Option<f64>,
    /// From the start of the tuning to the end of this block.
    pub elapsed: Nanos,
}

/// The next step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TuneStep<'a> {
    Measure(&'a BlockRequest),
    Done(TuningEnd),
}
