//! A plan: an experiment with every default filled in and every name resolved. Nothing is left to
//! decide.

use crate::calibration;
use crate::experiment::RecordSpec;
pub use crate::kinds::{HistogramPlan, TimerPlan};
pub use crate::target::TargetPlan;
use crate::words::{ByteSize, Nice, OnExit, Output, Placement, SystressFormat};
pub use crate::workload::Workload;
use punctual_core::event::{Group, NamedTracepoint};
use punctual_core::{
    CpuSet, Fact, Nanos, PerfEvent, Policy, Priority, Published, SeriesRequirement,
};
use std::path::PathBuf;

/// What to run, from [`crate::resolve()`].
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The experiment's name: at most 64 characters, fit for a file name.
    pub name: String,
    /// The CPUs of the controller thread.
    pub controller_cpus: CpuSet,
    /// The distance between two refreshes of the live view.
    pub refresh: Nanos,
    /// Whether all memory is locked.
    pub memory_lock: bool,
    /// What /dev/cpu_dma_latency is held at; `None`: it is not touched.
    pub dma_latency: Option<Nanos>,
    /// The seed of everything random: see [`Plan::seeded`]. `None`: loads and timers start as
    /// written.
    pub seed: Option<u64>,
    /// The bundle's directory.
    pub output: PathBuf,
    /// Whether the load of each CPU is shown and recorded.
    pub cpu_load: bool,
    /// How many raw samples are kept of each series; statistics are over all.
    pub keep_samples: u64,
    /// Whether figures are invalid unless every requested policy is in force.
    pub require_real_time: bool,
    /// Whether what could make the system unusable was let through by the file itself.
    pub force: bool,
    /// What sh(1) runs once, when a requirement is violated.
    pub on_violation: Option<String>,
    /// Whether it goes on until it is interrupted, within bounds of memory and disk. There is one
    /// phase then.
    pub forever: bool,
    /// Where it runs.
    pub target: TargetPlan,
    /// CPUs to set apart while it runs.
    pub partition: Option<PartitionPlan>,
    /// Kernel events and test points to record while it runs.
    pub record: Option<RecordPlan>,
    /// What is kept to explain the worst samples.
    pub explain: Option<ExplainPlan>,
    /// Whether what recording costs is measured before the run; `None`: see [`Plan::calibration`].
    pub calibrate: Option<bool>,
    /// What was published of this experiment.
    pub published: Option<Published>,
    /// At least one, run one after the other.
    pub phases: Vec<PhasePlan>,
}

impl Plan {
    /// Goes on until it is interrupted, whatever lengths were requested.
    ///
    /// # Errors
    /// There is more than one phase, or a program is measured.
    pub fn run_forever(&mut self) -> Result<(), String> {
        let measures = || self.phases.iter().flat_map(|phase| &phase.measures);
        if measures().any(|measure| matches!(measure.workload, Workload::Program(_))) {
            let why = "the series of a `program` have no lines of five minutes";
            return Err(format!("what runs forever cannot measure a program: {why}"));
        }
        let [phase] = &mut self.phases[..] else {
            let phases = self.phases.len();
            return Err(format!("what runs forever has one phase, and there are {phases}"));
        };
        phase.duration = None;
        phase.measures.iter_mut().for_each(|measure| measure.length = Length::UntilInterrupted);
        self.forever = true;
        Ok(())
    }

    /// Whether what recording costs is measured before the run, and why not; not asked where
    /// nothing is recorded.
    pub fn calibration(&self) -> Fact<()> {
        match self.record.is_some() || self.explain.is_some() {
            true => calibration::decide(self.calibrate, self.estimated_time()),
            false => Fact::NotAsked,
        }
    }
}

/// CPUs to set apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionPlan {
    /// The partition's name.
    pub name: String,
    /// Its CPUs: online, and not all of them.
    pub cpus: CpuSet,
    /// Names of tweaks that are not to be made, as written: the host knows which there are.
    pub disable: Vec<String>,
}

/// What to record beside the measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordPlan {
    /// Groups of kernel events; none where only test points are recorded.
    pub events: Vec<Group>,
    /// Tracepoints by name, of none of these groups.
    pub tracepoints: Vec<NamedTracepoint>,
    /// The CPUs whose kernel events are recorded.
    pub cpus: CpuSet,
    /// The processes that kernel events are limited to; empty: all.
    pub pids: Vec<u32>,
    /// Whether applications' test points are recorded.
    pub points: bool,
    /// How large the recording may get.
    pub max_size: ByteSize,
    /// How long intervals in it may take, as written: `A->B < 100us` (see
    /// [`punctual_core::Limit`]). The recording defines A and B.
    pub limits: Vec<String>,
}

impl RecordPlan {
    /// The usual groups of events on these CPUs, and test points.
    pub fn usual(cpus: CpuSet) -> RecordPlan {
        let usual = RecordSpec::default();
        RecordPlan {
            events: Group::USUAL.to_vec(),
            tracepoints: Vec::new(),
            cpus,
            pids: Vec::new(),
            points: usual.points(),
            max_size: usual.max_size(),
            limits: Vec::new(),
        }
    }
}

/// What is kept to explain the worst samples: kernel events overwrite one another until a sample is
/// selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainPlan {
    /// At most this many of the worst samples of each series are kept with the events around them.
    pub worst: u32,
    /// Samples are considered from this latency on; `None`: all are.
    pub above: Option<Nanos>,
    /// How much before the start of a sample is kept.
    pub before: Nanos,
    /// Whether the kernel also counts, for every sample, what its time went to.
    pub account: bool,
    /// The size of each CPU's buffer.
    pub buffer: ByteSize,
    /// Groups of kernel events.
    pub events: Vec<Group>,
    /// Only timers are measured, with the default events: kept are those that show why an
    /// interrupt or a switch was delayed.
    pub timers_only: bool,
    /// Whether kernel stacks are kept of what interrupts interrupt.
    pub stacks: bool,
}

