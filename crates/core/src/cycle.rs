//! A cycle of a thread of any program, from the kernel's events.

mod calls;
mod kind;
mod moment;
mod series_kind;

pub use calls::{
    CallClass, CallSet, DescriptorSet, FILE_CALLS, MARKED, POLLS, WAITING_CALLS, has_timed_out,
    is_interrupted,
};
pub use kind::CycleKind;
pub use moment::{HolderDeed, Moment, MomentHolder, MomentKind, MomentWaker};
pub use series_kind::SeriesKind;

use crate::{MonotonicNs, Nanos, Split};

/// The end of the wait that a cycle begins with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum WokenBy {
    /// The timer of the waiting call itself: the release is its expiry.
    Sleep,
    /// Another timer (timerfd, POSIX timer): the release is its expiry.
    Timer,
    /// The next period of SCHED_DEADLINE.
    Period,
    Task,
    /// The handler of an interrupt.
    Irq,
    /// Deferred work of interrupts, such as a network packet.
    Softirq,
    /// The wake-up was seen, but not its source.
    Unknown,
    /// No event shows the wake-up: its instant is unknown.
    #[default]
    Unseen,
}

/// A waiting system call, reduced to what distinguishes cycles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WaitingCall {
    /// The number of the system call on this architecture.
    pub number: u32,
    /// For futex(2) the command, with 0x80 if the awaited value is that of a lock in
    /// FUTEX_WAIT_BITSET; for clock_nanosleep(2) the flags; else 0.
    pub operation: u16,
    /// Its first argument: a file descriptor, an address, a clock.
    pub argument: u64,
    /// The place of the program that it is made at, a number of the recorder's; 0: not known.
    pub place: u64,
}

impl WaitingCall {
    /// The number for a call that was not recorded. The operation is then the end of the wait, and
    /// the argument the timer that ended it, unless the thread started it for this wait.
    pub const NOT_RECORDED: u32 = u32::MAX;

    /// A wait in an unrecorded call, before its end is known.
    pub const UNRECORDED: WaitingCall =
        WaitingCall { number: WaitingCall::NOT_RECORDED, operation: 0, argument: 0, place: 0 };

    /// The file or address that it waits for. A condition variable of glibc is waited for at two
    /// words by turns, side by side.
    pub fn awaited_object(&self) -> u64 {
        if self.argument < FILES_END { self.argument } else { self.argument & !7 }
    }

    /// Whether both are the same call, wherever and whatever it waits for.
    pub fn is_same_call(&self, other: &WaitingCall) -> bool {
        (self.number, self.operation) == (other.number, other.operation)
    }

    /// Whether both wait for the same file or address.
    pub fn has_object_of(&self, other: &WaitingCall) -> bool {
        self.awaited_object() == other.awaited_object()
    }
}

/// Files are small numbers.
pub const FILES_END: u64 = 0x1_0000;

/// The name of a task, of at most 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TaskComm(pub [u8; 16]);

impl std::fmt::Display for TaskComm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

/// The bit that marks ids of tasks outside of the PID namespace of the measured program: they have
/// no id there, and the other bits are the id in the initial namespace.
pub const OUTSIDE: u32 = 1 << 31;

/// The id of a task here; `None` for a task outside of this PID namespace.
pub fn id_here(tid: u32) -> Option<u32> {
    (tid & OUTSIDE == 0).then_some(tid)
}

/// `name-4711`; only the name of a task outside of this PID namespace, whose id is meaningless
/// here.
pub fn task_label(name: TaskComm, tid: u32) -> String {
    match id_here(tid) {
        Some(tid) => format!("{name}-{tid}"),
        None if name == TaskComm::default() => "a task outside of the container".to_owned(),
        None => format!("{name} (outside of the container)"),
    }
}

/// Another task, with the time that a cycle waited for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CycleCulprit {
    pub tid: u32,
    /// The name in the kernel (`comm`), untrusted.
    pub name: TaskComm,
    /// Its run time while the thread was ready.
    pub time: Nanos,
    /// The part of it in which its priority was the same or higher.
    pub behind: Nanos,
}

