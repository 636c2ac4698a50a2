//! Errors before and around a guest. The end of a guest itself is an
//! [`Outcome`](crate::GuestOutcome).

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A prerequisite that the machine lacks: a program, a package, a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPrerequisite {
    /// The missing item, with the reason if known.
    pub what: String,
    /// The remedy, usually a command.
    pub how_to_install: String,
}

impl fmt::Display for MissingPrerequisite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (to fix: {})", self.what, self.how_to_install)
    }
}

/// Why no guest was run, or why its results are unreadable.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A missing item that can be installed. Tests skip on this error only.
    #[error("this machine lacks {0}")]
    Missing(MissingPrerequisite),
    /// The requested guest is impossible.
    #[error("{0}")]
    Request(String),
    /// A file operation on this machine failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `create`, …
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A file is invalid: an ELF file, a module, a results archive.
    #[error("{}: {why}", path.display())]
    Malformed {
        path: PathBuf,
        /// The error in the file.
        why: String,
    },
}

impl LabError {
    /// Shorthand for [`LabError::Missing`].
    pub(crate) fn missing(what: impl Into<String>, how_to_install: impl Into<String>) -> LabError {
        LabError::Missing(MissingPrerequisite {
            what: what.into(),
            how_to_install: how_to_install.into(),
        })
    }
    /// For `map_err`: names the action and the path of a failed file operation.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::Io { action, path, source }
    }
    /// Shorthand for [`LabError::Malformed`].
    pub(crate) fn malformed(path: impl Into<PathBuf>, why: impl Into<String>) -> LabError {
        LabError::Malformed { path: path.into(), why: why.into() }
    }
}
