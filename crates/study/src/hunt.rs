//! The search for inputs that make a kernel late.
//!
//! Reading order: the [`space`] of inputs, the results of trials ([`archive`]), the order of trials
//! ([`search`]) and minimising ([`minimise`]): pure, over a trait that runs trials. [`trials`] runs
//! them as a lab; [`run`] puts all together.

pub mod against;
pub mod archive;
pub mod document;
pub mod experiment;
pub mod failures;
pub mod minimise;
pub mod random;
pub mod require;
pub mod run;
pub mod search;
#[cfg(test)]
mod simulated;
pub mod space;
pub mod spec;
pub mod standing;
pub mod stressors;
pub mod sweep;
pub mod trials;