/// The evidence for the holder of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockEvidence {
    /// The futex holds the id of its owner, for priority inheritance.
    PiFutex,
    /// The glibc mutex that the futex belongs to names it: read when the thread went to sleep, and
    /// a thread of the same process.
    MutexOwner,
    /// The thread ended the wait, so it was the last to release the lock.
    Waker,
}

impl LockEvidence {
    pub fn as_phrase(self) -> &'static str {
        match self {
            LockEvidence::PiFutex => "owner in the PI futex",
            LockEvidence::MutexOwner => "owner in the mutex",
            LockEvidence::Waker => "last released by",
        }
    }
}

/// Another thread that held locks awaited by a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockHolder {
    pub tid: u32,
    /// Its name; empty if unknown.
    pub name: TaskComm,
    pub evidence: LockEvidence,
    /// Whether its id is that in the PID namespace of the waiting thread.
    pub in_namespace: bool,
    /// The number of waits of the cycle for it.
    pub waits: u32,
    /// The total time of these waits.
    pub time: Nanos,
}

/// The waker that ended the longest other wait within a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AwaitedWaker {
    pub by: WokenBy,
    /// The thread that ran then.
    pub tid: u32,
    pub name: TaskComm,
    /// The total time of the waits that it ended.
    pub time: Nanos,
}

/// From a release to the next wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cycle {
    pub tid: u32,
    /// The CPU on which it ended.
    pub cpu: u16,
    pub release: MonotonicNs,
    /// When the waiting call was entered.
    pub entered: MonotonicNs,
    /// When the thread was woken.
    pub woken: MonotonicNs,
    /// When the waiting call returned.
    pub returned: MonotonicNs,
    /// When the next wait was entered.
    pub again: MonotonicNs,
    /// The waiting call at its start.
    pub call: WaitingCall,
    pub by: WokenBy,
    /// The kernel's address of the timer that woke it; 0: none.
    pub timer: u64,
    /// The thread that ran at the wake-up, or was interrupted.
    pub waker: u32,
    /// The name in the kernel (`comm`), untrusted.
    pub waker_name: TaskComm,
    /// The part that its wait counts for if it does not begin a cycle.
    pub wait_is: crate::CauseKind,
    /// The run time spent on reclaiming memory.
    pub reclaimed: Nanos,
    /// The run time spent on page faults.
    pub faulted: Nanos,
    pub blocks: u32,
    /// Of its waits those in the call that it begins with, at another place or for another address.
    pub elsewhere: u32,
    pub blocked: Nanos,
    pub migrations: u32,
    pub syscalls: u32,
    pub faults: u32,
    /// The marked system calls that it made.
    pub calls: CallSet,
    pub written: DescriptorSet,
    /// Whether it slept in FUTEX_WAIT: for a lock without priority inheritance.
    pub slept_without_pi: bool,
    /// The number of the longest system call, and its time.
    pub longest_call: Option<(u32, Nanos)>,
    /// The task that kept it from a CPU the longest.
    pub culprit: Option<CycleCulprit>,
    /// The thread whose locks it waited for the longest.
    pub holder: Option<LockHolder>,
    /// The waker of the longest wait that was not for a lock.
    pub awaited: Option<AwaitedWaker>,
    /// Unseen switches to the thread: the kernel may show none of an idle CPU.
    pub hidden: u32,
    /// The task last seen on its CPU before the longest time without events: it probably ran. Its
    /// name may be unknown.
    pub likely: Option<CycleCulprit>,
    /// The time from `release` to `returned`.
    pub wake: Split,
    /// The time from `returned` to `again`.
    pub run: Split,
}

