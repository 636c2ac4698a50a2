//! What suites printed: results, failures, and what was skipped.

use crate::run::{log_path, run_timed, suite_command};
use crate::suite::{Lane, Suite};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// More failures than this at once are no accident of a busy machine: none is repeated.
const MAX_REPEATED: usize = 8;

/// Lines of a failed test that are printed at the end: the first and the last ones.
const FIRST_LINES: usize = 30;
const LAST_LINES: usize = 120;

pub(crate) struct SuiteResult {
    suite: Suite,
    time: String,
    passed: usize,
    failed: Vec<String>,
    /// Tests that lacked something, with what they said.
    skipped: Vec<(String, String)>,
    text: String,
}

impl SuiteResult {
    /// Reads a log of libtest. One that ended without a result is one failure.
    pub(crate) fn read(suite: &Suite, log: &str, time: String) -> SuiteResult {
        let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        SuiteResult::parse(suite, text.unwrap_or_default(), time)
    }

    fn parse(suite: &Suite, text: String, time: String) -> SuiteResult {
        let mut result = SuiteResult {
            suite: suite.clone(),
            time,
            passed: 0,
            failed: Vec::new(),
            skipped: Vec::new(),
            text: String::new(),
        };
        let (mut test, mut has_result) = (String::new(), false);
        for line in text.lines() {
            if let Some(name) = heading_of_output(line) {
                test = name.to_owned();
            } else if let Some(counts) = line.strip_prefix("test result: ") {
                has_result = true;
                let passed = counts.split(". ").nth(1).and_then(|rest| rest.split(' ').next());
                result.passed += passed.and_then(|count| count.parse().ok()).unwrap_or(0);
            } else if let Some(name) = line.strip_prefix("test ").and_then(failed_test) {
                result.failed.push(name.to_owned());
            } else if let Some((_, reason)) = line.split_once("SKIPPED: ") {
                result.skipped.push((test.clone(), reason.to_owned()));
            }
        }
        if !has_result {
            result.failed.push("(the whole suite)".into());
        }
        // A skipped test is no passed one.
        let skipped_tests: BTreeSet<&String> =
            result.skipped.iter().map(|(test, _)| test).collect();
        result.passed = result.passed.saturating_sub(skipped_tests.len());
        result.text = text;
        result
    }

    pub(crate) fn summary(&self) -> String {
        let mut line = format!("{:>28}  {}: {} passed", self.time, self.suite.name, self.passed);
        for test in &self.failed {
            line += &format!("\n{:>28}  FAILED: {test}", "");
        }
        line
    }

    /// The output of a test, without the middle of a long one.
    fn output_of_test(&self, test: &str) -> String {
        let is_other = |line: &&str| heading_of_output(line).is_some() || *line == "failures:";
        let starts = |line: &&str| heading_of_output(line) == Some(test);
        let mut lines: Vec<&str> = match self.text.lines().any(|line| starts(&line)) {
            true => {
                let rest = self.text.lines().skip_while(|line| !starts(line)).skip(1);
                rest.take_while(|line| !is_other(line)).collect()
            }
            false => self.text.lines().collect(),
        };
        if lines.len() > FIRST_LINES + LAST_LINES {
            lines.drain(FIRST_LINES..lines.len() - LAST_LINES);
            lines.insert(FIRST_LINES, "[…]");
        }
        lines.join("\n")
    }
}

