//! The other tasks of a ring, threads or processes: their preparation, work and end.

use super::handoff::HandoffMechanism;
use super::shared_memory::{SwitchMemory, TurnMode};
use punctual_core::CpuSet;
use punctual_sys::attributes::{self, Scheduling};
use punctual_sys::check_result;
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
        for me in 1..ring.shared_memory.task_count() {
            let started =
                if processes { members.fork_process(me) } else { members.spawn_thread(me) };
            started.map_err(|why| format!("task {me} of the ring could not be started: {why}"))?;
        }
        let until = Instant::now() + TIMEOUT;
        while ring.shared_memory.ready_count() + 1 < ring.shared_memory.task_count() {
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
        for (me, slot) in ring.shared_memory.task_slots().enumerate() {
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

    fn spawn_thread(&mut self, me: usize) -> io::Result<()> {
        let ring = Arc::clone(&self.ring);
        let thread = Builder::new()
            .name("ring".into())
            .stack_size(STACK)
            .spawn(move || ring.run_member(me))?;
        self.threads.push(thread);
        Ok(())
    }

    fn fork_process(&mut self, me: usize) -> io::Result<()> {
        let parent = std::process::id();
        // SAFETY: the child of a process with several threads may only make async-signal-safe calls
        // until it ends: `live` makes system calls and touches the shared memory, allocates
        // nothing, takes no lock, and ends with _exit.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            if signals::die_with_parent(parent).is_ok() {
                self.ring.run_member(me);
            }
            // SAFETY: ends only the child, without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        self.processes.push(check_result(pid)?);
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
                self.ring.call_member(place + 1);
                std::thread::sleep(Duration::from_micros(100));
            }
            // It cannot panic; nothing could be done about it.
            let _ = thread.join();
        }
        for (place, pid) in std::mem::take(&mut self.processes).into_iter().enumerate() {
            while !has_ended(pid) && Instant::now() < until {
                self.ring.call_member(place + 1);
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
    fn call_member(&self, task: usize) {
        let SwitchRing { shared_memory, handoff, .. } = self;
        if handoff.is_parking_needed() {
            handoff.wake_task(shared_memory.task_slot(task))
        } else {
            handoff.hand_over(shared_memory, task)
        }
    }

    /// Publishes the ids of the calling task, for the tasks that wake it.
    pub(crate) fn publish_ids(&self, me: usize) {
        let slot = self.shared_memory.task_slot(me);
        slot.pid.store(std::process::id() as i32, Ordering::Relaxed);
        slot.tid.store(attributes::thread_id(), Ordering::Release);
    }

    /// Runs a member. Allocates nothing: it may be a forked process.
    fn run_member(&self, me: usize) {
        let SwitchRing { shared_memory, handoff, places, scheduling } = self;
        let slot = shared_memory.task_slot(me);
        self.publish_ids(me);
        let placed = if scheduling.deadline.is_some() {
            Ok(())
        } else {
            attributes::set_affinity(0, &places[me])
        };
        // Cannot fail with a positive slack.
        let _ = attributes::set_timer_slack(punctual_core::Nanos(1));
        memory::touch_stack::<TOUCHED>();
        shared_memory.touch_working_set(me);
        if let Err(why) = &placed {
            slot.error.store(why.raw_os_error().unwrap_or(libc::EINVAL), Ordering::Release);
        } else if let Err(why) = attributes::set_scheduling(0, scheduling) {
            slot.refused.store(why.raw_os_error().unwrap_or(libc::EPERM), Ordering::Release);
        }
        slot.publish_switches();
        slot.arrived.store(monotonic_now(), Ordering::Release);
        shared_memory.add_ready();
        if placed.is_err() || !handoff.first_wait(shared_memory, me) {
            return;
        }
        loop {
            slot.arrived.store(monotonic_now(), Ordering::Release);
            match shared_memory.turn_mode() {
                TurnMode::Run => shared_memory.walk_working_set(me),
                TurnMode::Twice if me == 1 => {
                    let begin = monotonic_now();
                    shared_memory.walk_working_set(me);
                    let between = monotonic_now();
                    shared_memory.walk_working_set(me);
                    slot.alone.store(monotonic_now() - between, Ordering::Relaxed);
                    slot.after.store(between - begin, Ordering::Release);
                }
                TurnMode::Twice => shared_memory.walk_working_set(me),
                TurnMode::Count => slot.publish_switches(),
                TurnMode::End => return,
            }
            handoff.await_departure(shared_memory, me + 1);
            slot.left.store(monotonic_now(), Ordering::Release);
            handoff.hand_over(shared_memory, me + 1);
            if !handoff.wait_for_turn(shared_memory, me) {
                return;
            }
        }
    }
}

#[inline(always)]
pub fn monotonic_now() -> i64 {
    clock::read(libc::CLOCK_MONOTONIC)
}
