//! A bound on what is read of one file.

/// Rows, entries and ranges that are read of one file: what a large browser has, times four. A
/// hostile file may name the same ones any number of times.
const STEPS_MAX: u64 = 1 << 28;

/// What may still be read of a file.
pub struct Budget(u64);

impl Budget {
    pub fn new() -> Budget {
        Budget(STEPS_MAX)
    }

    /// One step less; what goes beyond is an error.
    pub fn spend(&mut self) -> gimli::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(gimli::Error::TooManyIterations)?;
        Ok(())
    }
}
