//! `irq`: from raising an interrupt to the entry of its handler, and on to the thread that waits
//! for it.
//!
//! The measuring thread waits. It triggers a timer and membarrier(2) itself; interrupts that
//! another thread must raise while this one sleeps are raised by a [`raiser`]. BPF programs record
//! timestamps in the kernel (`punctual_record::interrupt`); without them the hops that need them
//! are absent.

mod doorbell;
mod gpio;
mod lanes;
mod membarrier;
mod parport;
mod raiser;
mod report;
mod rows;
mod threads;
mod timer;
mod uio;
mod watch;
mod witness;

use super::measurement_loop::{LoopClock, Monotonic};
use super::{MeasureConfig, PrepareError, Prepared};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use lanes::{Hops, IrqLanes, Passed};
use membarrier::InterruptedCpu;
use punctual_core::{CpuSet, Nanos, Notes};
use punctual_plan::kinds::{IrqPlan, IrqSource};
use punctual_record::interrupt::{AwaitedInterrupt, InterruptStamps};
use punctual_sys::attributes::{self, Scheduling};
use raiser::{AwaitableInterrupt, Go, Raiser};
use rows::{InterruptRows, RowMatch};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use threads::HandlerThread;
use watch::{InterruptSource, InterruptWatch};
use witness::{Witness, Witnessed};

/// Interrupts of warm-up before the first sample.
const WARM_UP: u64 = 8;
/// The longest distance between interrupts of a device.
const PATIENT: Nanos = Nanos::from_millis(200);

pub(super) fn prepare_irq(
    config: &MeasureConfig,
    plan: &IrqPlan,
) -> Result<Prepared, PrepareError> {
    let needs = PrepareError::Needs;
    let thread = config.threads.first().ok_or_else(|| needs("it has no thread".to_owned()))?;
    let bound = thread.scheduling.deadline.is_none();
    let cpu = thread.cpus.first_cpu().filter(|_| bound).map(|cpu| cpu as u32);
    if cpu.is_none() && !matches!(plan.source, IrqSource::Timer | IrqSource::Uio) {
        return Err(needs(
            "this source needs a thread on one CPU, which SCHED_DEADLINE does not allow: use \
             policy fifo"
                .into(),
        ));
    }
    let IrqSourceParts { awaited, at, row, hops, line, target, source } =
        find_source(plan, config, cpu).map_err(needs)?;
    let witness = plan.witness.as_deref().map(Witness::connect).transpose().map_err(needs)?;
    let stamps = match awaited {
        Some(awaited) => {
            InterruptStamps::start(awaited, at).map(Arc::new).map_err(|why| why.to_string())
        }
        None => Err(source.unstamped.to_owned()),
    };
    let way = match (plan.source, line, &stamps) {
        (IrqSource::Timer, ..) => Trigger::Timer,
        (IrqSource::Membarrier, ..) => {
            Trigger::Membarrier { cpu: target.unwrap_or_default(), target: None }
        }
        (IrqSource::SelfIpi, _, Ok(stamps)) => Trigger::Raised {
            line: Arc::new(doorbell::DoorbellIrq(Arc::clone(stamps))),
            raiser: None,
        },
        (IrqSource::SelfIpi, _, Err(why)) => {
            return Err(needs(format!("only BPF can raise this interrupt: {why}")));
        }
        (IrqSource::Uio, _, Err(why)) => {
            return Err(needs(format!(
                "the arrival of this device's interrupt cannot be timed: {why}"
            )));
        }
        (_, Some(line), _) => Trigger::Raised { line, raiser: None },
        (_, None, _) => return Err(needs("this source has no line".to_owned())),
    };
    let handlers = threads::of_row(&row);
    let (lanes, sources) = IrqLanes::from_config(config, hops, plan.period, cpu);
    let raised = Arc::new(AtomicU64::new(0));
    let line = if let Trigger::Raised { line, .. } = &way { Some(Arc::clone(line)) } else { None };
    let watch = InterruptWatch::new(
        &source,
        stamps.clone(),
        InterruptRows { row, cpu: at },
        Arc::clone(&raised),
        line,
    );
    let waiter = Waiter {
        name: config.name.clone(),
        series: config.series.iter().map(|series| series.name.clone()).collect(),
        cpu,
        scheduling: thread.scheduling,
        period: plan.period,
        duration: config.duration,
        stop: Arc::clone(&config.stop),
        source,
        handlers,
        stamps,
        way,
        lanes: Some(lanes),
        raised,
        witness,
        witnessed: None,
    };
    Ok(Prepared { tasks: vec![Box::new(waiter)], sources, observer: Box::new(watch) })
}

