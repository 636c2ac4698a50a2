//! Why a trace cannot be read.

use crate::TraceFormat;
use std::io;

/// Why a trace cannot be read, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is unreadable.
    #[error("cannot read the trace: {0}")]
    Read(#[from] io::Error),
    /// The format is not recognised.
    #[error(
        "unknown format of a trace: known are trace.dat, perf.data, Perfetto, directories of LTTng \
         and text of ftrace{hint}"
    )]
    Unrecognized {
        /// A guess at what the file is instead.
        hint: String,
    },
    /// A known format, or a version of one, that is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// The event declarations of a CTF trace are invalid: position and reason.
    #[error("the metadata of this trace in CTF cannot be read: {0}")]
    Metadata(String),
    /// The format needs random access, which a pipe does not allow.
    #[error("a {} file cannot be read from a pipe: save it first", .0.word())]
    NotStreamable(TraceFormat),
    /// The file is inconsistent in a part that everything else needs.
    #[error("the {} file is damaged at byte {at}: {why}", .format.word())]
    Damaged {
        /// The format that it was read as.
        format: TraceFormat,
        at: u64,
        why: String,
    },
}
