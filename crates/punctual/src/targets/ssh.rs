//! Another system, reached by ssh(1).

use super::Errand;
use crate::exit::{Exit, Failure};
use punctual_plan::SshPlan;

/// Copies punctual and the experiment there, runs it, and brings the bundle back.
pub fn carry_out(_plan: &SshPlan, _errand: &Errand) -> Result<Exit, Failure> {
    Err(Failure::refused("this build does not run on other systems"))
}
