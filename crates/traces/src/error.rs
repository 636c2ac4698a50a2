//! Why a trace cannot be read.

use crate::TraceFormat;
use std::io;

/// Why a trace cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace: {0}")]
    Read(#[from] io::Error),
    /// No reader knows it.
    #[error(
        "this is no trace that is known here: trace.dat, perf.data, Perfetto, directories of LTTng \
         and text of ftrace are{hint}"
    )]
    Unrecognized {
        /// What it may be instead.
        hint: String,
    },
    /// A format, or a version of it, that is known and not read.
    #[error("{0}")]
    Unsupported(String),
    /// What declares the events of a trace in CTF is not sound, where and why.
    #[error("the metadata of this trace in CTF cannot be read: {0}")]
    Metadata(String),
    /// It is read from its end and middle too, which a pipe does not allow.
    #[error("a {} file cannot be read from a pipe: save it first", .0.word())]
    NotStreamable(TraceFormat),
    /// The file contradicts itself, where nothing can be read without that part.
    #[error("the {} file is damaged at byte {at}: {why}", .format.word())]
    Damaged {
        /// What it was read as.
        format: TraceFormat,
        at: u64,
        why: String,
    },
}
