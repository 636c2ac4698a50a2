//! Runs on other systems: sends the experiment to the target, runs `punctual run` there, and
//! retrieves its bundle.
//!
//! A target is one file under `targets/` with a function `carry_out(&its plan, &RemoteRun) ->
//! Result<Returned, Failure>`. It sends the run's file under its own name, runs punctual there with
//! the run's arguments and an `--output` of the target's choice, moves the bundle to
//! `remote.output`, and ends with a function of `returned`, even if the result is incomplete or
//! missing. Messages and files beside the bundle are the command's, the same for all.

mod output;
mod remote;
mod returned;
pub mod ssh;
mod time;
pub mod vm;

pub use output::{check_output, parent};
pub use remote::{NO_REPEATS, NOT_EXACT, RemoteRun, Returned};
pub use time::timebase;

use punctual_plan::TargetPlan;
use punctual_session::exit::Failure;

/// Runs an experiment on a target other than this process.
///
/// # Errors
/// The bundle cannot be made, or nothing ran there.
pub fn run(target: &TargetPlan, remote: &RemoteRun) -> Result<Returned, Failure> {
    if !remote.options.plan_only {
        check_output(&remote.output)?;
    }
    match target {
        TargetPlan::Vm(plan) => vm::carry_out(plan, remote),
        TargetPlan::Ssh(plan) => ssh::carry_out(plan, remote),
        TargetPlan::Host => Err(Failure::refused("the host is not a remote target")),
    }
}
