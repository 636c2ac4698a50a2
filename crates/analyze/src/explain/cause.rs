//! What takes the time of a sample: the causes, with the tasks and modes that they concern.

use crate::occupancy::interrupt_name;
use crate::threads::Interrupt;
use punctual_core::event::Group;
use punctual_core::{CauseKind, Names, Tid};

/// The events that attribution reads. Of what is not recorded nothing is claimed: its time goes to
/// a wider cause, or is unknown.
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

/// Where a task was while it had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// In the kernel, in this system call.
    Syscall(u32),
    /// In a page fault.
    Fault,
    /// In user mode, as far as recorded: it was in no system call and in no page fault.
    User,
    Unknown,
}

/// The budget that was used up.
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

/// What took the time of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The hypervisor or the firmware had taken the CPUs: no event on any CPU, and timers of
    /// several were overdue.
    Steal,
    /// The timer interrupt was delayed although a task ran: interrupts were disabled or the CPU
    /// stalled, or, where that task was in user mode, the timer hardware or the hypervisor delayed
    /// it.
    TimerIrqDelay {
        running: Tid,
        mode: Mode,
    },
    /// The same, with interrupts enabled.
    CpuStall {
        running: Tid,
        mode: Mode,
    },
    /// An interrupt or a softirq was served on the thread's CPU.
    Interrupt(Interrupt),
    /// The CPU was idle and had to wake up.
    IdleExit {
        /// From which state, where that is known.
        state: Option<u32>,
    },
    /// It was decided to wake the thread, and it was not yet on a runqueue.
    Wakeup {
        /// If another CPU needed an IPI: the task that ran there.
        running: Option<Tid>,
    },
    /// It was ready with the higher priority, and the running task was not preempted: preemption
    /// was disabled, or the kernel has none there.
    NonPreemptible {
        running: Tid,
        mode: Mode,
    },
    /// It was ready, and a task of higher priority ran.
    Preempted {
        by: Tid,
        /// Its priority, as the kernel's `prio`.
        prio: i16,
    },
    /// It was ready, and the scheduler chose a task of lower priority, or none.
    Throttled {
        /// The task that was chosen instead.
        running: Tid,
        /// Which budget was used up.
        budget: Budget,
    },
    /// It was ready, and a task of the same rank, or of unknown rank, ran.
    Runqueue {
        behind: Tid,
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
        /// Whether the lock is one inside the kernel.
        kernel: bool,
    },
    /// It waited for a lock whose holder could not run, because a task of lower priority than the
    /// thread ran: priority inversion.
    Inversion {
        holder: Tid,
        by: Tid,
    },
    /// It waited for a block device.
    Io {
        device: u32,
    },
    /// It was served a page fault, or waited for a page.
    PageFault,
    Reclaim,
    /// It waited for something that was not recorded.
    Waiting {
        /// The task that woke it; `None`: an interrupt, or unknown.
        woken_by: Option<Tid>,
    },
    /// It slept for a time of its own choice.
    OwnSleep {
        /// The system call that it slept in.
        call: u32,
    },
    /// What it waited for did not come in time.
    Timeout {
        /// The system call that returned so.
        call: u32,
    },
    /// Its timer was due, and the kernel might still let it wait.
    TimerSlack,
    /// It was stopped: by a signal, a debugger or the freezer.
    Stopped {
        /// The task that stopped it; `None`: not known.
        by: Option<Tid>,
        /// The task that let it go on; `None`: not known.
        continued_by: Option<Tid>,
    },
    OwnExecution {
        mode: Mode,
    },
    /// A thread of punctual itself ran that is none of what was measured.
    Observer {
        task: Tid,
    },
    /// No event proves a cause.
    Unknown,
}

impl Cause {
    /// The kind of cause, which has its id, words and advice.
    pub fn kind(self) -> CauseKind {
        match self {
            Cause::Steal => CauseKind::Steal,
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

    /// The id in JSON, and as a key.
    pub fn id(self) -> &'static str {
        self.kind().id()
    }

    /// The task that is responsible for it, where one is: the one that ran, held or woke.
    pub fn task(self) -> Option<Tid> {
        match self {
            Cause::TimerIrqDelay { running, .. }
            | Cause::CpuStall { running, .. }
            | Cause::NonPreemptible { running, .. }
            | Cause::Throttled { running, .. } => Some(running),
            Cause::Preempted { by, .. } | Cause::Migration { by } | Cause::Inversion { by, .. } => {
                Some(by)
            }
            Cause::Runqueue { behind } => Some(behind),
            Cause::Observer { task } => Some(task),
            Cause::Lock { holder, .. } => holder,
            Cause::Waiting { woken_by } => woken_by,
            Cause::Stopped { by, continued_by } => by.or(continued_by),
            Cause::Wakeup { running } => running,
            _ => None,
        }
    }

    /// Where the responsible task was, or the thread itself.
    pub fn mode(self) -> Option<Mode> {
        match self {
            Cause::TimerIrqDelay { mode, .. }
            | Cause::CpuStall { mode, .. }
            | Cause::NonPreemptible { mode, .. }
            | Cause::OwnExecution { mode } => Some(mode),
            _ => None,
        }
    }

    /// Who or what is responsible, by name: a task, an interrupt, a device, an idle state, a system
    /// call of the thread itself. `None` if the cause needs no name. Names are untrusted:
    /// escape them for output.
    pub fn who(self, names: &Names) -> Option<String> {
        match self {
            Cause::Interrupt(what) => Some(interrupt_name(what, names).1),
            Cause::IdleExit { state: Some(state) } => Some(
                names.idle_states.get(&state).cloned().unwrap_or_else(|| format!("state {state}")),
            ),
            Cause::Io { device } => Some(device_name(device, names)),
            Cause::OwnExecution { mode: Mode::Syscall(number) }
            | Cause::OwnSleep { call: number }
            | Cause::Timeout { call: number } => Some(names.syscall(number)),
            Cause::OwnExecution { mode: Mode::User } => Some("user mode".to_owned()),
            cause => cause.task().map(|tid| names.task(tid)),
        }
    }

    /// Who or what is to blame for it over many samples: not the task that happened to run while
    /// the thread was throttled, woken, or waited for a timer that nothing in the kernel delayed;
    /// of a priority inversion the holder of the lock. Otherwise as [`Cause::who`].
    pub fn culprit(self, names: &Names) -> Option<String> {
        match self {
            Cause::Throttled { .. }
            | Cause::Wakeup { .. }
            | Cause::TimerIrqDelay { mode: Mode::User, .. } => None,
            Cause::Inversion { holder, .. } => Some(names.task(holder)),
            cause => cause.who(names),
        }
    }
}

/// `vda`, or the numbers of a device without a name (include/linux/kdev_t.h: MINORBITS is 20).
pub fn device_name(device: u32, names: &Names) -> String {
    let numbers = || format!("device {}:{}", device >> 20, device & 0xf_ffff);
    names.devices.get(&device).cloned().unwrap_or_else(numbers)
}
