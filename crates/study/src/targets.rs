//! Runs on other systems: sends the experiment to the target, runs `punctual run` there, and
//! retrieves its bundle.
//!
//! A target is one file under `targets/` with a function `carry_out(&its plan, &RemoteRun) ->
//! Result<Returned, Failure>`. It sends the run's file under its own name, runs punctual there with
//! the run's arguments and an `--output` of the target's choice, moves the bundle to
//! `remote.output`, and ends with a function of `returned`, even if the result is incomplete or
//! missing. Messages and files beside the bundle are the command's, the same for all.

pub mod boards;
mod power;
mod remote;
mod returned;
pub mod ssh;
pub mod vm;

use punctual_bundle::Timebase;
use punctual_plan::{Acceleration, TargetPlan};
use punctual_session::exit::Failure;
use punctual_session::messages::display_path;
pub use remote::{NO_REPEATS, NOT_EXACT, RemoteRun, Returned};
use std::path::Path;

/// Runs an experiment on a target other than this process.
///
/// # Errors
/// The bundle cannot be made, or nothing ran there.
pub fn run_on_target(target: &TargetPlan, remote: &RemoteRun) -> Result<Returned, Failure> {
    if !remote.options.plan_only {
        check_output(&remote.output)?;
    }
    match target {
        TargetPlan::Vm(plan) => vm::carry_out(plan, remote),
        TargetPlan::Ssh(plan) => boards::carry_out(plan, remote),
        TargetPlan::Host => Err(Failure::refused("the host is not a remote target")),
    }
}

/// Checks that the bundle can be created, before anything is started.
pub fn check_output(output: &Path) -> Result<(), Failure> {
    let output_name = display_path(output);
    if output.symlink_metadata().is_ok() {
        let message = format!(
            "{output_name} exists already: choose another directory with --output, or move it"
        );
        return Err(Failure::refused(message));
    }
    let parent = parent_directory(output);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(parent, access)
        .map_err(|why| Failure::refused(format!("cannot create {output_name}: {why}")))
}

/// The parent directory of a path.
pub(crate) fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The time base of such a machine's figures.
pub(crate) fn timebase_of_accel(accel: Acceleration) -> Timebase {
    match accel {
        Acceleration::VirtualTime => Timebase::Virtual,
        Acceleration::Tcg => Timebase::Emulated,
        Acceleration::Kvm => Timebase::Guest,
    }
}
