//! The words of verdicts and of validity proofs.

use serde::{Deserialize, Serialize};

/// The verdict on a requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    Met,
    NotMet,
    /// The evidence does not decide.
    Undecided,
    /// The measurement is not as requested: a proof of validity fails.
    Invalid,
}

impl VerdictWord {
    pub const ALL: [VerdictWord; 4] =
        [VerdictWord::Met, VerdictWord::NotMet, VerdictWord::Undecided, VerdictWord::Invalid];

    /// The gravest of several verdicts. *Not met* outweighs all: it was seen in samples measured as
    /// requested. *Invalid* outweighs *undecided*: more samples would not help.
    pub fn gravest_verdict(all: impl IntoIterator<Item = VerdictWord>) -> Option<VerdictWord> {
        all.into_iter().max_by_key(|verdict| verdict.gravity_rank())
    }
    /// Its spelling in JSON.
    pub fn json_word(self) -> &'static str {
        match self {
            VerdictWord::Met => "met",
            VerdictWord::NotMet => "not-met",
            VerdictWord::Undecided => "undecided",
            VerdictWord::Invalid => "invalid",
        }
    }
    /// Its rank in that order.
    pub fn gravity_rank(self) -> u8 {
        match self {
            VerdictWord::Met => 0,
            VerdictWord::Undecided => 1,
            VerdictWord::Invalid => 2,
            VerdictWord::NotMet => 3,
        }
    }
}

/// A property proved of a measurement. docs/reference/validity.md describes how each proof is
/// obtained.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofWord {
    /// The kernel is the requested one.
    Kernel,
    Recorder,
    /// Policy and priority are the requested ones before, during and after the phase.
    Scheduling,
    Affinity,
    Memory,
    /// The clocks are usable.
    Clock,
    /// The partition was in force as requested.
    Isolation,
    /// The fixed settings of the CPUs were in force.
    Settings,
    /// A load was present and worked.
    Load,
    Others,
    /// All due samples exist.
    Samples,
    Throttling,
    /// punctual itself ran on time.
    Controller,
}

impl ProofWord {
    /// Its spelling in JSON.
    pub fn json_word(self) -> &'static str {
        match self {
            ProofWord::Kernel => "kernel",
            ProofWord::Recorder => "recorder",
            ProofWord::Scheduling => "scheduling",
            ProofWord::Affinity => "affinity",
            ProofWord::Memory => "memory",
            ProofWord::Clock => "clock",
            ProofWord::Isolation => "isolation",
            ProofWord::Settings => "settings",
            ProofWord::Load => "load",
            ProofWord::Others => "others",
            ProofWord::Samples => "samples",
            ProofWord::Throttling => "throttling",
            ProofWord::Controller => "controller",
        }
    }
}
