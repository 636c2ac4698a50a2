//! The thread that raises interrupts for another thread that waits for them: on the same CPU if
//! they have one, and with a lower priority than that thread and the threads that handle the
//! interrupt before it.
//!
//! So the waiting thread is asleep when the next one is raised, the interrupted CPU runs real-time
//! code, as in a system at work, and the raiser's work after the raise delays no other thread: not
//! even a handler thread, whose priority is 50 by default.

use super::lanes::Periods;
use crate::stop::Stop;
use crate::workload::measurement_loop::{LoopClock, Monotonic};
use punctual_core::{CpuSet, Nanos};
use punctual_record::interrupt::InterruptStamps;
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::{memory, signals};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The time after which an interrupt counts as lost.
const TIMEOUT: Nanos = Nanos::from_secs(2);
const STACK: usize = 128 * 1024;
const TOUCHED: usize = 16 * 1024;

/// An interrupt that can be awaited, and possibly raised.
pub trait AwaitableInterrupt: Send + Sync {
    /// Whether [`AwaitableInterrupt::raise_interrupt`] raises it; otherwise it comes by itself.
    fn is_raised(&self) -> bool {
        true
    }
    /// Raises it, in the raiser's thread.
    fn raise_interrupt(&self) -> io::Result<()>;
    /// The time of raising, if the line knows it more precisely than its caller.
    fn raise_time(&self) -> Option<i64> {
        None
    }
    /// Waits for it, in the measuring thread; `false`: a signal came.
    fn await_interrupt(&self) -> io::Result<bool>;
    /// Whether it takes time to return to idle: then it gets at least half a period for that.
    fn is_slow(&self) -> bool {
        false
    }
    /// Discards interrupts that came while no thread waited, in the measuring thread.
    fn discard_pending(&self) -> io::Result<()> {
        Ok(())
    }
    /// Allows the next one, in the measuring thread, after the sample.
    fn rearm(&self) -> io::Result<()> {
        Ok(())
    }
    /// The entry of its handler, if the kernel reports it with the interrupt.
    fn handler_entry(&self) -> Option<i64> {
        None
    }
    /// The state of the line, in words: for an interrupt that was raised and does not come.
    fn describe_state(&self) -> Option<String> {
        None
    }
    /// Their number by an independent count, with its source.
    fn independent_count(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// Interrupts to be raised.
#[derive(Clone, Copy, Debug)]
pub struct Go {
    /// The first instant, and the distance.
    pub start: i64,
    pub period: Nanos,
    /// The maximum number of interrupts, and the latest instant.
    pub count: u64,
    pub end: i64,
}

/// The state shared by both threads.
#[derive(Default)]
struct SharedRaiser {
    /// The raiser's thread id.
    raiser: AtomicI32,
    raised_at: AtomicI64,
    /// Entries of the handler before the raise.
    entries: AtomicU64,
    raised: AtomicU64,
    answered: AtomicU64,
    answered_at: AtomicI64,
    skipped: AtomicU64,
    /// No more will be raised.
    over: AtomicBool,
    /// The measuring thread no longer waits.
    left: AtomicBool,
    failed: Mutex<Option<String>>,
}

pub struct Raiser {
    shared: Arc<SharedRaiser>,
    line: Arc<dyn AwaitableInterrupt>,
    stamps: Option<Arc<InterruptStamps>>,
    orders: Option<Sender<(Go, Arc<Stop>)>>,
    done: Receiver<()>,
    handle: Option<JoinHandle<()>>,
}

/// An arrived interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub raised: Option<i64>,
    pub handler: Option<i64>,
    pub woke: i64,
    pub handled_on: Option<u32>,
    /// Entries of the handler since the raise, if they are counted.
    pub entries: Option<u64>,
    /// Periods so far without an interrupt.
    pub skipped: u64,
}

impl Raiser {
    /// Starts it from the measuring thread, on that thread's CPU, with `scheduling`.
    pub fn start(
        line: Arc<dyn AwaitableInterrupt>,
        stamps: Option<Arc<InterruptStamps>>,
        cpu: Option<CpuSet>,
        scheduling: Scheduling,
    ) -> Result<Raiser, String> {
        let shared = Arc::new(SharedRaiser::default());
        let (orders, inbox) = channel::<(Go, Arc<Stop>)>();
        let (ready, done) = channel();
        let inner = Inner {
            shared: Arc::clone(&shared),
            line: Arc::clone(&line),
            stamps: stamps.clone(),
            waiter: attributes::thread_id(),
        };
        let body = move || {
            if let Some(cpu) = cpu {
                // The measuring thread already runs there, so it is available.
                let _ = attributes::set_affinity(0, &cpu);
            }
            inner.shared.raiser.store(attributes::thread_id(), Ordering::Release);
            let _ = attributes::set_timer_slack(Nanos(1));
            memory::touch_stack::<TOUCHED>();
            // Refused if the measuring thread is refused too, which is reported there.
            let _ = attributes::set_scheduling(0, &scheduling);
            while let Ok((go, stop)) = inbox.recv() {
                inner.raise_all(go, &stop);
                if ready.send(()).is_err() {
                    return;
                }
            }
        };
        let handle = Builder::new().name("raiser".into()).stack_size(STACK).spawn(body);
        let handle = handle.map_err(|why| format!("no thread that raises interrupts: {why}"))?;
        Ok(Raiser { shared, line, stamps, orders: Some(orders), done, handle: Some(handle) })
    }

