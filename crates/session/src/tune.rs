//! `punctual tune`: which settings of this machine help, by an experiment on it.
//!
//! What is measured when, and what it shows, is decided in [`punctual_analyze::tune`], which knows
//! no machine. Here is what a tuning is asked ([`asked`]), the settings that this machine offers
//! ([`offer`], [`setting`]), how they are set and taken back ([`changes`]), a block of measuring
//! ([`blocks`]), parameters of a boot, of a guest ([`boot`]) and of this machine ([`reboot_plan`],
//! [`reboots`]), what the best set costs ([`cost`]), the directory from which a tuning goes on
//! ([`directory`]), all of it together ([`run`]), and the files that keep what was found over a
//! reboot ([`persistent`], [`apply`]).

pub mod apply;
pub mod asked;
pub mod blocks;
pub mod boot;
pub mod changes;
pub mod cost;
pub mod directory;
pub mod offer;
pub mod persistent;
pub mod reboot_plan;
pub mod reboots;
pub mod run;
pub mod setting;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
