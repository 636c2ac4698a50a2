//! Another tool records while a case is measured, with the command of `punctual recipe`. Its file
//! is read like that of `punctual explain FILE`.

use punctual_core::Nanos;
use punctual_session::cycles::CycleOptions;
use punctual_session::traces;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A tool with a recording command in `punctual recipe`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TruthRecorder {
    /// The kernel's files alone.
    Tracefs,
    /// perf record
    Perf,
    /// trace-cmd record
    TraceCmd,
}

/// The time within which a recorder must start, in virtual time; shorter for tracefs, whose shell
/// may sleep itself.
const START: Duration = Duration::from_secs(30);
const START_OF_SHELL: Duration = Duration::from_secs(1);
/// Time between two polls.
const POLL: Duration = Duration::from_millis(10);
/// The extra recording time after the case: the measured program starts and ends, too.
const LONGER: Nanos = Nanos(4_000_000_000);

impl TruthRecorder {
    pub const ALL: [TruthRecorder; 3] =
        [TruthRecorder::Tracefs, TruthRecorder::Perf, TruthRecorder::TraceCmd];

    /// The recorder's name in `punctual recipe`.
    pub fn word(self) -> &'static str {
        match self {
            TruthRecorder::Tracefs => "tracefs",
            TruthRecorder::Perf => "perf",
            TruthRecorder::TraceCmd => "trace-cmd",
        }
    }

    /// The program that must exist.
    pub fn program(self) -> Option<&'static str> {
        match self {
            TruthRecorder::Tracefs => None,
            TruthRecorder::Perf | TruthRecorder::TraceCmd => Some(self.word()),
        }
    }

    /// The output of its command, relative to its working directory.
    fn file(self) -> &'static str {
        match self {
            TruthRecorder::Tracefs => "/tmp/trace.txt",
            TruthRecorder::Perf => "perf.data",
            TruthRecorder::TraceCmd => "trace.dat",
        }
    }

    /// Starts to record for at least this time.
    pub fn start(
        self,
        punctual: &Path,
        place: &Path,
        duration: Nanos,
    ) -> Result<RecordingCommand, String> {
        let mut recipe = Command::new(punctual);
        recipe.args(["recipe", self.word(), "--duration"]);
        recipe.arg(format!("{}ns", (duration + LONGER).0));
        let line = printed(recipe.output())?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(place);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(|why| why.to_string())?;
        let most = if self.program().is_some() { START } else { START_OF_SHELL };
        let begin = Instant::now();
        while begin.elapsed() < most && !sleeps(child.id()) && matches!(child.try_wait(), Ok(None))
        {
            std::thread::sleep(POLL);
        }
        Ok(RecordingCommand { child, file: place.join(self.file()) })
    }
}

/// Whether a process or a descendant is sleep(1), which each command starts when it records.
fn sleeps(pid: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let children = read(&format!("task/{pid}/children"));
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    read("comm").trim() == "sleep" || children.into_iter().any(sleeps)
}

/// A recording command.
pub struct RecordingCommand {
    child: Child,
    file: PathBuf,
}

impl RecordingCommand {
    /// Waits for its end, and makes a bundle of the cycles of the threads of this name.
    pub fn end(self, thread: &str, bundle: &Path) -> Result<(), String> {
        printed(self.child.wait_with_output())?;
        let cycles = CycleOptions { thread: Some(thread.to_owned()), ..CycleOptions::default() };
        let converted = traces::import(&self.file, bundle, None, cycles);
        let _ = fs::remove_file(&self.file);
        converted.map_err(|why| why.render(false))?.none.map_or(Ok(()), Err)
    }
}

/// The output of a successful command, else the last line of its errors.
fn printed(output: std::io::Result<std::process::Output>) -> Result<String, String> {
    let output = output.map_err(|why| why.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(text.trim().lines().last().unwrap_or("the recorder failed").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell in place of punctual; its recipe is a command that writes like a recorder.
    fn recorded(line: &str) -> Result<(), String> {
        let room = tempfile::tempdir().expect("a directory");
        let own = room.path().join("own");
        let script = format!("#!/bin/sh\ncat <<'END'\n{line}\nEND\n");
        fs::write(&own, script).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&own, mode).expect("executable");
        let recording = TruthRecorder::Perf.start(&own, room.path(), Nanos(1)).expect("starts");
        recording.end("servo", &room.path().join("bundle"))
    }

    #[test]
    fn the_output_of_a_recipe_command_is_read_or_its_error_reported() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/tests/data/servo.perf.data");
        assert_eq!(recorded(&format!("cp {data} perf.data")), Ok(()));
        let cannot = recorded("echo first >&2; echo no such tool >&2; exit 1");
        assert_eq!(cannot, Err("no such tool".to_owned()));
        assert!(recorded("echo '# tracer: nop' >perf.data").is_err(), "nothing has cycles");
        assert!(recorded("true").is_err_and(|why| why.contains("perf.data")));
    }
}
