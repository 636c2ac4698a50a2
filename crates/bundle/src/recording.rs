//! `recording/`: events of the kernel and of applications, as their recorders gave them.
//!
//! ```text
//! recording/recording.json     what it is of, what its numbers are called ([`RecordingDocument`])
//! recording/00-000000.events   segments: blocks of raw records, appended; `00`: which thread wrote
//! ```
//!
//! While recording, nothing is decoded: a block holds what a recorder's ring held. It records of
//! which source and in which encoding it is; what the encodings are is the recorders' business
//! (`punctual-record`). A block also records how many events of its source stood before it and how
//! many its source had lost by then, so that whatever happens to the files, what is missing is
//! counted.

mod block;
mod document;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use block::{Block, Encoding, MAGIC, MAX_PAYLOAD};
pub use document::{Keeps, RecordingDocument, SCHEMA};
pub use reader::{BlockPlace, Recording, SourceBlocks};
pub use writer::{Appended, LaneWriter, RecordingWriter};

/// The directory in a bundle.
pub(crate) const DIRECTORY: &str = "recording";
/// The ending of the names of segments.
pub(crate) const SEGMENT: &str = ".events";
