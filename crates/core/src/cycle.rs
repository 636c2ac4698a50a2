//! A cycle of a thread of some program, as the kernel's events show it.

mod calls;
mod kind;
mod moment;
mod series_kind;

pub use calls::{
    CallClass, CallSet, DescriptorSet, FILE_CALLS, MARKED, POLLS, WAITING_CALLS, has_timed_out,
    is_interrupted,
};
pub use kind::CycleKind;
pub use moment::{Moment, MomentKind};
pub use series_kind::SeriesKind;

use crate::{MonotonicNs, Nanos, Split};

/// What ended the wait that a cycle begins with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    /// The wake-up was seen, and not what made it.
    Unknown,
    /// No event shows the wake-up: when it was is not known.
    Unseen,
}

/// A waiting system call as far as it distinguishes cycles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WaitingCall {
    /// The system call's, on this architecture.
    pub number: u32,
    /// futex(2): the command, and 0x80 where the waited-for value is that of a lock in
    /// FUTEX_WAIT_BITSET; clock_nanosleep(2): the flags; else 0.
    pub operation: u16,
    /// Its first argument: a file descriptor, an address, a clock.
    pub argument: u64,
}

impl WaitingCall {
    /// The number of a call that was not recorded: the operation is then by what the wait was
    /// ended, and the argument the timer that did, where the thread had not started it for this
    /// wait.
    pub const NOT_RECORDED: u32 = u32::MAX;

    /// A wait in a call that was not recorded, before its end is known.
    pub const UNRECORDED: WaitingCall =
        WaitingCall { number: WaitingCall::NOT_RECORDED, operation: 0, argument: 0 };
}

/// The name of a task, of at most 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TaskName(pub [u8; 16]);

impl std::fmt::Display for TaskName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

/// A bit of the ids of tasks outside of the PID namespace that a program is measured in: they have
/// no id there, and the rest of it is the one of the initial namespace.
pub const OUTSIDE: u32 = 1 << 31;

/// The id that a task has here; `None`: it is outside of this PID namespace.
pub fn id_here(tid: u32) -> Option<u32> {
    (tid & OUTSIDE == 0).then_some(tid)
}

/// `name-4711`; of a task outside of this PID namespace, whose id is nobody's here, its name.
pub fn task_label(name: TaskName, tid: u32) -> String {
    match id_here(tid) {
        Some(tid) => format!("{name}-{tid}"),
        None if name == TaskName::default() => "a task outside of the container".to_owned(),
        None => format!("{name} (outside of the container)"),
    }
}

/// Another task, and how long a cycle waited for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Culprit {
    pub tid: u32,
    /// As the kernel has it (`comm`), untrusted.
    pub name: TaskName,
    /// How long it ran while the thread was ready.
    pub time: Nanos,
    /// Of that, while its priority was the same or higher.
    pub behind: Nanos,
}

/// How it is known who held a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockEvidence {
    /// The futex holds the id of its owner, for priority inheritance.
    PiFutex,
    /// So does the mutex of glibc that the futex is part of: it was read when the thread went to
    /// sleep, and is a thread of the same process.
    MutexOwner,
    /// The thread ended the wait: it released the lock last.
    Waker,
}

impl LockEvidence {
    pub fn words(self) -> &'static str {
        match self {
            LockEvidence::PiFutex => "owner in the PI futex",
            LockEvidence::MutexOwner => "owner in the mutex",
            LockEvidence::Waker => "last released by",
        }
    }
}

/// Another thread that held locks which a cycle waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockHolder {
    pub tid: u32,
    /// Its name; empty where it is not known.
    pub name: TaskName,
    pub evidence: LockEvidence,
    /// Its id is that in the PID namespace of the waiting thread.
    pub in_namespace: bool,
    /// How often the cycle waited for it.
    pub waits: u32,
    /// How long all of these took together.
    pub time: Nanos,
}

