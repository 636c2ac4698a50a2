//! What `punctual pairs --json` and `punctual occupancy --json` print. Times are in ns, instants on
//! CLOCK_MONOTONIC; what is not known is `null`.

use crate::judged::VerdictWord;
use punctual_core::{Finding, Severity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of [`PairsDocument`].
pub const PAIRS_SCHEMA: &str = "punctual-pairs/2";
/// The name and version of [`OccupancyDocument`].
pub const OCCUPANCY_SCHEMA: &str = "punctual-occupancy/2";

/// What of a recording these figures are of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Covered {
    pub began: i64,
    pub ended: i64,
    pub lost: u64,
    /// Events in no figure, because there were more threads, pairs or functions than are followed.
    pub untracked: u64,
}

/// Intervals between points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairsDocument {
    /// [`PAIRS_SCHEMA`].
    pub schema: String,
    pub covered: Covered,
    /// All limits together; `null` where none was given.
    pub verdict: Option<VerdictWord>,
    /// Pairs: the requested ones, scopes, points with those that follow.
    pub pairs: Vec<PairSummary>,
    /// Scopes of test points with their exclusive times, those of most exclusive time first.
    #[serde(default)]
    pub scopes: Vec<ScopeSummary>,
    pub functions: Vec<FunctionSummary>,
    /// The values of points over time.
    pub values: Vec<ValueCurve>,
    pub findings: Vec<Finding>,
}

/// Statistics of intervals, in ns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntervalFigures {
    pub count: u64,
    /// The shortest; negative where two clocks disagree by more.
    pub min: Option<i64>,
    /// In ns; `null` without any.
    pub mean: Option<f64>,
    /// In ns; `null` without any.
    pub median: Option<i64>,
    pub max: Option<i64>,
    /// Their standard deviation as a population.
    pub stddev: Option<f64>,
    pub percentiles: BTreeMap<String, i64>,
    pub unsupported_percentiles: BTreeMap<String, u64>,
}

/// What became of one ordered pair of ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairSummary {
    /// `A->B`, or the name of a scope.
    pub name: String,
    /// What A and B had in common: `thread`, `value`, `cpu`, `global`.
    pub by: String,
    /// Which A a B belonged to: `next`, `nested`, `async`.
    pub rule: String,
    /// Of the matched ones that are certain.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    pub unmatched_from: u64,
    pub unmatched_to: u64,
    /// Matches that reach over missing events; in no other figure.
    pub uncertain: UncertainSummary,
    /// The limit, where one was given.
    pub limit: Option<LimitSummary>,
    /// The worst ones, the longest first.
    pub worst: Vec<WorstInterval>,
    /// The histogram: (largest value of a bucket, count) of the buckets that are not empty.
    pub histogram: Vec<(i64, u64)>,
}

/// Matches that may not be true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UncertainSummary {
    pub count: u64,
    pub max: Option<i64>,
}

/// A design limit and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitSummary {
    /// As stated: `< 100us`.
    pub limit: String,
    pub verdict: VerdictWord,
    pub violations: u64,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One of the worst.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstInterval {
    pub latency: i64,
    /// Its place among the matched ones.
    pub seq: u64,
    pub from: i64,
    pub to: i64,
    /// The thread in which it ended.
    pub tid: u32,
    pub task: String,
    /// The value that its end carried.
    pub value: Option<i64>,
    /// What that thread did meanwhile; empty where the recording does not show it.
    pub states: Vec<Share>,
    /// What ran meanwhile on the CPUs concerned; interrupts are within the time of the tasks that
    /// they interrupted.
    pub ran: Vec<Ran>,
}

/// How long something was the case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// `running`, `ready`, `sleeping`, `blocked`, `other` or `unknown`.
    pub state: String,
    pub ns: i64,
}

/// Something that ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ran {
    pub cpu: u16,
    /// `task`, `idle`, `unknown`, `hardirq`, `vector` or `softirq`.
    pub kind: String,
    pub who: String,
    pub tid: Option<u32>,
    pub ns: i64,
}

/// A scope of test points as a function report has it. Its limit, its worst and its histogram stand
/// under [`PairsDocument::pairs`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScopeSummary {
    /// Untrusted: escape it for output.
    pub name: String,
    /// From begin to end.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    /// The same without the scopes that began later in the same thread.
    pub exclusive: IntervalFigures,
    /// All inclusive times together; of a recursion the outermost one alone.
    pub total: i64,
    pub exclusive_total: i64,
    /// Of the exclusive times of all scopes.
    pub share: Option<f64>,
    /// Threads in which it ended.
    pub threads: u64,
    /// Those within another one of the same name.
    pub recursive: u64,
    /// Those that ended while one that had begun later was open.
    pub overlapping: u64,
    pub open: u64,
    /// Those that reach over missing points; in no other figure.
    pub uncertain: u64,
}

