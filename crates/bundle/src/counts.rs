//! `punctual-counts/1`: the kernel's counts of a command or a process (docs/reference/count.md).

use punctual_core::format::percent_text;
use punctual_core::{Fact, Nanos};
use serde::{Deserialize, Serialize};

/// The name of this shape.
pub const COUNTS_SCHEMA: &str = "punctual-counts/1";

/// The counts of a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CommandCounts {
    /// [`COUNTS_SCHEMA`].
    pub schema: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// The process, if a running one was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its exit code as a shell reports it: 128 + n if signal n ended it. `None` for a process that
    /// punctual did not start.
    pub exit_code: Option<u8>,
    /// From before the start of the command until its end; for a process, the time it was counted.
    pub wall: Nanos,
    /// CPU time of the command and of all processes that it started and waited for; for a process,
    /// its own.
    pub cpu: CpuTime,
    /// The counts in the order of presentation.
    pub counts: Vec<EventCount>,
}

/// The CPU time of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user mode and in the kernel.
    pub total: Nanos,
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

/// The source of a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountSource {
    /// perf_event_open(2): from the first instruction of the command, including all descendants.
    PerfEvent,
    /// wait4(2): the command with the descendants that were waited for, including its start before
    /// the program is executed.
    Wait4,
    /// /proc/PID/task/TID/status: the threads that lived during the whole count.
    Proc,
}

/// One count.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventCount {
    pub name: String,
    /// The perf event, if any: `raw_syscalls:sys_enter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    pub source: CountSource,
    /// The number, or ns if `is_time`.
    pub count: Fact<u64>,
    /// Whether it is a time in ns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_time: bool,
    /// The rate per second.
    #[serde(default)]
    pub per_second: Option<f64>,
    /// The rate per second of CPU time.
    pub per_cpu_second: Option<f64>,
    /// Its relation to another count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<CountShare>,
    /// Whether the count is extrapolated from `running` to `enabled`.
    pub scaled: bool,
    /// The time the counter was enabled, summed over tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Nanos>,
    /// The part of it in which it counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Nanos>,
    /// Whether events in the kernel are excluded.
    pub user_only: bool,
}

impl EventCount {
    /// A count without rate and share, of a counter that was always enabled.
    pub fn new(name: impl Into<String>, source: CountSource, count: Fact<u64>) -> EventCount {
        EventCount {
            name: name.into(),
            event: None,
            source,
            count,
            is_time: false,
            per_second: None,
            per_cpu_second: None,
            share: None,
            scaled: false,
            enabled: None,
            running: None,
            user_only: false,
        }
    }

    /// Its relation to another count; empty if there is none.
    pub fn format_relation(&self) -> String {
        self.share.as_ref().map_or(String::new(), |share| match share.of.as_str() {
            // Instructions are not a part of cycles.
            "cycles" => format!("{:.2} per cycle", share.share),
            of => format!("{} of {of}", percent_text(share.share)),
        })
    }

    /// How it was counted, if not as usual.
    pub fn format_note(&self) -> String {
        let mut notes = Vec::new();
        if let (true, Some(enabled), Some(running)) = (self.scaled, self.enabled, self.running) {
            let share = running.0 as f64 / (enabled.0.max(1)) as f64;
            notes.push(format!("scaled: counted {} of the time", percent_text(share)));
        }
        if self.user_only {
            notes.push("user mode only".to_owned());
        }
        if self.count.known_value().is_some() {
            match self.source {
                CountSource::PerfEvent => {}
                CountSource::Wait4 => notes.push("from wait4(2)".to_owned()),
                CountSource::Proc => notes.push("from /proc".to_owned()),
            }
        }
        notes.join(", ")
    }
}

/// A count divided by another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CountShare {
    pub of: String,
    pub share: f64,
}
