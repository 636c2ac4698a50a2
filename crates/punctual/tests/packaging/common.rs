//! Common parts of the package tests: each suite uses some.

#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_punctual"))
}

/// The output of a command that must succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// Whether to skip a test: prints the missing tools.
pub fn lacks(test: &str, tools: &[&str]) -> bool {
    let is_there = |tool: &&&str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&paths).any(|directory| directory.join(tool).is_file())
    };
    let missing: Vec<&str> = tools.iter().filter(is_there).copied().collect();
    if !missing.is_empty() {
        println!("SKIPPED: {test} lacks {}", missing.join(", "));
    }
    !missing.is_empty()
}

/// A Python with these modules: the first one, or Debian's, which its packages are for. `None` if
/// neither has them; prints the missing ones.
pub fn python_with(test: &str, modules: &[&str]) -> Option<&'static str> {
    let script = format!("import {}", modules.join(", "));
    let has_all = |python: &&str| {
        let found = Command::new(python).args(["-c", &script]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let python = ["python3", "/usr/bin/python3"].into_iter().find(has_all);
    if python.is_none() {
        println!("SKIPPED: {test} lacks Python with the modules {}", modules.join(", "));
    }
    python
}

/// The files below a directory, without it.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(directory).expect("below it").to_owned());
            }
        }
    }
    found.sort();
    found
}
