//! Another tool records while a case is measured, with the command of `punctual recipe`. Its file
//! is read like that of `punctual explain FILE`.

use super::InjectedCase;
use super::ways::ExpectedCauses;
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
    /// perf record with the events *sched*, *irq* and *timer* alone, as people record.
    SchedIrqTimer,
}

/// What needs more than the events *sched*, *irq* and *timer*: each way whose cause or culprit they
/// cannot show, with the events that would. Written before the first measurement. There an
/// explanation is right where it names no cause ([`NOT_RECORDED`]).
const NEEDS_MORE_THAN_SCHED_IRQ_TIMER: &[(&str, &str)] = &[
    ("irq", VECTORS),
    ("timer-irq", VECTORS),
    ("softirq-then-irq", VECTORS),
    ("irq-then-irqs", VECTORS),
    ("irq-then-softirq", VECTORS),
    ("three-in-a-row", VECTORS),
    ("task-then-irq", VECTORS),
    ("inside-switch", CALLS),
    ("lock", FUTEX),
    ("lock-holder-asleep", FUTEX),
    ("lock-of-rust", FUTEX),
    ("lock-inheriting", FUTEX),
    ("lock-chain", FUTEX),
    ("lock-chain-inheriting", FUTEX),
    ("inversion", FUTEX),
    ("kernel-lock", "lock:contention_begin"),
    ("block-read", BLOCK),
    ("fsync", BLOCK),
    ("major-fault", FAULTS),
    ("minor-faults", FAULTS),
    ("own-syscall", CALLS),
];

const VECTORS: &str = "irq_vectors:*";
const CALLS: &str = "raw_syscalls:*";
const FUTEX: &str = "syscalls:sys_enter_futex";
const BLOCK: &str = "block:*";
const FAULTS: &str = "exceptions:page_fault_*";

/// The answers that name no cause. *Waiting* says that what it waited for was not recorded.
pub(super) const NOT_RECORDED: ExpectedCauses = &[("unknown", "*"), ("waiting", "*")];

/// The time within which a recorder must start, in virtual time; shorter for tracefs, whose shell
/// may sleep itself.
const START: Duration = Duration::from_secs(30);
const START_OF_SHELL: Duration = Duration::from_secs(1);
/// Time between two polls.
const POLL: Duration = Duration::from_millis(10);
/// The extra recording time after the case: the measured program starts and ends, too.
const LONGER: Nanos = Nanos(4_000_000_000);

impl TruthRecorder {
    pub const ALL: [TruthRecorder; 4] = [
        TruthRecorder::Tracefs,
        TruthRecorder::Perf,
        TruthRecorder::TraceCmd,
        TruthRecorder::SchedIrqTimer,
    ];

    /// The recorder's name in `punctual recipe`, or its events.
    pub fn word(self) -> &'static str {
        match self {
            TruthRecorder::Tracefs => "tracefs",
            TruthRecorder::Perf => "perf",
            TruthRecorder::TraceCmd => "trace-cmd",
            TruthRecorder::SchedIrqTimer => "sched-irq-timer",
        }
    }

    /// The events that the cause of a case needs and this recorder does not record.
    pub fn missing_events(self, case: &InjectedCase) -> Option<&'static str> {
        let way = case.way.filter(|_| self == TruthRecorder::SchedIrqTimer)?;
        let mut extra_needs = NEEDS_MORE_THAN_SCHED_IRQ_TIMER.iter();
        extra_needs.find(|(name, _)| *name == way.name).map(|(_, events)| *events)
    }

    /// The program that must exist.
    pub fn required_program(self) -> Option<&'static str> {
        match self {
            TruthRecorder::Tracefs => None,
            TruthRecorder::Perf | TruthRecorder::SchedIrqTimer => Some("perf"),
            TruthRecorder::TraceCmd => Some("trace-cmd"),
        }
    }

    /// The output of its command, relative to its working directory.
    fn output_file(self) -> &'static str {
        match self {
            TruthRecorder::Tracefs => "/tmp/trace.txt",
            TruthRecorder::Perf | TruthRecorder::SchedIrqTimer => "perf.data",
            TruthRecorder::TraceCmd => "trace.dat",
        }
    }

    /// Starts to record for at least this time.
    pub fn start_recording(
        self,
        punctual: &Path,
        place: &Path,
        duration: Nanos,
    ) -> Result<RecordingCommand, String> {
        let whole = duration + LONGER;
        let line = match self {
            // The clock is that of the record of injections; all else is what people write.
            TruthRecorder::SchedIrqTimer => format!(
                "perf record -o perf.data -a -k CLOCK_MONOTONIC -e 'sched:*' -e 'irq:*' -e \
                 'timer:*' -- sleep {}",
                whole.0 / 1_000_000_000
            ),
            _ => {
                let mut recipe = Command::new(punctual);
                recipe.args(["recipe", self.word(), "--duration", &format!("{}ns", whole.0)]);
                successful_output(recipe.output())?
            }
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(place);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(|why| why.to_string())?;
        let start_timeout = if self.required_program().is_some() { START } else { START_OF_SHELL };
        let begin = Instant::now();
        while begin.elapsed() < start_timeout
            && !runs_sleep(child.id())
            && matches!(child.try_wait(), Ok(None))
        {
            std::thread::sleep(POLL);
        }
        Ok(RecordingCommand { child, file: place.join(self.output_file()) })
    }
}

/// Whether a process or a descendant is sleep(1), which each command starts when it records.
fn runs_sleep(pid: u32) -> bool {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let children = read(&format!("task/{pid}/children"));
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    read("comm").trim() == "sleep" || children.into_iter().any(runs_sleep)
}

/// A recording command.
pub struct RecordingCommand {
    child: Child,
    file: PathBuf,
}

impl RecordingCommand {
    /// Waits for its end, and makes a bundle of the cycles of the threads of this name.
    pub fn finish_bundle(self, thread: &str, bundle: &Path) -> Result<(), String> {
        successful_output(self.child.wait_with_output())?;
        let cycles = CycleOptions { thread: Some(thread.to_owned()), ..CycleOptions::default() };
        let converted = traces::import_trace(&self.file, bundle, None, cycles);
        let _ = fs::remove_file(&self.file);
        converted.map_err(|why| why.render(false))?.none.map_or(Ok(()), Err)
    }
}

/// The output of a successful command, else the last line of its errors.
fn successful_output(output: std::io::Result<std::process::Output>) -> Result<String, String> {
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
        let recording =
            TruthRecorder::Perf.start_recording(&own, room.path(), Nanos(1)).expect("starts");
        recording.finish_bundle("servo", &room.path().join("bundle"))
    }

    #[test]
    fn what_sched_irq_and_timer_cannot_show_is_a_way_with_a_cause() {
        let every = InjectedCase::all_cases();
        for (name, _) in NEEDS_MORE_THAN_SCHED_IRQ_TIMER {
            let case =
                every.iter().find(|case| case.matches_name(name)).expect("a way of this name");
            assert!(TruthRecorder::SchedIrqTimer.missing_events(case).is_some(), "{name}");
            assert_eq!(TruthRecorder::Perf.missing_events(case), None);
        }
        let shown =
            every.iter().filter(|case| TruthRecorder::SchedIrqTimer.missing_events(case).is_none());
        assert!(shown.count() > 100);
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