/// `---- NAME stdout ----` begins the output of a test.
fn heading_of_output(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

fn failed_test(rest: &str) -> Option<&str> {
    rest.strip_suffix(" ... FAILED")
}

pub(crate) struct Outcome {
    pub passed: usize,
    failed: Vec<(Suite, String)>,
    skipped: Vec<(Suite, String, String)>,
    repeated: Vec<String>,
    results: Vec<SuiteResult>,
}

impl Outcome {
    pub(crate) fn new(results: Vec<SuiteResult>) -> Outcome {
        let mut outcome = Outcome {
            passed: 0,
            failed: Vec::new(),
            skipped: Vec::new(),
            repeated: Vec::new(),
            results: Vec::new(),
        };
        for result in &results {
            outcome.passed += result.passed;
            let suite = &result.suite;
            outcome.failed.extend(result.failed.iter().map(|test| (suite.clone(), test.clone())));
            for (test, reason) in &result.skipped {
                outcome.skipped.push((suite.clone(), test.clone(), reason.clone()));
            }
        }
        outcome.results = results;
        outcome
    }

    /// Prints what each failed test printed, once more: who keeps only the end still sees why.
    pub(crate) fn show_failures(&self) {
        for result in &self.results {
            for test in &result.failed {
                println!(
                    "\n---- {}: {test} printed\n{}",
                    result.suite.name,
                    result.output_of_test(test)
                );
            }
        }
    }

    /// Runs each live test that failed once more, alone: a busy machine may have failed it. In pure
    /// suites and guests a failure is final.
    pub(crate) fn repeat_live_tests(&mut self) {
        if self.failed.len() > MAX_REPEATED {
            return;
        }
        for (suite, test) in std::mem::take(&mut self.failed) {
            if suite.lane != Lane::Pure && passes_alone(&suite, &test) {
                self.passed += 1;
                self.repeated.push(format!("{} {test}", suite.name));
            } else {
                self.failed.push((suite, test));
            }
        }
    }

    /// A machine that has all this kind usually has may skip only what is on the list: a check that
    /// silently stops to run is a fault. One that was skipped beside others only runs once more.
    pub(crate) fn check_skips(&mut self, list: &str) {
        let has_everything = rustix::process::getuid().is_root()
            && Path::new("/sys/kernel/btf/vmlinux").exists()
            && Path::new("/usr/bin/qemu-system-x86_64").exists();
        for (suite, test, reason) in &self.skipped {
            eprintln!("skipped: {} {test}: {reason}", suite.name);
        }
        if !has_everything {
            return;
        }
        let listed = std::fs::read_to_string(list).unwrap_or_default();
        let skipped: BTreeSet<(&str, &str)> = self
            .skipped
            .iter()
            .map(|(suite, test, _)| (suite.name.as_str(), test.as_str()))
            .collect();
        for (suite, test) in skipped {
            let short = test.strip_prefix(&format!("{suite}::")).unwrap_or(test);
            let is_listed = listed.lines().any(|line| line == format!("{suite} {short}"));
            let found = self.skipped.iter().find(|(other, _, _)| other.name == suite);
            let Some((suite, _, _)) = found.filter(|_| !is_listed) else { continue };
            if suite.lane == Lane::Pure || !passes_alone(suite, test) {
                println!("skipped, and not in {list}: {} {short}", suite.name);
                self.failed.push((suite.clone(), test.to_owned()));
            }
        }
    }

    /// Prints the closing line.
    pub(crate) fn close(&self) -> ExitCode {
        let tests: BTreeSet<_> =
            self.skipped.iter().map(|(suite, test, _)| (&suite.name, test)).collect();
        if !self.repeated.is_empty() {
            println!("failed at first and passed alone: {}", self.repeated.join("; "));
        }
        for (suite, test) in &self.failed {
            println!("FAILED: {} {test}", suite.name);
        }
        let (failed, skipped) = (self.failed.len(), tests.len());
        println!("\n{} passed, {failed} failed, {skipped} skipped", self.passed);
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn passes_alone(suite: &Suite, test: &str) -> bool {
    eprintln!("== once more, alone: {} {test}", suite.name);
    let suite = Suite { tests: vec![test.to_owned()], ..suite.clone() };
    let log = log_path(&format!("{}.again", suite.log_name()));
    let time = run_timed(suite_command(&suite, "0", &["--test-threads=1"]), &log);
    let result = SuiteResult::read(&suite, &log, time);
    if result.passed != 1 || !result.failed.is_empty() {
        println!("{}", result.text);
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "
test kept ... ok
test broken ... FAILED
test lacking ... ok

successes:

---- lacking stdout ----
SKIPPED: this machine lacks qemu

failures:

---- broken stdout ----
left is not right

failures:
    broken

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
";

    fn parse(text: &str) -> SuiteResult {
        let suite = Suite {
            name: "run".into(),
            lane: Lane::Live,
            program: "run".into(),
            directory: ".".into(),
            tests: Vec::new(),
            timeline: None,
        };
        SuiteResult::parse(&suite, text.to_owned(), String::new())
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let result = parse(LOG);
        assert_eq!((result.passed, result.failed.len(), result.skipped.len()), (1, 1, 1));
        assert_eq!(result.output_of_test("broken"), "left is not right\n");
    }

    #[test]
    fn a_suite_that_ends_without_a_result_is_a_failure() {
        let outcome = Outcome::new(vec![parse("test kept ... ok\nSegmentation fault\n")]);
        assert_eq!((outcome.passed, outcome.failed.len()), (0, 1));
    }
}
