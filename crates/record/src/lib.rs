//! Recorders: kernel events and the test points of applications, on one clock.

mod bpf;
pub mod merge;
mod names;
pub mod probe;
mod recorder;
pub mod symbols;
mod tracepoints;
pub mod wire;

pub use recorder::{Backend, Mode, Recorder, Request, StartError, Stopped};