    pub(crate) fn raised_count(&self) -> u64 {
        self.shared.raised.load(Ordering::Acquire)
    }

    /// Has interrupts raised, and waits for each; `take` returns whether to continue. Returns the
    /// number of skipped periods.
    pub(crate) fn raise_periodically(
        &self,
        go: Go,
        stop: &Arc<Stop>,
        mut take: impl FnMut(Arrival) -> bool,
    ) -> io::Result<u64> {
        let shared = &*self.shared;
        shared.over.store(false, Ordering::Release);
        shared.left.store(false, Ordering::Release);
        shared.answered.store(self.raised_count(), Ordering::Release);
        shared.skipped.store(0, Ordering::Release);
        let thread_gone = || io::Error::other("the thread that raises interrupts has ended");
        self.line.discard_pending()?;
        self.let_come()?;
        self.orders
            .as_ref()
            .ok_or_else(thread_gone)?
            .send((go, Arc::clone(stop)))
            .map_err(|_| thread_gone())?;
        let mut result = Ok(());
        while !shared.over.load(Ordering::Acquire) && !stop.is_asked() {
            match self.line.await_interrupt() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    result = Err(why);
                    break;
                }
            }
            let goes_on = take(self.read_arrival());
            if let Err(why) = self.let_come() {
                result = Err(why);
                break;
            }
            shared.answered_at.store(Monotonic.now(), Ordering::Relaxed);
            shared.answered.store(self.raised_count(), Ordering::Release);
            if !goes_on {
                break;
            }
        }
        shared.left.store(true, Ordering::Release);
        // It may sleep for long.
        while self.done.recv_timeout(std::time::Duration::from_millis(1)).is_err() {
            if self.handle.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            let _ = signals::wake_thread(shared.raiser.load(Ordering::Acquire));
        }
        let failed = shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(result, |why| Err(io::Error::other(why)))?;
        Ok(shared.skipped.load(Ordering::Acquire))
    }

    /// Allows the next one.
    fn let_come(&self) -> io::Result<()> {
        // An interrupt that is not raised here may come immediately.
        if let Some(stamps) = self.stamps.as_ref().filter(|_| !self.line.is_raised()) {
            self.shared.entries.store(stamps.entry_count(), Ordering::Relaxed);
            stamps.arm_stamps(1);
        }
        self.line.rearm()
    }

    /// Directly after the wait.
    #[inline(always)]
    fn read_arrival(&self) -> Arrival {
        let woke = Monotonic.now();
        let shared = &*self.shared;
        let called = || self.line.is_raised().then(|| shared.raised_at.load(Ordering::Acquire));
        let raised = self.line.raise_time().or_else(called);
        let stamped = self
            .stamps
            .as_ref()
            .map(|stamps| stamps.take_stamps())
            .filter(|stamped| stamped.handler.is_some());
        let entries = self
            .stamps
            .as_ref()
            .map(|stamps| stamps.entry_count() - shared.entries.load(Ordering::Relaxed));
        let handler = self
            .line
            .handler_entry()
            .or(stamped.and_then(|stamped| stamped.handler).map(|at| at.0));
        let (handled_on, skipped) =
            (stamped.map(|stamped| stamped.cpu), shared.skipped.load(Ordering::Relaxed));
        Arrival { raised, handler, woke, handled_on, entries, skipped }
    }
}

