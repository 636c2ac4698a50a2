//! `punctual tune`: finds the settings of the machine that help, by an experiment whose every
//! answer has an interval and a known error rate.
//!
//! Reading order: the settings ([`candidate`]), the measured blocks ([`design`]), their evidence
//! for each setting ([`effect`]), the number needed ([`power`]), the whole procedure
//! ([`procedure`]), the interface to a machine ([`machine`]), the figure of a block ([`figure`]),
//! and a machine with known truth ([`simulated`], [`scenarios`]).

pub mod candidate;
pub mod design;
pub mod effect;
pub mod figure;
mod least_squares;
pub mod machine;
mod outcome;
pub mod power;
pub(crate) mod procedure;
mod repeats;
pub mod request;
mod required;
pub mod scenarios;
pub mod simulated;

pub use candidate::{Candidate, Risk};
pub use design::Design;
pub use figure::TuneFigure;
pub use machine::{TunableMachine, conduct};
pub use power::time_needed;
pub(crate) use power::blocks_needed;
pub use procedure::Tuning;
pub use request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep, TuningOptions};
pub use required::required;

#[cfg(test)]
mod tests;
