//! Test points for real-time programs.
//!
//! A point records a timestamp and up to two integers. Passing one costs little more than reading
//! the processor's counter while it is recorded, and a predictable branch while it is not; built
//! without the feature `enabled`, nothing. The record is in shared memory: it outlives any end of
//! the process. `punctual trace` collects it, together with the kernel's events at the same time.
//!
//! ```
//! use punctual_testpoint::{begin, end, point, scope};
//!
//! fn task(bytes: usize) {
//!     let _task = scope!("netio.task"); // from here to the end of the block
//!     begin!("netio.encrypt");
//!     // …
//!     end!("netio.encrypt");
//!     point!("netio.sent", bytes); // an instant, with a value
//! }
//! # task(3);
//! ```
//!
//! Points may be passed in signal handlers and in threads of any kind; a forked child has its own
//! record. (A child created by the bare system call, bypassing the C library, must not pass points
//! before it executes another program.) See `docs/testpoints.md` for cost, modes, environment and
//! format.

#![warn(missing_docs)]
// The types of C differ between architectures.
#![allow(clippy::unnecessary_cast)]

pub mod counter;
pub mod layout;

#[cfg(feature = "enabled")]
mod directory;
#[cfg(feature = "enabled")]
mod fast;
#[cfg(feature = "enabled")]
mod lifetime;
#[cfg(feature = "enabled")]
mod point;
#[cfg(feature = "enabled")]
mod process;
#[cfg(feature = "enabled")]
mod slow;
#[cfg(feature = "enabled")]
mod start;
#[cfg(feature = "enabled")]
pub use start::{start, status};
#[cfg(feature = "enabled")]
mod sys;
#[cfg(feature = "enabled")]
mod thread;

#[cfg(not(feature = "enabled"))]
#[path = "disabled.rs"]
mod point;

mod macros;
mod mode;

#[cfg(not(feature = "enabled"))]
pub use mode::status;
pub use mode::{Mode, record};
pub use point::{Point, Scope};
