//! The cycles of a program's threads, from attaching to a bundle.
//!
//! The kernel makes a record of every cycle (`record::attach`). [`Attachment::measure`] drains
//! them, lets `analyze::cycles` infer what each thread's cycles are, and fills series like those of
//! a run.

mod attachment;
pub mod ending;
mod facts;
mod findings;
mod holders;
mod metrics;
mod options;
mod practice;
mod recent;
mod series;
pub mod target;
#[cfg(test)]
mod testing;
mod thread;
pub mod watcher;

pub use attachment::Attachment;
pub use options::{Options, PHASE, WORKLOAD};
