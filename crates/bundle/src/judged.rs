//! The words of verdicts, and of what is proved of a measurement.

use serde::{Deserialize, Serialize};

/// What became of a requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    Met,
    NotMet,
    /// The evidence does not decide.
    Undecided,
    /// What was measured is not what was requested: a proof of validity fails.
    Invalid,
}

impl VerdictWord {
    pub const ALL: [VerdictWord; 4] =
        [VerdictWord::Met, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Invalid];

    /// Several verdicts together are the gravest of them. What is not met outweighs all: it was
    /// seen in samples that were measured as asked, whatever else was not. What is invalid
    /// outweighs what is undecided: more samples would not help.
    pub fn gravest(all: impl IntoIterator<Item = VerdictWord>) -> Option<VerdictWord> {
        all.into_iter().max_by_key(|verdict| verdict.gravity())
    }
    /// As it is written in JSON.
    pub fn word(self) -> &'static str {
        match self {
            VerdictWord::Met => "met",
            VerdictWord::NotMet => "not-met",
            VerdictWord::Undecided => "undecided",
            VerdictWord::Invalid => "invalid",
        }
    }
    /// Its place in that order.
    pub fn gravity(self) -> u8 {
        match self {
            VerdictWord::Met => 0,
            VerdictWord::Undecided => 1,
            VerdictWord::Invalid => 2,
            VerdictWord::NotMet => 3,
        }
    }
}

/// What is proved of a measurement. docs/reference/validity.md describes how each proof is
/// obtained.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofWord {
    /// The kernel is the requested one.
    Kernel,
    Recorder,
    /// Policy and priority are the requested ones, before, during and after.
    Scheduling,
    Affinity,
    Memory,
    /// The clocks can be used.
    Clock,
    /// The partition was in force as requested.
    Isolation,
    /// A load was there and worked.
    Load,
    Others,
    /// There are as many samples as were due.
    Samples,
    Throttling,
    /// punctual itself ran when it was to.
    Controller,
}

impl ProofWord {
    /// As it is written in JSON.
    pub fn word(self) -> &'static str {
        match self {
            ProofWord::Kernel => "kernel",
            ProofWord::Recorder => "recorder",
            ProofWord::Scheduling => "scheduling",
            ProofWord::Affinity => "affinity",
            ProofWord::Memory => "memory",
            ProofWord::Clock => "clock",
            ProofWord::Isolation => "isolation",
            ProofWord::Load => "load",
            ProofWord::Others => "others",
            ProofWord::Samples => "samples",
            ProofWord::Throttling => "throttling",
            ProofWord::Controller => "controller",
        }
    }
}
