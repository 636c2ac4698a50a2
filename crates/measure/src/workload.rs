//! What all workloads have in common: they are configured, prepared, started at one instant, ended,
//! and asked for their notes.
//!
//! A kind turns its configuration into [`Prepared`]: a [`Task`] for each thread, a [`SampleSource`]
//! for each series, and an [`Observer`] outside the measuring threads. Everything else is done
//! here, the same for all kinds. CONTRIBUTING.md describes how to add one.

mod clock_cost;
pub mod counter;
pub mod heap;
mod io_uring;
mod irq;
pub mod measurement_loop;
mod mutex;
mod netio;
#[cfg(test)]
mod simulated;
mod spin;
mod storage;
mod switch;
mod syscall;
mod testpoint_cost;
mod timer;

pub use clock_cost::clock_cost;

use crate::sink::SampleSource;
use crate::stop::Stop;
use crate::thread::{self, PreparedThread, Task, ThreadError, ThreadPlan};
use punctual_core::{Clock, CpuSet, Fact, Nanos, Notes, SeriesShape};
use punctual_plan::Workload;
use punctual_record::perf::Total;
use punctual_sys::attributes::Scheduling;
use punctual_sys::clock;
use punctual_sys::usage::Usage;
use std::io;
use std::sync::Arc;

/// The configuration of a measure, whatever its kind.
#[derive(Clone, Debug)]
pub struct MeasureConfig {
    /// Its name in the experiment.
    pub name: String,
    /// The kind with its parameters.
    pub workload: Workload,
    /// Its threads, at least one.
    pub threads: Vec<ThreadPlan>,
    /// Its series, at least one: those of the first thread, then those of the second, ….
    pub series: Vec<SeriesConfig>,
    /// All CPUs that it may use.
    pub cpus: CpuSet,
    /// The clock of all samples.
    pub clock: Clock,
    /// For how long, from the common start; `None`: until something else ends it.
    pub duration: Option<Nanos>,
    /// How many samples of each series; `None`: until something else ends it.
    pub samples: Option<u64>,
    /// The latency above which all threads stop.
    pub stop_above: Option<Nanos>,
    /// Whether all memory of the process is locked.
    pub lock_memory: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// Requests the end, and takes what exceeds `stop_above`. Every loop reads it once a sample.
    pub stop: Arc<Stop>,
}

/// A series of a measure.
#[derive(Clone, Debug)]
pub struct SeriesConfig {
    /// Its number in the phase, for [`Stop::trip`].
    pub number: u32,
    pub name: String,
    /// Index of its thread in [`MeasureConfig::threads`].
    pub thread: usize,
    pub shape: SeriesShape,
}

/// What a kind makes of a configuration.
pub struct Prepared {
    /// One for each thread of the configuration.
    pub tasks: Vec<Box<dyn Task>>,
    /// One for each series of the configuration.
    pub sources: Vec<SampleSource>,
    pub observer: Box<dyn Observer>,
}

/// Counts from outside, on the controller thread: the kernel's counters before and after; cleans
/// up.
pub trait Observer {
    /// Directly before the threads are started.
    fn before(&mut self) {}
    /// When all threads have ended.
    fn after(&mut self) -> Notes {
        Notes::default()
    }
}

/// Observes nothing: the tasks have all the notes.
pub struct NoObserver;
impl Observer for NoObserver {}

/// Creates threads where their CPUs are: in a partition, or not.
pub trait CpuPlacement {
    /// Runs `what` in the cgroup that these CPUs belong to.
    fn run_in(&self, cpus: &CpuSet, what: &mut dyn FnMut()) -> Result<(), String>;
}

/// Why a measure could not be prepared. Nothing has been started then.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A thread.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Something the workload needs: what, why, and what to do.
    #[error("{0}")]
    Needs(String),
}

/// A measure that is prepared and waits for the start.
pub struct Waiting {
    clock: Clock,
    threads: Vec<thread::Waiting>,
    sources: Vec<SampleSource>,
    observer: Box<dyn Observer>,
}

pub struct Running {
    threads: Vec<thread::Running>,
    observer: Box<dyn Observer>,
}

