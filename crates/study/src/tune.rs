//! `punctual tune`: which settings of this machine help, by an experiment on it.
//!
//! [`punctual_stats::tune`] decides on the measurements and their evaluation, and knows no
//! machine. Here are the request of a tuning ([`request`]), the settings that this machine offers
//! ([`offer`], [`setting`]), a block of measuring ([`blocks`]), boot parameters of a guest
//! ([`boot`]), the directory from which a tuning is resumed ([`directory`]), and the whole tuning
//! ([`run`]).

pub mod blocks;
pub mod boot;
pub mod directory;
pub mod offer;
pub mod request;
pub mod run;
pub mod setting;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
