//! How what was asked for ends: the documented exit codes.

use crate::judged::VerdictWord;
use serde::{Deserialize, Serialize};

/// The exit codes of every subcommand; bundles hold that of their run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// The request was wrong; nothing was started.
    Refused = 2,
    /// A stated requirement was not met.
    NotMet = 3,
    /// Measured, but the evidence cannot be used.
    NoEvidence = 4,
    /// To `git bisect run` alone: this commit cannot be tested.
    BisectSkip = 125,
    /// To `git bisect run` alone: end the bisection.
    BisectStop = 128,
}

impl Exit {
    /// What a verdict means by itself, without reasons of another kind: `None` is *none asked*.
    pub fn of_word(word: Option<VerdictWord>) -> Exit {
        match word {
            Some(VerdictWord::NotMet) => Exit::NotMet,
            Some(VerdictWord::Undecided | VerdictWord::Invalid) => Exit::NoEvidence,
            Some(VerdictWord::Met) | None => Exit::Done,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandEnd {
    /// As a shell reports it: its exit code, or 128 + the signal's number.
    pub code: u8,
    /// Whether it did so before it was asked to.
    pub by_itself: bool,
}
