//! One attempt at a run of a lab: `punctual run` in its own process, and the outcome.

use super::directory::{Directory, Stamp, is_whole};
use super::run_name::RunName;
use crate::process::{Process, nanos, own_run, why};
use punctual_bundle::{Bundle, Member, Outcome};
use punctual_core::Nanos;
use punctual_core::format::plain;
use punctual_session::exit::Failure;
use punctual_session::interrupts::Interrupts;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// The result of a run.
#[derive(Clone, Debug)]
pub enum Done {
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
pub struct Ran {
    pub done: Vec<Done>,
    pub interrupted: bool,
}

/// How to start a run.
#[derive(Clone, Copy, Default)]
pub struct How<'a> {
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
        directory: &Directory,
        name: &RunName,
        inputs: String,
        how: How<'_>,
    ) -> Result<Attempt, Failure> {
        let log = directory.new_log(name)?;
        directory.discard(name);
        let experiment = directory.path().join(name.experiment());
        let mut command = own_run(&directory.unfinished(name), &experiment);
        command.arg("--quiet").args(how.exact.then_some("--exact")).args(how.options);
        let process = Process::run(command, Some(log), how.cpu)?;
        Ok(Attempt { process, inputs })
    }

    /// Returns the outcome. A complete bundle has its final name then.
    pub fn conclude(
        self,
        directory: &Directory,
        name: &RunName,
        status: ExitStatus,
    ) -> Result<Done, Failure> {
        let took = nanos(self.process.elapsed());
        let unfinished = directory.unfinished(name);
        if self.process.was_asked() {
            directory.discard(name);
            return Ok(Done::Waiting);
        }
        let exit_code = status.code();
        if is_whole(&unfinished) {
            let exit_code = exit_code.unwrap_or(-1);
            let stamp = Stamp { inputs: self.inputs, took: took.ns(), exit_code };
            return directory.finish(name, stamp).map(Done::Whole);
        }
        let why = failed_outcome(&unfinished).unwrap_or_else(|| why(status, &directory.log(name)));
        directory.keep_failed(name);
        Ok(Done::Failed { why, exit_code, took })
    }
}

/// The stored outcome of a run of these inputs.
pub fn outcome(directory: &Directory, name: &RunName, inputs: &str) -> Done {
    match (directory.finished(name, inputs), directory.failed(name, inputs)) {
        (Some(stamp), _) => Done::Whole(stamp),
        (None, Some((stamp, why))) => {
            Done::Failed { why, exit_code: Some(stamp.exit_code), took: Nanos(stamp.took) }
        }
        (None, None) => Done::Waiting,
    }
}

/// Runs one to its end, unless its bundle exists; [`Done::Waiting`] if that was interrupted.
///
/// # Errors
/// The directory lacks its experiment, or cannot be written.
pub fn run_one(
    directory: &Directory,
    name: &RunName,
    exact: bool,
    interrupts: &Interrupts,
) -> Result<Done, Failure> {
    let text = Member::root(directory.path()).join(name.experiment()).read_text();
    let text = text.map_err(|why| Failure::refused(format!("the lab has no run {name}: {why}")))?;
    let inputs = directory.inputs_of(&text, exact);
    if let Some(stamp) = directory.finished(name, &inputs) {
        return Ok(Done::Whole(stamp));
    }
    let how = How { exact, ..How::default() };
    let mut attempt = Attempt::start(directory, name, inputs.clone(), how)?;
    let status = attempt.process.wait(&|| interrupts.end_requested(), Duration::MAX)?;
    let Some(status) = status else { return Ok(Done::Waiting) };
    let done = attempt.conclude(directory, name, status)?;
    if let Done::Failed { why, exit_code: Some(exit_code), took } = &done {
        // A run killed from outside is not stored as failed: whatever started it starts it again.
        let stamp = Stamp { inputs, took: took.ns(), exit_code: *exit_code };
        directory.fail(name, stamp, why)?;
    }
    Ok(done)
}

/// The failure that a bundle records.
fn failed_outcome(bundle: &Path) -> Option<String> {
    match Bundle::open(bundle).ok()?.manifest.ending?.outcome {
        Outcome::Failed { why } => Some(plain(&why)),
        _ => None,
    }
}