impl Drop for Raiser {
    fn drop(&mut self) {
        self.shared.left.store(true, Ordering::Release);
        self.orders = None;
        // It cannot panic; nothing could be done about it.
        self.handle.take().map(JoinHandle::join);
    }
}

struct Inner {
    shared: Arc<SharedRaiser>,
    line: Arc<dyn AwaitableInterrupt>,
    stamps: Option<Arc<InterruptStamps>>,
    waiter: i32,
}

impl Inner {
    fn raise_all(&self, go: Go, stop: &Stop) {
        if let Err(why) = self.raise_each(go, stop) {
            *self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        }
        self.shared.over.store(true, Ordering::Release);
        // Repeatedly: a signal between the check and the wait is missed.
        while !self.shared.left.load(Ordering::Acquire) {
            let _ = signals::wake_thread(self.waiter);
            Monotonic.sleep_until(Monotonic.now() + 1_000_000);
        }
    }

    fn raise_each(&self, go: Go, stop: &Stop) -> Result<(), String> {
        let shared = &*self.shared;
        let is_over = || stop.is_asked() || shared.left.load(Ordering::Acquire);
        if !self.line.is_raised() {
            self.sleep_until(go.end, &is_over);
            return Ok(());
        }
        let mut pace = Periods::new(go.start, go.period);
        let (mut left, mut skipped) = (go.count, 0);
        while left > 0 && !is_over() {
            let (next, passed) = pace.next(Monotonic.now());
            skipped += passed;
            if next >= go.end {
                break;
            }
            if !self.sleep_until(next, &is_over) {
                break;
            }
            if shared.answered.load(Ordering::Acquire) != shared.raised.load(Ordering::Relaxed) {
                self.check_pending()?;
                skipped += 1;
                continue;
            }
            let since = Monotonic.now() - shared.answered_at.load(Ordering::Relaxed);
            if self.line.is_slow() && since < go.period.ns() / 2 {
                skipped += 1;
                continue;
            }
            shared.skipped.store(skipped, Ordering::Relaxed);
            self.raise_and_stamp()?;
            left -= 1;
        }
        shared.skipped.store(skipped, Ordering::Release);
        while shared.answered.load(Ordering::Acquire) != shared.raised.load(Ordering::Relaxed)
            && !is_over()
        {
            self.check_pending()?;
            Monotonic.sleep_until(Monotonic.now() + 50_000);
        }
        Ok(())
    }

    #[inline(always)]
    fn raise_and_stamp(&self) -> Result<(), String> {
        let shared = &*self.shared;
        if let Some(stamps) = &self.stamps {
            shared.entries.store(stamps.entry_count(), Ordering::Relaxed);
        }
        shared.raised.store(shared.raised.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if let Some(stamps) = &self.stamps {
            stamps.arm_stamps(Monotonic.now());
        }
        shared.raised_at.store(Monotonic.now(), Ordering::Release);
        self.line
            .raise_interrupt()
            .map_err(|why| format!("the interrupt could not be raised: {why}"))
    }

    /// The previous one has not been answered yet.
    fn check_pending(&self) -> Result<(), String> {
        let since = Monotonic.now() - self.shared.raised_at.load(Ordering::Acquire);
        if since < TIMEOUT.ns() {
            return Ok(());
        }
        let state =
            self.line.describe_state().map_or_else(String::new, |state| format!(": {state}"));
        Err(format!("an interrupt was raised, and no thread was woken within {TIMEOUT}{state}"))
    }

    /// `false`: it has ended.
    fn sleep_until(&self, until: i64, is_over: &impl Fn() -> bool) -> bool {
        while Monotonic.now() < until && !is_over() {
            Monotonic.sleep_until(until);
        }
        !is_over()
    }
}
