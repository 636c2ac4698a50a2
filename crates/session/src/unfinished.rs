//! A bundle without any measurement yet.

use std::fs;
use std::path::{Path, PathBuf};

/// Removes the bundle's directory when dropped, unless it is kept before.
pub struct UnfinishedBundle(Option<PathBuf>);

impl UnfinishedBundle {
    /// The bundle of this new directory.
    pub fn from_directory(directory: &Path) -> UnfinishedBundle {
        UnfinishedBundle(Some(directory.to_owned()))
    }

    /// Keeps the bundle in any case: measuring has begun.
    pub fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for UnfinishedBundle {
    fn drop(&mut self) {
        if let Some(directory) = &self.0 {
            // A file that cannot be removed is not ours, or the user will see it.
            let _ = fs::remove_dir_all(directory);
        }
    }
}
