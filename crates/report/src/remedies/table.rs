//! The remedies that need more evidence than the kind of cause.

use super::DelayFacts;
use punctual_core::CauseKind;
use punctual_explain::explain::{Budget, Cause, CpuMode};

/// A remedy for a cause, if the evidence supports it.
#[cfg_attr(not(test), expect(dead_code, reason = "the reference documentation has id and when"))]
pub(crate) struct Remedy {
    pub id: &'static str,
    pub cause: CauseKind,
    /// The predicate in words.
    pub when: &'static str,
    pub applies: fn(&DelayFacts<'_>) -> bool,
    /// `{who}` is the task, holder or system call.
    pub text: &'static str,
    /// The rules of `punctual check` whose fix is this remedy, the most specific first.
    pub rules: &'static [&'static str],
}

/// SO_RCVTIMEO and SO_SNDTIMEO end these (net/core/sock.c: schedule_timeout() with ticks).
const OF_SOCKETS: &[&str] = &["recv", "send", "accept", "connect"];
/// High-resolution timers end these (fs/select.c, fs/eventpoll.c, kernel/futex, kernel/time).
const WITH_TIMERS: &[&str] =
    &["poll", "ppoll", "select", "pselect", "epoll_", "futex", "rt_sigtimedwait", "mq_timed"];

const INHERIT: &str = "Use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT): {who} then \
                       runs with the priority of the waiting thread. Hold the lock for a shorter \
                       time.";

