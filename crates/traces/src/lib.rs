#![forbid(unsafe_code)]
//! Readers for traces recorded by other tools: from bytes to our own kernel events.
//!
//! A format is recognised by content. Events are decoded by the file's own descriptions, in its
//! byte order, and returned in order of time, in bounded memory. Losses of the file are gaps
//! ([`punctual_core::EventKind::Lost`]); its format, content and gaps are in [`TraceFacts`].

mod bridge;
pub mod bytes;
mod clock;
mod compression;
mod ctf;
mod cursor;
mod dat;
mod decoder;
mod error;
mod facts;
pub mod format;
mod formats;
mod graph;
mod input;
mod layout;
mod marks;
mod meaning;

pub mod page;
mod perf;
mod perfetto;
mod quick;
mod reader;
mod recognize;
mod reorder;
mod rounds;
mod symbols;
mod syscall;
mod systrace;
mod task_state;
mod text;
mod trace;

pub use clock::{ClockRelation, TraceClock};
pub use error::TraceError;
pub use facts::{NO_MACHINE, TraceFacts};
pub use input::ReadAt;
pub use recognize::TraceFormat;
pub use trace::Trace;