/// A probed function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FunctionSummary {
    /// Untrusted: escape it for output.
    pub name: String,
    /// The file that holds it.
    pub object: String,
    /// From entry to exit.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    /// The same without the probed functions that it called.
    pub exclusive: IntervalFigures,
    /// Calls whose exclusive time is not known.
    pub exclusive_unknown: u64,
    /// From entry to entry in one thread.
    pub period: IntervalFigures,
    /// Calls left by longjmp, an exception or the end of the thread; in no other figure.
    pub left: u64,
    /// The limit, where one was given.
    pub limit: Option<LimitSummary>,
    /// The worst ones, the longest first.
    pub worst: Vec<WorstInterval>,
    pub histogram: Vec<(i64, u64)>,
}

/// The values of a point over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValueCurve {
    pub point: String,
    /// Its first value (0) or its second (1).
    pub index: usize,
    /// The width of a bucket.
    pub width: i64,
    /// The buckets that hold values.
    pub buckets: Vec<ValueSummary>,
}

/// The values of one bucket of time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValueSummary {
    pub start: i64,
    pub count: u64,
    pub min: i64,
    /// Of the values that fall into the bucket.
    pub mean: f64,
    pub max: i64,
}

/// CPU usage, and what other threads did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OccupancyDocument {
    /// [`OCCUPANCY_SCHEMA`].
    pub schema: String,
    pub covered: Covered,
    /// Transitions that contradict what was known before, without a gap to explain it.
    pub contradictions: u64,
    /// One entry for each CPU.
    pub cpus: Vec<CpuOccupancy>,
    /// Processes with their threads, the busiest first.
    pub processes: Vec<ProcessOccupancy>,
    /// Interrupts, by the time they took.
    pub interrupts: Vec<InterruptOccupancy>,
    pub findings: Vec<Finding>,
}

impl OccupancyDocument {
    /// That some of the recording's events of group sched, which are so many, contradict the
    /// others.
    pub fn contradiction(&self, events: u64) -> Option<Finding> {
        let message = "events contradict earlier ones: the time in between is marked as unknown";
        (self.contradictions > 0).then(|| {
            Finding::new("events-contradict", Severity::Warning, "recording", message)
                .evidence(format!("{} of {events} events of group sched", self.contradictions))
                .remedy(
                    "read times of threads and CPUs without those that are unknown: punctual \
                     occupancy shows both",
                )
        })
    }
}

/// How a CPU spent the recording, in ns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CpuOccupancy {
    pub cpu: u16,
    /// Busy with tasks, interrupts included.
    pub busy: i64,
    /// In ns.
    pub idle: i64,
    /// Not shown by the recording.
    pub unknown: i64,
    /// Interrupts, also those of the idle CPU.
    pub interrupts: i64,
    /// Switches from one task to another.
    pub switches: u64,
    /// Its tasks, the largest CPU usage first.
    pub tasks: Vec<Ran>,
}

/// What a thread, or all threads of a process, did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// On a CPU; interrupts that it was interrupted by are included.
    pub running: i64,
    /// Of that, in handlers of interrupts and in softirqs, in ns.
    pub interrupted: i64,
    pub ready: i64,
    /// Of that, on its way to a runqueue.
    pub waking: i64,
    pub sleeping: i64,
    /// Waited, uninterruptible, or for a lock with priority inheritance.
    pub blocked: i64,
    pub other: i64,
    /// Not shown by the recording.
    pub unknown: i64,
    /// Switches away because it waited for something.
    pub voluntary: u64,
    /// Switches away although it could have run.
    pub involuntary: u64,
    pub migrations: u64,
    /// Times that it was woken.
    pub wakeups: u64,
}

/// How long the threads of a process had CPUs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessOccupancy {
    /// Its PID; `null` for threads of unknown processes.
    pub process: Option<u32>,
    /// The name of its first thread.
    pub name: String,
    /// All its threads together.
    #[serde(flatten)]
    pub times: Times,
    /// Each of them, the busiest first.
    pub threads: Vec<ThreadOccupancy>,
}

/// How long a thread had CPUs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ThreadOccupancy {
    pub tid: u32,
    /// Untrusted: escape it for output.
    pub name: String,
    /// What it did.
    #[serde(flatten)]
    pub times: Times,
    /// The longest wait for a CPU.
    pub longest_ready: Option<i64>,
    pub longest_ready_at: Option<i64>,
}

/// A kind of interrupt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InterruptOccupancy {
    /// `hardirq`, `vector` or `softirq`.
    pub kind: String,
    /// Untrusted: escape it for output.
    pub name: String,
    pub cpu: u16,
    /// How often it was served to its end.
    pub count: u64,
    /// How long, without nested interrupts.
    pub ns: i64,
    /// The longest, with nested interrupts.
    pub max: i64,
}
