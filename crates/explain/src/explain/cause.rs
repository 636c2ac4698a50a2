//! The causes of a sample's latency, with the tasks and modes concerned.

use crate::occupancy::interrupt_name;
use crate::threads::Interrupt;
use punctual_core::event::Group;
use punctual_core::{CauseKind, Names, Tid};

/// The events that attribution reads. Without a group, the time goes to a wider cause or is
/// unknown.
pub const GROUPS: &[Group] = &[
    Group::Sched,
    Group::Irq,
    Group::Vectors,
    Group::Softirq,
    Group::Idle,
    Group::Syscall,
    Group::Futex,
    Group::Lock,
    Group::Fault,
    Group::Page,
    Group::Block,
    Group::Jbd2,
    Group::Hrtimer,
];

/// The mode of a task while it had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CpuMode {
    /// In the kernel, in this system call.
    Syscall(u32),
    /// In a page fault.
    Fault,
    /// In user mode, as far as recorded: it was in no system call and in no page fault.
    User,
    Unknown,
}

/// The exhausted budget.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Budget {
    /// That of real-time tasks: throttling, the fair server that keeps time for others, or the
    /// real-time budget of a control group.
    RealTime,
    /// That of a SCHED_DEADLINE task.
    Deadline,
    /// That of a control group (cpu.max).
    Group,
}

/// The cause of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The hypervisor or the firmware had taken the CPUs: no event on any CPU, and timers of
    /// several were overdue.
    Steal,
    /// The CPU stopped while the hwlat tracer polled it.
    Hardware,
    /// The timer interrupt was delayed although a task ran: interrupts were disabled or the CPU
    /// stalled, or, with the task in user mode, the timer hardware or the hypervisor delayed it.
    TimerIrqDelay {
        running: Tid,
        mode: CpuMode,
    },
    /// The same, with interrupts enabled.
    CpuStall {
        running: Tid,
        mode: CpuMode,
    },
    /// An interrupt or a softirq was served on the thread's CPU.
    Interrupt(Interrupt),
    /// The CPU was idle and had to wake up.
    IdleExit {
        /// The idle state, if known.
        state: Option<u32>,
    },
    /// The wake-up began, and the thread was not yet enqueued.
    Wakeup {
        /// The task on the other CPU, if that needed an IPI.
        running: Option<Tid>,
    },
    /// It was ready with the higher priority, and the running task was not preempted: preemption
    /// was disabled, or the kernel does not preempt there.
    NonPreemptible {
        running: Tid,
        mode: CpuMode,
    },
    /// It was ready, and a task of higher priority ran.
    Preempted {
        by: Tid,
        /// Its priority, as the kernel's `prio`.
        prio: i16,
    },
    /// It was ready, and the scheduler selected a task of lower priority, or none.
    Throttled {
        /// The task selected instead.
        running: Tid,
        /// The exhausted budget.
        budget: Budget,
    },
    /// It was ready, and a task of the same rank, or of unknown rank, ran.
    Runqueue {
        behind: Tid,
    },
    /// A task ran whose rank is not known.
    TaskNoise {
        by: Tid,
    },
    /// Its CPU was switching to it.
    Switch,
    /// It was being moved to another CPU.
    Migration {
        /// The task that moved it.
        by: Tid,
    },
    /// It waited for a lock.
    Lock {
        /// The holder: the task that released it, or inherited the priority.
        holder: Option<Tid>,
        /// Whether the lock is inside the kernel.
        kernel: bool,
    },
    /// It waited for a lock whose holder could not run, as a task of lower priority than the thread
    /// ran: priority inversion.
    Inversion {
        holder: Tid,
        by: Tid,
    },
    /// It waited for a block device.
    Io {
        device: u32,
    },
    /// It handled a page fault, or waited for a page.
    PageFault,
    Reclaim,
    /// It waited for an event that was not recorded.
    Waiting {
        /// The task that woke it; `None`: an interrupt, or unknown.
        woken_by: Option<Tid>,
    },
    /// It slept for a time of its own choice.
    OwnSleep {
        /// The system call that it slept in.
        call: u32,
    },
    /// The awaited event did not come in time.
    Timeout {
        /// The system call that timed out.
        call: u32,
    },
    /// Its timer was due, but within the slack the kernel may defer it.
    TimerSlack,
    /// It was stopped: by a signal, a debugger or the freezer.
    Stopped {
        /// The task that stopped it; `None`: unknown.
        by: Option<Tid>,
        /// The task that continued it; `None`: unknown.
        continued_by: Option<Tid>,
    },
    OwnExecution {
        mode: CpuMode,
    },
    /// A thread of punctual itself ran that was not part of the measurement.
    Observer {
        task: Tid,
    },
    /// No event proves a cause.
    Unknown,
}