/// A part of the run with its own loads.
#[derive(Clone, PartialEq, Debug)]
pub struct PhasePlan {
    /// Unique in the plan.
    pub name: String,
    /// How long it lasts; `None`: until the last of its measures is over.
    pub duration: Option<Nanos>,
    /// What is measured in it.
    pub measures: Vec<MeasurePlan>,
    /// What loads the system meanwhile.
    pub loads: Vec<LoadPlan>,
}

/// Something to measure in a phase.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasurePlan {
    /// Unique in the plan, but for the same measure in another phase.
    pub name: String,
    /// What the threads do.
    pub workload: Workload,
    /// All CPUs that are measured on.
    pub cpus: CpuSet,
    /// How the threads were put on them.
    pub placement: Placement,
    /// The measuring threads, at least one: each has the series of [`Workload::series_of`] its
    /// name.
    pub threads: Vec<ThreadPlan>,
    /// When each thread ends.
    pub length: Length,
    /// The exact histogram of each series.
    pub histogram: HistogramPlan,
    /// Of a program: response times above this are counted.
    pub deadline: Option<Nanos>,
    /// A latency above this ends the run.
    pub stop_above: Option<Nanos>,
    /// What is counted of each measuring thread while it measures.
    pub counters: Vec<PerfEvent>,
    /// What must hold of each series, or of those that it names.
    pub requirements: Vec<SeriesRequirement>,
    /// The result file to leave as systress would; only with a single thread.
    pub systress: Option<SystressFile>,
}

/// A measuring thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadPlan {
    /// Its name, unique in its phase: `timer/cpu2`, `timer/0`, or the measure's own where it has
    /// one shared thread.
    pub name: String,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// Its policy with what belongs to it.
    pub scheduling: Scheduling,
    /// Its first expiry comes this much later than that of a thread without.
    pub start_offset: Nanos,
}

/// A scheduling policy with its parameters (sched(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// SCHED_FIFO
    Fifo(Priority),
    /// SCHED_RR
    Rr(Priority),
    /// SCHED_OTHER
    Other(Nice),
    /// SCHED_BATCH
    Batch(Nice),
    /// SCHED_IDLE
    Idle,
    /// SCHED_DEADLINE
    Deadline(DeadlineParameters),
}

/// The parameters of SCHED_DEADLINE: runtime ≤ deadline ≤ period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineParameters {
    /// The budget in each period.
    pub runtime: Nanos,
    /// By when, in each period, the budget is granted.
    pub deadline: Nanos,
    /// From one replenishment of the budget to the next.
    pub period: Nanos,
}

impl Scheduling {
    /// The policy alone.
    pub fn policy(self) -> Policy {
        match self {
            Scheduling::Fifo(_) => Policy::Fifo,
            Scheduling::Rr(_) => Policy::Rr,
            Scheduling::Other(_) => Policy::Other,
            Scheduling::Batch(_) => Policy::Batch,
            Scheduling::Idle => Policy::Idle,
            Scheduling::Deadline(_) => Policy::Deadline,
        }
    }
    /// The fixed priority, where the policy has one.
    pub fn priority(self) -> Option<Priority> {
        match self {
            Scheduling::Fifo(priority) | Scheduling::Rr(priority) => Some(priority),
            _ => None,
        }
    }
    /// With another fixed priority, where the policy has one.
    pub(crate) fn with_priority(self, priority: Priority) -> Scheduling {
        match self {
            Scheduling::Fifo(_) => Scheduling::Fifo(priority),
            Scheduling::Rr(_) => Scheduling::Rr(priority),
            other => other,
        }
    }
    /// The nice value, where the policy has one.
    pub fn nice(self) -> Option<Nice> {
        match self {
            Scheduling::Other(nice) | Scheduling::Batch(nice) => Some(nice),
            _ => None,
        }
    }
}

/// When a measuring thread ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// After this time.
    Duration(Nanos),
    /// After this many samples.
    Samples(u64),
    /// When the user ends the run.
    UntilInterrupted,
}

impl Length {
    /// How long that is at one sample a period, if it ends and that is known.
    pub fn time(self, period: Option<Nanos>) -> Option<Nanos> {
        match self {
            Length::Duration(duration) => Some(duration),
            Length::Samples(samples) => {
                period.map(|period| period * i64::try_from(samples).unwrap_or(i64::MAX))
            }
            Length::UntilInterrupted => None,
        }
    }
}

/// A result file in the layout of systress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystressFile {
    /// Relative to the current directory.
    pub path: PathBuf,
    /// Its layout.
    pub format: SystressFormat,
    /// What its first column shows.
    pub index: u32,
}

/// A program that loads the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadPlan {
    /// Unique in the plan.
    pub name: String,
    /// Its arguments, the program as written first.
    pub argv: Vec<String>,
    /// The program's file, as found.
    pub program: PathBuf,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// Its policy; never SCHED_DEADLINE.
    pub scheduling: Scheduling,
    /// Where its output goes.
    pub stdout: Output,
    /// Where its error output goes.
    pub stderr: Output,
    /// When it ends with success.
    pub on_success: OnExit,
    /// When it ends with an error or by a signal.
    pub on_failure: OnExit,
    /// How long after the phase's start it is started.
    pub start_delay: Nanos,
    /// Whether it is still a load when it does nothing: one that waits on purpose.
    pub may_rest: bool,
}
