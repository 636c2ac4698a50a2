//! A run on another system: the data sent there, and the results.

use punctual_plan::{Acceleration, TargetPlan};
use punctual_session::exit::{Exit, Failure};
use punctual_session::messages::Listener;
use punctual_session::options::{RunOptions, calibration_option};
use punctual_session::request::{ExperimentRequest, Loaded};
use std::path::PathBuf;

/// Why `--repeat` is refused.
pub const NO_REPEATS: &str = "--repeat needs virtual time (--target vm:KERNEL with accel = \
                              \"virtual-time\"): only there are runs identical; to compare other \
                              runs, use punctual compare";

/// Why `--exact` is refused.
pub const NOT_EXACT: &str = "--exact needs virtual time (--target vm:KERNEL with accel = \
                             \"virtual-time\"): only there can a run be replayed; --explain keeps \
                             the kernel events around the worst samples everywhere";

/// A run on another system.
pub struct RemoteRun<'a> {
    /// The request: the experiment's file name and bytes, the override of its target.
    pub asked: &'a ExperimentRequest,
    /// The experiment, parsed without errors, but not resolved: its CPUs and programs are the
    /// target's.
    pub loaded: Loaded,
    /// Other options. With `--plan` only the plan is wanted: it is resolved for the target, and
    /// nothing is measured.
    pub options: &'a RunOptions,
    /// Arguments for `punctual run` there, without the file's name: `--target=host --quiet …`.
    pub arguments: Vec<String>,
    /// The bundle's directory here; it does not exist yet.
    pub output: PathBuf,
    pub messages: Listener,
}

impl<'a> RemoteRun<'a> {
    /// Prepares an experiment for this target.
    ///
    /// # Errors
    /// The request needs virtual time, which the target lacks; the experiment contains an error.
    pub fn from_request(
        target: &TargetPlan,
        options: &'a RunOptions,
        asked: &'a ExperimentRequest,
        messages: Listener,
    ) -> Result<RemoteRun<'a>, Failure> {
        let repeats = matches!(target, TargetPlan::Vm(vm) if vm.accel == Acceleration::VirtualTime);
        if options.repeat > 1 && !repeats {
            return Err(Failure::refused(NO_REPEATS));
        }
        if options.exact && !repeats {
            return Err(Failure::refused(NOT_EXACT));
        }
        let loaded = asked.load()?;
        let mut arguments = options.for_a_target(asked.allow_unknown);
        if repeats {
            // Independent of the experiment: recording there costs no time of this system.
            arguments.retain(|word| ![true, false].map(calibration_option).contains(&&**word));
            arguments.push(calibration_option(false).to_owned());
        }
        let output = PathBuf::new();
        let mut remote = RemoteRun { asked, loaded, options, arguments, output, messages };
        remote.output = match (&options.output, &remote.loaded.experiment.settings.output) {
            (Some(directory), _) => directory.clone(),
            (None, Some(written)) => PathBuf::from(&written.value),
            (None, None) => {
                PathBuf::from(format!("punctual-{}-{}", remote.experiment_name(), asked.stamp))
            }
        };
        Ok(remote)
    }

    /// The experiment's file name without directories, safe on the target too: the default name of
    /// a bundle derives from it.
    pub fn file_name(&self) -> String {
        let name = self.asked.path.file_name().unwrap_or_default().to_string_lossy();
        let fit = |c: char| {
            if c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ') { c } else { '-' }
        };
        let name: String = name.chars().map(fit).collect();
        // The name must be neither hidden nor like an option.
        format!(
            "{}{name}",
            if name.starts_with(['.', '-']) || name.is_empty() { "experiment" } else { "" }
        )
    }

    pub(crate) fn experiment_name(&self) -> String {
        let stem =
            || self.asked.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.loaded.experiment.settings.name.as_ref().map_or_else(stem, |at| at.value.clone())
    }
}

pub enum Returned {
    /// The plan alone, in words, and how the command there ended.
    Plan { text: String, exit: Exit },
    /// A bundle at the run's output, and the exit code of the run there.
    Bundle(Exit),
}
