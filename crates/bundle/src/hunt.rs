//! What `punctual hunt` found (`hunt.json` in its directory). Lengths are in instructions.

use serde::{Deserialize, Serialize};

/// The name and version of [`HuntDocument`].
pub const HUNT_SCHEMA: &str = "punctual-hunt/1";

/// A search for what makes a kernel late.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntDocument {
    /// [`HUNT_SCHEMA`].
    pub schema: String,
    /// The kernel as requested.
    pub kernel: String,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    /// How long each trial measures, in ns of its own time.
    pub measured_ns: i64,
    /// One for each stressor, in the order in which they are tried.
    pub trials: Vec<Trial>,
    /// The distinct causes, the longest first.
    pub causes: Vec<HuntCause>,
}

/// A trial: one load beside the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The stressor of stress-ng.
    pub stressor: String,
    /// What became of it.
    pub state: TrialState,
    /// Why it failed, or what makes it invalid.
    pub why: Option<String>,
    /// The worst sample.
    pub worst_ns: Option<i64>,
    /// The longest section with interrupts disabled.
    pub irqs_disabled: Option<u64>,
}

/// What became of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialState {
    /// It measured beside its load.
    Measured,
    /// It measured, and its load did not work: it may need a device or a right.
    NoLoad,
    /// It did not end well: its kernel panicked, hung or ran out of memory.
    Failed,
    /// The budget was used up before.
    NotTried,
}

/// A cause of latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntCause {
    /// `irqs-disabled`: a section with interrupts disabled, whether or not a sample met it;
    /// `not-preempted`: a part of a sample.
    pub kind: String,
    /// The function in which the section begins, or that took most of the part.
    pub function: String,
    /// The longest, in instructions.
    pub longest: u64,
    /// The stressor of the longest.
    pub stressor: String,
    /// The calls around it, from the outermost; empty where they are not known.
    pub stack: Vec<String>,
    /// How many trials met it with at least a tenth of the longest.
    pub trials: u64,
    /// The experiment that shows it, below the directory of the search.
    pub file: Option<String>,
}