/// All remedies. The first one of a cause that applies is given.
pub(crate) const REMEDIES: &[Remedy] = &[
    Remedy {
        id: "timer-late-in-user-mode",
        cause: CauseKind::TimerIrqDelay,
        when: "the running task was in user mode",
        applies: |of| matches!(of.cause(), Some(Cause::TimerIrqDelay { mode: CpuMode::User, .. })),
        text: "Interrupts are never disabled in user mode: the timer itself expired late, as it \
               does under a hypervisor.",
        rules: &["hypervisor", "tsc-deadline-timer", "smi-count"],
    },
    Remedy {
        id: "timer-of-own-tick",
        cause: CauseKind::Irq,
        when: "it is the local timer's vector",
        applies: |of| of.is_vector(&["local_timer"]),
        text: "The timer interrupt is handled on the CPU where the timer was set: the thread needs \
               its own; the tick and the timers of other tasks can be kept away.",
        rules: &["nohz-full", "timer-migration"],
    },
    Remedy {
        id: "ipi-of-others",
        cause: CauseKind::Irq,
        when: "it is an IPI",
        applies: |of| of.is_vector(&["reschedule", "call_function"]),
        text: "Another CPU sent an IPI: keep tasks that share memory or wake each other off this \
               CPU.",
        rules: &["isolated-cpus", "user-tasks"],
    },
    Remedy {
        id: "too-hot",
        cause: CauseKind::Irq,
        when: "it is the thermal vector",
        applies: |of| of.is_vector(&["thermal"]),
        text: "The processor reported that it is too hot.",
        rules: &["thermal-throttling"],
    },
    Remedy {
        id: "own-vector",
        cause: CauseKind::Irq,
        when: "it is another vector of the CPU itself",
        applies: |of| of.is_vector(&[""]),
        text: "The CPU's own interrupts follow from what runs there: isolate the CPU.",
        rules: &["isolated-cpus"],
    },
    Remedy {
        id: "interrupt-already-threaded",
        cause: CauseKind::Irq,
        when: "`threaded-interrupts` is met",
        applies: |of| of.is_met("threaded-interrupts"),
        text: "Set the affinity of this interrupt to another CPU.",
        rules: &["interrupts-elsewhere", "irqbalance", "managed-interrupts"],
    },
    Remedy {
        id: "nmi-without-watchdog",
        cause: CauseKind::Nmi,
        when: "`nmi-watchdog` is met",
        applies: |of| of.is_met("nmi-watchdog"),
        text: "Do not sample with perf while latency matters: the NMI watchdog is off already.",
        rules: &["nmi-watchdog"],
    },
    Remedy {
        id: "packets",
        cause: CauseKind::Softirq,
        when: "it is NET_RX or NET_TX",
        applies: |of| of.is_softirq(&["NET_RX", "NET_TX"]),
        text: "Packets are processed on the CPU of their interrupt: set the affinity of the \
               network's interrupts, and packet steering, to other CPUs.",
        rules: &["packet-steering", "interrupts-elsewhere"],
    },
    Remedy {
        id: "rcu-callbacks-here",
        cause: CauseKind::Softirq,
        when: "it is RCU, and `rcu-callbacks` is not met",
        applies: |of| of.is_softirq(&["RCU"]) && !of.evidence.rules.is_in_force("rcu-callbacks"),
        text: "Offload the RCU callbacks of this CPU to other CPUs (rcu_nocbs).",
        rules: &["rcu-callbacks"],
    },
    Remedy {
        id: "timers-set-here",
        cause: CauseKind::Softirq,
        when: "it is TIMER or HRTIMER",
        applies: |of| of.is_softirq(&["TIMER", "HRTIMER"]),
        text: "Timers expire on the CPU where they were set: keep tasks that set them off this \
               CPU.",
        rules: &["timer-migration", "isolated-cpus"],
    },
    Remedy {
        id: "load-balancer",
        cause: CauseKind::Softirq,
        when: "it is SCHED",
        applies: |of| of.is_softirq(&["SCHED"]),
        text: "The scheduler balances load over CPUs that are not isolated.",
        rules: &["isolated-cpus", "nohz-full"],
    },
    Remedy {
        id: "block-requests",
        cause: CauseKind::Softirq,
        when: "it is BLOCK",
        applies: |of| of.is_softirq(&["BLOCK"]),
        text: "Requests complete on the CPU of their interrupt: set its affinity to other CPUs.",
        rules: &["interrupts-elsewhere", "managed-interrupts"],
    },
    Remedy {
        id: "no-idle-state-takes-this-long",
        cause: CauseKind::IdleExit,
        when: "the state is POLL, or was left far later than it declares",
        applies: |of| of.is_no_idle_exit(),
        text: "No setting of idle states shortens this: the state declares far less, so steal is \
               likely. Give the guest dedicated CPUs on the host; on bare metal look for SMIs.",
        rules: &["steal-time", "hypervisor", "smi-count"],
    },
    Remedy {
        id: "guest-halts",
        cause: CauseKind::IdleExit,
        when: "it is a guest, and `idle-states` is met",
        applies: |of| of.is_guest() && of.is_met("idle-states"),
        text: "An idle CPU of a guest halts, and the host decides when it runs again: give the \
               guest dedicated CPUs on the host, or boot it with idle=poll.",
        rules: &["hypervisor", "steal-time"],
    },
    Remedy {
        id: "no-deep-states-left",
        cause: CauseKind::IdleExit,
        when: "`idle-states` is met",
        applies: |of| of.is_met("idle-states"),
        text: "Deep idle states are disabled already: only a CPU that does not idle (idle=poll, or \
               a loop of the program itself) leaves no state.",
        rules: &["governor", "idle-states"],
    },
    Remedy {
        id: "not-preempted-with-rt",
        cause: CauseKind::NonPreemptible,
        when: "`preemption-model` is met: the kernel is PREEMPT_RT",
        applies: |of| of.is_met("preemption-model"),
        text: "Keep {who} off the CPU: this kernel is PREEMPT_RT, and has few such sections left.",
        rules: &["isolated-cpus", "user-tasks", "kernel-threads"],
    },
    Remedy {
        id: "preempted-by-stopper",
        cause: CauseKind::Preempted,
        when: "the task is the stopper thread",
        applies: |of| of.is_by(&["migration/"]),
        text: "The stopper thread runs before every other: change no affinities of tasks that run \
               here, plug no CPUs and load no modules while latency matters.",
        rules: &["isolated-cpus", "systemd-affinity"],
    },
    Remedy {
        id: "preempted-by-interrupt-thread",
        cause: CauseKind::Preempted,
        when: "the task is an interrupt's thread",
        applies: |of| of.is_by(&["irq/"]),
        text: "{who} is an interrupt's thread: set the affinity of its interrupt to another CPU, \
               or give it a lower priority than this thread (`chrt -f -p PRIORITY TID`).",
        rules: &["irq-thread-priorities", "interrupts-elsewhere", "competing-priorities"],
    },
    Remedy {
        id: "preempted-by-the-highest",
        cause: CauseKind::Preempted,
        when: "the task has SCHED_DEADLINE or priority 99",
        applies: |of| of.blame.prio.is_some_and(|prio| prio <= 0),
        text: "No priority is above that of {who}: lower it, or move it to another CPU.",
        rules: &["competing-priorities", "isolated-cpus"],
    },
    Remedy {
        id: "queued-without-policy",
        cause: CauseKind::Runqueue,
        when: "the thread has no real-time policy",
        applies: |of| of.blame.rank == Some(0),
        text: "Give this thread a real-time policy (sched_setscheduler(2), `chrt -f PRIORITY \
               COMMAND`), or a CPU of its own: without one it shares the CPU with every task. A \
               program that asked for one may have been refused (EPERM).",
        rules: &["realtime-priority-limit", "user-tasks", "isolated-cpus"],
    },
    Remedy {
        id: "quota-of-group",
        cause: CauseKind::Throttled,
        when: "the budget of its control group was used up",
        applies: |of| of.is_budget(Budget::Group) || of.is_throttled_by_rank(0),
        text: "The quota of the control group (cpu.max) throttles its tasks for the rest of a \
               period: raise it, or move the task out of the group.",
        rules: &[],
    },
    Remedy {
        id: "runtime-of-deadline",
        cause: CauseKind::Throttled,
        when: "the runtime of SCHED_DEADLINE was used up",
        applies: |of| of.is_budget(Budget::Deadline) || of.is_throttled_by_rank(u32::MAX),
        text: "The task used more than the runtime that it reserved: reserve more, or do less in a \
               period.",
        rules: &[],
    },
    Remedy {
        id: "lock-in-the-kernel",
        cause: CauseKind::Lock,
        when: "the lock is in the kernel",
        applies: |of| matches!(of.cause(), Some(Cause::Lock { kernel: true, .. })),
        text: "This lock is in the kernel: let the two tasks use different files, mappings and \
               descriptors while latency matters.",
        rules: &["preemption-model"],
    },
    Remedy {
        id: "lock-inherits-already",
        cause: CauseKind::Lock,
        when: "a lower priority holds the lock, which inherits priorities",
        applies: |of| of.blame.is_held_below && of.blame.inherits == Some(true),
        text: "The lock inherits priorities: {who} ran with that of the waiting thread. Hold it \
               for a shorter time, share less data, or pass data without a lock.",
        rules: &[],
    },
    Remedy {
        id: "lock-to-inherit",
        cause: CauseKind::Lock,
        when: "a lower priority holds the lock",
        applies: |of| of.blame.is_held_below,
        text: INHERIT,
        rules: &[],
    },
    Remedy {
        id: "inversion-although-inherited",
        cause: CauseKind::PriorityInversion,
        when: "the lock inherits priorities",
        applies: |of| of.blame.inherits == Some(true),
        text: "The lock inherits priorities, and yet {who} did not run: look for a lock without \
               inheritance that it waited for in turn, or for an affinity that binds it to a busy \
               CPU.",
        rules: &[],
    },
    Remedy {
        id: "inversion-to-inherit",
        cause: CauseKind::PriorityInversion,
        when: "its holder is known",
        applies: |of| of.culprit().is_some(),
        text: INHERIT,
        rules: &[],
    },
    Remedy {
        id: "faults-although-locked",
        cause: CauseKind::PageFault,
        when: "the memory is locked",
        applies: |of| of.is_locked(),
        text: "The memory is locked: touch all of it that cycles use before the first one, and map \
               nothing later; after fork(2), and with MCL_ONFAULT, the first touch of a page is a \
               fault.",
        rules: &["numa-balancing", "transparent-hugepages", "locked-page-compaction"],
    },
    Remedy {
        id: "reclaim-although-locked",
        cause: CauseKind::Reclaim,
        when: "the memory is locked",
        applies: |of| of.is_locked(),
        text: "The memory is locked: allocate nothing in the cycle, and leave more memory free.",
        rules: &["swap", "hugepage-defrag"],
    },
    Remedy {
        id: "woken-by-task",
        cause: CauseKind::Waiting,
        when: "a task ended the wait",
        applies: |of| of.culprit().is_some(),
        text: "Check what {who} did meanwhile: it ended the wait.",
        rules: &[],
    },
    Remedy {
        id: "timeout-in-ticks",
        cause: CauseKind::Timeout,
        when: "the call is one of a socket",
        applies: |of| of.is_by(OF_SOCKETS),
        text: "SO_RCVTIMEO and SO_SNDTIMEO are rounded up to a tick, and end at the one after: \
               1 µs waits for up to 8 ms with CONFIG_HZ=250. Wait in ppoll(2), or for a timer at \
               an absolute time, and call {who} without waiting (O_NONBLOCK). Find why what is \
               awaited did not come.",
        rules: &[],
    },
    Remedy {
        id: "timeout-by-timer",
        cause: CauseKind::Timeout,
        when: "a high-resolution timer ends the call",
        applies: |of| of.is_by(WITH_TIMERS),
        text: "Find why the awaited event did not come: a lost frame, a peer that is slow or gone; \
               a shorter timeout of {who} bounds the delay. Waits of an idle worker are not \
               delays.",
        rules: &[],
    },
    Remedy {
        id: "stopped-by-task",
        cause: CauseKind::Stopped,
        when: "it is known who stopped it",
        applies: |of| of.culprit().is_some(),
        text: "{who} stopped the thread, or let it continue: keep it from doing so while latency \
               matters.",
        rules: &[],
    },
    Remedy {
        id: "own-call",
        cause: CauseKind::OwnExecution,
        when: "the thread was in a system call",
        applies: |of| matches!(of.cause(), Some(Cause::OwnExecution { mode: CpuMode::Syscall(_) })),
        text: "The thread itself ran in {who}(): call it less often in a cycle, or with less to \
               do.",
        rules: &["mitigations", "governor", "frequency-cap"],
    },
    Remedy {
        id: "own-or-switch",
        cause: CauseKind::OwnExecution,
        when: "no event shows what the thread did",
        applies: |of| matches!(of.cause(), Some(Cause::OwnExecution { mode: CpuMode::Unknown })),
        text: "Record system calls, too (`syscall`): whether the thread ran, or the CPU was still \
               switching to it, is not known.",
        rules: &[],
    },
    Remedy {
        id: "steal-without-hypervisor",
        cause: CauseKind::Steal,
        when: "`hypervisor` is met: this is not a guest",
        applies: |of| of.is_met("hypervisor"),
        text: "This machine is not a guest: its firmware (SMI) stopped the CPUs. Measure with the \
               workload `spin` on an otherwise idle machine, and ask the vendor for a firmware \
               with fewer SMIs.",
        rules: &["smi-count"],
    },
    Remedy {
        id: "hardware-of-host",
        cause: CauseKind::HwLatency,
        when: "it is a guest",
        applies: |of| of.is_guest(),
        text: "In a guest the host stops the CPU as well as the firmware: give the guest dedicated \
               CPUs on the host, or measure on bare metal.",
        rules: &["steal-time", "hypervisor"],
    },
    Remedy {
        id: "events-lost-here",
        cause: CauseKind::Unknown,
        when: "punctual recorded, and lost events",
        applies: |of| of.has_lost() && of.is_recorded_here(),
        text: "Events were lost: use larger buffers (`[explain] buffer`, `punctual trace \
               --buffer`).",
        rules: &[],
    },
    Remedy {
        id: "events-lost-elsewhere",
        cause: CauseKind::Unknown,
        when: "another tool recorded, and lost events",
        applies: |of| of.has_lost(),
        text: "Events were lost: record again with larger buffers of that tool.",
        rules: &[],
    },
    Remedy {
        id: "recorded-without-types",
        cause: CauseKind::Unknown,
        when: "punctual recorded without the kernel's types",
        applies: |of| of.is_without_types(),
        text: "Use a kernel with BTF (CONFIG_DEBUG_INFO_BTF), of which more events are recorded.",
        rules: &["kernel-recorder"],
    },
    Remedy {
        id: "events-not-recorded-elsewhere",
        cause: CauseKind::Unknown,
        when: "the trace of another tool lacks groups of events",
        applies: |of| of.lacks_groups(),
        text: "Record the events that this trace lacks: `punctual recipe` prints the line for the \
               tool.",
        rules: &[],
    },
];
