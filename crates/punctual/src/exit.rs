//! How the command ends: the documented exit codes, and errors that carry one.

use punctual_lab::LabError;
use punctual_report::format::plain;
use std::fmt::Display;

/// The exit codes of every subcommand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed while running.
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

/// An error that ends the command, ready to be shown.
#[derive(Debug)]
pub struct Failure {
    /// The exit code that it means.
    pub exit: Exit,
    /// What happened and what to do; may have several lines. Free of control characters of hostile
    /// input.
    pub message: String,
}

impl Failure {
    /// The request was wrong.
    pub fn refused(message: impl Display) -> Failure {
        Failure { exit: Exit::Refused, message: harmless(message) }
    }
    /// Something failed on the way.
    pub fn failed(message: impl Display) -> Failure {
        Failure { exit: Exit::Failed, message: harmless(message) }
    }
    /// What the lab refuses was requested wrongly, or is unavailable here; nothing was started.
    pub fn of_lab(why: &LabError) -> Failure {
        match why {
            LabError::Missing(_) | LabError::Request(_) => Failure::refused(why),
            _ => Failure::failed(why),
        }
    }
    /// It was measured, and the evidence cannot be used.
    pub fn no_evidence(message: impl Display) -> Failure {
        Failure { exit: Exit::NoEvidence, message: harmless(message) }
    }
}

/// Names and values of others stand in messages as they are, until here.
fn harmless(message: impl Display) -> String {
    message.to_string().lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// What a subcommand returns.
pub type Ending = Result<Exit, Failure>;

/// What the help says at its end.
pub const HELP: &str = "Examples:\n  punctual check\n  punctual run examples/quickstart.toml\n  \
                        punctual isolate create 3\n\nExit codes: 0 done; 1 failed while running; \
                        2 the request was wrong, nothing was started; 3 a stated requirement was \
                        not met; 4 measured, but the evidence cannot be used.";
