//! Boot parameters of this machine: it boots for each observation, with a service that resumes the
//! tuning after each boot, and entries of the boot loader that are used once.
//!
//! The interface is [`Reboots`]; [`run`] is the loop, independent of boot loaders, which
//! [`punctual_host::boot`] knows. [`unit`] is the text for systemd; [`system`] is this machine.

pub mod run;
mod state;
pub mod system;
pub mod unit;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_files;

use punctual_session::exit::Failure;

/// A machine that can be booted once with other parameters.
pub trait Reboots {
    /// Adds these words to the command line of the next boot only.
    ///
    /// # Errors
    /// The words cannot be added; a part may be written then, which [`Reboots::disarm`] reverts.
    fn arm(&mut self, words: &str) -> Result<(), Failure>;
    /// The command line of this boot.
    ///
    /// # Errors
    /// It cannot be read.
    fn cmdline(&self) -> Result<String, Failure>;
    /// Makes sure that this armed boot is not repeated by the boot loader.
    ///
    /// # Errors
    /// The boot would be repeated, or that is unknown.
    fn booted(&mut self) -> Result<(), Failure>;
    /// The unique id of this boot (random(4)).
    ///
    /// # Errors
    /// It cannot be read.
    fn boot_id(&self) -> Result<String, Failure>;
    /// Installs a service that resumes the tuning after each boot.
    ///
    /// # Errors
    /// The service cannot be written.
    fn install(&mut self) -> Result<(), Failure>;
    /// Reverts all writes of the other methods. Returns each failure with its reason.
    ///
    /// # Errors
    /// The record of the writes cannot be read or written.
    fn disarm(&mut self) -> Result<Vec<String>, Failure>;
    /// Requests the reboot. This process should end at once.
    ///
    /// # Errors
    /// The request failed.
    fn reboot(&mut self) -> Result<(), Failure>;
}
