//! The seam to a machine that boots.

use crate::exit::Failure;

/// A machine that can be booted with other parameters, for one time.
pub trait Reboots {
    /// Makes the next boot, and no further one, have these words on its command line.
    ///
    /// # Errors
    /// It cannot; a part may be written then, which [`Reboots::disarm`] takes back.
    fn arm(&mut self, words: &str) -> Result<(), Failure>;
    /// The command line of this boot.
    ///
    /// # Errors
    /// It cannot be read.
    fn cmdline(&self) -> Result<String, Failure>;
    /// Makes sure that this boot, which was armed, is not booted once more by itself.
    ///
    /// # Errors
    /// It would be, or that is not known.
    fn booted(&mut self) -> Result<(), Failure>;
    /// What distinguishes this boot from all others (random(4)).
    ///
    /// # Errors
    /// It cannot be read.
    fn boot_id(&self) -> Result<String, Failure>;
    /// Makes a service go on with the tuning after each boot.
    ///
    /// # Errors
    /// It cannot be written.
    fn install(&mut self) -> Result<(), Failure>;
    /// Takes back all that the others wrote; what was not, and why.
    ///
    /// # Errors
    /// It cannot be read or written.
    fn disarm(&mut self) -> Result<Vec<String>, Failure>;
    /// Asks for the reboot. This process is to end at once.
    ///
    /// # Errors
    /// It cannot be asked for.
    fn reboot(&mut self) -> Result<(), Failure>;
}
