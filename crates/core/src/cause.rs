//! The causes of latency: a single definition of each for terminal, page, JSON, glossary and
//! laboratory.
//!
//! The table in docs/reference/glossary.md is generated from this file.

use serde::{Deserialize, Serialize};

macro_rules! causes {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            id: $id:literal,
            words: $words:literal,
            meaning: $meaning:literal,
            advice: $advice:literal,
            rules: [$($rule:literal),*],
            source: $source:literal,
        }
    )*) => {
        /// The cause of a sample's time, or of a part of it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[derive(Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&str")]
        pub enum CauseKind {
            $($(#[$doc])* $name,)*
        }

        impl CauseKind {
            /// All causes, in the order of the glossary.
            pub const ALL: &[CauseKind] = &[$(CauseKind::$name,)*];

            /// The stable id in JSON and on the command line.
            pub fn id(self) -> &'static str {
                match self { $(CauseKind::$name => $id,)* }
            }
            /// The name in tables, figures and sentences.
            pub fn words(self) -> &'static str {
                match self { $(CauseKind::$name => $words,)* }
            }
            /// The definition, in one or two sentences.
            pub fn meaning(self) -> &'static str {
                match self { $(CauseKind::$name => $meaning,)* }
            }
            /// Advice without further evidence, in one or two sentences. The table of remedies
            /// (docs/reference/remedies.md) has advice that considers more evidence.
            pub fn advice(self) -> &'static str {
                match self { $(CauseKind::$name => $advice,)* }
            }
            /// The rules of `punctual check` whose fix removes the cause, the most specific first.
            pub fn rules(self) -> &'static [&'static str] {
                match self { $(CauseKind::$name => &[$($rule,)*],)* }
            }
            /// The source of the term's definition.
            pub fn source(self) -> &'static str {
                match self { $(CauseKind::$name => $source,)* }
            }
        }
    };
}

