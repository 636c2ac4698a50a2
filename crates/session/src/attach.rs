//! The command `attach`: a program that is there, or that a command starts, as a plan of one
//! measure which [`crate::run`] runs; and who disturbs CPUs.

pub mod cpus;
mod program;
pub mod watcher;

pub use program::{CyclesAsked, plan};

/// The phase of a bundle of this kind.
pub const PHASE: &str = "attached";
