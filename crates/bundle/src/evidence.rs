//! Evidence that a phase was measured as requested: collected while it runs, kept in `phase.json`,
//! judged by `punctual_analyze::validity`. docs/reference/validity.md describes how each part is
//! obtained. A part that could not be read is `unavailable`, never a default.

use punctual_core::{CpuSet, Fact, Nanos};
use serde::{Deserialize, Serialize};

/// The evidence of a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Whether the experiment requires real-time scheduling for valid figures
    /// (`require_real_time`).
    #[serde(default)]
    pub real_time_required: bool,
    pub threads: Vec<ThreadEvidence>,
    pub memory: MemoryEvidence,
    /// How the clocks went on while the phase ran.
    pub clock: ClockEvidence,
    /// The partition; not asked where the experiment has none.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub isolation: Fact<IsolationEvidence>,
    /// The loads, in the order of the experiment.
    pub loads: Vec<LoadEvidence>,
    /// The programs whose cycles were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramEvidence>,
    /// Who else measured on these CPUs meanwhile.
    pub others: Fact<Vec<OtherMeasurement>>,
    /// What slowed tasks down on purpose while the phase ran; empty where nothing did.
    pub throttled: Fact<Vec<String>>,
    /// Of a run that was continued: the evidence of its other parts. Each part keeps its own.
    #[serde(skip)]
    pub other_parts: Vec<Fact<Evidence>>,
}

impl Evidence {
    /// The evidence of what was measured so far and of a later part; a part that was cut off has
    /// none. How many samples were due is judged by the last part alone, together with as many as
    /// its series had before.
    pub fn of_parts(
        so_far: Fact<Evidence>,
        later: Fact<Evidence>,
        measured: impl Fn(&str) -> u64,
    ) -> Fact<Evidence> {
        let later = later.map(|mut later| {
            for thread in &mut later.threads {
                let before = thread.series.iter().map(|name| measured(name)).max().unwrap_or(0);
                thread.due = thread.due.map(|due| due.saturating_add(before));
            }
            later
        });
        match (so_far, later) {
            (Fact::Known(mut all), later) => {
                if later.known().is_some() {
                    all.forget_due();
                }
                all.other_parts.push(later);
                Fact::Known(all)
            }
            (unknown, Fact::Known(mut later)) => {
                later.other_parts.push(unknown);
                Fact::Known(later)
            }
            (unknown, _) => unknown,
        }
    }

    fn forget_due(&mut self) {
        self.threads.iter_mut().for_each(|thread| (thread.due, thread.has_end) = (None, false));
        for part in &mut self.other_parts {
            if let Fact::Known(part) = part {
                part.forget_due();
            }
        }
    }
}

/// A measuring thread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ThreadEvidence {
    pub tid: i32,
    /// By their names within the phase.
    pub series: Vec<String>,
    pub scheduling: ReadBack,
    /// Why the kernel refused the requested scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The CPUs that it may run on; not asked under SCHED_DEADLINE, whose threads are bound to
    /// none.
    pub affinity: Fact<ReadBack>,
    /// Why the memory that it writes to is not locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlocked: Option<String>,
    /// How many samples each of its series was to have, where that follows from period and length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Whether it has an end of its own; without one it measures until the user ends the run.
    pub has_end: bool,
    /// Whether it reached that end.
    pub reached_end: bool,
}

/// A property of a thread, read back from the kernel again and again.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ReadBack {
    pub asked: String,
    /// How often it was read while the thread measured.
    pub times: u64,
    /// The first reading that was something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Deviation>,
    /// What the thread itself read directly after its last sample.
    pub after: Fact<String>,
}

/// A reading that differs from the request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Deviation {
    /// How long after the start of the phase.
    pub at: Nanos,
    pub value: String,
}

/// Memory locks of the process.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryEvidence {
    /// Whether memory was to be locked.
    pub asked: bool,
    /// Why the kernel refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// `VmLck` of /proc/self/status at the end of the phase, in KiB.
    pub locked_kib: Fact<u64>,
}

/// The clocks of a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClockEvidence {
    /// The coarsest resolution of the clocks of its series (clock_getres(2)).
    pub resolution: Fact<Nanos>,
    /// The kernel's clock source when the phase began.
    pub source: Fact<String>,
    /// The same at its end: the kernel leaves a source that its watchdog finds unstable.
    pub source_after: Fact<String>,
    /// By how much a clock that can be set was set meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<Nanos>,
}

/// The partition that the experiment requested.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct IsolationEvidence {
    /// Those that were set apart.
    pub cpus: CpuSet,
    /// What was not in force when the phase began.
    pub missing_before: Vec<String>,
    /// What was not in force at its end.
    pub missing_after: Vec<String>,
}

/// What a load did while the phase ran.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LoadEvidence {
    pub name: String,
    /// How long it was to run, from its start on.
    pub due: Nanos,
    pub alive: Nanos,
    /// Whether its last end was a success, after which it was not to be started again.
    #[serde(default)]
    pub done: bool,
    /// How it ended the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How often its processes were polled while it was alive.
    pub looks: u64,
    /// How often nothing had happened in any of them since the look before, and none had work.
    pub idle_looks: u64,
    /// When all of its processes were stopped: since the start of the phase, as polls found it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<(Nanos, Nanos)>,
    /// How often nothing had happened in any of them although one had work: it waited for a CPU.
    #[serde(default)]
    pub starved_looks: u64,
    /// Whether the experiment lets it rest (`may_rest`): then it is a load also while it idles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_rest: bool,
    /// What its processes did, as far as they lived at the last poll.
    pub progress: Fact<LoadProgress>,
}

/// What the processes of a load did while the phase ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LoadProgress {
    /// User and system time of all of them.
    pub cpu_time: Nanos,
    /// How often they were given a CPU.
    pub switches: u64,
    /// Bytes read and written, whatever from and to.
    pub io_bytes: u64,
    pub processes: u64,
}

/// A program whose cycles were measured, or CPUs whose entries into the kernel were.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramEvidence {
    pub name: String,
    /// The series of its threads or CPUs, by their names within the phase.
    pub series: Vec<String>,
    /// Whether it was to be measured for a certain time, or has ended by itself.
    pub has_end: bool,
    /// Whether it was measured to that end.
    pub reached_end: bool,
    /// How it ended, if it did so by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How long it was measured.
    pub ran: Nanos,
    /// Records of cycles that found no room.
    pub lost: u64,
}

/// Whether the controller thread ran when it was to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ControllerEvidence {
    /// For how long the phase was to last, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Nanos>,
    pub lasted: Nanos,
    /// How much later than planned its rounds came, together: none of a tenth of a second or less.
    pub delayed: Nanos,
    pub longest: Nanos,
}

/// Another run of punctual that measured on CPUs of this one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OtherMeasurement {
    pub pid: u32,
    /// The CPUs that both measured on.
    pub cpus: CpuSet,
}
