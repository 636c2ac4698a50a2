//! A measured program that meets the injected delays in its own operations: this program again. Its
//! thread sleeps until an instant, waits for something of a known length, and sleeps again. It
//! writes its record at the end.

mod lock;
mod waits;

use super::cases::InjectedCase;
use super::names::{CULPRIT, HOLDER, PRIORITY};
use super::operation::Operation;
use super::record;
use super::score::Injected;
use punctual_core::{Clock, CpuSet, Nanos, Policy, Priority};
use punctual_sys::attributes::{self, DeadlineAttributes, Scheduling};
use punctual_sys::{clock, memory};
use punctual_testpoint::scope;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first argument of that process.
pub const ARGUMENT: &str = "truth-subject";
/// The name of its thread.
pub const NAME: &str = "truth-subject";
/// The scope of a cycle in a recording.
pub const CYCLE: &str = "truth.cycle";

/// The time between two cycles: this many lengths, plus a constant.
const LENGTHS_APART: i64 = 3;
const APART: i64 = 3_000_000;
/// The number of idle cycles before, and the time between them.
const WARM_UP: (i64, i64) = (300, 2_000_000);
/// The time before the first cycle.
const BEFORE: i64 = 50_000_000;

/// The cycles, shared by all threads of the program.
pub struct SubjectStage {
    length: i64,
    cpu: usize,
    begin: i64,
    period: i64,
    count: i64,
    /// The last delay's begin, if its maker reports it, and its end.
    began: AtomicI64,
    done: AtomicI64,
    failed: Mutex<Option<io::Error>>,
}

impl SubjectStage {
    fn new(length: Nanos, cpu: usize, duration: i64, apart: i64) -> SubjectStage {
        let period = length.0 * LENGTHS_APART + apart;
        SubjectStage {
            length: length.0,
            cpu,
            begin: now_ns() + BEFORE,
            period,
            count: (duration / period).max(1),
            began: AtomicI64::new(0),
            done: AtomicI64::new(0),
            failed: Mutex::new(None),
        }
    }

    fn due_of_cycle(&self, cycle: i64) -> i64 {
        self.begin + cycle * self.period
    }

    fn note_begin(&self) {
        self.began.store(now_ns(), Ordering::Relaxed);
    }

    fn note_end(&self) {
        self.done.store(now_ns(), Ordering::Relaxed);
    }

    /// The delay that the subject met from this instant on; its maker reports the end.
    fn delay_since(&self, begin: i64) -> Option<Injected> {
        let begin = begin.max(self.began.load(Ordering::Relaxed));
        let end = self.done.load(Ordering::Relaxed);
        (end > begin).then_some(Injected::new(begin, end))
    }

    /// A thread of this program.
    fn spawn_thread(
        self: &Arc<SubjectStage>,
        name: &str,
        priority: u8,
        work: impl FnOnce(&SubjectStage) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let stage = Arc::clone(self);
        let work = move || {
            let place = attributes::set_affinity(0, &CpuSet::from_cpu(stage.cpu));
            let scheduling = Scheduling::new(Policy::Fifo, Priority::new(priority));
            let worked = place
                .and_then(|()| attributes::set_scheduling(0, &scheduling))
                .and_then(|()| work(&stage));
            if let Err(why) = worked {
                *stage.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }

    /// A thread that acts at this distance before each cycle of the subject.
    fn before_each(
        self: &Arc<SubjectStage>,
        name: &str,
        priority: u8,
        ahead: i64,
        mut work: impl FnMut(&SubjectStage, i64) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.spawn_thread(name, priority, move |stage| {
            (0..stage.count).try_for_each(|cycle| {
                sleep_until(stage.due_of_cycle(cycle) - ahead)?;
                work(stage, stage.due_of_cycle(cycle))
            })
        })
    }

    /// The culprit, with a lower priority than the subject.
    fn spawn_culprit(
        self: &Arc<SubjectStage>,
        ahead: i64,
        work: impl FnMut(&SubjectStage, i64) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.before_each(CULPRIT, PRIORITY - 10, ahead, work)
    }

    /// The thread that holds the subject's lock.
    fn spawn_holder(
        self: &Arc<SubjectStage>,
        priority: u8,
        ahead: i64,
        work: impl FnMut(&SubjectStage, i64) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.before_each(HOLDER, priority, ahead, work)
    }
}

/// Runs cycles until the duration is over, then writes the record.
///
/// # Errors
/// The arguments are not those of a case, or a wait cannot be made.
pub fn run_subject(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let mut next = || arguments.next().unwrap_or_default();
    let (name, cpu, duration, file) = (next(), next(), next(), next());
    let case = InjectedCase::all_cases().into_iter().find(|case| case.name() == name);
    let (Some(case), Ok(cpu), Ok(duration)) = (case, cpu.parse(), duration.parse()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let thread = std::thread::Builder::new().name(NAME.to_owned());
    let work = thread.spawn(move || run_cycles(&case, cpu, duration))?;
    let record = work.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    record::write(&record, &mut fs::File::create(Path::new(&file))?)
}

fn run_cycles(case: &InjectedCase, cpu: usize, duration: i64) -> io::Result<Vec<Injected>> {
    let Some(operation) = case.way.and_then(|way| way.operation) else { return Ok(Vec::new()) };
    // The scheduler decides how long throttling lasts: cycles need more distance.
    let throttles = matches!(operation, Operation::Quota | Operation::Budget);
    let cycle_distance = if throttles { APART * 20 } else { APART };
    attributes::set_affinity(0, &CpuSet::from_cpu(cpu))?;
    warm_up()?;
    let stage = Arc::new(SubjectStage::new(case.length, cpu, duration, cycle_distance));
    if !operation.may_fault() {
        memory::lock_all()?;
    }
    let mut wait = waits::prepare_operation(operation, &stage)?;
    attributes::set_scheduling(0, &subject_scheduling(operation, case.length))?;
    let mut record = Vec::with_capacity(usize::try_from(stage.count).unwrap_or_default());
    for cycle in 0..stage.count {
        sleep_until(stage.due_of_cycle(cycle))?;
        let _cycle = scope!("truth.cycle");
        record.extend(wait(&stage)?);
    }
    sleep_until(stage.due_of_cycle(stage.count))?;
    let failed = stage.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    failed.map_or(Ok(record), Err)
}

/// Idle cycles, from which `attach` infers the thread's cycles: windows are kept from then on.
fn warm_up() -> io::Result<()> {
    let begin = now_ns();
    (1..=WARM_UP.0).try_for_each(|cycle| sleep_until(begin + cycle * WARM_UP.1))
}

fn subject_scheduling(operation: Operation, length: Nanos) -> Scheduling {
    match operation {
        Operation::Quota => Scheduling::new(Policy::Other, None),
        Operation::Budget => {
            let period = length + waits::RUNTIME;
            let budget = DeadlineAttributes { runtime: waits::RUNTIME, deadline: period, period };
            Scheduling { deadline: Some(budget), ..Scheduling::new(Policy::Deadline, None) }
        }
        _ => Scheduling::new(Policy::Fifo, Priority::new(PRIORITY)),
    }
}

fn now_ns() -> i64 {
    clock::monotonic_now().0
}

fn sleep_until(at: i64) -> io::Result<()> {
    clock::sleep_until(clock::clock_id(Clock::Monotonic), at)
}
