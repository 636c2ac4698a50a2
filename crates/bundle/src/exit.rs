//! The documented exit codes.

use crate::judged::VerdictWord;
use punctual_core::Nanos;
use serde::{Deserialize, Serialize};

/// The exit codes of every subcommand. Bundles store that of their run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// The request was invalid; nothing was started.
    Refused = 2,
    /// A stated requirement was not met.
    NotMet = 3,
    /// Measured, but the evidence is unusable.
    NoEvidence = 4,
}

impl Exit {
    /// The exit code of a verdict alone, without other reasons: `None` is *none asked*.
    pub fn of_word(word: Option<VerdictWord>) -> Exit {
        match word {
            Some(VerdictWord::NotMet) => Exit::NotMet,
            Some(VerdictWord::Undecided | VerdictWord::Invalid) => Exit::NoEvidence,
            Some(VerdictWord::Met) | None => Exit::Done,
        }
    }
}

/// The end of a program, as of wait(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HowEnded {
    Signal(i32),
    Status(i32),
}

impl HowEnded {
    /// Decodes the kernel's status.
    pub fn of_wait(status: u32) -> HowEnded {
        match status & 0x7f {
            0 => HowEnded::Status((status >> 8 & 0xff) as i32),
            signal => HowEnded::Signal(signal as i32),
        }
    }

    pub fn is_success(self) -> bool {
        self == HowEnded::Status(0)
    }
}

/// The end of a program that failed or ended early while it was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramEnd {
    pub program: String,
    pub how: HowEnded,
    pub ran: Nanos,
    /// The requested measuring time; absent if the program determined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Nanos>,
    /// The kernel killed tasks for lack of memory meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_memory: bool,
}

impl ProgramEnd {
    pub fn is_early(&self) -> bool {
        self.asked.is_some_and(|asked| self.ran < asked)
    }
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandEnd {
    /// The code as a shell reports it: its exit code, or 128 + the signal's number.
    pub code: u8,
    /// Whether it ended before it was stopped.
    pub by_itself: bool,
}
