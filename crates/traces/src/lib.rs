#![forbid(unsafe_code)]
//! Readers of traces that other tools recorded: bytes in, our own kernel events out.
//!
//! A format is recognised by content. Events are decoded by what the file says of them, in its
//! byte order, and come out in the order of time, in bounded memory. What the file lost is a gap
//! ([`punctual_core::EventKind::Lost`]); what it is, holds and lacks is in [`TraceFacts`].

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
mod input;
mod layout;
mod meaning;

pub mod page;
mod perf;
mod perfetto;
mod reader;
mod recognize;
mod reorder;
mod rounds;
mod syscall;
mod task_state;
mod text;
mod trace;

pub use clock::{ClockRelation, TraceClock};
pub use error::TraceError;
pub use facts::{NO_MACHINE, TraceFacts, TraceFormat};
pub use input::ReadAt;
pub use trace::Trace;
