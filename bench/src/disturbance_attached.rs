//! The effect of being attached on a program: `punctual attach` beside other tools that show its
//! system calls and its waits for a CPU. The program is a process that measures its own timer.

mod turns;

use crate::Args;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use turns::{Running, compare_ways, start_quietly};

/// The time until the slowest of them has begun.
const STARTED: Duration = Duration::from_millis(1_500);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Attach,
    Explain,
    PerfTrace,
    PerfSched,
    Strace,
    Lttng,
}

const WAYS: [(Way, &str); 6] = [
    (Way::Attach, "punctual attach"),
    (Way::Explain, "punctual attach --explain"),
    (Way::PerfTrace, "perf trace -s"),
    (Way::PerfSched, "perf sched record"),
    (Way::Strace, "strace -c -f"),
    (Way::Lttng, "LTTng, system calls and switches"),
];

/// One at a time: sessions of LTTng are in a daemon.
const LTTNG: &str = "lttng create punctual-bench --output=out && lttng enable-event --kernel \
                     --syscall --all && lttng enable-event --kernel sched_switch,sched_waking && \
                     lttng start && trap 'lttng destroy punctual-bench' INT && sleep infinity";

impl Way {
    fn attach_command(self, program: &Path, target: u32) -> Command {
        let pid = target.to_string();
        let command_with = |program: &Path, words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words);
            command
        };
        match self {
            Way::Attach => command_with(program, &["attach", &pid, "--quiet", "--output", "out"]),
            Way::Explain => {
                command_with(program, &["attach", &pid, "--quiet", "--explain", "--output", "out"])
            }
            Way::PerfTrace => {
                command_with(Path::new("perf"), &["trace", "-s", "-p", &pid, "-o", "out"])
            }
            Way::PerfSched => command_with(Path::new("perf"), &["sched", "record", "-o", "out"]),
            Way::Strace => {
                command_with(Path::new("strace"), &["-c", "-f", "-p", &pid, "-o", "out"])
            }
            Way::Lttng => command_with(Path::new("sh"), &["-c", LTTNG]),
        }
    }

    /// Whether it is possible; reports what is missing.
    fn is_possible(self) -> bool {
        let (program, question, lacks) = match self {
            Way::Attach | Way::Explain => return true,
            Way::PerfTrace | Way::PerfSched => ("perf", "--version", "the program perf"),
            Way::Strace => ("strace", "--version", "the program strace"),
            // Without its kernel modules it records nothing.
            Way::Lttng => ("lttng", "list --kernel", "LTTng's kernel tracer"),
        };
        let answer = Command::new(program).args(question.split(' ')).output();
        let is_there = answer.is_ok_and(|answer| answer.status.success());
        if !is_there {
            println!("SKIPPED: the comparison of what is attached lacks {lacks}");
        }
        is_there
    }
}

/// An attached tool, with its output directory.
struct Beside {
    _program: Running,
    _place: TempDir,
}

/// The increase of percentiles of the program's own figures.
pub fn measure_disturbance(args: &Args) -> Result<Value, String> {
    let ways: Vec<(Way, &str)> = WAYS.into_iter().filter(|(way, _)| way.is_possible()).collect();
    compare_ways(args, &ways, |program, target, way| {
        let place = tempfile::tempdir().map_err(|why| why.to_string())?;
        let running = start_quietly(way.attach_command(program, target).current_dir(place.path()))?;
        sleep(STARTED);
        Ok(Beside { _program: running, _place: place })
    })
}
