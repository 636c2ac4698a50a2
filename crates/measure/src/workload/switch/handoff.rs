//! The hand-over from one task to the next, and the wait for the turn.

use super::shared_memory::{RingTask, SwitchMemory};
use punctual_core::Nanos;
use punctual_plan::kinds::Mechanism;
use punctual_sys::descriptor::create_eventfd;
use punctual_sys::futex::{self, FutexScope};
use punctual_sys::{clock, signals};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The sleep of a task of `sleep`.
const NAP: Nanos = Nanos::from_micros(20);
/// The delay after the other's alarm at which a task of `sleep` goes to sleep itself: the other is
/// runnable by then.
const READY: Nanos = Nanos::from_micros(30);

/// A mechanism with its resources. The descriptors are numbers, which are also valid in forked
/// processes.
pub struct HandoffMechanism {
    mechanism: Mechanism,
    /// Each task's end to read from.
    from: Vec<OwnedFd>,
    /// Its end to write to; the same for eventfds.
    to: Vec<OwnedFd>,
    /// The scope of the tasks' futex words.
    scope: FutexScope,
    signals: libc::sigset_t,
}

/// The signal that carries a turn.
fn turn_signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

impl HandoffMechanism {
    /// Opens the tasks' resources. EMFILE: there are not enough descriptors.
    pub fn open(
        mechanism: Mechanism,
        tasks: usize,
        processes: bool,
    ) -> io::Result<HandoffMechanism> {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for _ in 0..tasks {
            match mechanism {
                Mechanism::Pipe => {
                    let (out, into) = io::pipe()?;
                    from.push(out.into());
                    to.push(into.into());
                }
                Mechanism::Eventfd => {
                    let fd = create_eventfd(0)?;
                    to.push(fd.try_clone()?);
                    from.push(fd);
                }
                _ => {}
            }
        }
        let scope = if processes { FutexScope::Shared } else { FutexScope::Private };
        let signals = signals::set_of(&[turn_signal()]);
        Ok(HandoffMechanism { mechanism, from, to, scope, signals })
    }

    /// The number of descriptors that [`HandoffMechanism::open`] needs.
    pub(crate) fn descriptor_count(mechanism: Mechanism, tasks: usize) -> usize {
        if matches!(mechanism, Mechanism::Pipe | Mechanism::Eventfd) { 2 * tasks } else { 0 }
    }

    /// Whether waiting tasks keep running from time to time, and so must be parked while the leader
    /// rests.
    pub(crate) fn is_parking_needed(&self) -> bool {
        matches!(self.mechanism, Mechanism::Sleep | Mechanism::Yield)
    }

    /// Whether a task waits without sleeping.
    pub(crate) fn is_yielding(&self) -> bool {
        self.mechanism == Mechanism::Yield
    }

    /// Waits for the condition of a task's departure: with `sleep`, the next one's alarm has come.
    #[inline(always)]
    pub(crate) fn await_departure(&self, shared_memory: &SwitchMemory, next: usize) {
        if self.mechanism == Mechanism::Sleep {
            let due = shared_memory.task_slot(next).due.load(Ordering::Acquire) + READY.ns();
            while clock::read(libc::CLOCK_MONOTONIC) < due {}
        }
    }

