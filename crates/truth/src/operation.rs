//! Operations of a measured program, one per cycle.

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    /// A futex with FUTEX_WAIT, as in C.
    Plain,
    /// A futex with priority inheritance.
    Inheriting,
    Std,
}

/// The operation of each cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A lock that the culprit holds.
    Lock(LockKind, Holder),
    /// A lock of a thread that waits for a lock of the culprit.
    Chain(LockKind),
    /// A lock of a thread that the culprit preempts.
    Inversion,
    /// A lock of the kernel that the culprit holds.
    KernelLock,
    /// Data that the culprit writes into a pipe.
    Pipe,
    /// Data that the culprit sends through a socket.
    Socket,
    /// A signal of the culprit, which ends its sleep.
    Signal,
    /// The kernel module, called with this word.
    Device(&'static str),
    BlockRead,
    /// Data reaching a disk.
    Fsync,
    /// A page of a file on a disk.
    MajorFault,
    /// New pages, one after the other.
    MinorFaults,
    /// No wait: it runs itself.
    Spin,
    Sleep,
    /// The CPU, of which a task of higher priority takes a part while it runs.
    Preempted,
    /// The quota of its control group.
    Quota,
    /// The program's own budget, of SCHED_DEADLINE.
    Budget,
}

/// The holder's activity while it holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The holder runs, with a lower priority than the waiter.
    Runs,
    Sleeps,
}

impl Operation {
    /// Whether the operation changes settings of the system, or needs the kernel module.
    pub fn needs_guest(self) -> bool {
        let is_guest_only =
            matches!(self, Operation::Quota | Operation::Budget | Operation::KernelLock);
        is_guest_only || self.needs_disk() || matches!(self, Operation::Device(_))
    }

    /// Whether the operation needs a disk of a known speed.
    pub fn needs_disk(self) -> bool {
        matches!(self, Operation::BlockRead | Operation::Fsync | Operation::MajorFault)
    }

    /// Whether the measured thread has no real-time policy of its own, or may fault.
    pub fn may_fault(self) -> bool {
        matches!(self, Operation::MajorFault | Operation::MinorFaults)
    }
}
