//! The documents of `punctual pairs --json` and `punctual occupancy --json`. Times are in ns,
//! instants on CLOCK_MONOTONIC; unknown values are `null`.

use crate::judged::VerdictWord;
use punctual_core::{Finding, Severity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of [`PairsDocument`].
pub const PAIRS_SCHEMA: &str = "punctual-pairs/2";
/// The name and version of [`OccupancyDocument`].
pub const OCCUPANCY_SCHEMA: &str = "punctual-occupancy/2";

/// The part of the recording that these figures cover.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Covered {
    pub began: i64,
    pub ended: i64,
    pub lost: u64,
    /// Events in no figure because a limit on threads, pairs or functions was reached.
    pub untracked: u64,
}

/// Intervals between points.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairsDocument {
    /// [`PAIRS_SCHEMA`].
    pub schema: String,
    pub covered: Covered,
    /// All limits together; `null` if none was given.
    pub verdict: Option<VerdictWord>,
    /// Requested pairs, scopes, and points with their successors.
    pub pairs: Vec<PairSummary>,
    /// Scopes of test points with exclusive times, the longest first.
    #[serde(default)]
    pub scopes: Vec<ScopeSummary>,
    pub functions: Vec<FunctionSummary>,
    /// The values of points over time.
    pub values: Vec<ValueCurve>,
    /// The events of long intervals and of ordinary ones; `null` if none were recorded.
    #[serde(default)]
    pub coincidences: Option<Vec<Coincidences>>,
    pub findings: Vec<Finding>,
}

/// How often each kind of event occurred in the long intervals of a pair, function or series, and
/// in the ordinary ones. Says nothing of a cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Coincidences {
    /// The pair, function or series. Untrusted: escape it for output.
    pub name: String,
    /// The long intervals: all that are longer than `above`.
    pub late: u64,
    pub ordinary: u64,
    /// In ns.
    pub above: i64,
    /// Intervals in neither, as events are missing within them or as there are too many.
    pub left_out: u64,
    /// The kinds of events that occurred within any interval, each of which was tested.
    pub tested: u64,
    /// Those with the strongest association first.
    pub kinds: Vec<Coincidence>,
}

/// A kind of event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Coincidence {
    /// `tracepoint`, `irq`, `vector`, `softirq`, `task` or `syscall`.
    pub kind: String,
    /// Untrusted: escape it for output.
    pub who: String,
    /// The long intervals in which it occurred.
    pub late: u64,
    pub ordinary: u64,
    /// The shares of all long and of all ordinary ones.
    pub late_share: f64,
    pub ordinary_share: f64,
    /// The long intervals in which it would occur if that depended on their length alone.
    pub by_length: f64,
    /// The odds ratio with its 95 % interval.
    pub odds_ratio: f64,
    pub low: f64,
    pub high: f64,
    /// The probability of such a difference by chance or, where it is more likely, by length.
    pub p: f64,
    /// The same, corrected for the number of kinds.
    pub p_adjusted: f64,
    pub associated: bool,
}

/// Statistics of intervals, in ns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntervalFigures {
    pub count: u64,
    /// The shortest; negative if two clocks disagree by more.
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

/// The intervals of one ordered pair of ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PairSummary {
    /// `A->B`, or the name of a scope.
    pub name: String,
    /// The common key of A and B: `thread`, `value`, `cpu`, `global`.
    pub by: String,
    /// Which A a B is matched with: `next`, `nested`, `async`.
    pub rule: String,
    /// Figures of the certain matches.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    pub unmatched_from: u64,
    pub unmatched_to: u64,
    /// Matches across missing events; in no other figure.
    pub uncertain: UncertainSummary,
    /// The limit, if given.
    pub limit: Option<LimitSummary>,
    /// The worst, longest first.
    pub worst: Vec<WorstInterval>,
    /// The non-empty buckets of the histogram: (largest value, count).
    pub histogram: Vec<(i64, u64)>,
}

/// Uncertain matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UncertainSummary {
    pub count: u64,
    pub max: Option<i64>,
}

/// A design limit and its outcome.
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

/// One of the worst intervals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstInterval {
    pub latency: i64,
    /// Its index among the matches.
    pub seq: u64,
    pub from: i64,
    pub to: i64,
    /// The thread in which it ended.
    pub tid: u32,
    pub task: String,
    /// The value of its end.
    pub value: Option<i64>,
    /// The thread's states meanwhile; empty if the recording does not show them.
    pub states: Vec<StateShare>,
    /// The tasks and interrupts that ran meanwhile on the CPUs concerned. Interrupts are included
    /// in the time of the interrupted tasks.
    pub ran: Vec<RanTask>,
}

/// The time spent in a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StateShare {
    /// `running`, `ready`, `sleeping`, `blocked`, `other` or `unknown`.
    pub state: String,
    pub ns: i64,
}

/// A task or interrupt that ran.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RanTask {
    pub cpu: u16,
    /// `task`, `idle`, `unknown`, `hardirq`, `vector` or `softirq`.
    pub kind: String,
    pub who: String,
    pub tid: Option<u32>,
    pub ns: i64,
}

