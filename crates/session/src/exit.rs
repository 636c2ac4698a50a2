//! How what was asked for ends: errors that carry an exit code.

pub use punctual_bundle::Exit;

use punctual_lab::LabError;
use punctual_plan::Problems;
use punctual_report::format::plain;
use std::fmt::Display;
use std::io;

/// An error that ends the command.
#[derive(Debug)]
pub struct Failure {
    /// The exit code that it means.
    pub exit: Exit,
    /// What happened and what to do.
    pub parts: Vec<Part>,
}

/// A part of an error.
#[derive(Debug)]
pub enum Part {
    /// May have several lines. Free of control characters of hostile input.
    Text(String),
    /// What is wrong in a file.
    Problems(Problems),
}

impl Failure {
    pub fn refused(message: impl Display) -> Failure {
        Failure { exit: Exit::Refused, parts: harmless(message) }
    }
    /// Something failed on the way.
    pub fn failed(message: impl Display) -> Failure {
        Failure { exit: Exit::Failed, parts: harmless(message) }
    }
    /// What the lab refuses was requested wrongly, or is unavailable here; nothing was started.
    pub fn of_lab(why: &LabError) -> Failure {
        match why {
            LabError::Missing(_) | LabError::Request(_) => Failure::refused(why),
            _ => Failure::failed(why),
        }
    }
    /// As it is shown to a person.
    pub fn render(&self, colored: bool) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Problems(problems) => problems.render(colored),
        });
        parts.collect::<Vec<_>>().join("\n")
    }
    /// This failure to write or print a result that is known: the code of its verdict stands.
    pub fn of_result(self, exit: Exit) -> Failure {
        let exit = if exit == Exit::Done { self.exit } else { exit };
        Failure { exit, ..self }
    }
    /// It was measured, and the evidence cannot be used.
    pub fn no_evidence(message: impl Display) -> Failure {
        Failure { exit: Exit::NoEvidence, parts: harmless(message) }
    }
}

/// Names and values of others stand in messages as they are, until here.
fn harmless(message: impl Display) -> Vec<Part> {
    vec![Part::Text(message.to_string().lines().map(plain).collect::<Vec<_>>().join("\n"))]
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure { exit: Exit::Refused, parts: vec![Part::Problems(problems)] }
    }
}

impl From<io::Error> for Failure {
    /// Writing the answer failed. A reader that went away (`punctual show | head`) has what it
    /// wanted.
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { exit: Exit::Done, parts: Vec::new() },
            _ => Failure::failed(format!("cannot write the output: {error}")),
        }
    }
}
