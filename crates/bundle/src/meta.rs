//! The descriptions of a phase and of a series, known before the first sample.

use crate::answer::Delays;
use crate::evidence::{ControllerEvidence, PhaseEvidence};
use crate::exit::ProgramEnd;
use crate::load::{CpuLoad, LoadWork};
use crate::verdict::LeftOut;
use punctual_core::{Clock, CpuSet, Fact, Heat, Missing, Nanos, Notes};
use punctual_plan::WorkloadKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key in a series' details for which samples its log keeps, if not the first.
pub const DETAIL_KEPT: &str = "log";
/// The log rotates and keeps the newest.
pub const NEWEST: &str = "newest samples";

/// `phases/NNN/phase.json`. Written when the phase begins and again when it ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct PhaseMeta {
    /// The name in the experiment.
    pub name: String,
    pub started: jiff::Timestamp,
    /// The same instant on CLOCK_MONOTONIC, in ns.
    pub started_monotonic: i64,
    /// The duration in ns; absent while it runs and if it was cut off.
    #[serde(default)]
    pub duration: Option<Nanos>,
    /// The commands that loaded the system, as run.
    #[serde(default)]
    pub loads: Vec<LoadMeta>,
    /// Mean load of each CPU over the phase.
    #[serde(default)]
    pub cpu_load: Fact<CpuLoad>,
    /// Heat, frequency and power over time; absent in older bundles and in imports.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub heat: Fact<Heat>,
    /// Its measures with their notes; empty in bundles of versions that had only timers.
    #[serde(default)]
    pub measures: Vec<MeasureMeta>,
    /// Evidence that it was measured as requested; absent in older bundles and in imports.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub evidence: Fact<PhaseEvidence>,
    /// Requirements without a matching series, as stated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_series: Vec<String>,
    /// The omissions caused by bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Whether punctual itself ran on time; absent in older bundles.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub controller: Fact<ControllerEvidence>,
    /// Programs that failed or ended early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<ProgramEnd>,
    /// Events missing in the trace or recording that its figures come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// For imports: the causes of delay that the source states for a series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed_by: Vec<Delays>,
}

impl PhaseMeta {
    /// A phase of which only the start is known.
    pub fn new(name: impl Into<String>, started: jiff::Timestamp) -> PhaseMeta {
        PhaseMeta {
            name: name.into(),
            started,
            cpu_load: Fact::NotAsked,
            heat: Fact::NotAsked,
            evidence: Fact::NotAsked,
            controller: Fact::NotAsked,
            ..PhaseMeta::default()
        }
    }

    /// Why samples may be missing in the trace that its figures come from; `None` if none are.
    pub fn missing_of_source(&self) -> Option<String> {
        let missing_words: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        (!missing_words.is_empty())
            .then(|| format!("samples may be hidden: {}", missing_words.join("; ")))
    }
}

/// A measure of a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct MeasureMeta {
    /// Its name in the experiment.
    pub name: String,
    pub workload: String,
    /// The parameters of the kind, as run.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The names of its series.
    pub series: Vec<String>,
    /// Its notes; empty until it has ended.
    #[serde(default)]
    pub notes: Notes,
}

/// A program that loaded the system during a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoadMeta {
    /// Its name in the experiment.
    pub name: String,
    pub argv: Vec<String>,
    pub cpus: CpuSet,
    /// The number of starts.
    #[serde(default)]
    pub starts: u64,
    /// The number of failures without being stopped.
    #[serde(default)]
    pub failures: u64,
    /// Its work, of a stress-ng with `--metrics` whose runs end by themselves.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub work: Fact<Vec<LoadWork>>,
}

