//! `punctual tune`: which settings of the machine help, by an experiment whose every answer has an
//! interval and a known rate of errors.
//!
//! Reading order: what can be tried ([`candidate`]), which blocks are measured ([`design`]), what
//! they show of each setting ([`effect`]), how many it takes ([`power`]), the order of it all
//! ([`procedure`]), the seam to a machine ([`machine`]), the figure of a block ([`figure`]), and a
//! machine whose truth is known ([`simulated`], [`scenarios`]).

pub mod candidate;
pub mod design;
pub mod effect;
pub mod figure;
mod least_squares;
pub mod machine;
mod outcome;
pub mod power;
pub mod procedure;
mod repeats;
pub mod request;
mod required;
pub mod scenarios;
pub mod simulated;

pub use candidate::{Candidate, Risk};
pub use design::Design;
pub use figure::Figure;
pub use machine::{Machine, conduct};
pub use power::{blocks_needed, time_needed};
pub use procedure::Tuning;
pub use request::{Block, Options, Purpose, Request, Step};
pub use required::required;

#[cfg(test)]
mod tests;