/// The parts of a source.
struct IrqSourceParts {
    /// The event to be recorded, and its only CPU.
    awaited: Option<AwaitedInterrupt>,
    at: Option<u32>,
    /// The row of its independent count.
    row: RowMatch,
    hops: Hops,
    line: Option<Arc<dyn AwaitableInterrupt>>,
    /// The CPU of `membarrier`.
    target: Option<u32>,
    source: InterruptSource,
}

fn find_source(
    plan: &IrqPlan,
    config: &MeasureConfig,
    cpu: Option<u32>,
) -> Result<IrqSourceParts, String> {
    let source = InterruptSource::from_source(plan.source);
    let found = |awaited, at, row, hops, source| IrqSourceParts {
        awaited: Some(awaited),
        at,
        row,
        hops,
        line: None,
        target: None,
        source,
    };
    let described = |words| RowMatch::Described(words);
    Ok(match plan.source {
        IrqSource::Timer if cfg!(target_arch = "x86_64") => found(
            AwaitedInterrupt::Timer { irq: None },
            cpu,
            described("Local timer interrupts"),
            Hops::Timer,
            source,
        ),
        IrqSource::Timer => {
            let irq = rows::number_of("arch_timer");
            let row = irq.map_or(described("arch_timer"), RowMatch::Number);
            IrqSourceParts {
                awaited: irq.map(|irq| AwaitedInterrupt::Timer { irq: Some(irq) }),
                ..found(AwaitedInterrupt::IrqWork, cpu, row, Hops::Timer, source)
            }
        }
        IrqSource::SelfIpi => found(
            AwaitedInterrupt::IrqWork,
            cpu,
            described("IRQ work interrupts"),
            Hops::Raised,
            source,
        ),
        IrqSource::Membarrier => {
            let target = choose_target_cpu(plan, config, cpu)?;
            let row = described("Function call interrupts");
            IrqSourceParts {
                target: Some(target),
                ..found(AwaitedInterrupt::FunctionCall, Some(target), row, Hops::Raised, source)
            }
        }
        IrqSource::Uio | IrqSource::Edu => {
            let edu = plan.source == IrqSource::Edu;
            let device = plan.device.as_deref();
            let uio = if edu {
                uio::Uio::open_edu(device)?
            } else {
                uio::Uio::open(device.ok_or("it has no device")?)?
            };
            let row =
                uio.irq.map_or_else(|| RowMatch::Handler(uio.driver.clone()), RowMatch::Number);
            let source = source.with_device(format!("/dev/{} ({})", uio.node, uio.driver), uio.irq);
            let awaited = uio.irq.map(|irq| AwaitedInterrupt::Device { irq });
            let hops = if edu { Hops::Raised } else { Hops::Thread };
            IrqSourceParts {
                awaited,
                at: None,
                row,
                hops,
                line: Some(Arc::new(uio)),
                target: None,
                source,
            }
        }
        IrqSource::Parport => {
            let device = plan.device.as_deref().unwrap_or(Path::new("/dev/parport0"));
            let port = parport::Parport::open(device)?;
            let (irq, name) = (port.irq, device.display().to_string());
            let row = RowMatch::Number(irq);
            let source = source.with_device(name, Some(irq));
            let awaited = AwaitedInterrupt::Device { irq };
            IrqSourceParts {
                line: Some(Arc::new(port)),
                ..found(awaited, None, row, Hops::Raised, source)
            }
        }
        IrqSource::Gpio => {
            let lines = (plan.out_line.unwrap_or_default(), plan.in_line.unwrap_or_default());
            let gpio = gpio::Gpio::open(
                plan.device.as_deref().ok_or("it has no device")?,
                lines.0,
                lines.1,
                plan.witness.as_ref().map(|_| plan.period.to_std() / 4),
            )?;
            let row = RowMatch::Handler(gpio.consumer.clone());
            let lines = format!("{}, line {} to line {}", gpio.chip, lines.0, lines.1);
            let source = match &plan.witness {
                Some(address) => InterruptSource { what: "the witness", ..source }
                    .with_device(format!("{lines} through {address}"), None),
                None => source.with_device(lines, None),
            };
            let hops = if plan.witness.is_some() { Hops::Thread } else { Hops::Raised };
            IrqSourceParts {
                awaited: None,
                at: None,
                row,
                hops,
                line: Some(Arc::new(gpio)),
                target: None,
                source,
            }
        }
    })
}

