//! The missing parts of a trace or recording that may hide a sample.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A missing part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "missing", rename_all = "kebab-case")]
pub enum Missing {
    /// The end: it breaks off.
    End { why: String },
    /// Events lost by its recorder. `at_least`: they are not counted everywhere.
    Lost {
        count: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
    },
    /// Unreadable lines or records.
    Unreadable { count: u64 },
    /// Dropped events that are older than those before them.
    OutOfOrder { count: u64 },
    /// A part, or all of it, that is unreadable.
    Unread { why: String },
    /// It has fewer entries than it states.
    Entries { stated: u64, found: u64 },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        match self {
            Missing::End { why } => write!(f, "it breaks off: {why}"),
            Missing::Lost { count, at_least } => {
                let about = if *at_least { "at least " } else { "" };
                write!(f, "{about}{count} event{} lost", plural(*count))
            }
            Missing::Unreadable { count } => {
                write!(f, "{count} line{} or record{0} unreadable", plural(*count))
            }
            Missing::OutOfOrder { count } => {
                write!(f, "{count} event{} out of order and left out", plural(*count))
            }
            Missing::Unread { why } => write!(f, "it cannot be read: {why}"),
            Missing::Entries { stated, found } => {
                write!(f, "it states {stated} entries and has {found}")
            }
        }
    }
}