/// A scope of test points as in a function report. Its limit, worst intervals and histogram are in
/// [`PairsDocument::pairs`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScopeSummary {
    /// Untrusted: escape it for output.
    pub name: String,
    /// From begin to end.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    /// The same without the scopes that began later in the same thread.
    pub exclusive: IntervalFigures,
    /// The sum of inclusive times; of a recursion only the outermost.
    pub total: i64,
    pub exclusive_total: i64,
    /// The share of the exclusive times of all scopes.
    pub share: Option<f64>,
    /// The number of threads in which it ended.
    pub threads: u64,
    /// Scopes within another of the same name.
    pub recursive: u64,
    /// Scopes that ended while one that began later was open.
    pub overlapping: u64,
    pub open: u64,
    /// Scopes across missing points; in no other figure.
    pub uncertain: u64,
}

/// A probed function.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FunctionSummary {
    /// Untrusted: escape it for output.
    pub name: String,
    /// The object file.
    pub object: String,
    /// From entry to exit.
    #[serde(flatten)]
    pub figures: IntervalFigures,
    /// The same without the probed functions that it called.
    pub exclusive: IntervalFigures,
    /// Calls with unknown exclusive time.
    pub exclusive_unknown: u64,
    /// From entry to entry in one thread.
    pub period: IntervalFigures,
    /// Calls left by longjmp, an exception or the end of the thread; in no other figure.
    pub left: u64,
    /// The limit, if given.
    pub limit: Option<LimitSummary>,
    /// The worst, longest first.
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
    /// The non-empty buckets.
    pub buckets: Vec<ValueSummary>,
}

/// The values of one bucket of time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValueSummary {
    pub start: i64,
    pub count: u64,
    pub min: i64,
    /// The mean of the values in this bucket.
    pub mean: f64,
    pub max: i64,
}

/// CPU usage and the activity of other threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OccupancyDocument {
    /// [`OCCUPANCY_SCHEMA`].
    pub schema: String,
    pub covered: Covered,
    /// Transitions that contradict the known state without a gap to explain it.
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
    /// The finding that events of group sched contradict each other; `events` is their number.
    pub fn contradiction_finding(&self, events: u64) -> Option<Finding> {
        let message = "events contradict earlier ones: the time in between is marked as unknown";
        (self.contradictions > 0).then(|| {
            Finding::new("events-contradict", Severity::Warning, "recording", message)
                .with_evidence(format!("{} of {events} events of group sched", self.contradictions))
                .with_remedy(
                    "read times of threads and CPUs without those that are unknown: punctual \
                     occupancy shows both",
                )
        })
    }
}

/// The use of a CPU during the recording, in ns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CpuOccupancy {
    pub cpu: u16,
    /// Busy with tasks, interrupts included.
    pub busy: i64,
    /// In ns.
    pub idle: i64,
    /// Not covered by the recording.
    pub unknown: i64,
    /// Interrupts, including those of the idle CPU.
    pub interrupts: i64,
    /// Switches from one task to another.
    pub switches: u64,
    /// Its tasks, the largest CPU usage first.
    pub tasks: Vec<RanTask>,
}

/// The activity of a thread, or of all threads of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ActivityTimes {
    /// On a CPU, including interrupts.
    pub running: i64,
    /// The part of it in interrupt handlers and softirqs, in ns.
    pub interrupted: i64,
    pub ready: i64,
    /// The part of `ready` before it was enqueued on a runqueue.
    pub waking: i64,
    pub sleeping: i64,
    /// Waited uninterruptibly or for a lock with priority inheritance.
    pub blocked: i64,
    pub other: i64,
    /// Not covered by the recording.
    pub unknown: i64,
    /// Switches away to wait.
    pub voluntary: u64,
    /// Switches away while runnable.
    pub involuntary: u64,
    pub migrations: u64,
    /// Number of wake-ups.
    pub wakeups: u64,
}

/// The CPU usage of a process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessOccupancy {
    /// Its PID; `null` for threads of unknown processes.
    pub process: Option<u32>,
    /// The name of its first thread.
    pub name: String,
    /// The sum over its threads.
    #[serde(flatten)]
    pub times: ActivityTimes,
    /// Its threads, busiest first.
    pub threads: Vec<ThreadOccupancy>,
}

/// The CPU usage of a thread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ThreadOccupancy {
    pub tid: u32,
    /// Untrusted: escape it for output.
    pub name: String,
    /// Its activity.
    #[serde(flatten)]
    pub times: ActivityTimes,
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
    /// Number of completed runs.
    pub count: u64,
    /// The time without nested interrupts.
    pub ns: i64,
    /// The longest, including nested interrupts.
    pub max: i64,
}

/// The format of an [`AllocatorUse`] as JSON.
pub const ALLOCATOR_SCHEMA: &str = "punctual-allocator/1";
/// Requests of one allocator, with the bytes asked and given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BytesGiven {
    pub requests: u64,
    pub requested: u64,
    pub allocated: u64,
    /// Those whose object is known.
    pub known: u64,
    /// Those of them that were given an object that was freed earlier in the recording. Earlier
    /// frees are unknown, so it is a lower bound.
    pub reused: u64,
    pub freed: u64,
}

/// Requests of more than a page that asked for as many pages and were given as many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PagesGiven {
    pub asked: u64,
    pub given: u64,
    pub requests: u64,
}

/// The kernel's allocators in a recording.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllocatorUse {
    /// [`ALLOCATOR_SCHEMA`].
    pub schema: String,
    pub kmalloc: BytesGiven,
    pub slab: BytesGiven,
    /// By pages asked, then given.
    pub pages: Vec<PagesGiven>,
    /// Blocks of pages by their order (mm_page_alloc).
    pub orders: BTreeMap<u8, u64>,
}
