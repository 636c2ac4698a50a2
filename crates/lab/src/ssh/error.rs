//! Errors between this system and a remote one.

use std::fmt;
use std::io;
use std::path::Path;

/// Where it went wrong: decides whether trying again makes sense, and the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// What was asked for cannot be: a host that is no name, a binary that does not fit.
    Request,
    /// The program ssh is not here; tests skip on this one alone.
    NoClient,
    /// The host's key is unknown, or another than the known one.
    HostKey,
    /// The host refuses the authentication.
    Denied,
    /// The host does not answer.
    Unreachable,
    /// It answered before, and does no longer.
    Lost,
    /// The run is not on the other system any more.
    Gone,
    /// The other system refuses: no space, no place for programs, not Linux.
    Remote,
    /// This system refuses: no space for the bundle.
    Local,
}

/// An error with all that a person needs, in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SshError {
    pub trouble: Trouble,
    /// Place, cause and remedy; may hold words of the other system.
    pub message: String,
}

impl SshError {
    pub(crate) fn new(trouble: Trouble, message: impl fmt::Display) -> SshError {
        SshError { trouble, message: message.to_string() }
    }
    /// For `map_err`: a file operation on this system.
    pub(crate) fn local(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SshError {
        move |why| {
            SshError::new(Trouble::Local, format!("cannot {action} {}: {why}", path.display()))
        }
    }
    /// Whether it may go away by itself.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.trouble, Trouble::Unreachable | Trouble::Lost)
    }
}
