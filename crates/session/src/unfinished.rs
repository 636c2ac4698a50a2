//! A bundle in which nothing is measured yet.

use std::fs;
use std::path::{Path, PathBuf};

/// Takes the bundle's directory away when it is dropped, unless it is kept before.
pub struct Unfinished(Option<PathBuf>);

impl Unfinished {
    /// The bundle of this directory, which was made just now.
    pub fn of(directory: &Path) -> Unfinished {
        Unfinished(Some(directory.to_owned()))
    }

    /// Something is measured: whatever happens from now on, the bundle stays.
    pub fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(directory) = &self.0 {
            // What cannot be removed was not made by us, or is seen by who looks for it.
            let _ = fs::remove_dir_all(directory);
        }
    }
}
