//! The packages (`packaging/`), made of the program that tests run: no release is built for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "packaging/debian.rs"]
mod debian;
#[path = "packaging/parts.rs"]
mod parts;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_punctual"))
}

/// What a command that must succeed prints.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// Whether a test has to be skipped: it prints which tools it lacks.
fn lacks(test: &str, tools: &[&str]) -> bool {
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

/// Whether Python has these modules; prints what a test lacks where it has not.
fn lacks_modules(test: &str, modules: &[&str]) -> bool {
    if lacks(test, &["python3"]) {
        return true;
    }
    let script = format!("import {}", modules.join(", "));
    let found = Command::new("python3").args(["-c", &script]).output();
    let is_missing = !found.is_ok_and(|output| output.status.success());
    if is_missing {
        println!("SKIPPED: {test} lacks the Python modules {}", modules.join(", "));
    }
    is_missing
}

/// The files below a directory, without it.
fn files_below(directory: &Path) -> Vec<PathBuf> {
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
