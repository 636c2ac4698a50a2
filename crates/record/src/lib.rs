//! Recorders: kernel events and the test points of applications, on one clock.

pub mod merge;
pub mod symbols;
