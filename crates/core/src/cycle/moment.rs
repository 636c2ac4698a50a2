//! Where a thread was at an instant of a cycle.

use super::TaskName;
use crate::{MainPart, MonotonicNs, Nanos};

/// Where a thread was at an instant of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    pub tid: u32,
    pub begin: MonotonicNs,
    /// Until when it did not run.
    pub end: MonotonicNs,
    pub what: MomentKind,
    /// The number of the system call that it was in, if it is known to have been in one.
    pub call: Option<u32>,
    /// The number of the stack of its functions in user mode.
    pub stack: Option<u32>,
}

/// What happened to a thread at an instant of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MomentKind {
    /// Another task got its CPU.
    Preempted {
        by: u32,
        /// As the kernel has it (`comm`), untrusted.
        name: TaskName,
    },
    Asleep {
        part: MainPart,
        time: Nanos,
    },
    /// It ran, and a timer interrupted it.
    Ran,
    /// From then on it runs another program.
    Exec,
    /// It ended: its id may be another thread's from then on.
    Exit {
        /// Its name then, untrusted.
        name: TaskName,
        /// As of wait(2); `None` where that is not known.
        status: Option<u32>,
    },
}

impl Moment {
    /// How long it did not run for this.
    pub fn time(&self) -> Nanos {
        match self.what {
            MomentKind::Preempted { .. } => self.end - self.begin,
            MomentKind::Asleep { time, .. } => time,
            MomentKind::Ran | MomentKind::Exec | MomentKind::Exit { .. } => Nanos::ZERO,
        }
    }
}