/// The CPU to be interrupted: the named one, else the first other one of the measure, else the
/// first other allowed one.
fn choose_target_cpu(
    plan: &IrqPlan,
    config: &MeasureConfig,
    own: Option<u32>,
) -> Result<u32, String> {
    if let Some(named) = plan.target_cpu {
        let own_too =
            || format!("CPU {named} is where the measure runs: `target_cpu` must be another one");
        return if Some(named) == own { Err(own_too()) } else { Ok(named) };
    }
    let allowed = attributes::read_affinity(0).unwrap_or_default();
    let mut other_cpus = config
        .cpus
        .iter()
        .chain(allowed.iter())
        .map(|cpu| cpu as u32)
        .filter(|cpu| Some(*cpu) != own);
    other_cpus.next().ok_or_else(|| "there is no other CPU to be interrupted".to_owned())
}

/// The method of raising and awaiting an interrupt.
enum Trigger {
    Timer,
    Membarrier { cpu: u32, target: Option<InterruptedCpu> },
    Raised { line: Arc<dyn AwaitableInterrupt>, raiser: Option<Raiser> },
}

struct Waiter {
    name: String,
    series: Vec<String>,
    cpu: Option<u32>,
    scheduling: Scheduling,
    period: Nanos,
    duration: Option<Nanos>,
    stop: Arc<Stop>,
    source: InterruptSource,
    /// The threads that run the handler, if any.
    handlers: Vec<HandlerThread>,
    stamps: Result<Arc<InterruptStamps>, String>,
    way: Trigger,
    /// Absent while it runs.
    lanes: Option<IrqLanes>,
    /// Interrupts raised so far, for the observer.
    raised: Arc<AtomicU64>,
    /// The board that raises them, and what it has seen.
    witness: Option<Witness>,
    witnessed: Option<Witnessed>,
}

impl Waiter {
    /// Measures interrupts one after the other, each a sample, until an end condition.
    fn measure_interrupts(
        &mut self,
        lanes: &mut IrqLanes,
        go: Go,
        stop: &Arc<Stop>,
    ) -> io::Result<()> {
        let Waiter { way, stamps, raised, source, .. } = self;
        let stamps = stamps.as_deref().ok();
        match way {
            Trigger::Timer => {
                timer::measure_timers(lanes, go, stop, stamps, raised);
                Ok(())
            }
            Trigger::Membarrier { target: Some(target), .. } => {
                membarrier::measure_membarriers(lanes, go, stop, stamps, raised, target)
            }
            Trigger::Raised { raiser: Some(raiser), .. } => {
                let alone = source.sharers <= 1;
                let skipped = raiser.raise_periodically(go, stop, |came| {
                    let book = &mut lanes.book;
                    let mixed = alone && matches!(came.entries, Some(2..));
                    let handler = came.handler.filter(|_| !mixed && came.entries != Some(0));
                    book.mixed += u64::from(mixed);
                    book.unstamped += u64::from(stamps.is_some() && !mixed && handler.is_none());
                    let raiser::Arrival { raised, woke, handled_on, skipped, .. } = came;
                    book.skipped = skipped;
                    lanes.record_interrupt(
                        Passed { raised, handler, expiry: None, woke, handled_on },
                        stop,
                    );
                    lanes.samples_left() > 0
                });
                raised.store(raiser.raised_count(), Ordering::Release);
                lanes.book.skipped = skipped?;
                Ok(())
            }
            Trigger::Membarrier { .. } | Trigger::Raised { .. } => {
                Err(io::Error::other("it was not prepared"))
            }
        }
    }

