//! `recording.json`: describes the recording.

use punctual_core::event::{Names, Recorded};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
