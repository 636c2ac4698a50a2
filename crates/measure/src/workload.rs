//! The common part of all workloads: they are configured, prepared, started at one instant, ended,
//! and asked for their notes.
//!
//! A kind turns its configuration into [`Prepared`]: a [`ThreadTask`] for each thread, a
//! [`SampleSource`] for each series, and an [`Observer`] outside of the measuring threads.
//! Everything else is done here, in the same way for all kinds. CONTRIBUTING.md describes how to
//! add one.

mod clock_cost;
pub mod counter;
pub mod heap;
mod io_uring;
mod irq;
pub(crate) mod measurement_loop;
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
use crate::thread::{self, PreparedThread, ThreadError, ThreadSettings, ThreadTask};
use punctual_core::{Clock, CpuSet, Fact, Nanos, Notes, SeriesShape};
use punctual_plan::Workload;
use punctual_record::perf::Total;
use punctual_sys::attributes::Scheduling;
use punctual_sys::clock;
use punctual_sys::usage::Usage;
use std::io;
use std::sync::Arc;

/// The configuration of a measure of any kind.
#[derive(Clone, Debug)]
pub struct MeasureConfig {
    /// Its name in the experiment.
    pub name: String,
    /// The kind with its parameters.
    pub workload: Workload,
    /// Its threads, at least one.
    pub threads: Vec<ThreadSettings>,
    /// Its series, at least one: those of the first thread, then those of the second, ….
    pub series: Vec<SeriesConfig>,
    /// All CPUs that it may use.
    pub cpus: CpuSet,
    /// The clock of all samples.
    pub clock: Clock,
    /// The duration from the common start; `None`: until another end condition.
    pub duration: Option<Nanos>,
    /// The number of samples of each series; `None`: until another end condition.
    pub samples: Option<u64>,
    /// The latency above which all threads stop.
    pub stop_above: Option<Nanos>,
    /// Whether all memory of the process is locked.
    pub lock_memory: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// Requests the end, and records samples above `stop_above`. Every loop reads it once per
    /// sample.
    pub stop: Arc<Stop>,
}

/// A series of a measure.
#[derive(Clone, Debug)]
pub struct SeriesConfig {
    /// Its number in the phase, for [`Stop::on_limit_exceeded`].
    pub number: u32,
    pub name: String,
    /// Index of its thread in [`MeasureConfig::threads`].
    pub thread: usize,
    pub shape: SeriesShape,
}

/// A configuration prepared by its kind.
pub struct Prepared {
    /// One for each thread of the configuration.
    pub tasks: Vec<Box<dyn ThreadTask>>,
    /// One for each series of the configuration.
    pub sources: Vec<SampleSource>,
    pub observer: Box<dyn Observer>,
}

/// Counts outside of the measuring threads, on the controller thread: the kernel's counters before
/// and after; cleans up.
pub trait Observer {
    /// Called directly before the threads are started.
    fn on_start(&mut self) {}
    /// Called when all threads have ended.
    fn on_end(&mut self) -> Notes {
        Notes::default()
    }
}

/// Observes nothing: the tasks provide all notes.
pub(crate) struct NoObserver;
impl Observer for NoObserver {}

/// Creates threads where their CPUs are: in a partition, or outside.
pub trait CpuPlacement {
    /// Runs `what` in the cgroup of these CPUs.
    fn run_in(&self, cpus: &CpuSet, what: &mut dyn FnMut()) -> Result<(), String>;
}

/// Why a measure could not be prepared. Nothing has been started.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A thread.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// A requirement of the workload: what, why, and the remedy.
    #[error("{0}")]
    Needs(String),
}

/// A prepared measure that waits for the start.
pub struct WaitingWorkload {
    clock: Clock,
    threads: Vec<thread::WaitingThread>,
    sources: Vec<SampleSource>,
    observer: Box<dyn Observer>,
}

pub struct RunningWorkload {
    threads: Vec<thread::RunningThread>,
    observer: Box<dyn Observer>,
}

pub struct MeasureResults {
    /// The kernel's counts for each thread while it measured.
    pub usages: Vec<Usage>,
    /// The counts of each thread, in the order of its plan's events.
    pub counted: Vec<Vec<Result<Total, String>>>,
    pub errors: Vec<io::Error>,
    /// Scheduling and affinity of each thread directly after its last sample.
    pub after: Vec<io::Result<(Scheduling, CpuSet)>>,
    pub notes: Notes,
}

