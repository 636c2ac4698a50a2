//! The results of `punctual hunt` (`hunt.json` in its directory). Lengths are in instructions.

use crate::Exit;
use crate::sections::Required;
use crate::summary::VerdictWord;
use serde::{Deserialize, Serialize};

/// The name and version of [`HuntDocument`].
pub const HUNT_SCHEMA: &str = "punctual-hunt/2";

/// A search for sources of kernel latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntDocument {
    /// [`HUNT_SCHEMA`].
    pub schema: String,
    pub kernel: String,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    /// The duration of a trial in ns of its own time; some take a quarter, some twice that.
    pub measured_ns: i64,
    /// The seed of the order of trials.
    pub seed: u32,
    /// The number of available loads.
    pub loads: u64,
    pub surveyed: u64,
    /// The share of the longest, in percent, that a minimised input must still show.
    pub least_percent: u64,
    /// The trials in order.
    pub trials: Vec<HuntTrial>,
    pub worst: Option<HuntCause>,
    /// The distinct causes, the longest first.
    pub causes: Vec<HuntCause>,
    /// The number of causes not listed.
    pub more_causes: u64,
    /// Failures of trials, as opposed to latency; those of a kind with the same message are merged.
    #[serde(default)]
    pub failures: Vec<HuntFailure>,
    /// Other kernels with the same inputs.
    pub against: Vec<Against>,
    pub required: Vec<Required>,
}

impl HuntDocument {
    /// All requirements together; `None` where nothing was required.
    pub fn verdict(&self) -> Option<VerdictWord> {
        VerdictWord::gravest(self.required.iter().map(|required| required.verdict))
    }

    /// The exit of a command about it: as in a lab, a failed kernel is a failure.
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
pub struct HuntTrial {
    /// From 1.
    pub number: u64,
    /// `survey`, `sweep`, `halving`, `local`, `random`, `minimise`.
    pub stage: String,
    pub loads: Vec<String>,
    /// The seed of the loads and of the timer.
    pub seed: u32,
    pub state: TrialState,
    /// Why it failed or is invalid.
    pub why: Option<String>,
    pub worst_ns: Option<i64>,
    /// The longest section with interrupts disabled.
    pub irqs_disabled: Option<u64>,
    /// Its bundle, relative to the search directory.
    pub bundle: Option<String>,
    /// The console of a failed trial, relative to the search directory.
    pub console: Option<String>,
}

/// The outcome of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialState {
    /// Measured with its loads.
    Measured,
    /// Measured, but a load did not work: it may need a device or a privilege.
    NoLoad,
    /// Failed: its kernel panicked, hung or ran out of memory.
    Failed,
}

/// A cause of latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HuntCause {
    /// `irqs-disabled`, `preemption-disabled`: a section with interrupts or preemption disabled,
    /// whether or not a sample met it; `not-preempted`: the time from `need_resched` to the call of
    /// `__schedule`; `sample`: the worst sample as a whole.
    pub kind: String,
    /// The function of the section, or the one that took most of the time.
    pub function: String,
    pub longest: u64,
    /// The number of the trial that it is taken from.
    pub trial: u64,
    /// The number of trials in which it reached at least a tenth of the longest.
    pub trials: u64,
    /// The number of the first of these.
    #[serde(default)]
    pub first: u64,
    /// The minimal input that shows it.
    pub least: Least,
    /// The calls around it, outermost first; empty if unknown.
    pub stack: Vec<String>,
}

/// A kernel that panicked, hung or ran out of memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HuntFailure {
    /// `panic`, `hang`, `out-of-memory`, `ended-early`; `other` for failures outside the kernel.
    pub what: String,
    /// The reason in one line.
    pub why: String,
    /// The number of trials that failed so.
    pub trials: u64,
    /// The number of the one with the fewest loads.
    pub trial: u64,
    pub loads: Vec<String>,
    /// Its experiment, relative to the search directory.
    pub file: Option<String>,
    /// Its console, relative to the search directory.
    pub console: Option<String>,
}

/// The minimal input that shows a cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Least {
    pub loads: Vec<String>,
    /// Its measuring time, in its own time.
    pub duration_ns: i64,
    /// The length it shows.
    pub shows: u64,
    /// Whether every simpler input was tried and shows less.
    pub minimal: bool,
    /// The experiment, relative to the search directory.
    pub file: Option<String>,
}

/// Another kernel with the inputs of the causes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Against {
    pub kernel: String,
    pub inputs: u64,
    /// Inputs that were not measured on both kernels.
    pub failed: u64,
    /// The causes on both, the largest difference first.
    pub changes: Vec<CauseChange>,
}

/// A cause on two kernels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CauseChange {
    /// As in [`HuntCause`].
    pub kind: String,
    /// As in [`HuntCause`].
    pub function: String,
    /// The longest on the searched kernel; 0 if not seen.
    pub here: u64,
    pub there: u64,
    /// The searched kernel relative to the other.
    pub change: Changed,
}

/// The change of a cause between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changed {
    /// Only on the searched kernel.
    New,
    Gone,
    /// Longer by more than 10 %.
    Longer,
    /// Shorter by more than 10 %.
    Shorter,
    Same,
}
