//! Writing windows while a run goes on.

use super::{DIRECTORY, ENDING, WindowHead, WindowsDocument};
use crate::BundleError;
use crate::writer::{replace, replace_json, sync_tree};
use std::fs;
use std::path::{Path, PathBuf};

/// The windows of a bundle being written.
#[derive(Debug)]
pub struct WindowsWriter {
    directory: PathBuf,
}

impl WindowsWriter {
    /// Makes `windows/` in a bundle, with its document.
    pub fn create(bundle: &Path, document: &WindowsDocument) -> Result<WindowsWriter, BundleError> {
        let directory = bundle.join(DIRECTORY);
        fs::create_dir(&directory).map_err(BundleError::io("create", &directory))?;
        let writer = WindowsWriter { directory };
        writer.renew(document)?;
        Ok(writer)
    }

    /// Replaces the document.
    pub fn renew(&self, document: &WindowsDocument) -> Result<(), BundleError> {
        replace_json(&self.directory.join("windows.json"), document)
    }

    /// Adds window number `number`, whole or not at all: its head, and the records of each of its lanes.
    pub fn put(&self, number: u64, head: &WindowHead, records: &[&[u8]]) -> Result<(), BundleError> {
        let path = self.path(number);
        let bytes = head.encode(records).map_err(|why| BundleError::damaged(&path, why))?;
        replace(&path, &bytes)
    }

    /// Takes a window away whose place a worse one takes.
    pub fn remove(&self, number: u64) -> Result<(), BundleError> {
        let path = self.path(number);
        fs::remove_file(&path).map_err(BundleError::io("remove", &path))
    }

    /// Ends it: the document for good, everything on the disk.
    pub fn finish(self, document: &WindowsDocument) -> Result<(), BundleError> {
        self.renew(document)?;
        sync_tree(&self.directory)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:06}{ENDING}"))
    }
}
