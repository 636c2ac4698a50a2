#![forbid(unsafe_code)]
//! Test points of applications: finds their files, reads them while they run and after they died.
//!
//! ```no_run
//! use punctual_points::{Collector, Options};
//! let mut collector = Collector::start(Options::record())?; // from here on, points are recorded
//! loop {
//!     let poll = collector.poll(&mut |source, events| println!("{source}: {}", events.len()));
//!     # let enough = true;
//!     if enough { break }
//!     // The rings hold what is recorded meanwhile; `poll.fullest` shows how close that was.
//!     std::thread::sleep(std::time::Duration::from_millis(5));
//! }
//! let collected = collector.finish(&mut |source, events| println!("{source}: {}", events.len()));
//! # Ok::<(), punctual_points::CollectorStartError>(())
//! ```
//!
//! The files belong to untrusted processes. They are read by pread(2), never mapped: a file that
//! shrinks under a mapping kills its reader with SIGBUS. Every number in them is checked before it
//! is used, every loop is bounded by a constant, and writes go only to fixed places of the control
//! page and of a ring's header that lie within the file.

mod alive;
mod clock;
mod collector;
mod directories;
mod file;
mod process;
mod quota;
mod reading;
mod ring;
mod tally;
#[cfg(test)]
mod tests;
mod whole;

pub use clock::ClockPairs;
pub use collector::{Collected, Collector, CollectorStartError, Options, PointSink, Poll};
pub use file::{Access, FileHeader, Refused};
pub use punctual_testpoint::layout::INTERRUPTS;
pub use tally::{PointNames, PointSource};
pub use whole::{WholeFile, read_whole};
