//! The target of a run: a virtual machine or another system.

use punctual_core::{MadeOf, Nanos};
use serde::{Deserialize, Serialize};

/// The target of a run, as stored in `bundle.json` and `summary.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct RanOn {
    /// `vm` or `ssh`.
    pub kind: String,
    /// The displayed name: `6.1-rt in virtual time`, `root@board`.
    pub name: String,
    /// When it began by the clock of the requesting system, as the clock of a virtual machine may
    /// show anything.
    pub started: jiff::Timestamp,
    /// The duration by that clock, including boot and transport.
    pub elapsed: Option<Nanos>,
    /// Its components in order: (`kernel`, `6.1.…`), (`command line`, `…`), (`QEMU`, `10.0.…`).
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// The requested kernel and the one that ran; absent unless requested by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelEvidence>,
    /// The digests of all repetitions, this run's first; empty without repetition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<String>,
    /// The limits of its figures, in sentences shown beside every figure.
    #[serde(default)]
    pub limits: Vec<String>,
    /// The files used, if they are kept for another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<MadeOf>,
    /// The failure that kept the run on the target from its end, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl RanOn {
    /// A target of which only this is known.
    pub fn new(kind: &str, name: impl Into<String>, started: jiff::Timestamp) -> RanOn {
        RanOn { kind: kind.to_owned(), name: name.into(), started, ..RanOn::default() }
    }
}

/// Evidence that the kernel of a target is the requested one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KernelEvidence {
    /// The requested release, if the experiment names a kernel.
    #[serde(default)]
    pub release: Option<String>,
    /// The release that ran (uname(2)).
    #[serde(default)]
    pub booted: Option<String>,
    /// The requested preemption model (`preempt=`).
    #[serde(default)]
    pub preemption: Option<String>,
    /// The preemption model in force.
    #[serde(default)]
    pub preemption_in_force: Option<String>,
}
