//! The journals of this system.

use crate::exit::Failure;
use punctual_host::files::Root;
use punctual_host::journal::{JournalDirectory, JournalError};
use std::io::ErrorKind;

/// The running system and its journals.
pub fn system_journals() -> (Root, JournalDirectory) {
    (Root::from_system(), JournalDirectory::from_system())
}

/// The error of unusable journals, which prevent any start.
pub fn journal_failure(error: JournalError) -> Failure {
    match &error {
        JournalError::Store { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::refused(format!("{error}: root is needed"))
        }
        JournalError::Store { .. } => Failure::failed(error),
        _ => Failure::refused(error),
    }
}
