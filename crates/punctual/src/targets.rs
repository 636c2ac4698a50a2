//! Runs on other systems: the experiment goes to the target, `punctual run` runs it there, and its
//! bundle comes back.
//!
//! A target is one file under `targets/` with a function `carry_out(&its plan, &RemoteRun) ->
//! Result<Exit, Failure>`. It sends the run's file under its own name, runs punctual there with the
//! run's arguments and an `--output` of the target's choice, brings the bundle to `remote.output`,
//! and ends with a function of [`returned`]: also when what came back is incomplete, or nothing
//! did. What is shown and written beside the bundle is done here, the same for all.

pub mod returned;
pub mod ssh;
mod vm;

use crate::commands;
use crate::commands::run::Common;
use crate::exit::{Ending, Failure};
use crate::output;
use crate::session::request::Asked;
use punctual_bundle::Timebase;
use punctual_plan::{Acceleration, Experiment, TargetPlan};
use std::path::{Path, PathBuf};

/// A run on another system.
pub struct RemoteRun<'a> {
    /// What was asked for: the experiment's file name and bytes, the override of its target.
    pub asked: &'a Asked,
    /// The experiment, read and free of errors, but not resolved: its CPUs and programs are the
    /// target's.
    pub experiment: &'a Experiment,
    /// The name under which a bundle keeps the file.
    pub kept_as: &'static str,
    /// What else the command was given. Only the plan is wanted with `--plan`: it is printed as
    /// resolved for the target, and nothing is measured.
    pub args: &'a Common,
    /// Arguments for `punctual run` there, the file's name not among them: `--target=host --quiet
    /// …`.
    pub arguments: Vec<String>,
    /// The bundle's directory here; there is nothing yet.
    pub output: PathBuf,
}

impl RemoteRun<'_> {
    /// The experiment's file name without directories, fit to be one there too: a name by default
    /// is made of it.
    pub fn file_name(&self) -> String {
        let name = self.asked.path.file_name().unwrap_or_default().to_string_lossy();
        let fit = |c: char| {
            if c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ') { c } else { '-' }
        };
        let name: String = name.chars().map(fit).collect();
        // Never hidden and never an option.
        format!(
            "{}{name}",
            if name.starts_with(['.', '-']) || name.is_empty() { "experiment" } else { "" }
        )
    }

    /// The experiment's name.
    pub fn name(&self) -> String {
        let stem =
            || self.asked.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.experiment.settings.name.as_ref().map_or_else(stem, |at| at.value.clone())
    }
}

/// Runs an experiment on a target other than this process, shows its bundle, and returns the exit
/// code of the run there.
pub fn run(target: &TargetPlan, args: &Common, asked: &Asked) -> Ending {
    let repeats = matches!(target, TargetPlan::Vm(vm) if vm.accel == Acceleration::VirtualTime);
    if args.repeat > 1 && !repeats {
        return Err(Failure::refused(commands::run::NO_REPEATS));
    }
    if args.exact && !repeats {
        return Err(Failure::refused(commands::run::NOT_EXACT));
    }
    let loaded = asked.load()?;
    let (kept_as, arguments) = (loaded.kept_as(), args.for_a_target(asked));
    let mut remote = RemoteRun {
        asked,
        experiment: &loaded.experiment,
        kept_as,
        args,
        arguments,
        output: PathBuf::new(),
    };
    remote.output = match (&args.output, &loaded.experiment.settings.output) {
        (Some(directory), _) => directory.clone(),
        (None, Some(written)) => PathBuf::from(&written.value),
        (None, None) => PathBuf::from(format!("punctual-{}-{}", remote.name(), asked.stamp)),
    };
    if !args.plan {
        commands::run::destinations::check_beside(args)?;
        check_output(&remote.output)?;
    }
    let exit = match target {
        TargetPlan::Vm(plan) => vm::carry_out(plan, &remote)?,
        TargetPlan::Ssh(plan) => ssh::carry_out(plan, &remote)?,
        TargetPlan::Host => return Err(Failure::refused("the host is not a remote target")),
    };
    if args.plan {
        return Ok(exit);
    }
    commands::run::show_returned(args, &remote.output)?;
    if args.exact && !args.json {
        output::print(&commands::explain::exactly_of(&remote.output)?)?;
    }
    Ok(exit)
}

/// Checks that the bundle can be created, before anything is started.
pub fn check_output(output: &Path) -> Result<(), Failure> {
    let shown = crate::session::request::shown(output);
    if output.symlink_metadata().is_ok() {
        let message =
            format!("{shown} exists already: choose another directory with --output, or move it");
        return Err(Failure::refused(message));
    }
    let parent = parent(output);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(parent, access)
        .map_err(|why| Failure::refused(format!("cannot create {shown}: {why}")))
}

/// The directory that a path lies in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whose time the figures of such a machine are in.
pub fn timebase(accel: Acceleration) -> Timebase {
    match accel {
        Acceleration::VirtualTime => Timebase::Virtual,
        Acceleration::Tcg => Timebase::Emulated,
        Acceleration::Kvm => Timebase::Guest,
    }
}
