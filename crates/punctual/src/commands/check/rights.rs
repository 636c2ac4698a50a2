//! `punctual check --pid`, `--comm` and `-- COMMAND`: why threads are not real-time here.

use crate::commands::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_host::check::rights::{
    RefusedCall, RightKind, RightsAnswer, RightsVerdict, ThreadScheduling, answer_rights,
    list_threads,
};
use punctual_host::files::Root;
use punctual_record::Backend;
use punctual_report::terminal::{self, RightsRow};
use punctual_session::command::{self, Command};
use punctual_session::cycles::target::processes_named;
use punctual_session::programs::is_there;
use punctual_session::refusals::RefusalWatch;
use punctual_session::request::online_cpus;
use punctual_sys::gate::GatedProcess;
use std::time::{Duration, Instant};

/// The time in which a command has to ask for its policy.
const WATCHED: Duration = Duration::from_secs(2);
/// The time between two looks at it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Whose threads are asked about.
pub struct RightsAsked {
    pub pid: Option<u32>,
    pub comm: Option<String>,
    pub command: Vec<String>,
}

impl RightsAsked {
    /// Whether anything is.
    pub fn is_any(&self) -> bool {
        self.pid.is_some() || self.comm.is_some() || !self.command.is_empty()
    }
}

pub fn report_rights(asked: &RightsAsked, json: bool) -> Ending {
    let answers = match (&asked.comm, asked.pid) {
        (Some(name), _) => of_processes(&processes_named(name)?)?,
        (None, Some(pid)) => of_processes(&[pid])?,
        (None, None) => vec![of_command(&asked.command)?],
    };
    let document = serde_json::json!({ "processes": answers });
    let printed = match json {
        true => output::print_json(&document),
        false => {
            let rows = RightsRow::read(&document).unwrap_or_default();
            output::print_stdout(&terminal::show_rights(&rows, &show_options()))
        }
    };
    exit::ending_of_output(printed, worst_exit(&answers))
}

/// The worst: refused, then not known.
fn worst_exit(answers: &[RightsAnswer]) -> Exit {
    let has = |verdict: RightsVerdict| answers.iter().any(|answer| answer.verdict == verdict);
    match () {
        () if has(RightsVerdict::Refused) => Exit::NotMet,
        () if has(RightsVerdict::Unknown) => Exit::NoEvidence,
        () => Exit::Done,
    }
}

fn of_processes(pids: &[u32]) -> Result<Vec<RightsAnswer>, Failure> {
    let files = Root::from_system();
    let answer_of_process = |pid: &u32| answer_rights(&files, *pid, None).map_err(Failure::refused);
    pids.iter().map(answer_of_process).collect()
}

/// Starts it, looks at its threads until one is real-time, and ends it.
fn of_command(line: &[String]) -> Result<RightsAnswer, Failure> {
    let files = Root::from_system();
    let program = command::find_command(line)?.ok_or_else(|| Failure::refused("no command"))?;
    let cannot = |why| Failure::refused(format!("cannot run `{}`: {why}", line[0]));
    let gated = GatedProcess::start(command::prepare_command(&program, line, true, None))
        .map_err(cannot)?;
    let mut watch = match RefusalWatch::start(&[gated.pid], &online_cpus()?, Backend::Auto) {
        Ok(watch) => Some(watch),
        Err(why) => {
            output::print_stderr(&format!("note: refused calls are not watched: {why}\n"));
            None
        }
    };
    let child = gated.release_gate().map_err(cannot)?;
    let (pid, mut command) = (child.id(), Command::from_child(child));
    let (began, mut before, mut of_child) = (Instant::now(), Vec::new(), None);
    let mut refused = watch.as_ref().map(|_| Vec::new());
    let found = loop {
        let (ended, now) = (!is_there(pid), list_threads(&files, pid));
        let is_real_time = now.iter().any(|thread| thread.policy.is_real_time());
        refused = watch.as_mut().and_then(RefusalWatch::new_refusals).or(refused);
        of_child = of_child.or_else(|| refused_child(&files, refused.as_deref()?, &now));
        if ended || is_real_time || of_child.is_some() || began.elapsed() > WATCHED {
            if let Some(of_child) = of_child {
                break Ok(of_child);
            }
            // One that has ended and was not waited for still shows its limits.
            let mut found = answer_rights(&files, pid, refused);
            if let (Ok(found), true) = (&mut found, ended && !before.is_empty()) {
                found.threads = before;
            }
            break found;
        }
        before = now;
        std::thread::sleep(POLL_INTERVAL);
    };
    command.terminate();
    found.map_err(Failure::failed)
}

/// The rights of a process that the command started, as a script does, once a policy is refused to
/// it: the command's own may differ.
fn refused_child(
    files: &Root,
    refused: &[RefusedCall],
    own: &[ThreadScheduling],
) -> Option<RightsAnswer> {
    let is_own = |call: &RefusedCall| own.iter().any(|thread| thread.thread == call.thread);
    let of_policy = |call: &&RefusedCall| call.refused_right() == RightKind::RealTimePolicy;
    let thread = refused.iter().filter(of_policy).find(|call| !is_own(call))?.thread;
    let calls = refused.iter().filter(|call| call.thread == thread).cloned().collect();
    answer_rights(files, thread, Some(calls)).ok()
}
