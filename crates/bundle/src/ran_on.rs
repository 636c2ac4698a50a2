//! Where a run took place that was not done by the process that was asked for it: a virtual machine, another system.

use punctual_core::Nanos;
use serde::{Deserialize, Serialize};

/// The target of a run, as `bundle.json` and `summary.json` have it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RanOn {
    /// `vm` or `ssh`.
    pub kind: String,
    /// What a person calls it: `6.1-rt in virtual time`, `root@board`.
    pub name: String,
    /// When it was begun, by the clock of the system that asked: a virtual machine's own clock may say anything.
    pub started: jiff::Timestamp,
    /// How long it took by that clock, with boot and transport.
    pub elapsed: Option<Nanos>,
    /// What it was made of, in order: (`kernel`, `6.1.…`), (`command line`, `…`), (`QEMU`, `10.0.…`).
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// The kernel that was asked for and the one that ran; absent where none was asked for by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelEvidence>,
    /// The digests of all repeats, this run's first; empty where it was not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<String>,
    /// What figures from there do not say, in sentences to be shown beside every figure.
    #[serde(default)]
    pub limits: Vec<String>,
}

/// What shows that the kernel of a target is the one that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KernelEvidence {
    /// The release that was asked for, where the experiment names a kernel.
    #[serde(default)]
    pub release: Option<String>,
    /// The release that ran (uname(2)).
    #[serde(default)]
    pub booted: Option<String>,
    /// The preemption model that was asked for (`preempt=`).
    #[serde(default)]
    pub preemption: Option<String>,
    /// The one in force.
    #[serde(default)]
    pub preemption_in_force: Option<String>,
}
