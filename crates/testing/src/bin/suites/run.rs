//! Runs suites and reads their results.

use crate::outcome::{Outcome, SuiteResult};
use crate::suite::{Lane, Suite};
use std::collections::VecDeque;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Where the logs are.
const LOGS: &str = "target/tests";

#[derive(Default)]
pub(crate) struct Runner {
    results: Mutex<Vec<SuiteResult>>,
}

impl Runner {
    /// Two more at a time than there are CPUs, because some wait; live ones in one lane.
    pub(crate) fn run_beside(&self, suites: &[Suite]) {
        let (live, pure): (Vec<Suite>, Vec<Suite>) =
            suites.iter().cloned().partition(|suite| suite.lane == Lane::Live);
        let queue: Mutex<VecDeque<Suite>> = Mutex::new(pure.into());
        let next_suite = || queue.lock().unwrap().pop_front();
        let workers = std::thread::available_parallelism().map_or(1, usize::from) + 1;
        std::thread::scope(|scope| {
            scope.spawn(|| self.run_one_by_one(&live));
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(suite) = next_suite() {
                        self.run_suite(&suite, "5", &[]);
                    }
                });
            }
        });
    }

    pub(crate) fn run_one_by_one(&self, suites: &[Suite]) {
        for suite in suites {
            self.run_suite(suite, "0", &["--test-threads=1"]);
        }
    }

    fn run_suite(&self, suite: &Suite, niceness: &str, options: &[&str]) {
        let log = log_path(&suite.log_name());
        let command = suite_command(suite, niceness, options);
        self.note_result(SuiteResult::read(suite, &log, run_timed(command, &log)));
    }

    fn note_result(&self, result: SuiteResult) {
        eprintln!("{}", result.summary());
        self.results.lock().unwrap().push(result);
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        Outcome::new(self.results.into_inner().unwrap())
    }
}

/// A test that is skipped says what it lacks, so output is always shown. SIGHUP is ignored under
/// nohup(1), and tests of closed terminals would wait for ever.
pub(crate) fn suite_command(suite: &Suite, niceness: &str, options: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP", "nice", "-n", niceness])
        .arg(&suite.program)
        .args(["--show-output", "--exact"])
        .args(options)
        .args(&suite.tests)
        .current_dir(&suite.directory)
        .env("CARGO_MANIFEST_DIR", &suite.directory)
        .stdin(Stdio::null());
    if let Some(timeline) = suite.timeline {
        command.env("PUNCTUAL_TIMELINE", timeline.to_string());
    }
    command
}

/// The path of the log of a suite, absolute: suites run in other directories.
pub(crate) fn log_path(suite: &str) -> String {
    let directory = std::env::current_dir().unwrap_or_default();
    directory.join(LOGS).join(format!("{suite}.log")).display().to_string()
}

/// Runs a command with its output in a file; returns its wall and CPU time as bash measures them.
pub(crate) fn run_timed(command: Command, log: &str) -> String {
    let mut timed = Command::new("bash");
    timed
        .args(["-c", "TIMEFORMAT='%0R s, %0U+%0S of CPU'; time \"$@\" >\"$0\" 2>&1", log])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    if let Some(directory) = command.get_current_dir() {
        timed.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        timed.env(name, value.unwrap_or_default());
    }
    match timed.output() {
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => {
            let _ = fs::write(log, format!("bash did not start: {error}\n"));
            String::new()
        }
    }
}

/// The examples in the documentation of libraries. Cargo compiles them with the variables that `x`
/// has set, so that nothing is compiled twice.
pub(crate) fn run_documentation(runner: &Runner) {
    let log = log_path("documentation");
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--locked", "--doc", "--quiet", "--no-fail-fast"]);
    let suite = Suite {
        name: "documentation".into(),
        lane: Lane::Alone,
        program: "cargo".into(),
        directory: ".".into(),
        tests: Vec::new(),
        timeline: None,
    };
    runner.note_result(SuiteResult::read(&suite, &log, run_timed(command, &log)));
}
