//! What a measured program waits for in each of its cycles.

/// How a lock is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// A futex with FUTEX_WAIT, as in C.
    Plain,
    /// A futex with priority inheritance.
    Inheriting,
    Std,
}

/// What it waits for in each of its cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A lock that the culprit holds.
    Lock(LockKind, Holder),
    /// A lock of a thread that waits for one of the culprit's.
    Chain(LockKind),
    /// A lock of a thread that the culprit preempts.
    Inversion,
    /// A lock of the kernel's that the culprit holds.
    KernelLock,
    /// What the culprit writes into a pipe.
    Pipe,
    /// What the culprit sends through a socket.
    Socket,
    /// A signal of the culprit's, which ends its sleep.
    Signal,
    /// The kernel module, asked with this word.
    Device(&'static str),
    BlockRead,
    /// That bytes are on a disk.
    Fsync,
    /// A page of a file that is on a disk.
    MajorFault,
    /// New pages, one after the other.
    MinorFaults,
    /// Nothing: it needs the time itself.
    Spin,
    Sleep,
    /// The CPU, of which a task of higher priority takes some while it runs.
    Preempted,
    /// The quota of its control group.
    Quota,
    /// Its own budget, of SCHED_DEADLINE.
    Budget,
}

/// What the holder of a lock does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// It runs, with a lower priority than who waits for it.
    Runs,
    Sleeps,
}

impl Operation {
    /// Whether it changes settings of the system, or needs the kernel module.
    pub fn needs_guest(self) -> bool {
        let own = matches!(self, Operation::Quota | Operation::Budget | Operation::KernelLock);
        own || self.needs_disk() || matches!(self, Operation::Device(_))
    }

    /// Whether it needs a disk of a known speed.
    pub fn needs_disk(self) -> bool {
        matches!(self, Operation::BlockRead | Operation::Fsync | Operation::MajorFault)
    }

    /// Whether the measured thread has no real-time policy of its own, or may fault.
    pub fn faults(self) -> bool {
        matches!(self, Operation::MajorFault | Operation::MinorFaults)
    }
}