    #[inline(always)]
    pub(crate) fn hand_over(&self, shared_memory: &SwitchMemory, next: usize) {
        let slot = shared_memory.task_slot(next);
        match self.mechanism {
            Mechanism::Pipe => self.write(next, 1),
            Mechanism::Eventfd => self.write(next, 8),
            Mechanism::Futex => self.wake_task(slot),
            Mechanism::Signal => {
                let (pid, tid) =
                    (slot.pid.load(Ordering::Relaxed), slot.tid.load(Ordering::Relaxed));
                // SAFETY: tgkill takes only numbers. The task exists: it ends only when the leader
                // has set the last mode.
                unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, turn_signal()) };
            }
            Mechanism::Sleep | Mechanism::Yield => shared_memory.set_turn(next),
        }
    }

    #[inline(always)]
    fn write(&self, next: usize, length: usize) {
        let one = 1u64.to_le();
        // SAFETY: `one` is readable memory of eight bytes.
        unsafe {
            libc::write(self.to[next % self.to.len()].as_raw_fd(), (&raw const one).cast(), length)
        };
    }

    /// Sets a task's word and wakes it.
    #[inline(always)]
    pub(crate) fn wake_task(&self, slot: &RingTask) {
        slot.word.store(1, Ordering::Release);
        let _ = futex::wake(&slot.word, 1, self.scope);
    }

    /// Waits until its word is set, and clears it. False: the ring is broken.
    #[inline(always)]
    fn wait_word(&self, shared_memory: &SwitchMemory, slot: &RingTask) -> bool {
        while slot.word.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&slot.word, 0, self.scope, None);
            if shared_memory.is_broken() {
                return false;
            }
        }
        slot.word.store(0, Ordering::Relaxed);
        true
    }

    /// Waits for the turn of task `me`. False: the ring is broken, and the turn will not come.
    #[inline(always)]
    pub(crate) fn wait_for_turn(&self, shared_memory: &SwitchMemory, me: usize) -> bool {
        let slot = shared_memory.task_slot(me);
        match self.mechanism {
            Mechanism::Pipe | Mechanism::Eventfd => {
                let mut buffer = [0u8; 8];
                let length = if self.mechanism == Mechanism::Pipe { 1 } else { 8 };
                // SAFETY: the buffer has room for what is read.
                while unsafe {
                    libc::read(self.from[me].as_raw_fd(), buffer.as_mut_ptr().cast(), length)
                } <= 0
                {
                    if shared_memory.is_broken() {
                        return false;
                    }
                }
                true
            }
            Mechanism::Futex => self.wait_word(shared_memory, slot),
            Mechanism::Signal => {
                // SAFETY: the set is valid, and nothing is to be written back.
                while unsafe { libc::sigwaitinfo(&self.signals, std::ptr::null_mut()) } < 0 {
                    if shared_memory.is_broken() {
                        return false;
                    }
                }
                true
            }
            Mechanism::Sleep => {
                let due = slot.left.load(Ordering::Relaxed) + NAP.ns();
                slot.due.store(due, Ordering::Release);
                let _ = clock::sleep_until(libc::CLOCK_MONOTONIC, due);
                self.wait_turn(shared_memory, me)
            }
            Mechanism::Yield => {
                // SAFETY: no arguments.
                unsafe { libc::sched_yield() };
                self.wait_turn(shared_memory, me)
            }
        }
    }

    /// Waits for this task's turn: yields whenever it gets the CPU without it.
    #[inline(always)]
    fn wait_turn(&self, shared_memory: &SwitchMemory, me: usize) -> bool {
        while shared_memory.turn_owner() != me as u32 {
            if shared_memory.is_broken()
                || shared_memory.turn_mode() == super::shared_memory::TurnMode::End
            {
                return !shared_memory.is_broken();
            }
            if shared_memory.is_parking() && me != 0 {
                if !self.park_member(shared_memory, me) {
                    return false;
                }
                continue;
            }
            shared_memory.task_slot(me).strays.fetch_add(1, Ordering::Relaxed);
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
        }
        true
    }

    /// Waits for the end of the leader's rest.
    #[cold]
    fn park_member(&self, shared_memory: &SwitchMemory, me: usize) -> bool {
        let slot = shared_memory.task_slot(me);
        slot.parks.fetch_add(1, Ordering::Relaxed);
        slot.parked.store(1, Ordering::Release);
        let whole = self.wait_word(shared_memory, slot);
        slot.parked.store(0, Ordering::Release);
        slot.due.store(0, Ordering::Release);
        whole
    }

    /// The first wait of a task: mechanisms that park start parked.
    pub(crate) fn first_wait(&self, shared_memory: &SwitchMemory, me: usize) -> bool {
        if self.is_parking_needed() {
            self.park_member(shared_memory, me) && self.wait_turn(shared_memory, me)
        } else {
            self.wait_for_turn(shared_memory, me)
        }
    }
}
