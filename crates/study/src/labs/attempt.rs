//! One attempt at a run of a lab: `punctual run` in its own process, and the outcome.

use super::directory::{Directory, Stamp, is_whole};
use super::run_name::RunName;
use punctual_bundle::{Bundle, Member, Outcome};
use punctual_core::format::plain;
use punctual_core::{CpuSet, Nanos};
use punctual_session::exit::Failure;
use punctual_session::interrupts::Interrupts;
use punctual_sys::attributes::{affinity, set_affinity, tid};
use punctual_sys::children;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often child processes are polled.
pub const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// How long a run may take to end on request.
pub const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a failed run's log is shown.
const LOG_TAIL_BYTES: usize = 600;

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
    child: Child,
    began: Instant,
    inputs: String,
    ended_by_us: bool,
}

impl Attempt {
    pub fn start(
        directory: &Directory,
        name: &RunName,
        inputs: String,
        how: How<'_>,
    ) -> Result<Attempt, Failure> {
        let command = command(directory, name, how)?;
        let child = match how.cpu {
            Some(cpu) => started_on(cpu, command),
            None => started(command),
        };
        let child =
            child.map_err(|why| Failure::failed(format!("cannot start punctual: {why}")))?;
        Ok(Attempt { child, began: Instant::now(), inputs, ended_by_us: false })
    }

    /// Time since its start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The exit status of the run, if it has ended.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child
            .try_wait()
            .map_err(|why| Failure::failed(format!("cannot wait for a run: {why}")))
    }

    /// Asks the run to end, or ends it with SIGKILL.
    pub fn end(&mut self, signal: i32) {
        if !self.ended_by_us || signal == libc::SIGKILL {
            // If it has ended already, that is fine.
            let _ = children::send(-(self.child.id() as i32), signal);
            self.ended_by_us = true;
        }
    }

    /// Returns the outcome. A complete bundle has its final name then.
    pub fn conclude(
        self,
        directory: &Directory,
        name: &RunName,
        status: ExitStatus,
    ) -> Result<Done, Failure> {
        let took = nanos(self.began.elapsed());
        let unfinished = directory.unfinished(name);
        if self.ended_by_us {
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
    let mut until: Option<Instant> = None;
    let status = loop {
        if let Some(status) = attempt.status()? {
            break status;
        }
        if interrupts.end_requested() {
            let until = *until.get_or_insert_with(|| Instant::now() + END_TIMEOUT);
            attempt.end(if Instant::now() > until { libc::SIGKILL } else { libc::SIGTERM });
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let done = attempt.conclude(directory, name, status)?;
    if let Done::Failed { why, exit_code: Some(exit_code), took } = &done {
        // A run killed from outside is not stored as failed: whatever started it starts it again.
        let stamp = Stamp { inputs, took: took.ns(), exit_code: *exit_code };
        directory.fail(name, stamp, why)?;
    }
    Ok(done)
}

fn command(directory: &Directory, name: &RunName, how: How<'_>) -> Result<Command, Failure> {
    let err = directory.new_log(name)?;
    let out = err.try_clone().map_err(Failure::failed)?;
    let unfinished = directory.unfinished(name);
    directory.discard(name);
    let mut command = Command::new("/proc/self/exe");
    command.args(["run", "--quiet", "--child-of", &std::process::id().to_string(), "--output"]);
    command.arg(&unfinished).arg(directory.path().join(name.experiment()));
    command.args(how.exact.then_some("--exact")).args(how.options);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    Ok(command)
}

/// Starts a run in its own process group, so that Ctrl-C reaches only us and we end it in order.
pub fn started(mut command: Command) -> std::io::Result<Child> {
    command.process_group(0).spawn()
}

/// Like [`started`], on one CPU: a child inherits the affinity of the starting thread.
fn started_on(cpu: usize, command: Command) -> std::io::Result<Child> {
    let own = affinity(tid())?;
    // Another user's partition may have taken this CPU: then the run uses any allowed CPU.
    let moved = set_affinity(tid(), &CpuSet::single(cpu)).is_ok();
    let child = started(command);
    if moved {
        set_affinity(tid(), &own)?;
    }
    child
}

/// The failure that a bundle records.
fn failed_outcome(bundle: &Path) -> Option<String> {
    match Bundle::open(bundle).ok()?.manifest.ending?.outcome {
        Outcome::Failed { why } => Some(plain(&why)),
        _ => None,
    }
}

/// Why a run left no complete bundle: the end of its log.
pub fn why(status: ExitStatus, log: &Member) -> String {
    let messages = log.read().unwrap_or_default();
    let messages =
        String::from_utf8_lossy(&messages[messages.len().saturating_sub(64 << 10)..]).into_owned();
    let line = messages
        .lines()
        .rev()
        .find(|line| line.contains("error"))
        .or(messages.lines().rev().find(|l| !l.trim().is_empty()));
    let mut line = plain(line.unwrap_or("no output").trim());
    if let Some((end, _)) = line.char_indices().nth(LOG_TAIL_BYTES) {
        line.truncate(end);
    }
    format!("{status}: {line}")
}

/// A time of this machine's clock.
pub fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
