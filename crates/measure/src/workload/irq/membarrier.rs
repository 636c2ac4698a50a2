//! `membarrier`: one CPU interrupts another one, on request of a program (membarrier(2),
//! MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ for one CPU, since 5.10). The call returns when the
//! handler has run there, so its caller is the waiting thread.
//!
//! The kernel interrupts only CPUs that run this process: so a thread of ours runs on the other
//! CPU, from shortly before each call until after it.

use super::lanes::{IrqLanes, Passed, Periods};
use super::raiser::Go;
use crate::stop::Stop;
use crate::workload::measurement_loop::{LoopClock, Monotonic};
use punctual_core::{CpuSet, Nanos};
use punctual_record::interrupt::InterruptStamps;
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::{check_result, memory};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

/// MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, its registration, and the flag that names a CPU
/// (include/uapi/linux/membarrier.h).
const EXPEDITED_RSEQ: libc::c_int = 1 << 7;
const REGISTER: libc::c_int = 1 << 8;
const FLAG_CPU: libc::c_int = 1;
const STACK: usize = 128 * 1024;
/// The time for the other thread to get onto its CPU.
const TIMEOUT: Nanos = Nanos::MILLI;
/// The maximum number of consecutive calls for which the CPU to be interrupted is not ready.
const VAIN_MAX: u64 = 1_000;

const SLEEPS: u32 = 0;
const CALLED: u32 = 1;
const RUNS: u32 = 2;
const ENDS: u32 = 3;

fn call_membarrier(command: libc::c_int, flags: libc::c_int, cpu: libc::c_int) -> io::Result<()> {
    // SAFETY: takes only numbers.
    check_result(unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) }).map(drop)
}

/// The interrupted CPU, with the thread that runs there.
pub struct InterruptedCpu {
    cpu: u32,
    state: Arc<AtomicU32>,
    handle: Option<JoinHandle<()>>,
}

impl InterruptedCpu {
    /// Starts a thread there. The error names what is missing.
    pub fn start(cpu: u32, scheduling: Scheduling) -> Result<InterruptedCpu, String> {
        call_membarrier(REGISTER, 0, 0).map_err(|why| {
            format!(
                "membarrier(2) for restartable sequences: {why} (Linux 5.10 with CONFIG_RSEQ=y \
                 and CONFIG_MEMBARRIER=y has it)"
            )
        })?;
        let state = Arc::new(AtomicU32::new(SLEEPS));
        let (ready, placed) = channel();
        let shared = Arc::clone(&state);
        let body = move || {
            let affinity = attributes::set_affinity(0, &CpuSet::from_cpu(cpu as usize));
            let failed = affinity.is_err();
            memory::touch_stack::<{ 16 * 1024 }>();
            // Refused if the measuring thread is refused too, which is reported there.
            let _ = attributes::set_scheduling(0, &scheduling);
            if ready.send(affinity).is_ok() && !failed {
                spin_when_called(&shared);
            }
        };
        let spawned = Builder::new().name("target".into()).stack_size(STACK).spawn(body);
        let handle = spawned.map_err(|why| format!("no thread that is interrupted: {why}"))?;
        let target = InterruptedCpu { cpu, state, handle: Some(handle) };
        let placed = placed.recv().unwrap_or_else(|_| Err(io::Error::other("it has ended")));
        placed.map_err(|why| {
            format!(
                "no thread can run on CPU {cpu}, which is to be interrupted: {why} (is it online \
                 and allowed? see `target_cpu`)"
            )
        })?;
        Ok(target)
    }

    /// Waits until the other thread runs.
    #[inline(always)]
    pub(crate) fn wait_until_running(&self, now: impl Fn() -> i64) -> bool {
        self.state.store(CALLED, Ordering::Release);
        self.unpark_thread();
        let until = now() + TIMEOUT.ns();
        while self.state.load(Ordering::Acquire) != RUNS {
            if now() > until {
                self.state.store(SLEEPS, Ordering::Release);
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Interrupts it, and waits until that has been handled.
    #[inline(always)]
    pub(crate) fn interrupt_cpu(&self) -> io::Result<()> {
        call_membarrier(EXPEDITED_RSEQ, FLAG_CPU, self.cpu as libc::c_int)
    }

    /// Lets it sleep again.
    #[inline(always)]
    pub(crate) fn release_thread(&self) {
        self.state.store(SLEEPS, Ordering::Release);
    }

    fn unpark_thread(&self) {
        if let Some(handle) = &self.handle {
            handle.thread().unpark();
        }
    }
}

fn spin_when_called(state: &AtomicU32) {
    loop {
        match state.compare_exchange(CALLED, RUNS, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                while state.load(Ordering::Acquire) == RUNS {
                    std::hint::spin_loop();
                }
            }
            Err(ENDS) => return,
            Err(_) => std::thread::park(),
        }
    }
}

impl Drop for InterruptedCpu {
    fn drop(&mut self) {
        self.state.store(ENDS, Ordering::Release);
        self.unpark_thread();
        // It cannot panic; nothing could be done about it.
        self.handle.take().map(JoinHandle::join);
    }
}

/// Interrupts another CPU and waits until that has been handled.
pub(crate) fn measure_membarriers(
    lanes: &mut IrqLanes,
    go: Go,
    stop: &Stop,
    stamps: Option<&InterruptStamps>,
    raised: &AtomicU64,
    target: &InterruptedCpu,
) -> io::Result<()> {
    let mut pace = Periods::new(go.start, go.period);
    let mut vain = 0;
    while lanes.samples_left() > 0 && !stop.is_asked() {
        let (next, skipped) = pace.next(Monotonic.now());
        lanes.book.skipped += skipped;
        if next >= go.end {
            return Ok(());
        }
        while Monotonic.now() < next && !stop.is_asked() {
            Monotonic.sleep_until(next);
        }
        let is_there = target.wait_until_running(|| Monotonic.now());
        let entries = stamps.map(InterruptStamps::entry_count);
        if let Some(stamps) = stamps {
            stamps.arm_stamps(Monotonic.now());
        }
        let begin = Monotonic.now();
        let outcome = if is_there { target.interrupt_cpu() } else { Ok(()) };
        let woke = Monotonic.now();
        let stamped = stamps.map(InterruptStamps::take_stamps);
        target.release_thread();
        outcome?;
        let entry_count = stamps.zip(entries).map(|(stamps, before)| stamps.entry_count() - before);
        if !is_there || entry_count == Some(0) {
            lanes.book.vain += 1;
            vain += 1;
            if vain >= VAIN_MAX {
                return Err(io::Error::other(
                    "the CPU to be interrupted never ran the thread that waits there: do tasks of \
                     a higher priority use it?",
                ));
            }
            continue;
        }
        vain = 0;
        raised.fetch_add(1, Ordering::Relaxed);
        let mixed = entry_count.is_some_and(|came| came > 1);
        lanes.book.mixed += u64::from(mixed);
        let handler = stamped.and_then(|stamped| stamped.handler).map(|at| at.0).filter(|_| !mixed);
        let handled_on = stamped.map(|stamped| stamped.cpu);
        lanes.record_interrupt(
            Passed { raised: Some(begin), handler, expiry: None, woke, handled_on },
            stop,
        );
    }
    Ok(())
}
