//! What all workloads have in common: they are ordered, prepared, let go at one instant, ended, and asked what they have to say.
//!
//! A kind turns its order into [`Parts`]: a [`Task`] for each thread, a [`Feed`] for each series, and an [`Outside`] that looks on from
//! without. Everything else is done here, the same for all kinds. docs/workloads.md and CONTRIBUTING.md say how one is added.

mod clock_cost;
pub mod counter;
pub mod course;
pub mod heap;
mod io_uring;
mod irq;
mod mutex;
mod netio;
pub mod raw;
mod spin;
mod storage;
mod switch;
mod syscall;
mod testpoint_cost;
mod timer;

pub use clock_cost::clock_cost;

use crate::sink::Feed;
use crate::stop::Stop;
use crate::thread::{self, Prepared, Task, ThreadError, ThreadPlan};
use punctual_core::{Clock, CpuSet, Fact, Nanos, Notes, SeriesShape};
use punctual_host::task::attributes::Scheduling;
use punctual_host::task::clock;
use punctual_host::task::usage::Usage;
use punctual_plan::Workload;
use punctual_record::perf::Total;
use std::io;
use std::sync::Arc;

/// What a measure shall do, whatever its kind.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its name in the experiment.
    pub name: String,
    /// The kind with its parameters.
    pub workload: Workload,
    /// Its threads, at least one.
    pub threads: Vec<ThreadPlan>,
    /// Its series, at least one: those of the first thread, then those of the second, ….
    pub series: Vec<SeriesOrder>,
    /// All CPUs that it may use.
    pub cpus: CpuSet,
    /// The clock of all samples.
    pub clock: Clock,
    /// For how long, from the common start; `None`: until something else ends it.
    pub duration: Option<Nanos>,
    /// How many samples of each series; `None`: until something else ends it.
    pub samples: Option<u64>,
    /// The latency above which everybody stops.
    pub stop_above: Option<Nanos>,
    /// Whether all memory of the process is locked.
    pub lock_memory: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// Tells when to end, and is told of what exceeds `stop_above`. Every loop looks at it once a sample.
    pub stop: Arc<Stop>,
}

/// A series of a measure.
#[derive(Clone, Debug)]
pub struct SeriesOrder {
    /// Its number in the phase, for [`Stop::trip`].
    pub number: u32,
    /// Its name, for messages.
    pub name: String,
    /// Which of the order's threads it belongs to.
    pub thread: usize,
    /// Its histogram.
    pub shape: SeriesShape,
}

/// What a kind makes of an order.
pub struct Parts {
    /// One for each thread of the order.
    pub tasks: Vec<Box<dyn Task>>,
    /// One for each series of the order.
    pub feeds: Vec<Feed>,
    /// Who looks on.
    pub outside: Box<dyn Outside>,
}

/// Looks on from without, on the conducting thread: counts of the kernel before and after, and what is to be tidied up.
pub trait Outside {
    /// Directly before the threads are let go.
    fn before(&mut self) {}
    /// When all threads have ended.
    fn after(&mut self) -> Notes {
        Notes::default()
    }
}

/// Has nothing to look at: what there is to say the tasks say themselves.
pub struct Nobody;
impl Outside for Nobody {}

/// Lets threads be born where their CPUs are: in a partition, or not.
pub trait Rooms {
    /// Does something from within the place that these CPUs belong to.
    fn within(&self, cpus: &CpuSet, what: &mut dyn FnMut()) -> Result<(), String>;
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
    feeds: Vec<Feed>,
    outside: Box<dyn Outside>,
}

/// A measure that runs.
pub struct Running {
    threads: Vec<thread::Running>,
    outside: Box<dyn Outside>,
}

/// How a measure ended.
pub struct Ended {
    /// The kernel's counts for each thread while it measured.
    pub usages: Vec<Usage>,
    /// What was counted of each thread, in the order of its plan's events.
    pub counted: Vec<Vec<Result<Total, String>>>,
    /// Why threads ended early.
    pub errors: Vec<io::Error>,
    /// Scheduling and affinity of each thread directly after its last sample.
    pub after: Vec<io::Result<(Scheduling, CpuSet)>>,
    /// What it has to say.
    pub notes: Notes,
}

/// Opens what the measure needs, and tells what is missing. No thread of it is started; dropped, it gives everything back.
pub fn parts(order: &Order) -> Result<Parts, PrepareError> {
    match &order.workload {
        Workload::Timer(plan) => Ok(timer::parts(order, plan)),
        Workload::Syscall(plan) => syscall::parts(order, plan),
        Workload::Spin(plan) => Ok(spin::parts(order, plan)),
        Workload::Irq(plan) => irq::parts(order, plan),
        Workload::Mutex(plan) => mutex::parts(order, plan),
        Workload::Switch(plan) => switch::parts(order, plan),
        Workload::TestpointCost(plan) => Ok(testpoint_cost::parts(order, plan)),
        Workload::Storage(plan) => storage::parts(order, plan),
        Workload::Heap(plan) => heap::parts(order, plan),
        Workload::Netio(plan) => netio::parts(order, plan),
    }
}

/// Prepares everything: memory, files, devices, threads. What is missing is said here, before anything starts.
pub fn prepare(order: &Order, rooms: &dyn Rooms) -> Result<Waiting, PrepareError> {
    let Parts { tasks, feeds, outside } = parts(order)?;
    let mut threads = Vec::new();
    for (plan, task) in order.threads.iter().zip(tasks) {
        let (mut task, mut prepared) = (Some(task), None);
        rooms
            .within(&plan.cpus, &mut || prepared = task.take().map(|task| thread::prepare(plan.clone(), task)))
            .map_err(PrepareError::Needs)?;
        threads.push(prepared.ok_or(ThreadError::Gone)??);
    }
    Ok(Waiting { clock: order.clock, threads, feeds, outside })
}

impl Waiting {
    /// Each thread as the kernel says it is.
    pub fn prepared(&self) -> impl Iterator<Item = &Prepared> {
        self.threads.iter().map(|thread| &thread.prepared)
    }

    /// Lets all threads go, `ahead` from now.
    pub fn start(mut self, ahead: Nanos) -> (Running, Vec<Feed>) {
        self.outside.before();
        let start = (clock::now(self.clock) + ahead).ns();
        let threads = self.threads.into_iter().map(|thread| thread.start(start)).collect();
        (Running { threads, outside: self.outside }, self.feeds)
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

    /// Wakes all threads from a long sleep, to look at their stop.
    pub fn wake(&self) {
        self.threads.iter().for_each(thread::Running::wake);
    }

    /// Waits for the end.
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
        merge(&mut all.notes, self.outside.after());
        all
    }
}

/// What each thread says, in order; the clock cost of the first that knows it.
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
