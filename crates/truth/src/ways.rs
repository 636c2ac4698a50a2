//! The ways to make delays and waits, each with its true cause.

use super::names::{CULPRIT, HOLDER, PRIORITY};
use super::operation::Operation::{self, *};
use super::operation::{Holder, LockKind};
use punctual_core::Policy;

/// A way to make a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The way's name in the names of cases.
    pub name: &'static str,
    /// The true causes, each with its culprit.
    pub causes: ExpectedCauses,
    /// The policy and priority of the injecting task.
    pub policy: Policy,
    /// See `policy`.
    pub priority: Option<u8>,
    /// The policy of the measured thread.
    pub measured: &'static str,
    /// The steps in order: the words of the kernel module, or of the injector.
    pub steps: &'static [&'static str],
    /// The measured program's own operation, instead.
    pub operation: Option<Operation>,
    /// The shortest length in µs that the kernel can make.
    pub shortest: i64,
}

/// Causes, each with its culprit, in the terms of [`super::score::Expected`].
pub type ExpectedCauses = &'static [(&'static str, &'static str)];

const LOW: Option<u8> = Some(1);
const ABOVE: Option<u8> = Some(PRIORITY + 10);

const PREEMPTED: (&str, &str) = ("preempted", CULPRIT);
const STOPPED: ExpectedCauses = &[("stopped", CULPRIT)];
const QUEUED: (&str, &str) = ("runqueue", CULPRIT);
const IRQS: (&str, &str) = ("timer-irq-delay", CULPRIT);
const PREEMPTION: (&str, &str) = ("non-preemptible", CULPRIT);
/// The names of the module's interrupt and softirq.
const IRQ: (&str, &str) = ("irq", "irq_work");
const SOFTIRQ: (&str, &str) = ("softirq", "TASKLET");
/// The timer interrupt, including the tick.
pub const TICK: (&str, &str) = ("irq", "local_timer");
const THREAD: (&str, &str) = ("preempted", "truth-kthread");
/// The thread of the highest class on each CPU (kernel/stop_machine.c).
const STOPPER: &str = "migration/*";
const WORKER: &str = "kworker/*";
/// The disk that [`super::block`] makes.
const DISK: (&str, &str) = ("io", super::block::NAME);
const THROTTLED: (&str, &str) = ("throttled", "*");
/// Throttling is enforced by the tick: of 4 ms in many kernels.
const TICKS: i64 = 3_000;

const fn task_way(
    name: &'static str,
    causes: ExpectedCauses,
    (policy, priority): (Policy, Option<u8>),
    steps: &'static [&'static str],
) -> Way {
    Way { name, causes, policy, priority, measured: "fifo", steps, operation: None, shortest: 0 }
}

/// Within the kernel, by a task of a lower priority than the measured thread's.
const fn kernel_way(
    name: &'static str,
    causes: ExpectedCauses,
    steps: &'static [&'static str],
) -> Way {
    task_way(name, causes, (Policy::Fifo, LOW), steps)
}

const fn to_time_sharing(way: Way) -> Way {
    Way { measured: "other", ..way }
}

/// A delay in the measured program's own operation.
const fn operation_way(name: &'static str, causes: ExpectedCauses, operation: Operation) -> Way {
    Way { operation: Some(operation), ..task_way(name, causes, (Policy::Fifo, None), &[]) }
}

const fn from(shortest: i64, way: Way) -> Way {
    Way { shortest, ..way }
}