    /// Unmeasured interrupts from now on, at this distance at most.
    fn run_unmeasured(&mut self, count: u64, period: Nanos) -> io::Result<IrqLanes> {
        let Some(lanes) = &self.lanes else { return Err(io::Error::other("it has not ended")) };
        let mut scratch = lanes.scratch_copy(count);
        // A slow line, such as one with an opto-coupler, gets its real period. Otherwise the first
        // instant has already passed: that path is warmed up, too.
        let has_own_period = self.source.own;
        let period =
            if has_own_period { self.period.min(PATIENT) } else { self.period.min(period) };
        let start = Monotonic.now() + if has_own_period { period.ns() } else { 0 };
        // A device that raises interrupts by itself is not awaited; its code is warmed up
        // nevertheless.
        let comes = !matches!(&self.way, Trigger::Raised { line, .. } if !line.is_raised());
        let end = if comes { i64::MAX } else { start };
        self.measure_interrupts(&mut scratch, Go { start, period, count, end }, &Arc::default())?;
        if !comes {
            scratch.record_interrupt(
                Passed { handler: Some(0), handled_on: Some(0), ..Passed::default() },
                &Stop::default(),
            );
        }
        if has_own_period {
            Monotonic.sleep_until(Monotonic.now() + period.ns());
        }
        Ok(scratch)
    }
}

impl ThreadTask for Waiter {
    fn prepare(&mut self) -> Result<(), String> {
        let own_cpu = self.cpu.map(|cpu| CpuSet::from_cpu(cpu as usize));
        if let Some(cpu) = &own_cpu {
            attributes::set_affinity(0, cpu)
                .map_err(|why| format!("no thread can run on CPU {cpu}: {why}"))?;
        }
        if let Ok(stamps) = &self.stamps {
            stamps.wait_as(attributes::thread_id());
        }
        let stamps = self.stamps.as_ref().ok().cloned();
        let (scheduling, below) =
            (self.scheduling, threads::scheduling_below(self.scheduling, &self.handlers));
        match &mut self.way {
            Trigger::Timer => return Ok(()),
            Trigger::Membarrier { cpu, target } => {
                *target = Some(InterruptedCpu::start(*cpu, scheduling)?)
            }
            Trigger::Raised { line, raiser } => {
                *raiser = Some(Raiser::start(Arc::clone(line), stamps, own_cpu, below)?);
            }
        }
        // An interrupt that can never come is an error before the start.
        let error = self.run_unmeasured(1, Nanos::MILLI).err();
        error.map_or(Ok(()), |why| Err(format!("{why} ({})", self.source.check)))
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.lanes.as_ref().map_or(Ok(()), IrqLanes::lock_memory)
    }

    fn warm_up(&mut self) {
        // An error here recurs in the measured loop, which reports it.
        let _ = self.run_unmeasured(WARM_UP, Nanos::MILLI);
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        let Some(mut lanes) = self.lanes.take() else { return Ok(()) };
        let end = self.duration.map_or(i64::MAX, |span| start.saturating_add(span.ns()));
        let (stop, count) = (Arc::clone(&self.stop), lanes.samples_left());
        if let Some(witness) = &self.witness {
            witness.start_pulses(self.period)?;
        }
        let mut outcome = self.measure_interrupts(
            &mut lanes,
            Go { start, period: self.period, count, end },
            &stop,
        );
        match self.witness.as_ref().map(Witness::end_pulses) {
            Some(Ok(seen)) => self.witnessed = Some(seen),
            Some(Err(why)) => outcome = outcome.and(Err(why)),
            None => {}
        }
        // Dropping the producers ends the series.
        lanes.end_series();
        self.lanes = Some(lanes);
        outcome
    }

    fn collect_notes(&mut self) -> Notes {
        let notes = report::collect_notes(self);
        // Ends everything that was started.
        match &mut self.way {
            Trigger::Timer => {}
            Trigger::Membarrier { target, .. } => *target = None,
            Trigger::Raised { raiser, .. } => *raiser = None,
        }
        notes
    }
}
