//! `syscall`: one system call, from the reading of the clock before it to the one after.
//!
//! Every variant is a number with six constant arguments and, if the call needs data to work on, an
//! untimed call before it. The loop is the same for all.

use super::measurement_loop::{LoopResult, MeasurementLoop, Monotonic, Pacing};
use super::{MeasureConfig, NoObserver, PrepareError, Prepared, clock_cost};
use crate::binned_counter::CounterWriter;
use crate::sink::{self, SampleSink};
use crate::stop::Stop;
use crate::thread::ThreadTask;
use punctual_core::{Fact, Figure, Finding, Notes, Severity, Tolerance, Validation};
use punctual_plan::kinds::{Call, SyscallPlan, Target};
use punctual_record::perf::PerfCounter;
use punctual_sys::call::RawSyscall;
use punctual_sys::descriptor::{create_eventfd, create_pipe};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Calls of warm-up before the first sample.
const WARM_UP: u64 = 256;
/// Calls that perf counts, after the measured ones: while the tracepoint is enabled, every call
/// takes the slow path (SYSCALL_WORK_SYSCALL_TRACEPOINT in kernel/entry/common.c), so it must be
/// disabled during measurements.
const COUNTED: u64 = 10_000;

pub(super) fn prepare_syscall(
    config: &MeasureConfig,
    plan: &SyscallPlan,
) -> Result<Prepared, PrepareError> {
    let mut parts =
        Prepared { tasks: Vec::new(), sources: Vec::new(), observer: Box::new(NoObserver) };
    let pace = plan.period.map_or(Pacing::BackToBack { rest: plan.rest }, Pacing::Periodic);
    for series in &config.series {
        let (writer, source) = sink::binned_counter(series.shape);
        let subject = series.name.clone();
        let describe = |why: io::Error| {
            format!(
                "cannot create the object it works on: {why}: are too many files open (`ulimit \
                 -n`)?"
            )
        };
        let calls = SyscallSet::new(plan).map_err(|why| PrepareError::Needs(describe(why)))?;
        let measurement_loop = MeasurementLoop::from_config(config, series, pace);
        let stop = Arc::clone(&config.stop);
        parts.tasks.push(Box::new(Syscalls {
            subject,
            number: plan.number.filter(|_| plan.call == Call::Number),
            calls,
            measurement_loop,
            writer: Some(writer),
            stop,
            done: CallTotals::default(),
        }));
        parts.sources.push(source);
    }
    Ok(parts)
}

/// The calls and their files.
struct SyscallSet {
    timed: RawSyscall,
    /// Untimed, before each: prepares the target for the timed call.
    before: Option<RawSyscall>,
    /// Referred to by number while this lives.
    _open: Vec<OwnedFd>,
    /// Written and read by the kernel.
    _memory: Box<[u64; 4]>,
}

impl SyscallSet {
    fn new(plan: &SyscallPlan) -> io::Result<SyscallSet> {
        let mut memory = Box::new([1u64; 4]);
        let at = memory.as_mut_ptr() as libc::c_long;
        let (mut open, mut before) = (Vec::new(), None);
        let timed = match plan.call {
            Call::Getpid => RawSyscall::new(libc::SYS_getpid, &[]),
            Call::Gettid => RawSyscall::new(libc::SYS_gettid, &[]),
            Call::SchedYield => RawSyscall::new(libc::SYS_sched_yield, &[]),
            Call::ClockGettime => {
                RawSyscall::new(libc::SYS_clock_gettime, &[libc::CLOCK_MONOTONIC.into(), at])
            }
            Call::FutexWake => {
                let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
                RawSyscall::new(libc::SYS_futex, &[at, wake.into(), 1])
            }
            Call::Number => {
                let arguments: Vec<libc::c_long> =
                    plan.arguments.iter().map(|a| *a as libc::c_long).collect();
                RawSyscall::new(plan.number.unwrap_or_default() as libc::c_long, &arguments)
            }
            Call::Read | Call::Write => {
                let (reads, writes) = transfer_calls(plan.target, at, &mut open)?;
                let (timed, other) =
                    if plan.call == Call::Read { (reads, writes) } else { (writes, reads) };
                before = (plan.target != Target::Null).then_some(other);
                if plan.call == Call::Write && plan.target != Target::Null {
                    // The data that the first untimed call takes out.
                    writes.make_call();
                }
                timed
            }
        };
        Ok(SyscallSet { timed, before, _open: open, _memory: memory })
    }

    /// System calls per sample.
    fn calls_per_sample(&self) -> u64 {
        1 + u64::from(self.before.is_some())
    }
}

/// The calls that read and write a target.
fn transfer_calls(
    target: Target,
    at: libc::c_long,
    open: &mut Vec<OwnedFd>,
) -> io::Result<(RawSyscall, RawSyscall)> {
    let (from, to, length) = match target {
        Target::Null => {
            let null = File::options().read(true).write(true).open("/dev/null")?;
            open.push(null.into());
            (0, 0, 1)
        }
        Target::Pipe => {
            let (from, to) = create_pipe()?;
            open.extend([from, to]);
            (0, 1, 1)
        }
        Target::Eventfd => {
            open.push(create_eventfd(libc::EFD_NONBLOCK)?);
            (0, 0, 8)
        }
    };
    let fd = |place: usize| libc::c_long::from(open[place].as_raw_fd());
    Ok((
        RawSyscall::new(libc::SYS_read, &[fd(from), at, length]),
        RawSyscall::new(libc::SYS_write, &[fd(to), at, length]),
    ))
}

