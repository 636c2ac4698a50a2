//! `punctual tune`: which settings of this machine help, by an experiment on it.
//!
//! [`punctual_stats::tune`] decides on the measurements and their evaluation, and knows no
//! machine. Here are the request of a tuning ([`request`]), the settings that this machine offers
//! ([`offer`], [`setting`]), applying and reverting them ([`changes`]), a block of measuring
//! ([`blocks`]), boot parameters of a guest ([`boot`]) and of this machine ([`reboot_plan`],
//! [`reboots`]), the cost of the best set ([`cost`]), the directory from which a tuning is resumed
//! ([`directory`]), the whole tuning ([`run`]), and the files that persist the findings over a
//! reboot ([`persistent`], [`apply`]).

pub mod apply;
pub mod blocks;
pub mod boot;
pub mod cost;
pub mod directory;
pub mod offer;
pub mod persistent;
pub mod reboot_plan;
pub mod reboots;
pub mod request;
pub mod run;
pub mod setting;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
