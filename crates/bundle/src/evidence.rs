//! Evidence that a phase was measured as requested: collected during the phase, stored in
//! `phase.json`, judged by `punctual_stats::validity`. docs/reference/validity.md describes the
//! source of each part. An unreadable part is `unavailable`, never a default.

use punctual_core::{CpuSet, Fact, Nanos};
use serde::{Deserialize, Serialize};

/// The evidence of a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseEvidence {
    /// Whether the experiment requires real-time scheduling for valid figures
    /// (`require_real_time`).
    #[serde(default)]
    pub real_time_required: bool,
    pub threads: Vec<ThreadEvidence>,
    pub memory: MemoryEvidence,
    /// The behaviour of the clocks during the phase.
    pub clock: ClockEvidence,
    /// The partition; not asked if the experiment has none.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub isolation: Fact<IsolationEvidence>,
    /// The settings of all CPUs that the experiment fixes; not asked if it fixes none.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub settings: Fact<SettingsEvidence>,
    /// The loads, in the order of the experiment.
    pub loads: Vec<LoadEvidence>,
    /// The programs whose cycles were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramEvidence>,
    /// Other measurements on these CPUs at the same time.
    pub others: Fact<Vec<OtherMeasurement>>,
    /// Throttling mechanisms that limited tasks during the phase.
    pub throttled: Fact<Vec<String>>,
    /// For a continued run: the evidence of its other parts, each kept separately.
    #[serde(skip)]
    pub other_parts: Vec<Fact<PhaseEvidence>>,
}

impl PhaseEvidence {
    /// Combines the evidence so far with that of a later part; a part that was cut off has none.
    /// The number of due samples is judged by the last part alone, plus those that its series had
    /// before.
    pub fn of_parts(
        so_far: Fact<PhaseEvidence>,
        later: Fact<PhaseEvidence>,
        measured: impl Fn(&str) -> u64,
    ) -> Fact<PhaseEvidence> {
        let later = later.map(|mut later| {
            for thread in &mut later.threads {
                let before = thread.series.iter().map(|name| measured(name)).max().unwrap_or(0);
                thread.due = thread.due.map(|due| due.saturating_add(before));
            }
            later
        });
        match (so_far, later) {
            (Fact::Known(mut all), later) => {
                if later.known_value().is_some() {
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
    /// Their names within the phase.
    pub series: Vec<String>,
    pub scheduling: ReadBack,
    /// Why the kernel refused the requested scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The CPUs that it may run on; not asked under SCHED_DEADLINE, whose threads have no affinity.
    pub affinity: Fact<ReadBack>,
    /// Why its writable memory is not locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlocked: Option<String>,
    /// The due number of samples of each of its series, if period and length determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Whether it has an end of its own; otherwise it measures until the user ends the run.
    pub has_end: bool,
    /// Whether it reached that end.
    pub reached_end: bool,
}

/// A property of a thread, read back from the kernel repeatedly.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ReadBack {
    pub asked: String,
    /// The number of readings while the thread measured.
    pub times: u64,
    /// The first deviating reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Deviation>,
    /// The reading of the thread itself directly after its last sample.
    pub after: Fact<String>,
}

/// A reading that differs from the request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Deviation {
    /// The time since the start of the phase.
    pub at: Nanos,
    pub value: String,
}

/// Memory locks of the process.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryEvidence {
    /// Whether memory was to be locked.
    pub asked: bool,
    /// Why the kernel refused.
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
    /// The step of a settable clock during the phase, if it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped: Option<Nanos>,
}

/// The partition requested by the experiment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct IsolationEvidence {
    /// The isolated CPUs.
    pub cpus: CpuSet,
    /// The properties not in force when the phase began.
    pub missing_before: Vec<String>,
    /// The properties not in force when it ended.
    pub missing_after: Vec<String>,
}

/// The settings that the experiment fixes (`governor`, `frequency`, `smt`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SettingsEvidence {
    /// Those not in force when the phase began.
    pub missing_before: Vec<String>,
    /// Those not in force when it ended.
    pub missing_after: Vec<String>,
}

/// The activity of a load during the phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LoadEvidence {
    pub name: String,
    /// The planned run time from its start.
    pub due: Nanos,
    pub alive: Nanos,
    /// Whether it succeeded the last time and was not to be restarted.
    #[serde(default)]
    pub done: bool,
    /// Its last end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The number of polls of its processes while it was alive.
    pub looks: u64,
    /// The number of polls without any activity since the previous one, and without pending work.
    pub idle_looks: u64,
    /// The intervals in which all of its processes were stopped: since the start of the phase, as
    /// polled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<(Nanos, Nanos)>,
    /// The number of polls without activity although it had work: it waited for a CPU.
    #[serde(default)]
    pub starved_looks: u64,
    /// Whether the experiment allows idling (`may_rest`): it then counts as a load while idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_rest: bool,
    /// The progress of its processes until the last poll at which they lived.
    pub progress: Fact<LoadProgress>,
}

/// The progress of a load's processes during the phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LoadProgress {
    /// User and system time, summed over the processes.
    pub cpu_time: Nanos,
    /// The number of times they were switched to.
    pub switches: u64,
    /// Bytes read and written, from and to anything.
    pub io_bytes: u64,
    pub processes: u64,
}

/// A program whose cycles were measured, or CPUs whose kernel entries were.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramEvidence {
    pub name: String,
    /// The names of its threads' or CPUs' series within the phase.
    pub series: Vec<String>,
    /// Whether it had a fixed measuring time or has ended by itself.
    pub has_end: bool,
    /// Whether it was measured to that end.
    pub reached_end: bool,
    /// How it ended, if by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The time it was measured.
    pub ran: Nanos,
    /// Cycle records lost for lack of space, of which no series is known.
    pub lost: u64,
}

/// Whether the controller thread ran on time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ControllerEvidence {
    /// The requested duration of the phase, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Nanos>,
    pub lasted: Nanos,
    /// The total delay of its rounds; delays of a tenth of a second or less do not count.
    pub delayed: Nanos,
    pub longest: Nanos,
    /// The part of a round in which most of the longest delay arose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The time of these delays in which it was ready and waited for a CPU (run delay of
    /// /proc/PID/schedstat); absent if the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Nanos>,
    /// The time of these delays in which system calls of the rounds themselves were blocked.
    #[serde(default)]
    pub blocked: Nanos,
}

/// Another run of punctual on CPUs of this one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OtherMeasurement {
    pub pid: u32,
    /// The shared CPUs.
    pub cpus: CpuSet,
}
