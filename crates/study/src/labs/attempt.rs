//! One attempt at a run of a lab: `punctual run` in its own process, and the outcome.

use super::directory::{LabDirectory, Stamp, is_whole};
use super::run_name::RunName;
use crate::process::{Process, failure_reason, own_run, to_nanos};
use punctual_bundle::{Bundle, Member, Outcome};
use punctual_core::Nanos;
use punctual_core::format::escape_unsafe;
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// The result of a run.
#[derive(Clone, Debug)]
pub enum AttemptResult {
    Whole(Stamp),
    /// There is no complete bundle, for this reason.
    Failed {
        /// The reason in one line.
        why: String,
        /// The exit code, if any.
        exit_code: Option<i32>,
        took: Nanos,
    },
    /// The run has not been started.
    Waiting,
}

/// The result of every run, in order, and whether the lab was interrupted.
pub struct AttemptedRuns {
    pub done: Vec<AttemptResult>,
    pub interrupted: bool,
}

/// How to start a run.
#[derive(Clone, Copy, Default)]
pub struct StartMethod<'a> {
    /// Whether every instruction is seen.
    pub exact: bool,
    /// The CPU reserved for the run.
    pub cpu: Option<usize>,
    /// The options for the run's host.
    pub options: &'a [String],
}

pub struct Attempt {
    pub process: Process,
    inputs: String,
}

impl Attempt {
    pub fn start(
        directory: &LabDirectory,
        name: &RunName,
        inputs: String,
        how: StartMethod<'_>,
    ) -> Result<Attempt, Failure> {
        let log = directory.new_log(name)?;
        directory.discard_unfinished(name);
        let experiment = directory.path().join(name.experiment_path());
        let mut command = own_run(&directory.unfinished_path(name), &experiment);
        command.arg("--quiet").args(how.exact.then_some("--exact")).args(how.options);
        let process = Process::start_run(command, Some(log), how.cpu)?;
        Ok(Attempt { process, inputs })
    }

    /// Returns the outcome. A complete bundle has its final name then.
    pub fn conclude(
        self,
        directory: &LabDirectory,
        name: &RunName,
        status: ExitStatus,
    ) -> Result<AttemptResult, Failure> {
        let took = to_nanos(self.process.elapsed());
        let unfinished = directory.unfinished_path(name);
        if self.process.was_asked() {
            directory.discard_unfinished(name);
            return Ok(AttemptResult::Waiting);
        }
        let exit_code = status.code();
        if is_whole(&unfinished) {
            let exit_code = exit_code.unwrap_or(-1);
            let stamp = Stamp { inputs: self.inputs, took: took.ns(), exit_code };
            return directory.finish_bundle(name, stamp).map(AttemptResult::Whole);
        }
        let reason = failed_outcome(&unfinished)
            .unwrap_or_else(|| failure_reason(status, &directory.log_member(name)));
        directory.keep_failed(name);
        Ok(AttemptResult::Failed { why: reason, exit_code, took })
    }
}

/// The stored outcome of a run of these inputs.
pub(crate) fn stored_outcome(
    directory: &LabDirectory,
    name: &RunName,
    inputs: &str,
) -> AttemptResult {
    match (directory.finished_stamp(name, inputs), directory.read_failure(name, inputs)) {
        (Some(stamp), _) => AttemptResult::Whole(stamp),
        (None, Some((stamp, why))) => {
            AttemptResult::Failed { why, exit_code: Some(stamp.exit_code), took: Nanos(stamp.took) }
        }
        (None, None) => AttemptResult::Waiting,
    }
}

/// Runs one to its end, unless its bundle exists; [`AttemptResult::Waiting`] if that was
/// interrupted.
///
/// # Errors
/// The directory lacks its experiment, or cannot be written.
pub fn run_one(
    directory: &LabDirectory,
    name: &RunName,
    exact: bool,
    interrupts: &SignalRequests,
) -> Result<AttemptResult, Failure> {
    let text = Member::from_root(directory.path()).join(name.experiment_path()).read_text();
    let text = text.map_err(|why| Failure::refused(format!("the lab has no run {name}: {why}")))?;
    let inputs = directory.inputs_of(&text, exact);
    if let Some(stamp) = directory.finished_stamp(name, &inputs) {
        return Ok(AttemptResult::Whole(stamp));
    }
    let how = StartMethod { exact, ..StartMethod::default() };
    let mut attempt = Attempt::start(directory, name, inputs.clone(), how)?;
    let status = attempt.process.wait_for_end(&|| interrupts.end_requested(), Duration::MAX)?;
    let Some(status) = status else { return Ok(AttemptResult::Waiting) };
    let done = attempt.conclude(directory, name, status)?;
    if let AttemptResult::Failed { why, exit_code: Some(exit_code), took } = &done {
        // A run killed from outside is not stored as failed: whatever started it starts it again.
        let stamp = Stamp { inputs, took: took.ns(), exit_code: *exit_code };
        directory.write_failure(name, stamp, why)?;
    }
    Ok(done)
}

/// The failure that a bundle records.
fn failed_outcome(bundle: &Path) -> Option<String> {
    match Bundle::open(bundle).ok()?.manifest.ending?.outcome {
        Outcome::Failed { why } => Some(escape_unsafe(&why)),
        _ => None,
    }
}
