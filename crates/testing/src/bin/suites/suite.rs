//! Which test programs there are, and how their tests are grouped.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// At most this many tests are compiled by `./x test` and not run by it.
const MAX_ALL_ONLY: usize = 40;

/// Suites of live tests that change the machine for others (partitions, settings, loads on every
/// CPU), or ask what else is on it.
const ALONE: &[&str] =
    &["attach_cpus", "check", "isolate", "isolate_real", "tune_live", "tutorials", "validity"];

/// Suites that take longest: they start first.
const LONGEST_FIRST: &[&str] = &[
    "explain_exact",
    "target_vm",
    "guest_irq",
    "lab_vm",
    "guests",
    "kernel",
    "attach_causes",
    "truth",
    "packaging",
    "html_browser",
    "prometheus",
    "perfetto",
    "punctual_lab",
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Lane {
    /// Pure, or in guests: beside anything.
    Pure,
    /// Measures this machine: one at a time, beside pure ones.
    Live,
    /// Changes this machine: with nothing beside it.
    Alone,
}

/// Tests of one program that run in one process.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub name: String,
    pub lane: Lane,
    pub program: PathBuf,
    /// The directory of its package, in which it runs, as under cargo.
    pub directory: PathBuf,
    pub tests: Vec<String>,
    /// The timeline of its guests, if not the usual one.
    pub timeline: Option<usize>,
}

impl Suite {
    pub(crate) fn boots_guests(&self) -> bool {
        let names = ["guest", "lab_vm", "target_vm", "explain_exact", "attach_causes", "truth"];
        self.lane == Lane::Pure && names.iter().any(|name| self.name.contains(name))
    }

    /// The name of its log: suites of two crates may have the same name.
    pub(crate) fn log_name(&self) -> String {
        let program = self.program.file_stem().unwrap_or_default().to_string_lossy();
        format!("{}.{program}", self.name)
    }

    pub(crate) fn on_timeline(&self, timeline: usize) -> Suite {
        let name = format!("{}.at.{timeline}", self.name);
        Suite { name, timeline: Some(timeline), ..self.clone() }
    }
}

/// All suites of the programs in cargo's messages, those that take longest first.
pub(crate) fn list_suites(messages: &str) -> Result<Vec<Suite>, String> {
    let text = std::fs::read_to_string(messages).map_err(|error| format!("{messages}: {error}"))?;
    let mut suites = Vec::new();
    for line in text.lines() {
        let Some((target, program, directory)) = read_program(line) else { continue };
        let tests = list_tests(&program, &directory, &[])?;
        let parts_of_tests = list_tests(&program, &directory, &["--ignored"])?;
        let tests = tests.into_iter().filter(|test| !parts_of_tests.contains(test)).collect();
        suites.extend(group_tests(&target, &program, &directory, tests));
    }
    if suites.is_empty() {
        return Err(format!("no test is in cargo's messages ({messages})"));
    }
    let rank = |suite: &Suite| LONGEST_FIRST.iter().position(|name| suite.name.starts_with(name));
    suites.sort_by_key(|suite| rank(suite).unwrap_or(LONGEST_FIRST.len()));
    Ok(suites)
}

/// Target, program and package directory of a test program, if the message is about one.
fn read_program(message: &str) -> Option<(String, PathBuf, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let target = message["target"]["name"].as_str()?.to_owned();
    Some((target, message["executable"].as_str()?.into(), manifest.parent()?.into()))
}

fn list_tests(program: &Path, directory: &Path, options: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .args(options)
        .current_dir(directory)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Modules of programs called `pure` or `live` are suites. A module `live` of unit tests holds
/// those that measure; a module `guests` of live tests holds those that boot guests, which disturb
/// nothing.
fn group_tests(target: &str, program: &Path, directory: &Path, tests: Vec<String>) -> Vec<Suite> {
    let mut groups: BTreeMap<(String, Lane), Vec<String>> = BTreeMap::new();
    for test in tests {
        let first = test.split("::").next().unwrap_or_default();
        let name = if matches!(target, "pure" | "live") { first } else { target };
        let is_live = target == "live" || test.split("::").any(|module| module == "live");
        let lane = match is_live && !test.contains("guests::") {
            true if ALONE.contains(&name) => Lane::Alone,
            true => Lane::Live,
            false => Lane::Pure,
        };
        groups.entry((name.to_owned(), lane)).or_default().push(test);
    }
    let suite = |((name, lane), tests)| Suite {
        name,
        lane,
        program: program.into(),
        directory: directory.into(),
        tests,
        timeline: None,
    };
    groups.into_iter().map(suite).collect()
}

/// Takes the tests of the list out of the suites; each becomes a suite of its own. A line is the
/// suite, the test, the seconds it takes, and the reason why it is not run each time.
///
/// # Errors
/// The list is too long, or a line of it names no test: one that was renamed would run nowhere.
pub(crate) fn take_all_only(suites: &mut Vec<Suite>, list: &str) -> Result<Vec<Suite>, String> {
    let text = std::fs::read_to_string(list).map_err(|error| format!("{list}: {error}"))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    if lines.len() > MAX_ALL_ONLY {
        return Err(format!("{list} names {} tests, more than {MAX_ALL_ONLY}", lines.len()));
    }
    let mut taken = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        let (Some(suite), Some(test)) = (words.next(), words.next()) else { continue };
        if words.count() < 2 {
            return Err(format!("{list} lacks the seconds or the reason: {line}"));
        }
        taken.push(
            take_test(suites, suite, test)
                .ok_or_else(|| format!("{list} names no test that is compiled: {suite} {test}"))?,
        );
    }
    suites.retain(|suite| !suite.tests.is_empty());
    Ok(taken)
}

fn take_test(suites: &mut [Suite], name: &str, test: &str) -> Option<Suite> {
    let full_name = format!("{name}::{test}");
    for suite in suites.iter_mut().filter(|suite| suite.name == name) {
        let found = suite.tests.iter().position(|other| other == test || *other == full_name);
        if let Some(place) = found {
            let tests = vec![suite.tests.swap_remove(place)];
            let name = format!("{name}.{}", test.replace("::", "."));
            return Some(Suite { name, tests, ..suite.clone() });
        }
    }
    None
}