causes! {
    /// The timer interrupt came after the programmed expiry.
    TimerIrqDelay {
        id: "timer-irq-delay",
        words: "timer interrupt delayed",
        meaning: "The timer interrupt was delayed: interrupts were disabled, or the hardware was \
            slow. rtla calls it the IRQ handler delay, and counts the exit from idle into it.",
        advice: "Keep this task away from the CPU: isolate the CPU, or set the affinity of the \
            task to other CPUs. Long sections with interrupts disabled are in drivers and \
            consoles.",
        rules: ["isolated-cpus", "preemption-model", "user-tasks", "console-messages",
            "serial-console"],
        source: "Documentation/tools/rtla/common_timerlat_aa.rst",
    }
    /// The timer of a thread without real-time policy expired within its slack.
    TimerSlack {
        id: "timer-slack",
        words: "timer slack",
        meaning: "The timer slack of a thread that is not real-time, 50 µs by default: the kernel \
            may let its timers expire that much later.",
        advice: "Give the thread a real-time policy, or a smaller slack: \
            prctl(PR_SET_TIMERSLACK, 1).",
        rules: ["timer-slack"],
        source: "PR_SET_TIMERSLACK(2const)",
    }
    /// An interrupt handler ran on the CPU of the thread.
    Irq {
        id: "irq",
        words: "interrupt handler",
        meaning: "An interrupt handler ran on the CPU of the thread: of a device, or of one of \
            the CPU's own vectors (local timer, IPI).",
        advice: "Set the affinity of this interrupt to another CPU, or run its handler in a \
            thread of lower priority than this task.",
        rules: ["interrupts-elsewhere", "irqbalance", "managed-interrupts", "threaded-interrupts"],
        source: "Documentation/trace/osnoise-tracer.rst",
    }
    /// A non-maskable interrupt.
    Nmi {
        id: "nmi",
        words: "non-maskable interrupt",
        meaning: "A non-maskable interrupt: from the watchdog, from perf or from the hardware. It \
            interrupts the CPU even where interrupts are disabled.",
        advice: "Disable the NMI watchdog, and do not sample with perf while latency matters.",
        rules: ["nmi-watchdog"],
        source: "Documentation/trace/osnoise-tracer.rst",
    }
    /// A softirq ran on the CPU of the thread.
    Softirq {
        id: "softirq",
        words: "softirq",
        meaning: "A softirq ran on the CPU of the thread: deferred work of interrupts, such as \
            network packets, timers and RCU callbacks.",
        advice: "Softirqs run on the CPU that raised them: keep the interrupts and tasks that \
            raise them off this CPU.",
        rules: ["interrupts-elsewhere", "isolated-cpus"],
        source: "Documentation/trace/osnoise-tracer.rst",
    }
    /// The CPU was idle.
    IdleExit {
        id: "idle-exit",
        words: "exit from idle",
        meaning: "The CPU was idle and had to leave its idle state. Where this takes far longer \
            than the declared exit latency of the state, steal is likely and the confidence falls.",
        advice: "Disable deep idle states: hold /dev/cpu_dma_latency at 0 while latency matters \
            (punctual does so during its runs by default), or limit them at boot.",
        rules: ["idle-states", "governor"],
        source: "Documentation/admin-guide/pm/cpuidle.rst",
    }
    /// The wake-up had begun, and the thread was not yet enqueued.
    Wakeup {
        id: "wakeup",
        words: "wake-up in progress",
        meaning: "A wake-up in progress: sched_waking has happened, sched_wakeup has not.",
        advice: "The wake-up reaches another CPU by an interrupt: let the waker and the thread \
            share a CPU or a cache, or keep that CPU free.",
        rules: ["isolated-cpus", "idle-states"],
        source: "include/trace/events/sched.h",
    }
    /// The running task kept the CPU although the thread has the higher priority.
    NonPreemptible {
        id: "non-preemptible",
        words: "running task not preempted",
        meaning: "The thread was ready and had the higher priority, and the running task was not \
            preempted: preemption was disabled, or the kernel is not preemptible there. rtla calls \
            that task the blocking thread.",
        advice: "A PREEMPT_RT kernel is preemptible nearly everywhere; on other kernels, keep this \
            task off the CPU.",
        rules: ["preemption-model", "preemption-request", "isolated-cpus", "user-tasks",
            "kernel-threads"],
        source: "Documentation/tools/rtla/common_timerlat_aa.rst",
    }
    /// A task of higher priority ran.
    Preempted {
        id: "preempted",
        words: "preempted by a higher priority",
        meaning: "The thread was ready, and a task of higher priority ran.",
        advice: "Move the other task to another CPU, or raise the priority of this thread if it is \
            more important.",
        rules: ["competing-priorities", "irq-thread-priorities", "isolated-cpus"],
        source: "sched(7)",
    }
    /// A task of the same priority ran.
    Runqueue {
        id: "runqueue",
        words: "queued behind the same priority",
        meaning: "The thread was ready, and a task of the same priority ran, or one of the \
            time-sharing policies.",
        advice: "Give the threads CPUs of their own, or different priorities.",
        rules: ["user-tasks", "isolated-cpus", "kernel-threads", "competing-priorities"],
        source: "sched(7)",
    }
    /// A task ran, and whether it has the higher priority is not known.
    TaskNoise {
        id: "task-noise",
        words: "another task had the CPU",
        meaning: "Another task had the CPU, as osnoise states it. Its priority is not known.",
        advice: "Keep this task away from the CPU: isolate the CPU, or set the affinity of the \
            task, or of the interrupt that it serves, to other CPUs.",
        rules: ["isolated-cpus", "interrupts-elsewhere", "kernel-threads", "user-tasks"],
        source: "Documentation/trace/osnoise-tracer.rst",
    }
    /// The thread was throttled.
    Throttled {
        id: "throttled",
        words: "throttled",
        meaning: "The thread was ready and its runtime was used up: RT throttling, the fair \
            server (Linux 6.12 and later), the runtime of SCHED_DEADLINE or CFS bandwidth.",
        advice: "Real-time tasks used up their runtime: let them sleep, or lift the limit where \
            nothing else needs this CPU.",
        rules: ["rt-throttling", "fair-server", "rt-group-budget"],
        source: "Documentation/scheduler/sched-rt-group.rst, sched-bwc.rst",
    }
    /// The CPU was switching to the thread.
    Switch {
        id: "switch",
        words: "within the context switch",
        meaning: "The CPU was within the context switch to the thread: from sched_switch to the \
            return of the thread's system call, or to an event of the switch itself that bounds \
            it. Where none does, its extent is not known.",
        advice: "A switch to another address space may wait for a lock or flush the TLB: let the \
            tasks of this CPU share one address space, or keep those of others off it.",
        rules: ["isolated-cpus", "user-tasks"],
        source: "kernel/sched/core.c (context_switch)",
    }
    /// The thread was moved to another CPU.
    Migration {
        id: "migration",
        words: "migration",
        meaning: "The thread was moved to another CPU.",
        advice: "Set the affinity of the thread to one CPU: a migration costs the time of the \
            stopper thread, and the caches.",
        rules: ["isolated-cpus"],
        source: "sched_setaffinity(2)",
    }
    /// The thread waited for a lock.
    Lock {
        id: "lock",
        words: "waiting for a lock",
        meaning: "The thread waited for a lock: a futex of its program, or a lock in the kernel.",
        advice: "Hold this lock for a shorter time, share less data, or pass data without a lock.",
        rules: [],
        source: "futex(2), Documentation/locking/locktypes.rst",
    }
    /// The holder of the lock could not run.
    PriorityInversion {
        id: "priority-inversion",
        words: "priority inversion",
        meaning: "The thread waited for a lock whose holder could not run, because a task of a \
            priority between the two ran.",
        advice: "Use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT): its holder then \
            runs with the priority of the waiting thread.",
        rules: [],
        source: "Documentation/locking/rt-mutex-design.rst",
    }
    /// The thread waited for a block device.
    Io {
        id: "io",
        words: "I/O",
        meaning: "The thread waited for a block device.",
        advice: "Do not wait for a device in a real-time thread: pass the data to another thread \
            that writes it.",
        rules: ["writeback-workqueue", "access-times"],
        source: "Documentation/block/stat.rst",
    }
    /// A page fault of the thread.
    PageFault {
        id: "page-fault",
        words: "page fault",
        meaning: "The kernel handled a page fault of the thread, or the thread waited for a page.",
        advice: "Lock the memory before the real-time work begins: mlockall(MCL_CURRENT | \
            MCL_FUTURE), touch the stack and all buffers once, and allocate nothing later.",
        rules: [
            "memory-lock-limit",
            "swap",
            "transparent-hugepages",
            "numa-balancing",
            "locked-page-compaction"
        ],
        source: "mlock(2)",
    }
    /// The thread reclaimed memory.
    Reclaim {
        id: "reclaim",
        words: "memory reclaim",
        meaning: "Memory was low, and the thread reclaimed memory itself (direct reclaim).",
        advice: "Lock the memory, allocate nothing later, and leave more memory free.",
        rules: ["memory-lock-limit", "swap", "hugepage-defrag"],
        source: "Documentation/admin-guide/mm/concepts.rst",
    }
    /// The thread waited for something that was not recorded.
    Waiting {
        id: "waiting",
        words: "waiting",
        meaning: "The thread waited; what it waited for was not recorded.",
        advice: "Check what ends this wait: a peer, a device, or a timer of the program itself.",
        rules: [],
        source: "include/trace/events/sched.h (prev_state of sched_switch)",
    }
    /// The awaited event did not come in time.
    Timeout {
        id: "timeout",
        words: "timeout of a wait",
        meaning: "What the thread waited for did not come in time: its wait ended by the timeout \
            that the thread asked for.",
        advice: "Find why the awaited event did not come: a lost frame, a peer that is slow or \
            gone. Waits of an idle worker are not delays.",
        rules: [],
        source: "poll(2), SO_RCVTIMEO in socket(7)",
    }
    /// The thread was stopped.
    Stopped {
        id: "stopped",
        words: "stopped",
        meaning: "The thread was stopped: by a signal, a debugger or the freezer of its control \
            group.",
        advice: "Find who stops it: job control, a debugger, a supervisor that freezes its group.",
        rules: [],
        source: "signal(7), ptrace(2), Documentation/admin-guide/cgroup-v2.rst (cgroup.freeze)",
    }
    /// The previous cycle had not ended.
    Overrun {
        id: "overrun",
        words: "previous cycle not ended",
        meaning: "The release passed while the thread was still in the previous cycle.",
        advice: "Find what delayed the previous cycle: it made this one late.",
        rules: [],
        source: "docs/reference/attach.md",
    }
    /// The thread itself ran in a system call.
    SystemCall {
        id: "system-call",
        words: "own system calls",
        meaning: "The thread itself ran in the kernel, in a system call of its own.",
        advice: "Make fewer system calls in the cycle, or cheaper ones.",
        rules: ["mitigations"],
        source: "syscalls(2)",
    }
    /// The thread itself ran.
    OwnExecution {
        id: "self",
        words: "own execution",
        meaning: "The thread itself ran, in its own code or in a system call of its own.",
        advice: "Examine the code of the thread, with test points or `punctual probe`.",
        rules: ["mitigations", "governor", "frequency-cap"],
        source: "Documentation/trace/timerlat-tracer.rst",
    }
    /// The hypervisor had taken the CPU.
    Steal {
        id: "steal",
        words: "steal",
        meaning: "Steal: the hypervisor had taken the CPU. The steal clock shows it, or several \
            CPUs stopped at once.",
        advice: "No setting of the guest prevents steal: give the guest dedicated CPUs on the \
            host, or measure on bare metal.",
        rules: ["steal-time", "hypervisor", "smi-count"],
        source: "proc_stat(5)",
    }
    /// The CPU stopped.
    HwLatency {
        id: "hw-latency",
        words: "hardware latency",
        meaning: "Hardware latency: the CPU stopped and no event of the operating system says why \
            (SMI, firmware).",
        advice: "Ask the vendor for a firmware with fewer SMIs, and measure with the workload \
            `spin` on an otherwise idle machine.",
        rules: ["smi-count"],
        source: "Documentation/trace/hwlat_detector.rst",
    }
    /// An instruction of the running task took long.
    CpuStall {
        id: "cpu-stall",
        words: "CPU stalled",
        meaning: "The CPU stalled with interrupts enabled, as in a bus access that waits. Only \
            events on both sides of the expiry prove it; without them it is not known whether \
            interrupts were disabled or the CPU stalled.",
        advice: "Find the device access of the running task: a read of a register waits for all \
            writes before it. Keep that driver's work off this CPU.",
        rules: ["isolated-cpus", "user-tasks"],
        source: "Documentation/driver-api/device-io.rst",
    }
    /// punctual's own threads and programs.
    Observer {
        id: "observer",
        words: "punctual itself",
        meaning: "punctual itself took the time: its controller, its recorders, or its programs \
            in the kernel. Without it, the sample would not have had this part.",
        advice: "Leave a CPU beside the measured ones to punctual, or record fewer groups of \
            events.",
        rules: [],
        source: "docs/reference/explain.md",
    }
    /// No event proves a cause.
    #[default]
    Unknown {
        id: "unknown",
        words: "not attributed",
        meaning: "Not attributed: no recorded event proves a cause.",
        advice: "Record the events that are missing: the warnings report which were lost, or not \
            recorded.",
        rules: ["kernel-recorder"],
        source: "docs/reference/explain.md",
    }
}

/// The number of causes.
pub const CAUSES: usize = CauseKind::ALL.len();

impl From<CauseKind> for &'static str {
    fn from(cause: CauseKind) -> &'static str {
        cause.id()
    }
}

impl TryFrom<String> for CauseKind {
    type Error = String;

    fn try_from(id: String) -> Result<CauseKind, String> {
        CauseKind::from_id(&id).ok_or_else(|| format!("`{}` is not a cause", id.escape_debug()))
    }
}

impl CauseKind {
    /// The cause of this id.
    pub fn from_id(id: &str) -> Option<CauseKind> {
        CauseKind::ALL.iter().find(|cause| cause.id() == id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_found_by_its_id() {
        for cause in CauseKind::ALL {
            assert_eq!(CauseKind::from_id(cause.id()), Some(*cause));
        }
        assert_eq!(CauseKind::from_id("gremlins"), None);
    }

    #[test]
    fn texts_of_causes_are_sentences() {
        for cause in CauseKind::ALL {
            assert!(
                cause.meaning().ends_with('.') && cause.advice().ends_with('.'),
                "{}",
                cause.id()
            );
            assert!(!cause.words().ends_with('.') && !cause.words().is_empty(), "{}", cause.id());
        }
    }
}