/// Who ended the longest other wait within a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    pub by: WokenBy,
    /// The thread that ran then.
    pub tid: u32,
    pub name: TaskName,
    /// How long the waits took that it ended.
    pub time: Nanos,
}

/// From a release to the next wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// The waiting call that it begins with.
    pub call: WaitingCall,
    pub by: WokenBy,
    /// The kernel's address of the timer that did; 0: none.
    pub timer: u64,
    /// The thread that ran then, or was interrupted.
    pub waker: u32,
    /// As the kernel has it (`comm`), untrusted.
    pub waker_name: TaskName,
    /// What its wait is where it is none of the cycle's.
    pub wait_is: crate::MainPart,
    /// How long it ran to reclaim memory.
    pub reclaimed: Nanos,
    /// How long it ran in page faults.
    pub faulted: Nanos,
    pub blocks: u32,
    pub blocked: Nanos,
    pub migrations: u32,
    pub syscalls: u32,
    pub faults: u32,
    /// Which of the marked system calls it made.
    pub calls: CallSet,
    pub written: DescriptorSet,
    /// It slept in FUTEX_WAIT: for a lock that inherits no priority.
    pub slept_without_pi: bool,
    /// The number of the system call that took the longest, and its time.
    pub longest_call: Option<(u32, Nanos)>,
    /// The task that kept it from a CPU for the longest.
    pub culprit: Option<Culprit>,
    /// The thread for whose locks it waited the longest.
    pub holder: Option<LockHolder>,
    /// Who ended the longest of its waits that were for no lock.
    pub awaited: Option<Awaited>,
    /// Switches to the thread that were not seen: the kernel may show none of an idle CPU.
    pub hidden: u32,
    /// The task that was seen last on its CPU before the longest time of which no event shows
    /// anything: likely it ran. Its name may not be known.
    pub likely: Option<Culprit>,
    /// The time from `release` to `returned`.
    pub wake: Split,
    /// The time from `returned` to `again`.
    pub run: Split,
}

/// The wait of a thread, or the cycle after it, at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenCycle {
    /// The waiting call, and when it was entered.
    pub call: WaitingCall,
    pub entered: MonotonicNs,
    /// Since when the wait is over; `None`: it is not.
    pub release: Option<MonotonicNs>,
    /// When the call returned.
    pub returned: Option<MonotonicNs>,
    /// Since when it is in such a call again, and not asleep: the cycle may have ended there.
    pub until: Option<MonotonicNs>,
}

impl Cycle {
    /// Whether it is known when it was due. Where it is not, `release` is the return of its wait.
    pub fn is_release_known(&self) -> bool {
        self.by != WokenBy::Unseen
    }

    /// From the release to the return of the waiting call.
    pub fn wakeup_latency(&self) -> Nanos {
        self.returned - self.release
    }

    /// From the release to the next wait.
    pub fn response_time(&self) -> Nanos {
        self.again - self.release
    }

    /// How long the thread ran within it.
    pub fn execution_time(&self) -> Nanos {
        let own = [crate::MainPart::OwnExecution, crate::MainPart::SystemCall];
        own.into_iter().fold(self.reclaimed + self.faulted, |sum, part| {
            sum + self.wake.of(part) + self.run.of(part)
        })
    }

    pub fn split(&self) -> Split {
        self.wake.plus(&self.run)
    }

    /// The same with what its culprit had as punctual's own: the culprit is a thread of it.
    pub fn of_observer(mut self) -> Cycle {
        use crate::MainPart::{NonPreemptible, Observer, Preempted, Runqueue, Throttled};
        let Some(Culprit { time, behind, .. }) = self.culprit else { return self };
        let both = [(behind, [Preempted, Runqueue]), (time - behind, [NonPreemptible, Throttled])];
        for (time, parts) in both {
            let left = self.wake.give(&parts, Observer, time);
            self.run.give(&parts, Observer, left);
        }
        self
    }

