//! The kinds of entries: a single definition of each for terminal, page, JSON and
//! docs/reference/attach-cpus.md.

macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            id: $id:literal,
            words: $words:literal,
            originator: $originator:literal,
            advice: $advice:literal,
            rules: [$($rule:literal),*],
        }
    )*) => {
        /// The kind of an entry into the kernel, by its remedy.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum EntryKind {
            $($(#[$doc])* $name,)*
        }

        impl EntryKind {
            /// All kinds, in the order of the table.
            pub const ALL: &[EntryKind] = &[$(EntryKind::$name,)*];

            /// The stable id in JSON.
            pub fn id(self) -> &'static str {
                match self { $(EntryKind::$name => $id,)* }
            }
            /// The name in tables and sentences.
            pub fn words(self) -> &'static str {
                match self { $(EntryKind::$name => $words,)* }
            }
            /// The originator shown, and the event that shows it.
            pub fn originator(self) -> &'static str {
                match self { $(EntryKind::$name => $originator,)* }
            }
            /// The recommended action.
            pub fn advice(self) -> &'static str {
                match self { $(EntryKind::$name => $advice,)* }
            }
            /// The rules of `punctual check` whose fix removes it, the most specific first.
            pub fn rules(self) -> &'static [&'static str] {
                match self { $(EntryKind::$name => &[$($rule,)*],)* }
            }
        }
    };
}

kinds! {
    /// The scheduler's tick.
    Tick {
        id: "tick",
        words: "tick",
        originator: "the CPU itself; what keeps the tick on a nohz_full CPU (tick_stop)",
        advice: "Run one task alone on a CPU of nohz_full=, without POSIX CPU timers and perf \
            events.",
        rules: ["nohz-full", "nohz-full-isolated", "isolated-cpus"],
    }
    /// Another timer.
    Timer {
        id: "timer",
        words: "timer",
        originator: "who armed it (hrtimer_start, timer_start)",
        advice: "Arm timers on the CPUs of other tasks: most expire on the CPU that armed them.",
        rules: ["isolated-cpus", "nohz-full", "timer-migration", "vm-statistics",
            "machine-check-polling"],
    }
    /// A reschedule interrupt.
    Reschedule {
        id: "reschedule",
        words: "reschedule IPI",
        originator: "the sender (ipi_send_cpu)",
        advice: "Keep tasks that other CPUs wake off this CPU.",
        rules: ["isolated-cpus", "user-tasks", "kernel-threads"],
    }
    /// A flush of the TLB for another CPU.
    TlbShootdown {
        id: "tlb-shootdown",
        words: "TLB shootdown",
        originator: "the thread that changed the address space (csd_queue_cpu)",
        advice: "Do not unmap, protect or migrate memory of this program in its other threads: \
            allocate and lock everything before.",
        rules: ["numa-balancing", "transparent-hugepages", "hugepage-defrag",
            "proactive-compaction", "same-page-merging"],
    }
    /// Another function call of another CPU.
    FunctionCall {
        id: "function-call",
        words: "function call IPI",
        originator: "the caller (csd_queue_cpu)",
        advice: "Let the caller run less often, or leave this CPU out: the function says which \
            subsystem calls.",
        rules: ["isolated-cpus", "housekeeping-cpus"],
    }
    /// Interrupt work.
    IrqWork {
        id: "irq-work",
        words: "irq_work",
        originator: "who raised it (ipi_send_cpu)",
        advice: "Mostly of tracing, perf, BPF and printk: stop what records on this CPU.",
        rules: ["trace-events", "current-tracer", "console-messages"],
    }
    /// An interrupt of a device.
    Device {
        id: "device",
        words: "device interrupt",
        originator: "the device, by its name in /proc/interrupts",
        advice: "Set the affinity of this interrupt to another CPU.",
        rules: ["interrupts-elsewhere", "default-irq-affinity", "irqaffinity-parameter",
            "managed-interrupts", "irqbalance"],
    }
    /// A softirq.
    Softirq {
        id: "softirq",
        words: "softirq",
        originator: "who raised it (softirq_raise), or armed the timer that it runs",
        advice: "Softirqs run on the CPU that raised them: keep the interrupts and tasks that \
            raise them off this CPU.",
        rules: ["interrupts-elsewhere", "isolated-cpus", "rcu-callbacks", "packet-steering"],
    }
    /// A work item.
    Work {
        id: "work",
        words: "work item",
        originator: "who queued it (workqueue_queue_work)",
        advice: "Keep unbound workqueues off this CPU; a bound one follows who queues.",
        rules: ["workqueues", "writeback-workqueue", "vm-statistics", "machine-check-polling"],
    }
    /// The stopper thread.
    StopMachine {
        id: "stop-machine",
        words: "stopper thread",
        originator: "who woke it: sched_setaffinity(2), CPU hotplug, stop_machine()",
        advice: "Change no affinities of tasks that run here, plug no CPUs and load no modules \
            while latency matters.",
        rules: ["isolated-cpus", "systemd-affinity"],
    }
    /// Another kernel thread.
    KernelThread {
        id: "kernel-thread",
        words: "kernel thread",
        originator: "who woke or moved it (sched_waking, sched_migrate_task)",
        advice: "Set its affinity to other CPUs; per-CPU threads follow what they serve.",
        rules: ["kernel-threads", "rcu-callbacks", "irq-thread-priorities", "soft-watchdog",
            "isolated-cpus"],
    }
    /// A user task.
    Task {
        id: "task",
        words: "task",
        originator: "who woke or moved it (sched_waking, sched_migrate_task)",
        advice: "Move other tasks to other CPUs.",
        rules: ["user-tasks", "isolated-cpus", "systemd-affinity", "competing-priorities"],
    }
    /// A thread of punctual, or an entry caused by one.
    Observer {
        id: "observer",
        words: "punctual itself",
        originator: "a thread of this or another punctual that measures",
        advice: "Leave this CPU out of what punctual measures and runs on at the same time.",
        rules: [],
    }
    /// A non-maskable interrupt.
    Nmi {
        id: "nmi",
        words: "NMI",
        originator: "its handler",
        advice: "Disable the NMI watchdog, and do not sample with perf while latency matters.",
        rules: ["nmi-watchdog"],
    }
    /// Another vector.
    Other {
        id: "other",
        words: "other vector",
        originator: "the hardware",
        advice: "The vector says which part of the hardware raised it.",
        rules: ["thermal-throttling"],
    }
    /// A page fault of a task.
    PageFault {
        id: "page-fault",
        words: "page fault",
        originator: "the task itself (page_fault_user, page_fault_kernel)",
        advice: "Lock the memory before the real-time work begins: mlockall(MCL_CURRENT | \
            MCL_FUTURE).",
        rules: ["memory-lock-limit", "swap", "transparent-hugepages", "numa-balancing"],
    }
    /// A system call of a task.
    SystemCall {
        id: "system-call",
        words: "system call",
        originator: "the task itself (sys_enter)",
        advice: "A task that must not enter the kernel makes no system calls.",
        rules: [],
    }
}
