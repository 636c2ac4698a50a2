//! The search for what makes a kernel late.
//!
//! Reading order: the [`space`] of inputs, what trials showed ([`archive`]), the order in which
//! inputs are tried ([`search`]) and made smaller ([`minimise`]): pure, over a trait that runs
//! trials. [`trials`] runs them as a lab; [`run`] puts all together.

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