pub const WAYS: &[Way] = &[
    task_way("higher-priority", &[PREEMPTED], (Policy::Fifo, ABOVE), &["spin"]),
    task_way("same-priority", &[QUEUED], (Policy::Fifo, Some(PRIORITY)), &["spin"]),
    task_way("deadline", &[PREEMPTED], (Policy::Deadline, None), &["spin"]),
    // Round robin among equals is another policy of the same class.
    task_way("round-robin", &[QUEUED], (Policy::Rr, Some(PRIORITY)), &["spin"]),
    // A real-time task preempts every task with a time-sharing policy.
    to_time_sharing(kernel_way("above-time-sharing", &[PREEMPTED], &["spin"])),
    // A new thread for each delay, which ends with it.
    task_way("new-thread", &[PREEMPTED], (Policy::Fifo, ABOVE), &["thread"]),
    kernel_way("irqs-disabled", &[IRQS], &["irqs"]),
    kernel_way("preemption-disabled", &[PREEMPTION], &["preempt"]),
    kernel_way("irq", &[IRQ], &["irq"]),
    kernel_way("softirq", &[SOFTIRQ], &["softirq"]),
    kernel_way("irqs-then-preemption", &[IRQS, PREEMPTION], &["irqs", "preempt"]),
    kernel_way("softirq-then-irq", &[SOFTIRQ, IRQ], &["softirq", "irq"]),
    kernel_way("preemption-then-softirq", &[PREEMPTION, SOFTIRQ], &["preempt", "softirq"]),
    kernel_way("irq-then-irqs", &[IRQ, IRQS], &["irq", "irqs"]),
    kernel_way("irq-then-softirq", &[IRQ, SOFTIRQ], &["irq", "softirq"]),
    kernel_way("irqs-then-softirq", &[IRQS, SOFTIRQ], &["irqs", "softirq"]),
    kernel_way("three-in-a-row", &[PREEMPTION, IRQ, IRQS], &["preempt", "irq", "irqs"]),
    kernel_way("timer-softirq", &[("softirq", "TIMER")], &["timer"]),
    kernel_way("rcu-softirq", &[("softirq", "RCU")], &["rcu"]),
    kernel_way("timer-irq", &[TICK], &["hrtimer"]),
    kernel_way("stop-machine", &[("timer-irq-delay", STOPPER)], &["stop"]),
    kernel_way("inside-switch", &[("switch", "")], &["switch"]),
    to_time_sharing(kernel_way("kernel-thread", &[THREAD], &["kthread"])),
    to_time_sharing(kernel_way("workqueue", &[("runqueue", WORKER)], &["work"])),
    // Without full preemption a worker in the kernel is not preempted.
    kernel_way("worker-not-preempted", &[("non-preemptible", WORKER)], &["work"]),
    task_way("task-then-irqs", &[PREEMPTED, IRQS], (Policy::Fifo, ABOVE), &["spin", "irqs"]),
    task_way("task-then-irq", &[PREEMPTED, IRQ], (Policy::Fifo, ABOVE), &["spin", "irq"]),
    task_way("equal-then-irqs", &[QUEUED, IRQS], (Policy::Fifo, Some(PRIORITY)), &["spin", "irqs"]),
    task_way("stop-signal", STOPPED, (Policy::Fifo, ABOVE), &["sigstop"]),
    task_way("freezer", STOPPED, (Policy::Fifo, ABOVE), &["freeze"]),
    from(TICKS, task_way("rt-throttling", &[THROTTLED], (Policy::Fifo, Some(50)), &["hog"])),
    operation_way("lock", &[("lock", CULPRIT)], Lock(LockKind::Plain, Holder::Runs)),
    operation_way(
        "lock-holder-asleep",
        &[("lock", CULPRIT)],
        Lock(LockKind::Plain, Holder::Sleeps),
    ),
    operation_way("lock-of-rust", &[("lock", CULPRIT)], Lock(LockKind::Std, Holder::Runs)),
    operation_way(
        "lock-inheriting",
        &[("lock", CULPRIT)],
        Lock(LockKind::Inheriting, Holder::Runs),
    ),
    operation_way("lock-chain", &[("lock", HOLDER)], Chain(LockKind::Plain)),
    operation_way("lock-chain-inheriting", &[("lock", HOLDER)], Chain(LockKind::Inheriting)),
    operation_way("inversion", &[("priority-inversion", CULPRIT)], Inversion),
    operation_way("kernel-lock", &[("lock", CULPRIT)], KernelLock),
    operation_way("pipe", &[("waiting", CULPRIT)], Pipe),
    operation_way("socket", &[("waiting", CULPRIT)], Socket),
    operation_way("signal", &[("waiting", CULPRIT)], Signal),
    operation_way("work-wait", &[("waiting", WORKER)], Device("work")),
    operation_way("block-read", &[DISK], BlockRead),
    operation_way("fsync", &[DISK], Fsync),
    // The fault's time is the disk's as well; shorter ones end before the kernel has requested all
    // pages.
    from(TICKS, operation_way("major-fault", &[("page-fault", ""), DISK], MajorFault)),
    operation_way("minor-faults", &[("page-fault", "")], MinorFaults),
    // Without an event meanwhile the mode is unknown.
    operation_way("own-user", &[("self", "user mode"), ("self", "")], Spin),
    operation_way("own-syscall", &[("self", "write")], Device("spin")),
    operation_way("own-sleep", &[("waiting", "")], Sleep),
    operation_way("preempted-while-running", &[PREEMPTED], Preempted),
    from(TICKS, operation_way("cpu-quota", &[THROTTLED], Quota)),
    from(TICKS, operation_way("deadline-budget", &[THROTTLED], Budget)),
];
