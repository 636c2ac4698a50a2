//! What is asked of a tuning, and of a machine.

use super::design::Design;
use punctual_bundle::tune::TuningEnd;
use punctual_core::Nanos;

/// What is asked of a tuning.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    pub design: Design,
    /// The smallest effect that is to be found, as a factor above 1.
    pub smallest: f64,
    /// Effects within this factor count as none.
    pub margin: f64,
    /// The rate of tunings with any wrong *better* or *worse*.
    pub error: f64,
    /// How long it may take.
    pub within: Nanos,
    /// How long a block takes, without what comes before it.
    pub block: Nanos,
    /// What a block of the last comparison takes besides, to measure what the set costs.
    pub cost: Nanos,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            design: Design::Factorial,
            smallest: 1.3,
            margin: 1.15,
            error: crate::compare::series::ERROR,
            within: Nanos(3_600_000_000_000),
            block: Nanos(10_000_000_000),
            cost: Nanos::ZERO,
            seed: 1,
        }
    }
}

/// What a block is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The spread of the untouched machine.
    Pilot,
    Screen,
    /// Beside them, what has none of the settings that are asked about.
    Control,
    /// The set of all adopted settings, or the untouched machine beside it.
    Confirm,
}

impl Purpose {
    pub const fn word(self) -> &'static str {
        match self {
            Purpose::Pilot => "pilot",
            Purpose::Screen => "screen",
            Purpose::Control => "control",
            Purpose::Confirm => "confirm",
        }
    }
}

/// A block that is to be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub purpose: Purpose,
    /// The round of screening, from 1; 0 outside of them.
    pub round: u32,
    /// The group that it belongs to.
    pub group: usize,
    /// For each candidate, whether it is set.
    pub on: Vec<bool>,
}

/// A block that was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Block {
    /// The figure in ns; `None` where it could not be used.
    pub figure: Option<f64>,
    /// Runs per second of what shows the cost; `None` where none was asked for or is known.
    pub throughput: Option<f64>,
    /// From the beginning of the tuning to the end of this block.
    pub elapsed: Nanos,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step<'a> {
    Measure(&'a Request),
    Done(TuningEnd),
}
