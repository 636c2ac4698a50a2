//! Parameters of a boot of this machine: it boots for each observation, with a service that goes on
//! after each boot and entries of the boot loader that count for one boot.
//!
//! The seam is [`seam::Reboots`]; [`run`] is the loop, which knows no boot loader. Texts of GRUB
//! ([`grub`]), systemd-boot ([`systemd_boot`]) and systemd ([`unit`]) are pure; [`kept`] writes
//! them so that whatever ends the tuning, they can be taken back; [`system`] is this machine.

pub mod grub;
pub mod kept;
mod lasting;
pub mod run;
pub mod seam;
mod state;
pub mod system;
pub mod systemd_boot;
pub mod unit;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_files;
