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
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use block::{BlockHeader, Encoding, MAGIC};
use punctual_core::event::{Names, Recorded};
pub use reader::{BlockPlace, RecordingReader, SourceBlocks};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use writer::{Appended, LaneWriter, RecordingWriter};

pub(crate) const DIRECTORY: &str = crate::member::RECORDING;
/// The suffix of segment files.
pub(crate) const SEGMENT: &str = ".events";

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-recording/1";

/// `recording.json`. Written before the first event, and updated before the first event of a new
/// source or name and about once a second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecordingDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Whether the recorder finished; if not, the counts in `recorded` are as of the last update.
    pub complete: bool,
    /// The events kept when the size limit is reached.
    pub keeps: Keeps,
    /// The recorded events, their sources and losses. Blocks refer to sources by index in this
    /// list.
    pub recorded: Recorded,
    /// The names of the numbers in events.
    pub names: Names,
    /// The data that recorders need to decode their own encodings, by the name of the recorder.
    #[serde(default)]
    pub decoding: BTreeMap<String, serde_json::Value>,
}

/// The events that a recording of bounded size keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeps {
    /// All events; the recording ends at its limit.
    #[default]
    All,
    /// The newest: the oldest segments are removed.
    Newest,
}

impl RecordingDocument {
    /// The document at the start of a recording.
    pub fn new(keeps: Keeps, recorded: Recorded, names: Names) -> RecordingDocument {
        let schema = SCHEMA.to_owned();
        RecordingDocument {
            schema,
            complete: false,
            keeps,
            recorded,
            names,
            decoding: BTreeMap::new(),
        }
    }
}