impl Cause {
    /// The kind of cause, with its id, words and advice.
    pub fn kind(self) -> CauseKind {
        match self {
            Cause::Steal => CauseKind::Steal,
            Cause::Hardware => CauseKind::HwLatency,
            Cause::TimerIrqDelay { .. } => CauseKind::TimerIrqDelay,
            Cause::CpuStall { .. } => CauseKind::CpuStall,
            Cause::Interrupt(Interrupt::Hard(_) | Interrupt::Vector(_)) => CauseKind::Irq,
            Cause::Interrupt(Interrupt::Soft(_)) => CauseKind::Softirq,
            Cause::IdleExit { .. } => CauseKind::IdleExit,
            Cause::Wakeup { .. } => CauseKind::Wakeup,
            Cause::NonPreemptible { .. } => CauseKind::NonPreemptible,
            Cause::Preempted { .. } => CauseKind::Preempted,
            Cause::Throttled { .. } => CauseKind::Throttled,
            Cause::Runqueue { .. } => CauseKind::Runqueue,
            Cause::TaskNoise { .. } => CauseKind::TaskNoise,
            Cause::Switch => CauseKind::Switch,
            Cause::Migration { .. } => CauseKind::Migration,
            Cause::Lock { .. } => CauseKind::Lock,
            Cause::Inversion { .. } => CauseKind::PriorityInversion,
            Cause::Io { .. } => CauseKind::Io,
            Cause::PageFault => CauseKind::PageFault,
            Cause::Reclaim => CauseKind::Reclaim,
            Cause::Waiting { .. } | Cause::OwnSleep { .. } => CauseKind::Waiting,
            Cause::Timeout { .. } => CauseKind::Timeout,
            Cause::TimerSlack => CauseKind::TimerSlack,
            Cause::Stopped { .. } => CauseKind::Stopped,
            Cause::OwnExecution { .. } => CauseKind::OwnExecution,
            Cause::Observer { .. } => CauseKind::Observer,
            Cause::Unknown => CauseKind::Unknown,
        }
    }

    /// The id in JSON and for keys.
    pub fn id(self) -> &'static str {
        self.kind().id()
    }

    /// The responsible task, if any: the one that ran, held or woke.
    pub fn responsible_task(self) -> Option<Tid> {
        match self {
            Cause::TimerIrqDelay { running, .. }
            | Cause::CpuStall { running, .. }
            | Cause::NonPreemptible { running, .. }
            | Cause::Throttled { running, .. } => Some(running),
            Cause::Preempted { by, .. }
            | Cause::TaskNoise { by }
            | Cause::Migration { by }
            | Cause::Inversion { by, .. } => Some(by),
            Cause::Runqueue { behind } => Some(behind),
            Cause::Observer { task } => Some(task),
            Cause::Lock { holder, .. } => holder,
            Cause::Waiting { woken_by } => woken_by,
            Cause::Stopped { by, continued_by } => by.or(continued_by),
            Cause::Wakeup { running } => running,
            _ => None,
        }
    }

    /// The mode of the responsible task, or of the thread itself.
    pub fn cpu_mode(self) -> Option<CpuMode> {
        match self {
            Cause::TimerIrqDelay { mode, .. }
            | Cause::CpuStall { mode, .. }
            | Cause::NonPreemptible { mode, .. }
            | Cause::OwnExecution { mode } => Some(mode),
            _ => None,
        }
    }

    /// The name of the responsible task, interrupt, device, idle state or system call of the thread
    /// itself. `None` if the cause needs no name. Names are untrusted: escape them for output.
    pub fn responsible_name(self, names: &Names) -> Option<String> {
        match self {
            Cause::Interrupt(what) => Some(interrupt_name(what, names).1),
            Cause::IdleExit { state: Some(state) } => Some(
                names.idle_states.get(&state).cloned().unwrap_or_else(|| format!("state {state}")),
            ),
            Cause::Io { device } => Some(device_name(device, names)),
            Cause::OwnExecution { mode: CpuMode::Syscall(number) }
            | Cause::OwnSleep { call: number }
            | Cause::Timeout { call: number } => Some(names.syscall_name(number)),
            Cause::OwnExecution { mode: CpuMode::User } => Some("user mode".to_owned()),
            cause => cause.responsible_task().map(|tid| names.task_name(tid)),
        }
    }

    /// The culprit over many samples. It excludes tasks that only happened to run while the thread
    /// was throttled, woken, or waited for a timer that the kernel did not delay; of a priority
    /// inversion it is the holder of the lock. Otherwise as [`Cause::responsible_name`].
    pub fn culprit_name(self, names: &Names) -> Option<String> {
        match self {
            Cause::Throttled { .. }
            | Cause::Wakeup { .. }
            | Cause::TimerIrqDelay { mode: CpuMode::User, .. } => None,
            Cause::Inversion { holder, .. } => Some(names.task_name(holder)),
            cause => cause.responsible_name(names),
        }
    }
}

/// `vda`, or the numbers of an unnamed device (include/linux/kdev_t.h: MINORBITS is 20).
pub fn device_name(device: u32, names: &Names) -> String {
    let numbers = || format!("device {}:{}", device >> 20, device & 0xf_ffff);
    names.devices.get(&device).cloned().unwrap_or_else(numbers)
}