/// The result of a loop.
#[derive(Default)]
struct CallTotals {
    taken: LoopResult,
    failed: u64,
    errno: Option<io::Error>,
}

struct Syscalls {
    subject: String,
    /// The number, if the call was given by it.
    number: Option<u32>,
    calls: SyscallSet,
    measurement_loop: MeasurementLoop,
    writer: Option<CounterWriter>,
    stop: Arc<Stop>,
    done: CallTotals,
}

struct DiscardSamples;

impl SampleSink for DiscardSamples {
    #[inline(always)]
    fn put_sample(&mut self, begin: i64, end: i64, _: u32) {
        std::hint::black_box(end - begin);
    }
}

impl SyscallSet {
    fn run_calls(
        &self,
        measurement_loop: &MeasurementLoop,
        start: i64,
        sink: &mut impl SampleSink,
        stop: &Stop,
    ) -> CallTotals {
        let (mut failed, result) = (0, std::cell::Cell::new(0));
        let timed = self.timed;
        let act = || result.set(timed.make_call());
        let loop_result = match self.before {
            None => measurement_loop.run(
                start,
                &Monotonic,
                sink,
                stop,
                || failed += u64::from(result.get() < 0),
                act,
            ),
            Some(other) => {
                let before = || {
                    failed += u64::from(result.get() < 0);
                    other.make_call();
                };
                measurement_loop.run(start, &Monotonic, sink, stop, before, act)
            }
        };
        let last = io::Error::last_os_error();
        failed += u64::from(result.get() < 0 && loop_result.samples > 0);
        CallTotals { taken: loop_result, failed, errno: (result.get() < 0).then_some(last) }
    }

    /// Repeats a few of the same calls while the kernel counts them.
    fn validate_calls(&self, measurement_loop: &MeasurementLoop) -> Validation {
        let claimed = COUNTED * self.calls_per_sample();
        let counted = PerfCounter::system_calls(|| {
            self.run_calls(
                &measurement_loop.short_loop(COUNTED),
                0,
                &mut DiscardSamples,
                &Stop::default(),
            );
        });
        let source = "perf_event_open: tracepoint raw_syscalls:sys_enter, this thread";
        Validation::compare_counts(
            "system calls",
            claimed,
            Fact::from(counted),
            source,
            Tolerance::EXACT,
        )
        .with_explanation(format!(
            "{COUNTED} samples{} after the measured ones, because counting makes every call \
                 slower; the call that ends the counting is taken off",
            if self.before.is_some() { " of two calls each, one of them not timed," } else { "" }
        ))
    }
}

impl ThreadTask for Syscalls {
    /// A number that the kernel does not have is an error before the start: there would be nothing
    /// to measure.
    fn prepare(&mut self) -> Result<(), String> {
        let Some(number) = self.number else { return Ok(()) };
        let is_missing = self.calls.timed.make_call() < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS);
        let describe =
            || format!("this kernel has no system call {number} (ENOSYS): choose another `number`");
        if is_missing { Err(describe()) } else { Ok(()) }
    }

    fn lock_memory(&self) -> io::Result<()> {
        self.writer.as_ref().map_or(Ok(()), CounterWriter::lock_memory)
    }

    fn warm_up(&mut self) {
        let Some(writer) = &mut self.writer else { return };
        // The stop may have been requested already: the warm-up runs nevertheless.
        self.calls.run_calls(
            &self.measurement_loop.short_loop(WARM_UP),
            0,
            writer,
            &Stop::default(),
        );
        writer.reset();
    }

    fn run(&mut self, start: i64) -> io::Result<()> {
        // Dropping the writer ends the series.
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.begin_counting();
        self.done = self.calls.run_calls(&self.measurement_loop, start, &mut writer, &self.stop);
        Ok(())
    }

    fn collect_notes(&mut self) -> Notes {
        let mut notes = Notes {
            validations: vec![self.calls.validate_calls(&self.measurement_loop)],
            clock_cost: Fact::Known(clock_cost(&Monotonic)),
            ..Notes::default()
        };
        let CallTotals { taken, failed, errno } = &self.done;
        if taken.skipped > 0 {
            let title = "periods that passed while a call took longer than one";
            notes.figures.push(Figure::new(
                "skipped-periods",
                title,
                taken.skipped as f64,
                "count",
            ));
        }
        if *failed > 0 {
            let figure = Figure::new("failed-calls", "calls that failed", *failed as f64, "count");
            notes.figures.push(figure.with_count(taken.samples));
            let message = "the system call failed: the samples measure a failing call";
            let finding =
                Finding::new("syscall-failed", Severity::Warning, &*self.subject, message);
            let last_error =
                errno.as_ref().map_or(String::new(), |why| format!(", the last one with: {why}"));
            let finding =
                finding.with_evidence(format!("{failed} of {} calls{last_error}", taken.samples));
            notes.findings.push(finding.with_remedy(
                "give arguments with which it succeeds, unless its failure is what you measure",
            ));
        }
        notes
    }
}
