//! The other tasks of a ring, threads or processes: their preparation, work and end.

use super::handoff::HandoffMechanism;
use super::shared_memory::{SwitchMemory, TurnMode};
use punctual_core::CpuSet;
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::check;
use punctual_sys::{clock, memory, signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The stack of a member, and the touched part: its loop needs a few hundred bytes.
const STACK: usize = 128 * 1024;
const TOUCHED: usize = 16 * 1024;
/// The time for members to become ready; each touches at most 16 MiB.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time for processes to end when END is set.
const ENDING: Duration = Duration::from_secs(2);

/// The state shared by all tasks of a ring.
pub struct SwitchRing {
    pub shared_memory: SwitchMemory,
    pub handoff: HandoffMechanism,
    /// The CPU of each task.
    pub places: Vec<CpuSet>,
    /// The scheduling of each.
    pub scheduling: Scheduling,
}

pub struct Members {
    ring: Arc<SwitchRing>,
    threads: Vec<JoinHandle<()>>,
    processes: Vec<libc::pid_t>,
}

impl Members {
    /// Starts all tasks but the first, which is the caller. They are its children, and wait for
    /// their turn on return.
    pub fn start(ring: &Arc<SwitchRing>, processes: bool) -> Result<Members, String> {
        ring.shared_memory.set_parking(true);
        let mut members =
            Members { ring: Arc::clone(ring), threads: Vec::new(), processes: Vec::new() };
        for me in 1..ring.shared_memory.tasks() {
            let started = if processes { members.fork(me) } else { members.spawn(me) };
            started.map_err(|why| format!("task {me} of the ring could not be started: {why}"))?;
        }
        let until = Instant::now() + TIMEOUT;
        while ring.shared_memory.ready() + 1 < ring.shared_memory.tasks() {
            if Instant::now() > until {
                return Err("the tasks of the ring did not become ready: is their CPU taken by \
                            real-time tasks?"
                    .into());
            }
            if members.has_lost_one() {
                return Err(
                    "a process of the ring ended before it was ready: was it killed?".into()
                );
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for (me, slot) in ring.shared_memory.slots().enumerate() {
            let error = slot.error.load(Ordering::Acquire);
            if error != 0 {
                let (cpu, why) = (&ring.places[me], io::Error::from_raw_os_error(error));
                return Err(format!(
                    "task {me} of the ring cannot run on CPU {cpu}: {why} (is it online and \
                     allowed?)"
                ));
            }
        }
        Ok(members)
    }

    fn spawn(&mut self, me: usize) -> io::Result<()> {
        let ring = Arc::clone(&self.ring);
        let thread =
            Builder::new().name("ring".into()).stack_size(STACK).spawn(move || ring.live(me))?;
        self.threads.push(thread);
        Ok(())
    }

    fn fork(&mut self, me: usize) -> io::Result<()> {
        let parent = std::process::id();
        // SAFETY: the child of a process with several threads may only make async-signal-safe calls
        // until it ends: `live` makes system calls and touches the shared memory, allocates
        // nothing, takes no lock, and ends with _exit.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            if signals::die_with_parent(parent).is_ok() {
                self.ring.live(me);
            }
            // SAFETY: ends only the child, without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        self.processes.push(check(pid)?);
        Ok(())
    }

    /// Whether a process of the ring has ended.
    fn has_lost_one(&self) -> bool {
        self.processes.iter().any(|pid| has_ended(*pid))
    }
}

/// Whether a child has ended; it is not reaped.
pub fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: all zeroes is a siginfo_t, valid to write to.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) < 0 || info.si_pid() != 0
    }
}

impl Drop for Members {
    /// Ends all, in any wait.
    fn drop(&mut self) {
        self.ring.shared_memory.set_mode(TurnMode::End);
        let until = Instant::now() + ENDING;
        // Repeatedly, because one that was still being started may have missed it.
        for (place, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            while !thread.is_finished() {
                self.ring.call(place + 1);
                std::thread::sleep(Duration::from_micros(100));
            }
            // It cannot panic; nothing could be done about it.
            let _ = thread.join();
        }
        for (place, pid) in std::mem::take(&mut self.processes).into_iter().enumerate() {
            while !has_ended(pid) && Instant::now() < until {
                self.ring.call(place + 1);
                std::thread::sleep(Duration::from_micros(100));
            }
            // SAFETY: a child of ours that has not been reaped: its number cannot be reused. A null
            // status is allowed.
            unsafe {
                if !has_ended(pid) {
                    libc::kill(pid, libc::SIGKILL);
                }
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

impl SwitchRing {
    /// Whether all tasks run on the same CPU.
    pub(crate) fn is_on_one_cpu(&self) -> bool {
        self.places.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Wakes a task outside of its turn, to read the mode.
    fn call(&self, task: usize) {
        let SwitchRing { shared_memory, handoff, .. } = self;
        if handoff.parks() {
            handoff.wake(shared_memory.slot(task))
        } else {
            handoff.hand_over(shared_memory, task)
        }
    }

    /// Publishes the ids of the calling task, for the tasks that wake it.
    pub(crate) fn publish_ids(&self, me: usize) {
        let slot = self.shared_memory.slot(me);
        slot.pid.store(std::process::id() as i32, Ordering::Relaxed);
        slot.tid.store(attributes::tid(), Ordering::Release);
    }

    /// Runs a member. Allocates nothing: it may be a forked process.
    fn live(&self, me: usize) {
        let SwitchRing { shared_memory, handoff, places, scheduling } = self;
        let slot = shared_memory.slot(me);
        self.publish_ids(me);
        let placed = if scheduling.deadline.is_some() {
            Ok(())
        } else {
            attributes::set_affinity(0, &places[me])
        };
        // Cannot fail with a positive slack.
        let _ = attributes::set_timer_slack(punctual_core::Nanos(1));
        memory::touch_stack::<TOUCHED>();
        shared_memory.touch(me);
        if let Err(why) = &placed {
            slot.error.store(why.raw_os_error().unwrap_or(libc::EINVAL), Ordering::Release);
        } else if let Err(why) = attributes::set_scheduling(0, scheduling) {
            slot.refused.store(why.raw_os_error().unwrap_or(libc::EPERM), Ordering::Release);
        }
        slot.count();
        slot.arrived.store(now(), Ordering::Release);
        shared_memory.add_ready();
        if placed.is_err() || !handoff.first_wait(shared_memory, me) {
            return;
        }
        loop {
            slot.arrived.store(now(), Ordering::Release);
            match shared_memory.mode() {
                TurnMode::Run => shared_memory.work(me),
                TurnMode::Twice if me == 1 => {
                    let begin = now();
                    shared_memory.work(me);
                    let between = now();
                    shared_memory.work(me);
                    slot.alone.store(now() - between, Ordering::Relaxed);
                    slot.after.store(between - begin, Ordering::Release);
                }
                TurnMode::Twice => shared_memory.work(me),
                TurnMode::Count => slot.count(),
                TurnMode::End => return,
            }
            handoff.before(shared_memory, me + 1);
            slot.left.store(now(), Ordering::Release);
            handoff.hand_over(shared_memory, me + 1);
            if !handoff.wait(shared_memory, me) {
                return;
            }
        }
    }
}

#[inline(always)]
pub fn now() -> i64 {
    clock::read(libc::CLOCK_MONOTONIC)
}
