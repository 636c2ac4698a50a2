//! `punctual check --pid`, `--comm` and `-- COMMAND`: why threads are not real-time here.

use crate::commands::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_core::format::plain;
use punctual_host::check::rights::{RightsAnswer, RightsVerdict, answer};
use punctual_host::files::Root;
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

pub fn run(asked: &RightsAsked, json: bool) -> Ending {
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
            output::print(&terminal::rights(&rows, &show_options()))
        }
    };
    exit::after(printed, code(&answers))
}

/// The worst: refused, then not known.
fn code(answers: &[RightsAnswer]) -> Exit {
    let has = |verdict: RightsVerdict| answers.iter().any(|answer| answer.verdict == verdict);
    match () {
        () if has(RightsVerdict::Refused) => Exit::NotMet,
        () if has(RightsVerdict::Unknown) => Exit::NoEvidence,
        () => Exit::Done,
    }
}

fn of_processes(pids: &[u32]) -> Result<Vec<RightsAnswer>, Failure> {
    let files = Root::system();
    let of = |pid: &u32| answer(&files, *pid, None).map_err(Failure::refused);
    pids.iter().map(of).collect()
}

/// Starts it, looks at its threads until one is real-time, and ends it.
fn of_command(line: &[String]) -> Result<RightsAnswer, Failure> {
    let files = Root::system();
    let program = command::find(line)?.ok_or_else(|| Failure::refused("no command"))?;
    let cannot = |why| Failure::refused(format!("cannot run `{}`: {why}", line[0]));
    let gated =
        GatedProcess::start(command::prepared(&program, line, true, None)).map_err(cannot)?;
    let mut watch = match RefusalWatch::start(gated.pid, &online_cpus()?) {
        Ok(watch) => Some(watch),
        Err(why) => {
            output::say(&format!("note: refused calls are not watched: {why}\n"));
            None
        }
    };
    let child = gated.release().map_err(cannot)?;
    let (pid, mut command) = (child.id(), Command::of(child));
    let began = Instant::now();
    let mut last: Option<RightsAnswer> = None;
    loop {
        // One that has ended and was not waited for still shows its limits.
        let ended = !is_there(pid);
        let refused = watch.as_mut().map(RefusalWatch::refused);
        if let Ok(mut found) = answer(&files, pid, refused) {
            if let Some(before) = last.filter(|_| ended) {
                found.threads = before.threads;
            }
            last = Some(found);
        }
        let done = last.as_ref().is_some_and(|last| last.verdict == RightsVerdict::RealTime);
        if ended || done || began.elapsed() > WATCHED {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    command.terminate();
    last.ok_or_else(|| Failure::failed(format!("/proc showed nothing of `{}`", plain(&line[0]))))
}
