//! `recording.json`: what the recording is of.

use punctual_core::event::{Names, Recorded};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of this shape; additions keep it, changes raise it.
pub const SCHEMA: &str = "punctual-recording/1";

/// `recording.json`. Written before the first event, renewed before the first event of a source or
/// name that it did not have, and about once a second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecordingDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Whether the recorder came to its end; if not, the counts in `recorded` are as of the last
    /// renewal.
    pub complete: bool,
    /// What becomes of events when the bound on the size is reached.
    pub keeps: Keeps,
    /// What was recorded, from where, and what was lost. Blocks name sources by their place in its
    /// list.
    pub recorded: Recorded,
    /// What the numbers in events are called.
    pub names: Names,
    /// What recorders need for reading their own encodings, by the name of the recorder.
    #[serde(default)]
    pub decoding: BTreeMap<String, serde_json::Value>,
}

/// What a recording of bounded size keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keeps {
    /// Everything; it ends where its bound is reached.
    #[default]
    All,
    /// The newest: the oldest segments go.
    Newest,
}

impl RecordingDocument {
    /// Of a recording that begins.
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
