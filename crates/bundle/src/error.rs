//! The errors of bundles, each with its place and a remedy.

use std::io;
use std::path::{Path, PathBuf};

/// An error about one file or directory of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The directory exists already.
    #[error(
        "{} exists already: choose another directory with --output, or move it away",
        .0.display()
    )]
    Exists(PathBuf),
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), format_advice(source))]
    Io {
        /// `write`, `read`, `create`, `remove`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// No bundle exists at this place.
    #[error("{} is not a bundle: it has no readable bundle.json ({why})", path.display())]
    NotABundle { path: PathBuf, why: String },
    /// Written by a newer punctual.
    #[error(
        "{} has format version {found}; this punctual reads up to {known}: use a newer one",
        path.display()
    )]
    TooNew {
        path: PathBuf,
        /// The version in the bundle.
        found: u32,
        /// The newest supported version.
        known: u32,
    },
    /// A file of the bundle has invalid content.
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
}

fn format_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (free some space, or choose a directory on another file system with --output)"
        }
        io::ErrorKind::FileTooLarge => {
            " (raise the limit on file sizes, ulimit -f, which it is beyond)"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (choose a directory that you may write with --output)"
        }
        _ => "",
    }
}

impl BundleError {
    pub(crate) fn from_io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::Io { action, path, source }
    }
    pub(crate) fn from_damage(path: &Path, why: impl ToString) -> BundleError {
        BundleError::Damaged { path: path.to_owned(), why: why.to_string() }
    }
    /// Whether the file to be read does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, BundleError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
    /// The result of a read; `None` if the file does not exist.
    pub(crate) fn if_there<T>(read: Result<T, BundleError>) -> Result<Option<T>, BundleError> {
        match read {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }
    /// Whether the file system or the file has reached its size limit: the run can continue without
    /// the rest.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let BundleError::Io { source, .. } = self else { return false };
        matches!(source.kind(), FileTooLarge | StorageFull | QuotaExceeded)
    }
}
