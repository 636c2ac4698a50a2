//! Runs that are done elsewhere: the experiment goes to the target, `punctual run` does it there, its bundle comes back.
//!
//! A target is one file under `targets/` with a function `carry_out(&itsPlan, &Errand) -> Result<Exit, Failure>`. It sends the errand's
//! file under its own name, runs punctual there with the errand's arguments and an `--output` of the target's choice, and leaves the
//! bundle at `errand.output`, an incomplete one too, with findings about what happened on the way. What is shown and written
//! beside the bundle is done here, the same for all.

mod ssh;
mod vm;

use crate::commands;
use crate::commands::run::Common;
use crate::conduct::request::Asked;
use crate::exit::{Ending, Failure};
use punctual_plan::{Experiment, TargetPlan};
use std::path::{Path, PathBuf};

/// What is to be done elsewhere.
#[allow(dead_code, reason = "for the targets that are landing")]
pub struct Errand<'a> {
    /// What was asked for: the experiment's file name and bytes, the override of its target.
    pub asked: &'a Asked,
    /// The experiment, read and free of errors, but not resolved: its CPUs and programs are the target's.
    pub experiment: &'a Experiment,
    /// Arguments for `punctual run` there, the file's name not among them: `--target host --quiet …`.
    pub arguments: Vec<String>,
    /// The bundle's directory here; there is nothing yet.
    pub output: PathBuf,
    /// Nothing about the progress is shown.
    pub quiet: bool,
    /// Only the plan is wanted (`--plan`): it is printed as resolved for the target, and nothing is measured.
    pub plan_only: bool,
}

#[allow(dead_code, reason = "for the targets that are landing")]
impl Errand<'_> {
    /// The experiment's file name without directories, fit to be one there too: a name by default is made of it.
    pub fn file_name(&self) -> String {
        let name = self.asked.path.file_name().unwrap_or_default().to_string_lossy();
        let fit = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ') { c } else { '-' };
        let name: String = name.chars().map(fit).collect();
        // Never hidden and never an option.
        format!("{}{name}", if name.starts_with(['.', '-']) || name.is_empty() { "experiment" } else { "" })
    }
}

/// Does an experiment on a target that is not this process, shows what came back, and ends as the run there ended.
pub fn run(target: &TargetPlan, args: &Common, asked: &Asked) -> Ending {
    let loaded = asked.load()?;
    let output = match (&args.output, &loaded.experiment.settings.output) {
        (Some(directory), _) => directory.clone(),
        (None, Some(written)) => PathBuf::from(&written.value),
        (None, None) => PathBuf::from(format!("punctual-{}-{}", name(&loaded.experiment), asked.stamp)),
    };
    let errand = Errand {
        asked,
        experiment: &loaded.experiment,
        arguments: args.for_a_target(asked),
        output,
        quiet: args.quiet,
        plan_only: args.plan,
    };
    if !args.plan {
        commands::run::destinations::check_beside(args)?;
        if errand.output.exists() {
            let message = format!("{} exists already: choose another --output", shown(&errand.output));
            return Err(Failure::refused(message));
        }
    }
    let exit = match target {
        TargetPlan::Vm(plan) => vm::carry_out(plan, &errand)?,
        TargetPlan::Ssh(plan) => ssh::carry_out(plan, &errand)?,
        TargetPlan::Host => return Err(Failure::refused("the host is no other target")),
    };
    if args.plan {
        return Ok(exit);
    }
    commands::run::show_returned(args, &errand.output)?;
    Ok(exit)
}

fn shown(path: &Path) -> String {
    crate::conduct::request::shown(path)
}

fn name(experiment: &Experiment) -> String {
    let stem = || experiment.source.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    experiment.settings.name.as_ref().map_or_else(stem, |at| at.value.clone())
}
