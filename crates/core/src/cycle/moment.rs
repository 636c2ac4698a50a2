//! The state of a thread at an instant of a cycle.

use super::TaskComm;
use crate::{CauseKind, MonotonicNs, Nanos};

/// The state of a thread at an instant of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    pub tid: u32,
    pub begin: MonotonicNs,
    /// The end of the time it did not run.
    pub end: MonotonicNs,
    pub what: MomentKind,
    /// The number of its current system call, if known.
    pub call: Option<u32>,
    /// The number of its user stack.
    pub stack: Option<u32>,
    /// The task that ended its sleep, if known.
    pub waker: Option<MomentWaker>,
    /// The thread that held the lock for which it slept, if it is watched.
    pub holder: Option<MomentHolder>,
}

/// The holder of a lock while another thread slept for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MomentHolder {
    pub tid: u32,
    /// `None`: it ran, or that is unknown.
    pub did: Option<HolderDeed>,
    /// The number of its system call then.
    pub call: Option<u32>,
    /// The time of the sleep during which it had no CPU.
    pub off_cpu: Nanos,
    /// The number of its user stack then.
    pub stack: Option<u32>,
}

/// The first action of a holder while another thread slept for its lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HolderDeed {
    Called,
    Preempted,
    Asleep,
}

/// The task that ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MomentWaker {
    pub tid: u32,
    /// Its name, untrusted.
    pub name: TaskComm,
    /// The number of its user stack at that instant.
    pub stack: Option<u32>,
}

/// The event of a thread at an instant of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MomentKind {
    /// Another task got its CPU.
    Preempted {
        by: u32,
        /// The name in the kernel (`comm`), untrusted.
        name: TaskComm,
    },
    Asleep {
        part: CauseKind,
        time: Nanos,
    },
    /// It ran, and a timer interrupted it.
    Ran,
    /// It touched a page that was not mapped.
    Fault,
    /// It made a [marked](super::MARKED) system call.
    Called,
    /// From then on it executes another program.
    Exec,
    /// It ended: another thread may reuse its id.
    Exit {
        /// Its name at that time, untrusted.
        name: TaskComm,
        /// As of wait(2); `None` if unknown.
        status: Option<u32>,
    },
}

impl Moment {
    /// A moment of which nothing else is known.
    pub fn new(tid: u32, begin: MonotonicNs, what: MomentKind) -> Moment {
        Moment { tid, begin, end: begin, what, call: None, stack: None, waker: None, holder: None }
    }

    /// The time that it did not run for this reason.
    pub fn time_off_cpu(&self) -> Nanos {
        match self.what {
            MomentKind::Preempted { .. } => self.end - self.begin,
            MomentKind::Asleep { time, .. } => time,
            MomentKind::Ran
            | MomentKind::Fault
            | MomentKind::Called
            | MomentKind::Exec
            | MomentKind::Exit { .. } => Nanos::ZERO,
        }
    }
}
