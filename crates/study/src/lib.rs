#![forbid(unsafe_code)]
//! What conducts runs and replays: each module asks `punctual_session` for a run, or a target for
//! one, and decides what is measured next.
//!
//! 1. [`exact`], [`replay`], [`exact_difference`], [`sections`]: guests replayed instruction by
//!    instruction.
//! 2. [`targets`]: a run elsewhere.
//! 3. `store`, the directory of a study, and [`process`], the runs that it starts.
//! 4. [`labs`]: many runs; [`tune`]: which settings help; [`baseline`]: the
//!    earlier runs.

// These macros panic if the terminal was closed: `messages` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod baseline;
pub mod exact;
pub mod exact_difference;
pub mod labs;
pub mod process;
pub mod replay;
pub mod sections;
mod store;
pub mod targets;
pub mod tune;
