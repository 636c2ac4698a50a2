#![forbid(unsafe_code)]
//! Guests for tests: a test that lacks something reports it, and is skipped.
//!
//! ```no_run
//! let Some(mut guest) = punctual_testing::guest("debian:6.1") else { return };
//! guest.job = punctual_lab::Job::Script("cat /proc/version".into());
//! let Some(result) = punctual_testing::run(&guest) else { return };
//! assert!(String::from_utf8_lossy(&result.stdout).starts_with("Linux version 6.1"));
//! ```

mod events;
mod hidden_samples;
mod names;
mod steal;

pub use events::{assert_lines, parse_events};
pub use hidden_samples::HiddenSamples;
pub use names::parse_names;
use punctual_lab::{Arch, BootKernel, Guest, GuestFile, GuestOutcome, GuestResult, Job, LabError};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use steal::{Excuse, Steal};

/// The value, or `None` after printing `SKIPPED: ` and the missing item.
///
/// # Panics
/// On every other error: that is a failure of the test.
pub fn or_skip<T>(result: Result<T, LabError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(LabError::Missing(missing)) => {
            eprintln!("SKIPPED: this machine lacks {missing}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A guest with Debian's amd64 kernel of that name and no job yet.
pub fn guest(kernel: &str) -> Option<Guest> {
    guest_for(Arch::Amd64, kernel)
}

/// The same for any architecture.
pub fn guest_for(arch: Arch, kernel: &str) -> Option<Guest> {
    // Before fetching a kernel that could not be booted here.
    or_skip(punctual_lab::check_emulator(arch))?;
    let kernel = or_skip(BootKernel::by_name(kernel, arch))?;
    let guest = Guest::new(kernel, Job::Command(vec!["true".into()]));
    Some(Guest { padding: timeline() * BYTES, ..guest })
}

/// The number of the timeline on which guests run, 0 by default. Everything in a guest shifts its
/// virtual time: no test may hold on some of these numbers only (`./x test --timelines N`).
///
/// # Panics
/// `PUNCTUAL_TIMELINE` is not a number, or a large one.
pub fn timeline() -> usize {
    let text = std::env::var("PUNCTUAL_TIMELINE").unwrap_or_else(|_| "0".into());
    let number = text.parse::<usize>().ok().filter(|number| *number < 10_000);
    number.unwrap_or_else(|| panic!("PUNCTUAL_TIMELINE={text} is no number below 10000"))
}

/// The additional bytes of each timeline: files in an initramfs are aligned to four bytes, so that
/// a few bytes may shift nothing.
const BYTES: usize = 1_004;

/// A guest with the `punctual` command in it, as /usr/bin/punctual. Tests of
/// the command's own crate have the path in `env!("CARGO_BIN_EXE_punctual")`.
pub fn punctual_guest(
    binary: impl AsRef<Path>,
    kernel: &str,
    cmdline: &str,
    cpus: u32,
) -> Option<Guest> {
    let mut guest = guest(kernel)?;
    guest.cmdline_extra = cmdline.to_owned();
    guest.cpus = cpus;
    guest.memory_mb = 1024;
    let binary = stripped(binary.as_ref());
    guest.links = vec![("/usr/bin/punctual".into(), binary.to_string_lossy().into_owned())];
    guest.programs = vec![binary];
    Some(guest)
}

/// A program without its symbols, stored beside it: they are most of a program built for tests, and
/// a guest unpacks everything. It has the additional bytes of the [`timeline`], since commands pass
/// it to guests, too. The program itself if strip(1) is missing.
pub fn stripped(program: &Path) -> PathBuf {
    let extension = match timeline() {
        0 => "stripped".to_owned(),
        number => format!("stripped.{number}"),
    };
    let beside = program.with_extension(&extension);
    let time = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    // Several processes may request it at once, and one that already runs it must find it again by
    // its name: it is created once per build, under a lock.
    let lock = File::open(program);
    let _locked = lock.as_ref().map(|file| flock(file, FlockOperation::LockExclusive));
    // Of the very same build, and so equally old.
    if time(&beside).is_some() && time(&beside) == time(program) {
        return beside;
    }
    let part = program.with_extension("stripped.part");
    let done = Command::new("strip").arg("-o").arg(&part).arg(program).status();
    let made = done.is_ok_and(|status| status.success())
        && pad(&part, program).is_ok()
        && std::fs::rename(&part, &beside).is_ok();
    if made { beside } else { program.to_owned() }
}

/// Adds the bytes of the timeline to a file, which gets the age of the other.
fn pad(file: &Path, as_old_as: &Path) -> std::io::Result<()> {
    let file = File::options().append(true).open(file)?;
    file.set_len(file.metadata()?.len() + (timeline() * BYTES) as u64)?;
    file.set_modified(as_old_as.metadata()?.modified()?)
}

/// [`punctual_lab::debian_program`], if the package is available.
pub fn debian_program(package: &str, program: &str) -> Option<(Vec<GuestFile>, String)> {
    or_skip(punctual_lab::debian_program(package, program))
}

/// Runs a guest that is expected to finish.
///
/// # Panics
/// If it ended in any other way, with the end of its console log.
pub fn run(guest: &Guest) -> Option<GuestResult> {
    let result = or_skip(guest.run())?;
    assert!(
        result.outcome == GuestOutcome::Finished && result.problems.is_empty(),
        "{}",
        story(&result)
    );
    Some(result)
}

/// Everything needed to see why a guest failed.
pub fn story(result: &GuestResult) -> String {
    // Indented, so that the words of tests in the guest are not taken for those of a test here.
    let tail = |text: &str| {
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    };
    let text = |bytes: &[u8]| tail(&String::from_utf8_lossy(bytes));
    format!(
        "{} (exit status {:?}, {:?})\nproblems: {:?}\n--- stdout\n{}\n--- stderr\n{}\n--- \
         console, last lines\n{}",
        result.outcome,
        result.exit_status,
        result.elapsed,
        result.problems,
        text(&result.stdout),
        text(&result.stderr),
        tail(&result.console_log)
    )
}

/// The text that the guest's script wrote as the result of this name.
///
/// # Panics
/// If there is none, with the guest's output; or if it is not text.
pub fn section<'r>(result: &'r GuestResult, name: &str) -> &'r str {
    let bytes = result.results.get(name).unwrap_or_else(|| panic!("no {name}: {}", story(result)));
    std::str::from_utf8(bytes).unwrap().trim()
}