/// `phases/NNN/MMMM.meta.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct SeriesMeta {
    /// The name, unique in its phase.
    pub name: String,
    /// The measure that it belongs to; empty in bundles that do not record it.
    #[serde(default)]
    pub measure: String,
    /// The kind of workload: `timer`, `syscall`, ….
    pub workload: String,
    /// The clock of `due` and `woke`.
    pub clock: Clock,
    /// The CPUs on which it was measured.
    pub cpus: CpuSet,
    /// The scheduling in force, read back from the kernel: `SCHED_FIFO 80`.
    pub scheduling: String,
    /// Whether the scheduling is as requested and real-time; otherwise the figures are those of a
    /// time-sharing task.
    pub real_time: bool,
    /// The period, for samples at equal distances.
    #[serde(default)]
    pub period: Option<Nanos>,
    /// The kernel's id of the measuring thread; absent for imports.
    #[serde(default)]
    pub tid: Option<i32>,
    /// The stated requirements, as in the experiment.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Further details of the workload: `method`, `offset`, ….
    #[serde(default)]
    pub details: BTreeMap<String, String>,
}

/// The workload of the series of a timer, measured by punctual or by a tool that measures the same.
pub const TIMER_WORKLOAD: &str = WorkloadKind::Timer.in_bundle();

/// The workload of the series of an attached program: no experiment file describes them.
pub const ATTACHED_WORKLOAD: &str = WorkloadKind::Program.in_bundle();

/// The workload of the series of a CPU whose kernel entries are measured. Without a sample, no
/// entry occurred.
pub const ENTRIES_WORKLOAD: &str = WorkloadKind::Entries.in_bundle();

/// Whether a long sample of the series is a late one. The period and execution time of an attached
/// thread's cycle are plain durations, which may be long by design.
pub fn is_latency(workload: &str, series: &str) -> bool {
    let is_duration = series.ends_with("/period") || series.ends_with("/execution");
    !(workload == ATTACHED_WORKLOAD && is_duration)
}
/// The key in [`SeriesMeta::details`] that holds the deadline of the responses of an attached
/// program, as `900us`.
pub const DEADLINE: &str = "deadline";
/// The key in [`SeriesMeta::details`] that holds why it is not known which of the waits of an
/// attached thread begins its cycles: no requirement is decided then.
pub const UNCLEAR_PERIOD: &str = "unclear_period";
/// The key in [`SeriesMeta::details`] that holds the requested scheduling, written as
/// [`SeriesMeta::scheduling`].
pub const REQUESTED_SCHEDULING: &str = "requested";
/// The [`SeriesMeta::scheduling`] of an import whose source does not record it.
pub const UNKNOWN_SCHEDULING: &str = "unknown";
/// The key in [`SeriesMeta::details`] of an import whose source does not record overruns and
/// losses: the zeros of its state mean nothing.
pub const UNKNOWN_LOSSES: &str = "overruns_and_losses";
/// The key in [`SeriesMeta::details`] with the margins of equivalence that the plan states.
pub const EQUIVALENCE: &str = "equivalence";
/// The key in [`SeriesMeta::details`] of an import that holds the step of its figures: latencies
/// that differ by less are not distinguished.
pub const SOURCE_RESOLUTION: &str = "resolution_of_the_source";

impl SeriesMeta {
    /// Whether the scheduling is as requested: real-time, or time-sharing if that was requested
    /// (see [`REQUESTED_SCHEDULING`]).
    pub fn has_requested_scheduling(&self) -> bool {
        self.real_time || self.requested_scheduling() == Some(&self.scheduling)
    }
    /// The requested scheduling, if the bundle holds it (see [`REQUESTED_SCHEDULING`]).
    pub fn requested_scheduling(&self) -> Option<&String> {
        self.details.get(REQUESTED_SCHEDULING)
    }
    /// Whether its scheduling is unknown.
    pub fn is_scheduling_unknown(&self) -> bool {
        self.scheduling == UNKNOWN_SCHEDULING
    }
    /// Whether its overruns and lost samples were counted (see [`UNKNOWN_LOSSES`]).
    pub fn are_losses_known(&self) -> bool {
        !self.details.contains_key(UNKNOWN_LOSSES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_of_a_cycle_is_no_latency() {
        assert!(is_latency(ATTACHED_WORKLOAD, "servo/response"));
        assert!(!is_latency(ATTACHED_WORKLOAD, "servo/period"));
        assert!(
            is_latency(TIMER_WORKLOAD, "servo/period"),
            "a thread of that name that punctual measures has a latency"
        );
    }
}
