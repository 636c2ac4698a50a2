//! What `punctual hunt` found (`hunt.json` in its directory). Lengths are in instructions.

use crate::Exit;
use crate::summary::VerdictWord;
use serde::{Deserialize, Serialize};

/// The name and version of [`HuntDocument`].
pub const HUNT_SCHEMA: &str = "punctual-hunt/2";

/// A search for what makes a kernel late.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntDocument {
    /// [`HUNT_SCHEMA`].
    pub schema: String,
    pub kernel: String,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    /// How long a trial measures, in ns of its own time; some are a quarter, some twice as long.
    pub measured_ns: i64,
    /// What the order of the trials follows from.
    pub seed: u32,
    /// Loads that could be tried.
    pub loads: u64,
    pub surveyed: u64,
    /// What is left of an input shows at least so many percent of the longest.
    pub least_percent: u64,
    /// In the order in which they were taken.
    pub trials: Vec<Trial>,
    pub worst: Option<HuntCause>,
    /// The distinct causes, the longest first.
    pub causes: Vec<HuntCause>,
    /// Causes that are not listed.
    pub more_causes: u64,
    /// What trials ended with, or ran into, instead of being only late; those of a kind with the
    /// same message are one.
    #[serde(default)]
    pub failures: Vec<HuntFailure>,
    /// Other kernels with the same inputs.
    pub against: Vec<Against>,
    pub required: Vec<Required>,
}

/// All requirements together; `None` where nothing was required.
pub fn together(required: &[Required]) -> Option<VerdictWord> {
    VerdictWord::gravest(required.iter().map(|required| required.verdict))
}

impl HuntDocument {
    /// All requirements together; `None` where nothing was required.
    pub fn verdict(&self) -> Option<VerdictWord> {
        together(&self.required)
    }

    /// How a command about it ends: as a lab, a kernel that failed is a failure.
    pub fn exit(&self) -> Exit {
        match Exit::of_word(self.verdict()) {
            Exit::NotMet => Exit::NotMet,
            _ if !self.failures.is_empty() => Exit::Failed,
            exit => exit,
        }
    }
}

/// A trial: one to three loads beside the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// From 1.
    pub number: u64,
    /// `survey`, `sweep`, `halving`, `local`, `random`, `minimise`.
    pub stage: String,
    pub loads: Vec<String>,
    /// The seed of the loads and of the timer.
    pub seed: u32,
    pub state: TrialState,
    /// Why it failed, or what makes it invalid.
    pub why: Option<String>,
    pub worst_ns: Option<i64>,
    /// The longest section with interrupts disabled.
    pub irqs_disabled: Option<u64>,
    /// Its bundle, below the directory of the search.
    pub bundle: Option<String>,
    /// The console of one that failed, below the directory of the search.
    pub console: Option<String>,
}

/// What became of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialState {
    /// It measured beside its loads.
    Measured,
    /// It measured, and a load did not work: it may need a device or a right.
    NoLoad,
    /// It did not end well: its kernel panicked, hung or ran out of memory.
    Failed,
}

/// A cause of latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntCause {
    /// `irqs-disabled`, `preemption-disabled`: a section with interrupts or preemption disabled,
    /// whether or not a sample met it; `not-preempted`: the time from `need_resched` to the call of
    /// `__schedule`; `sample`: the worst sample as a whole.
    pub kind: String,
    /// The function of the section, or that took most of the time.
    pub function: String,
    pub longest: u64,
    /// The number of the trial that showed it.
    pub trial: u64,
    /// How many trials met it with at least a tenth of the longest.
    pub trials: u64,
    /// The number of the first of these.
    #[serde(default)]
    pub first: u64,
    /// The least that shows it.
    pub least: Least,
    /// The calls around it, from the outermost; empty where they are not known.
    pub stack: Vec<String>,
}

/// A kernel that panicked, hung or ran out of memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HuntFailure {
    /// `panic`, `hang`, `out-of-memory`, `ended-early`; `other` for what is not the kernel's.
    pub what: String,
    /// In a line.
    pub why: String,
    /// How many trials it met.
    pub trials: u64,
    /// The number of the one with the fewest loads.
    pub trial: u64,
    pub loads: Vec<String>,
    /// Its experiment, below the directory of the search.
    pub file: Option<String>,
    /// Its console, below the directory of the search.
    pub console: Option<String>,
}

/// The least that shows a cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Least {
    pub loads: Vec<String>,
    /// How long it measures, in its own time.
    pub duration_ns: i64,
    /// The length that it shows.
    pub shows: u64,
    /// Whether everything simpler was tried and shows less.
    pub minimal: bool,
    /// The experiment, below the directory of the search.
    pub file: Option<String>,
}

/// Another kernel with the inputs of the causes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Against {
    pub kernel: String,
    pub inputs: u64,
    /// Inputs that one of them did not.
    pub failed: u64,
    /// The causes of both, the largest difference first.
    pub changes: Vec<Change>,
}

/// A cause on two kernels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// As in [`HuntCause`].
    pub kind: String,
    /// As in [`HuntCause`].
    pub function: String,
    /// The longest on the kernel that was searched; 0 where it was not seen.
    pub here: u64,
    pub there: u64,
    /// What the kernel that was searched is, compared with the other.
    pub change: Changed,
}

/// What became of a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changed {
    /// Only on the kernel that was searched.
    New,
    Gone,
    /// Longer by more than 10 %.
    Longer,
    /// Shorter by more than 10 %.
    Shorter,
    Same,
}

/// A requirement on all that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Required {
    pub requirement: String,
    /// Whether it holds. A search that found nothing longer proves no bound.
    pub verdict: VerdictWord,
    /// The longest of all causes and samples; none where nothing was measured.
    pub longest: Option<u64>,
}
