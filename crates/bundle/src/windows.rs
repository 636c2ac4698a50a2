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
mod writer;

pub use document::{KeptRule, SCHEMA, SeriesWindows, WindowsDocument};
pub use file::{MAGIC, Waited, WindowError, WindowHead, WindowLane};
pub(crate) use file::MAX_RECORDS;
pub use reader::{SavedWindow, WindowsReader};
pub use writer::WindowsWriter;

pub(crate) const DIRECTORY: &str = crate::member::WINDOWS;
/// The suffix of window files.
pub(crate) const ENDING: &str = ".window";
/// The maximum number of windows opened per bundle; more are damage or an attack.
pub(crate) const MAX_WINDOWS: usize = 1 << 16;
