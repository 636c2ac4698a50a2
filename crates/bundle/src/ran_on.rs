//! The target of a run: a virtual machine or another system.

use punctual_core::{MadeOf, Nanos};
use serde::{Deserialize, Serialize};

/// The target of a run, as `bundle.json` and `summary.json` have it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RanOn {
    /// `vm` or `ssh`.
    pub kind: String,
    /// What a person calls it: `6.1-rt in virtual time`, `root@board`.
    pub name: String,
    /// When it was begun, by the clock of the requesting system: a virtual machine's own clock may
    /// show anything.
    pub started: jiff::Timestamp,
    /// How long it took by that clock, with boot and transport.
    pub elapsed: Option<Nanos>,
    /// What it was made of, in order: (`kernel`, `6.1.…`), (`command line`, `…`), (`QEMU`,
    /// `10.0.…`).
    #[serde(default)]
    pub facts: Vec<(String, String)>,
    /// The requested kernel and the one that ran; absent where none was requested by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelEvidence>,
    /// The digests of all repeats, this run's first; empty where it was not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<String>,
    /// The limits of its figures, in sentences to be shown beside every figure.
    #[serde(default)]
    pub limits: Vec<String>,
    /// The files that it was made of, where they are kept to run it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<MadeOf>,
    /// What kept the run there from its end, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl RanOn {
    /// One of which no more is known.
    pub fn new(kind: &str, name: impl Into<String>, started: jiff::Timestamp) -> RanOn {
        RanOn {
            kind: kind.to_owned(),
            name: name.into(),
            started,
            elapsed: None,
            facts: Vec::new(),
            kernel: None,
            repeats: Vec::new(),
            limits: Vec::new(),
            made_of: None,
            failed: None,
        }
    }
}

/// Evidence that the kernel of a target is the requested one.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KernelEvidence {
    /// The requested release, where the experiment names a kernel.
    #[serde(default)]
    pub release: Option<String>,
    /// The release that ran (uname(2)).
    #[serde(default)]
    pub booted: Option<String>,
    /// The requested preemption model (`preempt=`).
    #[serde(default)]
    pub preemption: Option<String>,
    /// The one in force.
    #[serde(default)]
    pub preemption_in_force: Option<String>,
}