/// The wait of a thread, or the cycle after it, at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenCycle {
    /// The waiting call, with its entry.
    pub call: WaitingCall,
    pub entered: MonotonicNs,
    /// When the wait ended; `None`: not yet.
    pub release: Option<MonotonicNs>,
    /// When the call returned.
    pub returned: Option<MonotonicNs>,
    /// The entry of a further such call in which it is not asleep: the cycle may have ended there.
    pub until: Option<MonotonicNs>,
    /// As in [`Cycle::elsewhere`].
    pub elsewhere: u32,
}

impl Cycle {
    /// Whether its due time is known. If not, `release` is the return of its wait.
    pub fn is_release_known(&self) -> bool {
        self.by != WokenBy::Unseen
    }

    /// The time from the release to the return of the waiting call.
    pub fn wakeup_latency(&self) -> Nanos {
        self.returned - self.release
    }

    /// The time from the release to the next wait.
    pub fn response_time(&self) -> Nanos {
        self.again - self.release
    }

    /// The run time of the thread within it.
    pub fn execution_time(&self) -> Nanos {
        let own_parts = [crate::CauseKind::OwnExecution, crate::CauseKind::SystemCall];
        own_parts.into_iter().fold(self.reclaimed + self.faulted, |sum, part| {
            sum + self.wake.time_of(part) + self.run.time_of(part)
        })
    }

    pub fn total_split(&self) -> Split {
        self.wake.add_parts(&self.run)
    }

    /// The same with the culprit, a thread of punctual, counted as the observer.
    pub fn of_observer(mut self) -> Cycle {
        use crate::CauseKind::{NonPreemptible, Observer, Preempted, Runqueue, Throttled};
        let Some(CycleCulprit { time, behind, .. }) = self.culprit else { return self };
        let times_and_parts =
            [(behind, [Preempted, Runqueue]), (time - behind, [NonPreemptible, Throttled])];
        for (time, parts) in times_and_parts {
            let left = self.wake.move_time(&parts, Observer, time);
            self.run.move_time(&parts, Observer, left);
        }
        self
    }

    /// Merges this cycle with a further one of the same thread that began with a wait within it,
    /// without losing any time.
    pub fn followed_by(&self, next: &Cycle) -> Cycle {
        let mut run = self.run;
        // The thread was in the call before the wake-up; its return is in the parts of `next`.
        let entered = next.entered.max(self.again);
        run.add(next.wait_is, next.release - entered);
        // Cycles in between were lost.
        run.add(crate::CauseKind::Unknown, entered - self.again);
        // If the release precedes the wait, the time before already belongs to this cycle.
        let early = entered - next.release;
        let mut wake = next.wake;
        wake.subtract_time(crate::CauseKind::Overrun, early);
        let is_of_file = self.call.argument < FILES_END;
        let is_elsewhere = self.call.is_same_call(&next.call)
            && (!is_of_file || self.call.argument == next.call.argument);
        // The wait between the two is one of its waits.
        let between = (next.wait_is != crate::CauseKind::Lock).then(|| AwaitedWaker {
            by: next.by,
            tid: next.waker,
            name: next.waker_name,
            time: Nanos((next.woken - next.entered).ns().max(0)),
        });
        Cycle {
            cpu: next.cpu,
            again: next.again,
            reclaimed: self.reclaimed + next.reclaimed,
            faulted: self.faulted + next.faulted,
            blocks: self.blocks.saturating_add(next.blocks).saturating_add(1),
            elsewhere: self
                .elsewhere
                .saturating_add(next.elsewhere)
                .saturating_add(u32::from(is_elsewhere)),
            blocked: self.blocked + next.blocked + Nanos((next.woken - next.entered).ns().max(0)),
            migrations: self.migrations.saturating_add(next.migrations),
            syscalls: self.syscalls.saturating_add(next.syscalls),
            faults: self.faults.saturating_add(next.faults),
            calls: self.calls.union(next.calls),
            written: self.written.union(next.written),
            slept_without_pi: self.slept_without_pi || next.slept_without_pi,
            longest_call: longer_call(self.longest_call, next.longest_call),
            culprit: match (self.culprit, next.culprit) {
                (Some(a), Some(b)) if a.tid == b.tid => {
                    Some(CycleCulprit { time: a.time + b.time, behind: a.behind + b.behind, ..a })
                }
                (Some(a), Some(b)) if a.time < b.time => Some(b),
                (a, b) => a.or(b),
            },
            holder: match (self.holder, next.holder) {
                (Some(a), Some(b)) if (a.tid, a.evidence) == (b.tid, b.evidence) => {
                    let waits = a.waits.saturating_add(b.waits);
                    Some(LockHolder { time: a.time + b.time, waits, ..a })
                }
                (Some(a), Some(b)) if a.time < b.time => Some(b),
                (a, b) => a.or(b),
            },
            awaited: [self.awaited, between, next.awaited]
                .into_iter()
                .flatten()
                .max_by_key(|one| one.time),
            hidden: self.hidden.saturating_add(next.hidden),
            likely: [self.likely, next.likely].into_iter().flatten().max_by_key(|one| one.time),
            run: run.add_parts(&wake).add_parts(&next.run),
            ..*self
        }
    }
}

