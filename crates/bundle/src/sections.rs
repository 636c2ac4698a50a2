//! What `punctual sections` prints with `--json`. Lengths are in instructions of the guest.

use crate::exact::Sections;
use crate::hunt::Required;
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of [`SectionsDocument`].
pub const SECTIONS_SCHEMA: &str = "punctual-sections/1";

/// The longest sections of a kernel that are not preemptible, as far as a run reached them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SectionsDocument {
    /// [`SECTIONS_SCHEMA`].
    pub schema: String,
    pub kernel: String,
    /// The preemption model in force: `none`, `voluntary`, `full`, `lazy`, `real-time`; none where
    /// it is not known.
    pub preemption: Option<String>,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
    pub run: SectionsRun,
    /// Instructions of the whole run, with boot and preparation.
    pub instructions: u64,
    /// Those of them in which sections were looked for.
    pub measured: u64,
    /// What was found.
    #[serde(flatten)]
    pub sections: Sections,
    /// Requirements on the longest of all, with their verdicts.
    pub required: Vec<Required>,
    pub findings: Vec<Finding>,
}

/// What ran while sections were looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SectionsRun {
    /// A command in a guest, from its start to its end.
    Command { command: Vec<String>, status: Option<i32> },
    /// The boot of a guest, from the first instruction until it is switched off.
    Boot,
    /// A measurement, from its first sample to its last.
    Measurement { digest: String },
}

impl SectionsDocument {
    /// The longest of all, in instructions.
    pub fn longest(&self) -> Option<u64> {
        let of = &self.sections;
        let all = of.irqs_disabled.iter().chain(&of.preemption_disabled);
        all.chain(&of.not_preempted).map(|section| section.longest).max()
    }
}
