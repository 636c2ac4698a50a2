//! A measuring thread: prepared, started with all others at one instant, ended.

use crate::ring::{Consumer, Producer, ring};
use crate::stop::Stop;
use crate::timer;
use punctual_core::{Clock, CpuSet, Nanos};
use punctual_host::task::attributes::{self, Scheduling};
use punctual_host::task::usage::Usage;
use punctual_host::task::{clock, memory, signals};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

/// The stack of a measuring thread.
const STACK: usize = 256 * 1024;
/// How much of it is touched before the first sample: far more than the loop uses.
const TOUCHED: usize = 32 * 1024;
/// The ring holds what comes in this time, so that a conductor that is kept off the CPU for so long loses nothing.
const RING_SPAN: Nanos = Nanos::from_secs(2);
/// Bounds of the ring in samples (24 bytes each).
const RING_SAMPLES: std::ops::RangeInclusive<i64> = 1_024..=262_144;
/// Sleeps before the first sample, through the same code: they bring in the pages and lines that a sample needs.
const WARM_UP: u64 = 8;

/// What a thread shall be and do.
#[derive(Clone, Debug)]
pub struct ThreadPlan {
    /// The number of its series.
    pub series: u32,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// How it shall be scheduled.
    pub scheduling: Scheduling,
    /// How it sleeps.
    pub method: timer::Method,
    /// On which clock.
    pub clock: Clock,
    /// How often.
    pub period: Nanos,
    /// How long after the common start its first expiry is due.
    pub offset: Nanos,
    /// For how long, from its first expiry.
    pub duration: Option<Nanos>,
    /// How many samples.
    pub samples: Option<u64>,
    /// The latency above which everybody stops.
    pub stop_above: Option<Nanos>,
    /// Whether its memory shall be locked.
    pub lock_memory: bool,
}

/// What the thread turned out to be, read back from the kernel.
#[derive(Debug)]
pub struct Prepared {
    /// The kernel's id.
    pub tid: i32,
    /// The scheduling in force.
    pub scheduling: Scheduling,
    /// Why the scheduling that was asked for is not.
    pub refused: Option<io::Error>,
    /// Why its memory is not locked.
    pub unlocked: Option<io::Error>,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// Samples offered to the ring, modulo 2^32.
    pub offered: u32,
    /// The kernel's counts between the first and the last sample.
    pub usage: Usage,
    /// Why it ended early.
    pub error: Option<io::Error>,
}

/// A thread that is prepared and waits for the start.
pub struct Waiting {
    /// What it is.
    pub prepared: Prepared,
    /// The other end of its ring.
    pub consumer: Consumer,
    start: Sender<i64>,
    handle: JoinHandle<Ended>,
}

/// A thread that measures.
pub struct Running {
    tid: i32,
    handle: JoinHandle<Ended>,
}

/// Why a thread could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The kernel gave no thread.
    #[error("cannot start a measuring thread: {0}")]
    Spawn(io::Error),
    /// The CPUs are not to be had.
    #[error("a measuring thread cannot run on CPU {cpus}: {source} (is the CPU online and in this process's cpuset?)")]
    Affinity {
        /// Those asked for.
        cpus: CpuSet,
        /// The kernel's answer.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("a measuring thread ended before it was ready")]
    Gone,
}

/// Prepares a thread; it then waits for [`Waiting::start`].
pub fn prepare(plan: ThreadPlan, stop: Arc<Stop>) -> Result<Waiting, ThreadError> {
    let per_span = RING_SPAN.ns() / plan.period.ns().max(1);
    let (producer, consumer) = ring(per_span.clamp(*RING_SAMPLES.start(), *RING_SAMPLES.end()) as usize);
    let (ready_in, ready) = channel();
    let (start, start_out) = channel();
    let body = move || life(plan, producer, &stop, &ready_in, &start_out);
    let handle = Builder::new().name("measure".into()).stack_size(STACK).spawn(body).map_err(ThreadError::Spawn)?;
    let prepared = ready.recv().map_err(|_| ThreadError::Gone)??;
    Ok(Waiting { prepared, consumer, start, handle })
}

