//! Limits the reading of one file.

/// The maximum number of rows, entries and ranges read of one file: four times that of a large
/// browser. A hostile file may refer to the same ones any number of times.
const STEPS_MAX: u64 = 1 << 28;

/// The remaining number of steps for a file.
pub struct StepBudget(u64);

impl StepBudget {
    pub fn new() -> StepBudget {
        StepBudget(STEPS_MAX)
    }

    /// Takes one step; fails beyond the limit.
    pub(crate) fn spend_step(&mut self) -> gimli::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(gimli::Error::TooManyIterations)?;
        Ok(())
    }
}
