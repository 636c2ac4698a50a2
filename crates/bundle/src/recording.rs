//! `recording/`: kernel and application events, as received from their recorders.
//!
//! ```text
//! recording/recording.json     sources, coverage, names of its numbers ([`RecordingDocument`])
//! recording/00-000000.events   segments: blocks of raw records, appended; `00`: the writing thread
//! ```
//!
//! Nothing is decoded during recording: a block has the content of a recorder's ring, with its
//! source and encoding; the recorders define the encodings (`punctual-record`). A block also has
//! the numbers of earlier events of its source and of those the source had lost by then, so that
//! missing events are counted whatever happens to the files.

mod block;
mod document;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use block::{BlockHeader, Encoding, MAGIC};
pub(crate) use block::MAX_PAYLOAD;
pub use document::{Keeps, RecordingDocument, SCHEMA};
pub use reader::{BlockPlace, RecordingReader, SourceBlocks};
pub use writer::{Appended, LaneWriter, RecordingWriter};

pub(crate) const DIRECTORY: &str = crate::member::RECORDING;
/// The suffix of segment files.
pub(crate) const SEGMENT: &str = ".events";
