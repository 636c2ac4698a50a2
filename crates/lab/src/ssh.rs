//! Other systems, reached by ssh(1): punctual is copied there, measures in its own directory,
//! returns the bundle, and removes all its files.
//!
//! 1. [`Destination`]: an address that cannot be mistaken for options or commands.
//! 2. [`Connection`]: the system's own ssh, which checks the host's key and authenticates once; the
//!    remote system ([`RemoteSystem`]).
//! 3. A suitable program is sent, verified, and supervises its own run there ([`agent`]),
//!    independent of connections.
//! 4. [`run`] and [`resume`] follow it, reconnect, and receive the bundle, without trust in the
//!    received data.
//! 5. [`RemoteProgram`] runs short commands of it there: boots.
//! 6. [`leftovers`] lists and removes the files of runs without an owner.

pub mod agent;
mod binary;
mod client;
mod destination;
mod files;
mod follow;
mod remote_program;
mod staging;
mod stderr;
mod wire;

pub use client::{Connection, RemoteSystem};
pub use destination::Destination;
pub(crate) use files::digest_of;
pub use follow::{
    RemoteEnd, RemoteJob, RemoteResult, RemoteWatch, Timeouts, resume_run, run_remote,
};
pub use remote_program::{PAUSE, RemoteAnswer, RemoteProgram, boot_id, restart_system};
pub use staging::{Leftover, list_leftovers, remove_run};
use std::path::Path;
use std::{fmt, io};

/// The place of an error: decides whether to retry, and the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorPlace {
    /// The request is impossible: an invalid host name, an unsuitable binary.
    Request,
    /// This system has no ssh; tests skip on this error only.
    NoClient,
    /// The host's key is unknown, or not the known one.
    HostKey,
    /// The host refuses the authentication.
    Denied,
    /// The host does not answer.
    Unreachable,
    /// The other system answered before, and no longer does.
    Lost,
    /// The run no longer exists on the other system.
    Gone,
    /// The other system refuses: no space, no place for programs, not Linux.
    Remote,
    /// This system refuses: no space for the bundle.
    Local,
}

/// An error with all information for the user, in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SshError {
    pub trouble: ErrorPlace,
    /// Place, cause and remedy; may contain words of the other system.
    pub message: String,
    /// Whether a run continues there, to be fetched.
    pub is_run_left: bool,
}

impl SshError {
    pub(crate) fn new(trouble: ErrorPlace, message: impl fmt::Display) -> SshError {
        SshError { trouble, message: message.to_string(), is_run_left: false }
    }
    /// For `map_err`: a file operation on this system.
    pub(crate) fn local(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SshError {
        move |why| {
            SshError::new(ErrorPlace::Local, format!("cannot {action} {}: {why}", path.display()))
        }
    }
    /// Whether the trouble may resolve by itself.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.trouble, ErrorPlace::Unreachable | ErrorPlace::Lost)
    }
}