pub struct Ended {
    /// The kernel's counts for each thread while it measured.
    pub usages: Vec<Usage>,
    /// What was counted of each thread, in the order of its plan's events.
    pub counted: Vec<Vec<Result<Total, String>>>,
    pub errors: Vec<io::Error>,
    /// Scheduling and affinity of each thread directly after its last sample.
    pub after: Vec<io::Result<(Scheduling, CpuSet)>>,
    pub notes: Notes,
}

/// Opens what the measure needs; the error names what is missing. Starts no thread; dropping the
/// result frees everything.
pub fn prepare_workload(config: &MeasureConfig) -> Result<Prepared, PrepareError> {
    match &config.workload {
        Workload::Timer(plan) => Ok(timer::prepare(config, plan)),
        Workload::Syscall(plan) => syscall::prepare(config, plan),
        Workload::Spin(plan) => Ok(spin::prepare(config, plan)),
        Workload::Irq(plan) => irq::prepare(config, plan),
        Workload::Mutex(plan) => mutex::prepare(config, plan),
        Workload::Switch(plan) => switch::prepare(config, plan),
        Workload::TestpointCost(plan) => Ok(testpoint_cost::prepare(config, plan)),
        Workload::Storage(plan) => storage::prepare(config, plan),
        Workload::Heap(plan) => heap::prepare(config, plan),
        Workload::Netio(plan) => netio::prepare(config, plan),
        Workload::Program(_) => {
            Err(PrepareError::Needs("a program has its own threads".to_owned()))
        }
        Workload::Entries(_) => Err(PrepareError::Needs("no thread measures entries".to_owned())),
    }
}

/// Prepares everything: memory, files, devices, threads. What is missing is an error here, before
/// anything starts.
pub fn prepare(
    config: &MeasureConfig,
    placement: &dyn CpuPlacement,
) -> Result<Waiting, PrepareError> {
    let Prepared { tasks, sources, observer } = prepare_workload(config)?;
    let mut threads = Vec::new();
    for (plan, task) in config.threads.iter().zip(tasks) {
        let (mut task, mut prepared) = (Some(task), None);
        placement
            .run_in(&plan.cpus, &mut || {
                prepared = task.take().map(|task| thread::prepare(plan.clone(), task))
            })
            .map_err(PrepareError::Needs)?;
        threads.push(prepared.ok_or(ThreadError::Gone)??);
    }
    Ok(Waiting { clock: config.clock, threads, sources, observer })
}

impl Waiting {
    /// Each thread as read back from the kernel.
    pub fn prepared(&self) -> impl Iterator<Item = &PreparedThread> {
        self.threads.iter().map(|thread| &thread.prepared)
    }

    /// Starts all threads, `ahead` from now.
    pub fn start(mut self, ahead: Nanos) -> (Running, Vec<SampleSource>) {
        self.observer.before();
        let start = (clock::now(self.clock) + ahead).ns();
        let threads = self.threads.into_iter().map(|thread| thread.start(start)).collect();
        (Running { threads, observer: self.observer }, self.sources)
    }
}

impl Running {
    /// Whether all threads have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(thread::Running::is_finished)
    }

    /// Whether this one has ended.
    pub fn has_ended(&self, thread: usize) -> bool {
        self.threads.get(thread).is_none_or(thread::Running::is_finished)
    }

    /// Wakes all threads from a long sleep, to read their stop flag.
    pub fn wake(&self) {
        self.threads.iter().for_each(thread::Running::wake);
    }

    pub fn join(mut self) -> Ended {
        let mut all = Ended {
            usages: Vec::new(),
            counted: Vec::new(),
            errors: Vec::new(),
            after: Vec::new(),
            notes: Notes::default(),
        };
        for thread in self.threads {
            let ended = thread.join();
            all.usages.push(ended.usage);
            all.counted.push(ended.counted);
            all.errors.extend(ended.error);
            all.after.push(ended.after);
            merge(&mut all.notes, ended.notes);
        }
        merge(&mut all.notes, self.observer.after());
        all
    }
}

/// Joins the notes of the threads, in order; the clock cost of the first that knows it.
fn merge(all: &mut Notes, more: Notes) {
    all.validations.extend(more.validations);
    all.figures.extend(more.figures);
    all.tables.extend(more.tables);
    all.findings.extend(more.findings);
    all.absent.extend(more.absent);
    if !matches!(all.clock_cost, Fact::Known(_)) {
        all.clock_cost = more.clock_cost;
    }
}
