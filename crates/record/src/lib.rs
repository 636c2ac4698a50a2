//! Records kernel activity: events, counts, times of functions, accounts of threads.

pub mod account;
pub mod attach;
mod attached;
mod bpf;
pub mod count;
pub mod entries;
pub mod gaps;
pub mod interrupt;
mod merge;
mod names;
mod namespace;
pub mod network;
pub mod perf;
pub mod probe;
mod recorder;
pub mod release;
mod request;
mod rights;
mod start_error;
pub mod symbols;
pub mod tracefs;
mod tracepoints;
mod translate;
pub mod unwind;
pub mod wire;

pub use attached::{AttachedPrograms, RunTime};
pub use names::{kernel_symbols, syscall_names, syscall_number};
pub use namespace::foreign_ids;
pub use recorder::{BufferProgress, FLIGHT, FlightWindow, Recorder, STREAM, Stopped};
pub use request::{Backend, RecordMode, Request};
pub use rights::missing_rights;
pub use start_error::StartError;
pub use tracepoints::{group_of, names_of_tracepoints};
