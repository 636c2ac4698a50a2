//! Counts of the steps of programs that the compiler put points into.

use punctual_core::Finding;
use std::collections::BTreeMap;

/// Counts by source file. Names and paths are untrusted: escape them for output.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepCounts {
    /// By their paths at compile time.
    pub files: BTreeMap<String, FileSteps>,
    pub findings: Vec<Finding>,
}

/// A source file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FileSteps {
    /// How often each function was entered, by its line and name.
    pub functions: BTreeMap<(u64, String), u64>,
    /// The lines with code.
    pub lines: BTreeMap<u64, LineSteps>,
}

/// A line with code.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LineSteps {
    /// How often each step that begins at it ran, in the order of their addresses.
    pub steps: Vec<u64>,
    /// How often the step before its code in the line table ran.
    pub before: u64,
}

impl LineSteps {
    /// Whether no step begins at it: what is known of it follows from the line table.
    pub fn is_derived(&self) -> bool {
        self.steps.is_empty()
    }
    /// How often it ran: as its most frequent step, or the one that its code follows.
    pub fn run_count(&self) -> u64 {
        self.steps.iter().copied().max().unwrap_or_default().max(self.before)
    }
}
