//! A virtual machine on this system.

use super::Errand;
use crate::exit::{Exit, Failure};
use punctual_plan::VmPlan;

/// Boots the machine, runs the experiment in it, and brings the bundle back.
pub fn carry_out(_plan: &VmPlan, _errand: &Errand) -> Result<Exit, Failure> {
    Err(Failure::refused("this build does not run virtual machines"))
}