    /// The same thread waited once more within the cycle, and went on: both as one cycle, no ns of
    /// which is lost.
    pub fn followed_by(&self, next: &Cycle) -> Cycle {
        let mut run = self.run;
        // In the call before it was woken; what it then took to come back is in the parts of
        // `next`.
        let entered = next.entered.max(self.again);
        run.add(next.wait_is, next.release - entered);
        // Where cycles between were lost.
        run.add(crate::MainPart::Unknown, entered - self.again);
        // Where the release came before the wait was entered the time before belongs to this cycle
        // already.
        let early = entered - next.release;
        let mut wake = next.wake;
        wake.take(crate::MainPart::Overrun, early);
        // The wait between the two is one of them.
        let between = (next.wait_is != crate::MainPart::Lock).then(|| Awaited {
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
            blocked: self.blocked + next.blocked + Nanos((next.woken - next.entered).ns().max(0)),
            migrations: self.migrations.saturating_add(next.migrations),
            syscalls: self.syscalls.saturating_add(next.syscalls),
            faults: self.faults.saturating_add(next.faults),
            calls: self.calls.union(next.calls),
            written: self.written.union(next.written),
            slept_without_pi: self.slept_without_pi || next.slept_without_pi,
            longest_call: longer(self.longest_call, next.longest_call),
            culprit: match (self.culprit, next.culprit) {
                (Some(a), Some(b)) if a.tid == b.tid => {
                    Some(Culprit { time: a.time + b.time, behind: a.behind + b.behind, ..a })
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
            run: run.plus(&wake).plus(&next.run),
            ..*self
        }
    }
}

/// The CPU was taken from a thread that polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    pub tid: u32,
    /// Where it ran on.
    pub cpu: u16,
    pub begin: MonotonicNs,
    pub end: MonotonicNs,
    /// What its time went to.
    pub split: Split,
    /// The task that had the CPU for the longest.
    pub culprit: Option<Culprit>,
}

impl Gap {
    /// The same with what its culprit had as punctual's own: the culprit is a thread of it.
    pub fn of_observer(mut self) -> Gap {
        use crate::MainPart::{NonPreemptible, Observer, Preempted, Runqueue, Throttled};
        let others = [Preempted, Runqueue, NonPreemptible, Throttled];
        let time = self.culprit.map_or(Nanos::ZERO, |culprit| culprit.time);
        self.split.give(&others, Observer, time);
        self
    }
}

/// After its last wait a thread that has not waited for so long polls.
pub const POLLS_AFTER: Nanos = Nanos::from_millis(100);

/// How long a thread was in each state, as far as its changes of state show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadTimes {
    pub ran: Nanos,
    pub ready: Nanos,
    pub waited: Nanos,
    pub stopped: Nanos,
}

impl ThreadTimes {
    pub fn sum(&self) -> Nanos {
        self.ran + self.ready + self.waited + self.stopped
    }

    /// Whether it did little else than run, or was kept from it.
    pub fn polls(&self) -> bool {
        self.sum() >= Nanos::SECOND && self.waited * 2 < self.sum()
    }
}

/// The longer of two system calls.
fn longer(a: Option<(u32, Nanos)>, b: Option<(u32, Nanos)>) -> Option<(u32, Nanos)> {
    let time = |call: Option<(u32, Nanos)>| call.map_or(Nanos::ZERO, |(_, time)| time);
    if time(b) > time(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_outside_has_a_name_and_no_id() {
        let name = TaskName(*b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!((id_here(7), id_here(7 | OUTSIDE)), (Some(7), None));
        assert_eq!(task_label(name, 7), "hog-7");
        assert_eq!(task_label(name, 7 | OUTSIDE), "hog (outside of the container)");
        let nobody = task_label(TaskName::default(), 7 | OUTSIDE);
        assert_eq!(nobody, "a task outside of the container");
    }
}
