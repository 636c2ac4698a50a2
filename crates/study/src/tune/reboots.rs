//! Boot parameters of this machine: it boots for each observation, with a service that resumes the
//! tuning after each boot, and entries of the boot loader that are used once.
//!
//! The interface is [`seam::Reboots`]; [`run`] is the loop, independent of boot loaders. Texts of
//! GRUB ([`grub`]), systemd-boot ([`systemd_boot`]) and systemd ([`unit`]) are pure; [`reverts`]
//! writes them so that they can be reverted however the tuning ends; [`system`] is this machine.

pub mod grub;
mod lasting;
pub(crate) mod reverts;
pub mod run;
pub(crate) mod seam;
mod state;
pub mod system;
pub(crate) mod systemd_boot;
pub mod unit;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_files;
