//! A target reached by ssh(1).

use super::remote::{RemoteRun, Returned};
use super::returned;
use jiff::Timestamp;
use punctual_bundle::{Bundle, RanOn};
use punctual_core::format::escape_unsafe;
use punctual_core::{Finding, Nanos, Severity};
use punctual_lab::ssh::{
    self, Destination, ErrorPlace, RemoteEnd, RemoteJob, RemoteResult, SshError,
};
use punctual_plan::SshPlan;
use punctual_session::exit::{Exit, Failure};
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Listener;
use std::path::Path;

/// Copies punctual and the experiment there, runs it, and brings the bundle back.
pub(super) fn carry_out(plan: &SshPlan, remote: &RemoteRun) -> Result<Returned, RemoteFailure> {
    let (to, options) = (destination_of_plan(plan), remote.options);
    let mut watch = SshWatch::new(remote.messages)?;
    let timeouts = options.ssh.timeouts();
    let started = Timestamp::now();
    let result = match &options.ssh.resume {
        Some(id) => ssh::resume_run(&to, id, &remote.output, timeouts.reconnect, &mut watch),
        None => {
            // Progress is transferred unless nothing would show it.
            let arguments =
                remote.arguments.iter().filter(|word| options.quiet || *word != "--quiet");
            let job = RemoteJob {
                to: to.clone(),
                binary: plan.binary.clone(),
                file: remote.file_name(),
                experiment: remote.asked.bytes.clone(),
                arguments: arguments.cloned().collect(),
                output: remote.output.clone(),
                timeouts,
            };
            ssh::run_remote(&job, &mut watch)
        }
    };
    let result = result.map_err(|why| {
        let is_run_left = why.is_run_left;
        RemoteFailure { failure: to_failure(why), is_run_left }
    })?;
    watch.finish();
    if options.plan_only {
        return Ok(Returned::Plan {
            text: plain_lines(&result.answer),
            exit: exit_of_run(&result).0,
        });
    }
    let started = options.ssh.resume.is_none().then_some(started);
    Ok(complete_bundle(&to, &result, started, &remote.output, remote.messages)
        .map(Returned::Bundle)?)
}

/// A run that did not return.
pub(super) struct RemoteFailure {
    pub failure: Failure,
    /// Whether it continues there, to be fetched.
    pub is_run_left: bool,
}

impl From<Failure> for RemoteFailure {
    fn from(failure: Failure) -> RemoteFailure {
        RemoteFailure { failure, is_run_left: false }
    }
}

/// The address in the plan.
pub fn destination_of_plan(plan: &SshPlan) -> Destination {
    Destination {
        host: plan.host.clone(),
        user: plan.user.clone(),
        port: plan.port,
        identity: plan.identity.clone(),
        known_hosts: plan.known_hosts.clone(),
    }
}

/// Completes the bundle; the run's exit code is ours. `started` is by this system's clock, if this
/// process started the run.
pub fn complete_bundle(
    to: &Destination,
    result: &RemoteResult,
    started: Option<Timestamp>,
    output: &Path,
    messages: Listener,
) -> Result<Exit, Failure> {
    result.left.iter().for_each(|left| messages.report_error(&escape_unsafe(left)));
    let (exit, trouble) = exit_of_run(result);
    if !result.bundle {
        let how = trouble.unwrap_or_else(|| format!("exit code {}", exit as u8));
        let message = format!("the run on {to} left no bundle ({how}); its output is shown above");
        return Err(Failure { exit, ..Failure::failed(message) });
    }
    let bundle = Bundle::open(output).map_err(Failure::failed)?;
    let unfinished = bundle.manifest.ending.is_none().then(|| format!("exit code {}", exit as u8));
    let trouble = trouble.or(unfinished);
    let elapsed = started.map(|started| Timestamp::now().duration_since(started).as_nanos());
    let started = started.unwrap_or(bundle.manifest.created);
    let target = RanOn {
        elapsed: elapsed.and_then(|elapsed| i64::try_from(elapsed).ok()).map(Nanos),
        facts: system_facts(result),
        failed: trouble.clone(),
        ..RanOn::new("ssh", to.to_string(), started)
    };
    let trouble = trouble.map(|why| returned::RunFailure { why, remedy: None });
    returned::close_bundle(output, target, connection_findings(result), trouble)
}

fn system_facts(result: &RemoteResult) -> Vec<(String, String)> {
    let system = &result.system;
    let facts = [
        ("host", &system.node),
        ("kernel", &system.release),
        ("architecture", &system.machine),
        ("user", &system.user),
        ("program", &result.version),
    ];
    facts.into_iter().map(|(what, is)| (what.to_owned(), is.clone())).collect()
}

fn connection_findings(result: &RemoteResult) -> Vec<Finding> {
    let message =
        "the connection was lost during the run and restored; the run continued meanwhile";
    let lost = Finding::new("connection-lost", Severity::Note, "system", message);
    let times = format!("{} times", result.lost);
    (result.lost > 0).then(|| lost.with_evidence(times)).into_iter().collect()
}

/// The exit code of the run, and why it has none.
fn exit_of_run(result: &RemoteResult) -> (Exit, Option<String>) {
    match result.ended {
        RemoteEnd::Exit(code) => (returned::exit_of(code), None),
        RemoteEnd::Signal(number) => {
            (Exit::Failed, Some(format!("punctual was killed there by signal {number}")))
        }
        RemoteEnd::Died => {
            let reason = "it was killed there with its supervisor, or the system went down";
            (Exit::Failed, Some(reason.to_owned()))
        }
    }
}

/// As long as nothing runs there, the error is a refused request.
pub fn to_failure(why: SshError) -> Failure {
    match why.trouble {
        ErrorPlace::Lost | ErrorPlace::Gone | ErrorPlace::Local => Failure::failed(why),
        _ => Failure::refused(why),
    }
}

/// Lines of another system, with control characters removed.
fn plain_lines(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().map(|line| escape_unsafe(line) + "\n").collect()
}

pub struct SshWatch {
    messages: Listener,
    interrupts: SignalRequests,
    unfinished: Vec<u8>,
}

/// A longer line is not from punctual.
const LINE_MAX: usize = 8192;

impl SshWatch {
    /// Handles signals from now on.
    pub fn new(messages: Listener) -> Result<SshWatch, Failure> {
        Ok(SshWatch { messages, interrupts: SignalRequests::listen()?, unfinished: Vec::new() })
    }

    fn show_line(&self, bytes: &[u8]) {
        self.messages.say(&format!("{}\n", escape_unsafe(&String::from_utf8_lossy(bytes))));
    }

    /// Shows a last line without a newline.
    pub fn finish(&mut self) {
        if !self.unfinished.is_empty() {
            let rest = std::mem::take(&mut self.unfinished);
            self.show_line(&rest);
        }
    }
}

impl ssh::RemoteWatch for SshWatch {
    fn show_message(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            self.show_line(&line[..end]);
        }
        if self.unfinished.len() > LINE_MAX {
            self.finish();
        }
    }

    fn show_note(&mut self, text: &str) {
        self.messages.progress_of("ssh", &escape_unsafe(text));
    }

    fn end_requested(&self) -> bool {
        self.interrupts.end_requested()
    }
}
