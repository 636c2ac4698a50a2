//! The ends of commands: errors with an exit code.

pub use punctual_bundle::Exit;

use punctual_core::format::escape_unsafe;
use punctual_host::boot::BootError;
use punctual_lab::LabError;
use punctual_plan::Problems;
use std::fmt::Display;
use std::io;

/// An error that ends the command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the command.
    pub exit: Exit,
    /// The error and its remedy.
    pub parts: Vec<ErrorPart>,
}

/// A part of an error.
#[derive(Debug)]
pub enum ErrorPart {
    /// May have several lines. Free of control characters of hostile input.
    Text(String),
    /// The errors in a file.
    Problems(Problems),
}

impl Failure {
    pub fn refused(message: impl Display) -> Failure {
        Failure { exit: Exit::Refused, parts: sanitize_message(message) }
    }
    /// An operation failed.
    pub fn failed(message: impl Display) -> Failure {
        Failure { exit: Exit::Failed, parts: sanitize_message(message) }
    }
    /// The error for a request that the lab refuses as wrong or unavailable; nothing was started.
    pub fn of_lab(why: &LabError) -> Failure {
        match why {
            LabError::Missing(_) | LabError::Request(_) => Failure::refused(why),
            _ => Failure::failed(why),
        }
    }
    /// Renders the error for users.
    pub fn render(&self, colored: bool) -> String {
        let parts = self.parts.iter().map(|part| match part {
            ErrorPart::Text(text) => text.clone(),
            ErrorPart::Problems(problems) => problems.render(colored),
        });
        parts.collect::<Vec<_>>().join("\n")
    }
    /// This failure to write or print a result that is known: the code of its verdict stands.
    pub fn of_result(self, exit: Exit) -> Failure {
        let exit = if exit == Exit::Done { self.exit } else { exit };
        Failure { exit, ..self }
    }
    /// Measuring succeeded, but the evidence is unusable.
    pub fn no_evidence(message: impl Display) -> Failure {
        Failure { exit: Exit::NoEvidence, parts: sanitize_message(message) }
    }
}

/// Makes names and values from outside, which messages contain unchanged until here, harmless.
fn sanitize_message(message: impl Display) -> Vec<ErrorPart> {
    vec![ErrorPart::Text(
        message.to_string().lines().map(escape_unsafe).collect::<Vec<_>>().join("\n"),
    )]
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure { exit: Exit::Refused, parts: vec![ErrorPart::Problems(problems)] }
    }
}

impl From<BootError> for Failure {
    fn from(why: BootError) -> Failure {
        match why {
            BootError::Refused(why) => Failure::refused(why),
            BootError::Failed(why) => Failure::failed(why),
        }
    }
}

impl From<io::Error> for Failure {
    /// Writing the answer failed. A reader that closed the pipe (`punctual show | head`) has
    /// enough.
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { exit: Exit::Done, parts: Vec::new() },
            _ => Failure::failed(format!("cannot write the output: {error}")),
        }
    }
}
