//! The document of `punctual sections --json`. Lengths are in instructions of the guest.

use crate::exact::LongestSections;
use crate::summary::VerdictWord;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of [`SectionsDocument`].
pub const SECTIONS_SCHEMA: &str = "punctual-sections/1";

/// The longest non-preemptible sections of a kernel that a run reached.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SectionsDocument {
    /// [`SECTIONS_SCHEMA`].
    pub schema: String,
    pub kernel: String,
    /// The preemption model in force: `none`, `voluntary`, `full`, `lazy`, `real-time`; none if
    /// unknown.
    pub preemption: Option<String>,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    pub run: SectionsRun,
    /// Instructions of the whole run, including boot and preparation.
    pub instructions: u64,
    /// Instructions that were searched for sections.
    pub measured: u64,
    /// The sections found.
    #[serde(flatten)]
    pub sections: LongestSections,
    /// Requirements on the longest of all, with verdicts.
    pub required: Vec<Required>,
    pub findings: Vec<Finding>,
}

/// The workload that was searched for sections.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SectionsRun {
    /// A command in a guest, from its start to its end.
    Command { command: Vec<String>, status: Option<i32> },
    /// The boot of a guest, from the first instruction until power-off.
    Boot,
    /// A measurement, from its first sample to its last.
    Measurement { digest: String },
}

impl SectionsDocument {
    /// The longest of all, in instructions.
    pub fn longest_section(&self) -> Option<u64> {
        let sections = &self.sections;
        let disabled_sections = sections.irqs_disabled.iter().chain(&sections.preemption_disabled);
        disabled_sections.chain(&sections.not_preempted).map(|section| section.longest).max()
    }

    /// All requirements together; `None` where nothing was required.
    pub fn overall_verdict(&self) -> Option<VerdictWord> {
        VerdictWord::gravest_verdict(self.required.iter().map(|required| required.verdict))
    }
}

/// A requirement on the longest of all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Required {
    pub requirement: String,
    /// Whether it holds. That nothing longer was found proves no bound.
    pub verdict: VerdictWord,
    /// The longest of all; none if nothing was measured.
    pub longest: Option<u64>,
}