/// An interval in which a polling thread lost its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    pub tid: u32,
    /// The CPU on which it continued.
    pub cpu: u16,
    pub begin: MonotonicNs,
    pub end: MonotonicNs,
    /// The breakdown of the gap.
    pub split: Split,
    /// The task that had the CPU longest.
    pub culprit: Option<CycleCulprit>,
}

impl Gap {
    /// The same with the culprit, a thread of punctual, counted as the observer.
    pub fn of_observer(mut self) -> Gap {
        use crate::CauseKind::{NonPreemptible, Observer, Preempted, Runqueue, Throttled};
        let wait_parts = [Preempted, Runqueue, NonPreemptible, Throttled];
        let time = self.culprit.map_or(Nanos::ZERO, |culprit| culprit.time);
        self.split.move_time(&wait_parts, Observer, time);
        self
    }
}

/// A task that waited for the CPU while a thread had it, and got it next. Waits below 10 µs, and
/// those of tasks further back in the queue, are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedTask {
    /// The thread that had the CPU.
    pub thread: u32,
    pub tid: u32,
    /// The name in the kernel (`comm`), untrusted.
    pub name: TaskComm,
    pub times: u64,
    pub total: Nanos,
    pub longest: Nanos,
}

/// The time without a wait after which a thread counts as polling.
pub const POLLS_AFTER: Nanos = Nanos::from_millis(100);

/// The time of a thread in each state, as far as its state changes show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadTimes {
    pub ran: Nanos,
    pub ready: Nanos,
    pub waited: Nanos,
    pub stopped: Nanos,
    /// Cycles whose records found no room, since it began or ran another program.
    pub lost_cycles: u64,
    /// The same of gaps.
    pub lost_gaps: u64,
}

impl ThreadTimes {
    pub fn total_time(&self) -> Nanos {
        self.ran + self.ready + self.waited + self.stopped
    }

    /// Whether it mostly ran, or was kept from running.
    pub fn is_polling(&self) -> bool {
        self.total_time() >= Nanos::SECOND && self.waited * 2 < self.total_time()
    }
}

/// The longer of two system calls.
fn longer_call(a: Option<(u32, Nanos)>, b: Option<(u32, Nanos)>) -> Option<(u32, Nanos)> {
    let time = |call: Option<(u32, Nanos)>| call.map_or(Nanos::ZERO, |(_, time)| time);
    if time(b) > time(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_outside_of_the_container_has_a_name_but_no_id() {
        let name = TaskComm(*b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!((id_here(7), id_here(7 | OUTSIDE)), (Some(7), None));
        assert_eq!(task_label(name, 7), "hog-7");
        assert_eq!(task_label(name, 7 | OUTSIDE), "hog (outside of the container)");
        let nobody = task_label(TaskComm::default(), 7 | OUTSIDE);
        assert_eq!(nobody, "a task outside of the container");
    }
}
