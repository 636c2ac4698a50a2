//! `windows/`: the events around the worst samples of a run, from the flight recorder.
//!
//! ```text
//! windows/windows.json       the rule for keeping windows, the missed ones, the names of numbers
//!                            in events (see [`WindowsDocument`])
//! windows/000017.window      one window: a sample and the kernel events around it ([`WindowHead`])
//! ```
//!
//! The file of a window appears atomically, and is removed when a worse sample replaces it. Events
//! are records of the kernel recorder (`recording::Encoding::KERNEL`), decoded by
//! `punctual-record`.

mod document;
mod file;
mod reader;
#[cfg(test)]
mod tests;

use crate::BundleError;
use crate::member::Member;
pub use document::{KeptRule, SCHEMA, SeriesWindows, WindowsDocument};
pub use file::{MAGIC, Waited, WindowError, WindowHead, WindowLane};
pub use reader::{SavedWindow, WindowsReader};
use std::path::Path;

pub(crate) const DIRECTORY: &str = crate::member::WINDOWS;
/// The suffix of window files.
pub(crate) const ENDING: &str = ".window";
/// The maximum number of windows opened per bundle; more are damage or an attack.
pub(crate) const MAX_WINDOWS: usize = 1 << 16;

/// The windows of a bundle being written.
#[derive(Debug)]
pub struct WindowsWriter {
    directory: Member,
}

impl WindowsWriter {
    /// Creates `windows/` in a bundle, closed to other users, with its document.
    pub fn create(bundle: &Path, document: &WindowsDocument) -> Result<WindowsWriter, BundleError> {
        let directory = Member::from_root(bundle).join(DIRECTORY).to_private();
        directory.create_directory()?;
        let writer = WindowsWriter { directory };
        writer.renew_document(document)?;
        Ok(writer)
    }

    pub fn renew_document(&self, document: &WindowsDocument) -> Result<(), BundleError> {
        self.directory.join("windows.json").replace_json(document)
    }

    /// Adds window number `number` atomically: its head, and the records of each of its lanes.
    pub fn add_window(
        &self,
        number: u64,
        head: &WindowHead,
        records: &[&[u8]],
    ) -> Result<(), BundleError> {
        let file = self.window_file(number);
        let bytes =
            head.encode(records).map_err(|why| BundleError::from_damage(file.path(), why))?;
        file.replace_bytes(&bytes)
    }

    /// Removes a window that a worse one replaces.
    pub fn remove(&self, number: u64) -> Result<(), BundleError> {
        self.window_file(number).remove()
    }

    /// Ends it: writes the final document and syncs everything to disk.
    pub fn finish(&self, document: &WindowsDocument) -> Result<(), BundleError> {
        self.renew_document(document)?;
        self.directory.sync_to_disk()
    }

    fn window_file(&self, number: u64) -> Member {
        self.directory.join(format!("{number:06}{ENDING}"))
    }
}
