//! `windows/`: what happened around the worst samples of a run, as the flight recorder gave it.
//!
//! ```text
//! windows/windows.json       by what rule windows were kept, what was missed, what numbers in
//!                            events are called (see [`WindowsDocument`])
//! windows/000017.window      one window: a sample and the kernel events around it ([`WindowHead`])
//! ```
//!
//! A window's file appears under its name whole, and goes when a worse sample takes its place.
//! Events are records of the kernel recorder (`recording::Encoding::KERNEL`); reading them is
//! `punctual-record`'s business.

mod document;
mod file;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use document::{KeptRule, SCHEMA, SeriesWindows, WindowsDocument};
pub use file::{Lane, MAGIC, MAX_RECORDS, Waited, WindowError, WindowHead};
pub use reader::{SavedWindow, Windows};
pub use writer::WindowsWriter;

/// The directory in a bundle.
pub(crate) const DIRECTORY: &str = "windows";
/// The ending of the names of windows.
pub(crate) const ENDING: &str = ".window";
/// So many windows of a bundle are opened: what more there are is damage or an attack.
pub const MAX_WINDOWS: usize = 1 << 16;