/// Opens the resources of the measure; the error names a missing one. Starts no thread; dropping
/// the result frees everything.
pub fn prepare_workload(config: &MeasureConfig) -> Result<Prepared, PrepareError> {
    match &config.workload {
        Workload::Timer(plan) => Ok(timer::prepare_timer(config, plan)),
        Workload::Syscall(plan) => syscall::prepare_syscall(config, plan),
        Workload::Spin(plan) => Ok(spin::prepare_spin(config, plan)),
        Workload::Irq(plan) => irq::prepare_irq(config, plan),
        Workload::Mutex(plan) => mutex::prepare_mutex(config, plan),
        Workload::Switch(plan) => switch::prepare_switch(config, plan),
        Workload::TestpointCost(plan) => Ok(testpoint_cost::prepare_testpoint_cost(config, plan)),
        Workload::Storage(plan) => storage::prepare_storage(config, plan),
        Workload::Heap(plan) => heap::prepare_heap(config, plan),
        Workload::Netio(plan) => netio::prepare_netio(config, plan),
        Workload::Program(_) => {
            Err(PrepareError::Needs("a program has its own threads".to_owned()))
        }
        Workload::Entries(_) => Err(PrepareError::Needs("no thread measures entries".to_owned())),
    }
}

/// Prepares everything: memory, files, devices, threads. Anything missing is an error here, before
/// the start.
pub fn prepare_measure(
    config: &MeasureConfig,
    placement: &dyn CpuPlacement,
) -> Result<WaitingWorkload, PrepareError> {
    let Prepared { tasks, sources, observer } = prepare_workload(config)?;
    let mut threads = Vec::new();
    for (plan, task) in config.threads.iter().zip(tasks) {
        let (mut task, mut prepared) = (Some(task), None);
        placement
            .run_in(&plan.cpus, &mut || {
                prepared = task.take().map(|task| thread::prepare_thread(plan.clone(), task))
            })
            .map_err(PrepareError::Needs)?;
        threads.push(prepared.ok_or(ThreadError::Gone)??);
    }
    Ok(WaitingWorkload { clock: config.clock, threads, sources, observer })
}

impl WaitingWorkload {
    /// Each thread as read back from the kernel.
    pub fn prepared_threads(&self) -> impl Iterator<Item = &PreparedThread> {
        self.threads.iter().map(|thread| &thread.prepared)
    }

    /// Starts all threads, `ahead` from now.
    pub fn start(mut self, ahead: Nanos) -> (RunningWorkload, Vec<SampleSource>) {
        self.observer.on_start();
        let start = (clock::read_clock(self.clock) + ahead).ns();
        let threads = self.threads.into_iter().map(|thread| thread.start(start)).collect();
        (RunningWorkload { threads, observer: self.observer }, self.sources)
    }
}

impl RunningWorkload {
    /// Whether all threads have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(thread::RunningThread::is_finished)
    }

    /// Whether this thread has ended.
    pub fn has_ended(&self, thread: usize) -> bool {
        self.threads.get(thread).is_none_or(thread::RunningThread::is_finished)
    }

    /// Wakes all threads from a long sleep, to read their stop flag.
    pub fn wake_threads(&self) {
        self.threads.iter().for_each(thread::RunningThread::wake);
    }

    pub fn join(mut self) -> MeasureResults {
        let mut results = MeasureResults {
            usages: Vec::new(),
            counted: Vec::new(),
            errors: Vec::new(),
            after: Vec::new(),
            notes: Notes::default(),
        };
        for thread in self.threads {
            let ended = thread.join();
            results.usages.push(ended.usage);
            results.counted.push(ended.counted);
            results.errors.extend(ended.error);
            results.after.push(ended.after);
            merge_notes(&mut results.notes, ended.notes);
        }
        merge_notes(&mut results.notes, self.observer.on_end());
        results
    }
}

/// Appends the notes of the threads, in order; keeps the first known clock cost.
fn merge_notes(all: &mut Notes, more: Notes) {
    all.validations.extend(more.validations);
    all.figures.extend(more.figures);
    all.tables.extend(more.tables);
    all.findings.extend(more.findings);
    all.absent.extend(more.absent);
    if !matches!(all.clock_cost, Fact::Known(_)) {
        all.clock_cost = more.clock_cost;
    }
}
