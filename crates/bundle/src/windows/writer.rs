//! Writes windows during a run.

use super::{DIRECTORY, ENDING, WindowHead, WindowsDocument};
use crate::BundleError;
use crate::member::Member;
use std::path::Path;

/// The windows of a bundle being written.
#[derive(Debug)]
pub struct WindowsWriter {
    directory: Member,
}

impl WindowsWriter {
    /// Creates `windows/` in a bundle, closed to other users, with its document.
    pub fn create(bundle: &Path, document: &WindowsDocument) -> Result<WindowsWriter, BundleError> {
        let directory = Member::root(bundle).join(DIRECTORY).private();
        directory.create_directory()?;
        let writer = WindowsWriter { directory };
        writer.renew(document)?;
        Ok(writer)
    }

    pub fn renew(&self, document: &WindowsDocument) -> Result<(), BundleError> {
        self.directory.join("windows.json").replace_json(document)
    }

    /// Adds window number `number` atomically: its head, and the records of each of its lanes.
    pub fn put(
        &self,
        number: u64,
        head: &WindowHead,
        records: &[&[u8]],
    ) -> Result<(), BundleError> {
        let file = self.file(number);
        let bytes = head.encode(records).map_err(|why| BundleError::damaged(file.path(), why))?;
        file.replace(&bytes)
    }

    /// Removes a window that a worse one replaces.
    pub fn remove(&self, number: u64) -> Result<(), BundleError> {
        self.file(number).remove()
    }

    /// Ends it: writes the final document and syncs everything to disk.
    pub fn finish(self, document: &WindowsDocument) -> Result<(), BundleError> {
        self.renew(document)?;
        self.directory.sync()
    }

    fn file(&self, number: u64) -> Member {
        self.directory.join(format!("{number:06}{ENDING}"))
    }
}
