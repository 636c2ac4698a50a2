//! A measuring thread: prepared, started at one instant with all others, ended.

use punctual_core::{Clock, CpuSet, Nanos, Notes, PerfEvent};
use punctual_record::perf::{PerfCounter, Total, Whom};
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::usage::Usage;
use punctual_sys::{clock, memory, signals};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// The stack of a measuring thread.
const STACK: usize = 256 * 1024;
/// The part of it that is touched before the first sample: far more than the loop uses.
const TOUCHED: usize = 32 * 1024;
/// The work of a measuring thread. All of it runs in the thread itself.
pub trait ThreadTask: Send {
    /// Opens, maps and touches everything that the loop needs, before the thread has its
    /// scheduling. The error names the missing item, the reason and the remedy: nothing has been
    /// started yet.
    fn prepare(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Locks the memory that the loop writes to.
    fn lock_memory(&self) -> io::Result<()> {
        Ok(())
    }
    /// Runs the measured loop a few times to warm up. Called twice: when prepared, and directly
    /// before the start.
    fn warm_up(&mut self) {}
    /// Measures, from `start` on the clock of the thread's plan, until an end condition.
    fn run(&mut self, start: i64) -> io::Result<()>;
    /// How often it yielded its CPU with sched_yield(2) in [`ThreadTask::run`], which the kernel
    /// counts as an involuntary switch (kernel/sched/core.c, __schedule: the task did not go to
    /// sleep) although no task preempted it.
    fn own_yields(&self) -> u64 {
        0
    }
    /// Its validations, figures and findings, after the end; may take long. The caller owns its
    /// series.
    fn collect_notes(&mut self) -> Notes {
        Notes::default()
    }
}

/// CPUs, scheduling and start of a thread, as requested.
#[derive(Clone, Debug)]
pub struct ThreadSettings {
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    pub scheduling: Scheduling,
    /// The clock of its start.
    pub clock: Clock,
    /// The delay of its beginning after the common start.
    pub offset: Nanos,
    /// Whether its memory is locked.
    pub lock_memory: bool,
    /// The events counted while it measures.
    pub counters: Vec<PerfEvent>,
}

impl ThreadSettings {
    /// Its CPU, if it cannot leave it: saves a query at every sample. SCHED_DEADLINE binds a thread
    /// to no CPU, whatever the plan.
    pub(crate) fn only_cpu(&self) -> Option<u32> {
        let is_bound = self.scheduling.deadline.is_none() && self.cpus.len() == 1;
        self.cpus.first_cpu().filter(|_| is_bound).map(|cpu| cpu as u32)
    }
}

/// CPUs and scheduling of a prepared thread, read back from the kernel.
#[derive(Debug)]
pub struct PreparedThread {
    pub tid: i32,
    /// The CPUs that it may run on: those planned, or fewer if its task chose among them; all of
    /// its root domain under SCHED_DEADLINE.
    pub cpus: CpuSet,
    pub scheduling: Scheduling,
    /// Why the requested scheduling was refused.
    pub refused: Option<io::Error>,
    /// Why its memory is not locked.
    pub unlocked: Option<io::Error>,
}

/// The results of an ended thread.
#[derive(Debug)]
pub struct ThreadResults {
    /// The kernel's counts between the first and the last sample.
    pub usage: Usage,
    /// The values of its plan's counters, in order, or why there is none.
    pub counted: Vec<Result<Total, String>>,
    pub error: Option<io::Error>,
    pub notes: Notes,
    /// Scheduling and affinity directly after the last sample, read by the thread itself.
    pub after: io::Result<(Scheduling, CpuSet)>,
}

/// A prepared thread that waits for the start.
pub struct WaitingThread {
    /// As read back from the kernel.
    pub prepared: PreparedThread,
    start: Sender<i64>,
    handle: JoinHandle<ThreadResults>,
}

pub struct RunningThread {
    tid: i32,
    handle: JoinHandle<ThreadResults>,
}

/// Why a thread could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The kernel could not create the thread.
    #[error("cannot start a measuring thread: {0}")]
    Spawn(io::Error),
    /// The CPUs are unavailable.
    #[error(
        "a measuring thread cannot run on CPU {cpus}: {source} (is the CPU online and in this \
         process's cpuset?)"
    )]
    Affinity { cpus: CpuSet, source: io::Error },
    /// A requirement of its task is unavailable.
    #[error("{0}")]
    Task(String),
    /// It ended before it was ready.
    #[error("a measuring thread ended before it was ready")]
    Gone,
}

/// Prepares a thread; it then waits for [`WaitingThread::start`].
pub(crate) fn prepare_thread(
    plan: ThreadSettings,
    task: Box<dyn ThreadTask>,
) -> Result<WaitingThread, ThreadError> {
    let (ready_in, ready) = channel();
    let (start, start_out) = channel();
    let body = move || run_thread(plan, task, &ready_in, &start_out);
    let handle = Builder::new()
        .name("measure".into())
        .stack_size(STACK)
        .spawn(body)
        .map_err(ThreadError::Spawn)?;
    let prepared = ready.recv().map_err(|_| ThreadError::Gone)??;
    Ok(WaitingThread { prepared, start, handle })
}

impl WaitingThread {
    /// Starts it: it begins `offset` after `start` on its own clock.
    pub fn start(self, start: i64) -> RunningThread {
        // A thread that has ended reports the reason when it is joined.
        let _ = self.start.send(start);
        RunningThread { tid: self.prepared.tid, handle: self.handle }
    }
}

