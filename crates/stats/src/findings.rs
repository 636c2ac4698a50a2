//! Findings about the figures, each with its evidence and its remedy.
//!
//! Findings about the machine's configuration are in `punctual-host`.

mod heat;
mod run;
mod series;
mod validity;

pub(crate) use heat::of_heat;
pub(crate) use run::of_absent;
pub use run::{of_phase, of_run};
pub use series::{is_of_thread, of_series};
pub(crate) use validity::of_validity;

/// Every finding about figures, with its meaning in one line; docs/reference/json.md has the same
/// list.
pub const IDS: [(&str, &str); 41] = [
    ("cut-off", "the run has no recorded end"),
    ("ended-early", "the run was interrupted or stopped before its end"),
    ("bundle-damaged", "a part of the bundle could not be read"),
    ("steal", "the hypervisor took CPU time during a phase"),
    ("not-idle", "a phase is called idle, and something else kept the CPUs busy"),
    ("validation-differs", "a workload reports other counts than an independent source"),
    ("load-failed", "a load failed"),
    ("no-samples", "nothing was measured"),
    ("not-ended", "a sample had not ended when the measurement did: a lower bound of it is known"),
    ("series-absent", "a series could not be measured on this system"),
    ("not-real-time", "the measuring thread did not get the requested real-time scheduling"),
    ("time-sharing", "real-time scheduling was not requested for the measuring thread"),
    ("scheduling-unknown", "the source does not report the scheduling of the measuring thread"),
    ("samples-lost", "samples were lost after the measurement"),
    ("overruns", "missed periods (coordinated omission): the corrected figures include them"),
    ("skipped-releases", "releases of an attached program that had no cycle of their own"),
    ("releases-not-known", "no event shows when cycles of an attached program were released"),
    ("release-went-back", "an attached program asked for a time before the last one"),
    ("negative-latency", "events came before they were due"),
    ("clock-stepped", "latencies are implausibly long"),
    ("bins-overflowed", "latencies are beyond the range of the exact histogram"),
    ("too-few-samples", "a stated requirement needs more samples"),
    ("no-distribution", "only minimum, mean and maximum are known"),
    ("page-faults", "the measuring thread had page faults"),
    ("involuntary-switches", "the measuring thread was preempted"),
    ("coarse-resolution", "latencies come in coarse steps"),
    ("samples-not-kept", "not every sample is in the log"),
    (
        "scheduling-changed",
        "the policy or priority of a measuring thread changed during the measurement",
    ),
    ("affinity-changed", "the affinity of a measuring thread changed during the measurement"),
    ("clock-unusable", "the clock source changed, or its resolution is that of the kernel's tick"),
    ("partition-not-in-force", "the partition was not in force from begin to end"),
    (
        "settings-not-in-force",
        "a fixed governor, frequency or SMT was not in force from begin to end",
    ),
    ("load-not-working", "a load died or idled"),
    ("load-stopped", "a load was stopped for some of the phase"),
    ("controller-delayed", "punctual itself did not run when it was to"),
    ("load-starved", "a load had work, and others kept the CPUs busy"),
    ("measured-by-others", "another punctual measured on the same CPU"),
    ("delayed-by-punctual", "threads of punctual itself delayed samples"),
    ("samples-missing", "there are fewer samples than were due"),
    ("throttled", "tasks or CPUs were throttled"),
    ("kernel-not-as-asked", "the kernel is not the requested one"),
];
