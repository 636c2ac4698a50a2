//! The doubts that the figures themselves raise, each with its evidence and its remedy.
//!
//! What the machine's configuration makes doubtful is found by `punctual-host`; here speak only the figures.

mod run;
mod series;

pub use run::{of_absent, of_phase, of_run};
pub use series::{is_of_thread, of_series};

/// Every finding that figures can raise, with one line on what it means; docs/json.md lists the same.
pub const IDS: [(&str, &str); 22] = [
    ("cut-off", "the run never said how it ended"),
    ("ended-early", "the run was interrupted or stopped before its end"),
    ("bundle-damaged", "a part of the bundle could not be read"),
    ("steal", "the hypervisor took CPU time away during a phase"),
    ("validation-differs", "a workload claims something else than an independent count says"),
    ("load-failed", "a program that should have loaded the system failed"),
    ("no-samples", "nothing was measured"),
    ("series-absent", "a series could not be measured on this system"),
    ("not-real-time", "the measuring thread did not run with the real-time scheduling asked for"),
    ("time-sharing", "the measuring thread was asked to run without real-time scheduling"),
    ("scheduling-unknown", "the source does not say how the measuring thread was scheduled"),
    ("samples-lost", "samples were measured and lost on the way"),
    ("overruns", "periods passed while the thread was still late"),
    ("negative-latency", "events came before they were due"),
    ("clock-stepped", "latencies are too long to be true"),
    ("bins-overflowed", "latencies lie beyond the range of the exact histogram"),
    ("too-few-samples", "a stated requirement needs more samples"),
    ("no-distribution", "only minimum, mean and maximum are known"),
    ("page-faults", "the measuring thread had page faults"),
    ("involuntary-switches", "the measuring thread was preempted"),
    ("coarse-resolution", "latencies come in coarse steps"),
    ("samples-not-kept", "not every sample was kept one by one"),
];