impl RunningThread {
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
    /// Wakes it from a long sleep, to read its stop flag.
    pub fn wake(&self) {
        // ESRCH: it has already ended, which is the goal.
        let _ = signals::wake_thread(self.tid);
    }
    pub fn join(self) -> ThreadResults {
        let lost = |_| ended_early(Some(io::Error::other("it panicked")));
        self.handle.join().unwrap_or_else(lost)
    }
}

fn ended_early(error: Option<io::Error>) -> ThreadResults {
    let after = Err(io::Error::other("the thread did not end"));
    ThreadResults {
        usage: Usage::default(),
        counted: Vec::new(),
        error,
        notes: Notes::default(),
        after,
    }
}

fn run_thread(
    plan: ThreadSettings,
    mut task: Box<dyn ThreadTask>,
    ready: &mpsc::Sender<Result<PreparedThread, ThreadError>>,
    start: &Receiver<i64>,
) -> ThreadResults {
    let counters: Vec<_> = plan
        .counters
        .iter()
        .map(|event| PerfCounter::open_event(event, Whom::ThisThread))
        .collect();
    let prepared = become_ready(&plan, &mut *task);
    let failed = prepared.is_err();
    if ready.send(prepared).is_err() || failed {
        return ended_early(None);
    }
    let Ok(start) = start.recv() else { return ended_early(None) };
    // Again, because memory may have been freed since: from now on the loop's memory stays
    // resident.
    task.warm_up();
    let _ = Usage::of_this_thread();
    // A thread that did not get its CPU in time begins later; this is not latency of its first
    // sample.
    let earliest = clock::read_clock(plan.clock).ns() + Nanos::MILLI.ns();
    let before = Usage::of_this_thread();
    counters.iter().flatten().for_each(PerfCounter::enable);
    let error = task.run((start + plan.offset.ns()).max(earliest)).err();
    counters.iter().flatten().for_each(PerfCounter::disable);
    let usage = without_yields(Usage::of_this_thread().usage_since(before), &*task);
    let after = attributes::read_scheduling(0)
        .and_then(|scheduling| Ok((scheduling, attributes::read_affinity(0)?)));
    let counted = counters
        .into_iter()
        .map(|counter| counter.and_then(|counter| counter.final_total()))
        .collect();
    let notes = task.collect_notes();
    ThreadResults { usage, counted, error, notes, after }
}

fn without_yields(usage: Usage, task: &dyn ThreadTask) -> Usage {
    let involuntary_switches = usage.involuntary_switches.saturating_sub(task.own_yields());
    Usage { involuntary_switches, ..usage }
}

/// Sets affinity, memory and scheduling, and warms up the loop: with the same code and calls as
/// later.
fn become_ready(
    plan: &ThreadSettings,
    task: &mut dyn ThreadTask,
) -> Result<PreparedThread, ThreadError> {
    signals::leave_to_others();
    // SCHED_DEADLINE tasks must be allowed on all CPUs of their root domain (sched-deadline.rst,
    // 5.): affinity is not changed.
    if plan.scheduling.deadline.is_none() {
        attributes::set_affinity(0, &plan.cpus)
            .map_err(|source| ThreadError::Affinity { cpus: plan.cpus.clone(), source })?;
    }
    // Without permission for real-time policies the slack matters; the call cannot fail with a
    // positive slack.
    let _ = attributes::set_timer_slack(Nanos(1));
    memory::touch_stack::<TOUCHED>();
    task.prepare().map_err(ThreadError::Task)?;
    let unlocked = plan.lock_memory.then(|| task.lock_memory().err()).flatten();
    let refused = attributes::set_scheduling(0, &plan.scheduling).err();
    task.warm_up();
    let _ = Usage::of_this_thread();
    let scheduling = attributes::read_scheduling(0).unwrap_or(plan.scheduling);
    let cpus = match (attributes::read_affinity(0), plan.scheduling.deadline) {
        (Ok(now), None) => now.intersection(&plan.cpus),
        (Ok(now), Some(_)) => now,
        (Err(_), _) => plan.cpus.clone(),
    };
    Ok(PreparedThread { tid: attributes::thread_id(), cpus, scheduling, refused, unlocked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::{Policy, Priority};
    use punctual_sys::attributes::DeadlineAttributes;

    #[test]
    fn a_thread_of_one_cpu_is_bound_to_it_unless_it_has_sched_deadline() {
        let plan = |cpus: &str, scheduling| ThreadSettings {
            cpus: cpus.parse().unwrap(),
            scheduling,
            clock: Clock::Monotonic,
            offset: Nanos::ZERO,
            lock_memory: false,
            counters: Vec::new(),
        };
        let fifo = Scheduling::new(Policy::Fifo, Priority::new(9));
        assert_eq!(plan("1", fifo).only_cpu(), Some(1));
        assert_eq!(plan("0-1", fifo).only_cpu(), None);
        let period = Nanos::MILLI;
        let given = DeadlineAttributes { runtime: Nanos(100_000), deadline: period, period };
        let deadline =
            Scheduling { deadline: Some(given), ..Scheduling::new(Policy::Deadline, None) };
        assert_eq!(plan("1", deadline).only_cpu(), None);
    }

    /// Only yields, and reports how often.
    struct Yields(u64);

    impl ThreadTask for Yields {
        fn warm_up(&mut self) {}
        fn run(&mut self, _: i64) -> io::Result<()> {
            (0..self.0).for_each(|_| std::thread::yield_now());
            Ok(())
        }
        fn own_yields(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn sched_yield_is_not_counted_as_preemption() {
        let usage = Usage { involuntary_switches: 5, ..Usage::default() };
        assert_eq!(without_yields(usage, &Yields(3)).involuntary_switches, 2);
        assert_eq!(without_yields(usage, &Yields(9)).involuntary_switches, 0);
    }
}
