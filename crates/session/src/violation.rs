//! `--on-violation CMD`: a command that sh(1) runs once, when a stated requirement is violated.
//!
//! The controller thread starts it and never waits for it while something is measured: it runs on
//! the CPUs of that thread, in a process group of its own, so that Ctrl-C ends the run alone.

use crate::saver::Saver;
use punctual_bundle::Member;
use punctual_core::{BoundComparison, Finding, Metric, Nanos, Requirement, Severity};
use punctual_stats::{SeriesView, Violation, first_violation};
use punctual_sys::children;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// The file in the bundle with the command's output.
const OUTPUT: &str = "on-violation.log";
/// How long the end of a run waits for the command.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The violation and its series.
struct FoundViolation {
    /// The path `phase/series`.
    series: String,
    violation: Violation,
}

enum ViolationState {
    /// No violation so far.
    Waiting,
    /// A violation was found: the command is started once the bundle holds the worst sample.
    Found(FoundViolation),
    /// The saver starts the command after what was saved before.
    Starting(FoundViolation, Receiver<io::Result<Child>>),
    Running(FoundViolation, Child),
    Ended(FoundViolation, io::Result<ExitStatus>),
}

/// The command and its state.
pub struct ViolationHook {
    command: String,
    bundle: PathBuf,
    saver: Saver,
    state: ViolationState,
}

impl ViolationHook {
    /// Creates the hook of the run that writes this bundle.
    pub fn new(command: String, bundle: &Path, saver: &Saver) -> ViolationHook {
        let bundle = std::path::absolute(bundle).unwrap_or_else(|_| bundle.to_owned());
        ViolationHook { command, bundle, saver: saver.clone(), state: ViolationState::Waiting }
    }

    /// Examines these series of a phase, unless a violation was found already.
    pub(crate) fn examine_series<'v>(
        &mut self,
        phase: &str,
        series: impl IntoIterator<Item = SeriesView<'v>>,
        ended: bool,
    ) {
        if !matches!(self.state, ViolationState::Waiting) {
            return;
        }
        let found = series.into_iter().find_map(|view| {
            let violation = first_violation(&view, ended)?;
            Some(FoundViolation { series: format!("{phase}/{}", view.meta.name), violation })
        });
        if let Some(found) = found {
            self.state = ViolationState::Found(found);
        }
    }

    /// A latency above `stop_above` ended the run.
    pub fn stopped_above(&mut self, series: String, latency: Nanos, limit: Nanos) {
        if matches!(self.state, ViolationState::Waiting) {
            let requirement = Requirement {
                metric: Metric::Max,
                comparison: BoundComparison::LessOrEqual,
                bound: limit.ns(),
            };
            let violation = Violation { requirement, figure: latency.ns() as f64 };
            self.state = ViolationState::Found(FoundViolation { series, violation });
        }
    }

    /// Starts the command if a violation was found; the bundle holds its sample by now. Does not
    /// wait.
    pub fn advance(&mut self) {
        self.state = match std::mem::replace(&mut self.state, ViolationState::Waiting) {
            ViolationState::Found(found) => {
                let (sender, started) = mpsc::sync_channel(1);
                let shell = shell_command(&self.command, &self.bundle, &found);
                let output = Member::from_root(&self.bundle).join(OUTPUT);
                self.saver.put_job(0, move || drop(sender.send(spawn_shell(shell, &output))));
                ViolationState::Starting(found, started)
            }
            ViolationState::Starting(found, started) => match started.try_recv() {
                Ok(Ok(child)) => ViolationState::Running(found, child),
                Ok(Err(why)) => ViolationState::Ended(found, Err(why)),
                Err(TryRecvError::Empty) => ViolationState::Starting(found, started),
                Err(TryRecvError::Disconnected) => {
                    let thread_error = io::Error::other("the thread that starts it died");
                    ViolationState::Ended(found, Err(thread_error))
                }
            },
            ViolationState::Running(found, mut child) => match child.try_wait() {
                Ok(None) => ViolationState::Running(found, child),
                Ok(Some(status)) => ViolationState::Ended(found, Ok(status)),
                Err(why) => ViolationState::Ended(found, Err(why)),
            },
            other => other,
        };
    }

    /// At the end of the run: starts it if needed, waits a while, and reports the result.
    pub fn finish(mut self) -> Option<Finding> {
        let until = Instant::now() + END_TIMEOUT;
        loop {
            self.advance();
            match &self.state {
                ViolationState::Starting(..) | ViolationState::Running(..)
                    if Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
        let (found, what) = match self.state {
            ViolationState::Waiting | ViolationState::Found(_) => return None,
            ViolationState::Starting(found, _) => {
                (found, Err("was not started: the disk of the bundle took nothing".to_owned()))
            }
            ViolationState::Running(found, child) => {
                (found, Err(format!("still runs (process {}) and was left alone", child.id())))
            }
            ViolationState::Ended(found, Ok(status)) if status.success() => (found, Ok(())),
            ViolationState::Ended(found, Ok(status)) => {
                (found, Err(format!("ended with {status}")))
            }
            ViolationState::Ended(found, Err(why)) => {
                (found, Err(format!("could not be run: {why}")))
            }
        };
        let evidence = format!("{} = {}", found.violation.requirement.metric, found.figure_text());
        let requirement = found.violation.requirement;
        let finding = |id: &str, severity, message: String| {
            Finding::new(id, severity, &*found.series, message).with_evidence(evidence.clone())
        };
        Some(match what {
            Ok(()) => finding(
                "on-violation",
                Severity::Note,
                format!("{requirement} was violated: the command of on_violation ran with success"),
            ),
            Err(what) => finding(
                "on-violation-failed",
                Severity::Warning,
                format!("{requirement} was violated, and the command of on_violation {what}"),
            )
            .with_remedy(format!("see {OUTPUT} in the bundle for what it printed")),
        })
    }
}

impl FoundViolation {
    /// The figure as whole ns, or as a count.
    fn figure_text(&self) -> String {
        match self.violation.requirement.metric.is_time() {
            true => format!("{} ns", self.violation.figure.round() as i64),
            false => self.violation.figure.to_string(),
        }
    }
}

fn shell_command(command: &str, bundle: &Path, found: &FoundViolation) -> Command {
    let Violation { requirement, figure } = found.violation;
    let mut shell = Command::new("/bin/sh");
    children::without_service_manager(&mut shell);
    shell
        .args(["-c", command])
        .env("PUNCTUAL_BUNDLE", bundle)
        .env("PUNCTUAL_SERIES", &found.series)
        .env("PUNCTUAL_REQUIREMENT", requirement.to_string())
        .env("PUNCTUAL_VALUE", (figure.round() as i64).to_string())
        .env("PUNCTUAL_LIMIT", requirement.bound.to_string())
        .stdin(Stdio::null())
        .process_group(0);
    shell
}

fn spawn_shell(mut shell: Command, output: &Member) -> io::Result<Child> {
    let output = output.open_to_append()?;
    shell.stdout(output.try_clone()?).stderr(output).spawn()
}
