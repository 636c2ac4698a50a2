#![forbid(unsafe_code)]
//! Causes of long latencies, as pure functions of recorded events: cycles of threads, entries into
//! the kernel, intervals between points, and the explanation of a sample by its parts.

pub mod allocator;
pub mod answer;
pub mod coincidence;
pub mod cycles;
pub mod document;
pub mod entries;
mod event_counts;
pub mod explain;
pub mod functions;
pub mod gaps;
pub mod incidents;
pub mod intervals;
pub mod moments;
pub mod occupancy;
pub mod pairs;
pub mod probes;
pub mod scopes;
pub mod steal;
pub mod threads;
pub mod values;

pub use document::{Explained, Explanations};
pub use event_counts::EventCounts;