impl Waiting {
    /// Lets it go: its first expiry is due `offset` after `start` on its own clock.
    pub fn start(self, start: i64) -> (Running, Consumer) {
        // A thread that is gone already says why when it is joined.
        let _ = self.start.send(start);
        (Running { tid: self.prepared.tid, handle: self.handle }, self.consumer)
    }
}

impl Running {
    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
    /// Wakes it from a long sleep, to look at its stop.
    pub fn wake(&self) {
        // ESRCH: it has ended meanwhile, which is what is wanted.
        let _ = signals::wake(self.tid);
    }
    /// Waits for its end.
    pub fn join(self) -> Ended {
        let lost = |_| Ended { offered: 0, usage: Usage::default(), error: Some(io::Error::other("it panicked")) };
        self.handle.join().unwrap_or_else(lost)
    }
}

fn life(
    plan: ThreadPlan,
    mut producer: Producer,
    stop: &Stop,
    ready: &mpsc::Sender<Result<Prepared, ThreadError>>,
    start: &Receiver<i64>,
) -> Ended {
    let nothing = |error| Ended { offered: 0, usage: Usage::default(), error };
    let prepared = become_ready(&plan, &producer);
    let failed = prepared.is_err();
    if ready.send(prepared).is_err() || failed {
        return nothing(None);
    }
    let Ok(start) = start.recv() else { return nothing(None) };
    // Again, because memory may have been given back since: what the loop needs is there from now on.
    warm_up(&plan);
    // A thread that was not let on its CPU in time begins later; its first sample is not late for that.
    let earliest = clock::now(plan.clock).ns() + Nanos::MILLI.ns();
    let loop_plan = loop_plan(&plan, (start + plan.offset.ns()).max(earliest));
    let before = Usage::of_this_thread();
    let error = timer::run(&loop_plan, &mut producer, stop).err();
    let usage = Usage::of_this_thread().since(before);
    Ended { offered: producer.offered(), usage, error }
}

/// Affinity, memory, scheduling, and a few sleeps for nothing: the same code and the same calls as later.
fn become_ready(plan: &ThreadPlan, producer: &Producer) -> Result<Prepared, ThreadError> {
    signals::leave_to_others();
    // SCHED_DEADLINE tasks must be free to run on all CPUs of their root domain (sched-deadline.rst, 5.): affinity is left alone.
    if plan.scheduling.deadline.is_none() {
        attributes::set_affinity(0, &plan.cpus)
            .map_err(|source| ThreadError::Affinity { cpus: plan.cpus.clone(), source })?;
    }
    // Without the right to real-time policies the slack matters; the call itself cannot fail with a positive slack.
    let _ = attributes::set_timer_slack(Nanos(1));
    memory::touch_stack::<TOUCHED>();
    let unlocked = plan.lock_memory.then(|| memory::lock(producer.memory()).err()).flatten();
    let refused = attributes::set_scheduling(0, &plan.scheduling).err();
    warm_up(plan);
    let scheduling = attributes::scheduling(0).unwrap_or(plan.scheduling);
    Ok(Prepared { tid: attributes::tid(), scheduling, refused, unlocked })
}

fn warm_up(plan: &ThreadPlan) {
    let mut scratch = ring(WARM_UP as usize).0;
    let first = clock::now(plan.clock).ns() + 100_000;
    let warm = ThreadPlan {
        period: plan.period.min(Nanos::MILLI),
        samples: Some(WARM_UP),
        duration: None,
        stop_above: None,
        ..plan.clone()
    };
    if warm.method != timer::Method::Deadline {
        // What fails here fails again, and is told, in the real loop.
        let _ = timer::run(&loop_plan(&warm, first), &mut scratch, &Stop::default());
    }
    let _ = Usage::of_this_thread();
}

fn loop_plan(plan: &ThreadPlan, first_due: i64) -> timer::Plan {
    timer::Plan {
        method: plan.method,
        clock: clock::id(plan.clock),
        period: plan.period,
        first_due,
        end_due: plan.duration.map_or(i64::MAX, |span| first_due.saturating_add(span.ns())),
        samples: plan.samples.unwrap_or(u64::MAX),
        stop_above: plan.stop_above,
        only_cpu: plan.cpus.first().filter(|_| plan.cpus.len() == 1).map(|cpu| cpu as u32),
        series: plan.series,
    }
}
