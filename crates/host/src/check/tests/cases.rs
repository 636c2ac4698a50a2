//! A good and a bad case of each rule: the change to the ideal machine, and the verdict of the
//! rule.

use super::*;
use RuleVerdict::*;

/// A rule, the files that differ from the ideal machine's ([`GONE`] removes one), and the verdict.
type Case = (&'static str, &'static [(&'static str, &'static str)], RuleVerdict);

const GONE: &str = "(gone)";
const CMDLINE: &str = "/proc/cmdline";
const CONFIG: &str = "/boot/config-6.12.30-rt-amd64";
const VERSION: &str = "/proc/sys/kernel/version";
const REALTIME: &str = "/sys/kernel/realtime";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const SWITCH: &str = "/sys/kernel/debug/sched/preempt";
const CPUINFO: &str = "/proc/cpuinfo";
const TASK: &str = "/proc/1/stat";
const LIMITS: &str = "/proc/self/limits";
const STATUS: &str = "/proc/self/status";
const MOUNTS: &str = "/proc/self/mounts";
const NO_RIGHTS: (&str, &str) = (STATUS, "CapEff:\t0000000000000000");
const DYNAMIC: (&str, &str) = (VERSION, "#1 SMP PREEMPT_DYNAMIC");
const NOT_RT: (&str, &str) = (REALTIME, GONE);

const BUILTIN: (&str, &str) =
    ("/lib/modules/6.12.30-rt-amd64/modules.builtin", "kernel/drivers/usb/core/usbcore.ko\n");
const MODINFO: (&str, &str) = (
    "/lib/modules/6.12.30-rt-amd64/modules.builtin.modinfo",
    "usbcore.license=GPL\0usbcore.parmtype=autosuspend:int\0",
);
const DEPENDENCIES: (&str, &str) =
    ("/lib/modules/6.12.30-rt-amd64/modules.dep", "kernel/drivers/net/e1000.ko.xz: mii.ko.xz\n");
const KSOFTIRQD_RAISED: &str = "30 (ksoftirqd/2) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 5 \
                                0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 50 1 0 0 0";
const RCUC_LOW: (&str, &str) = (
    "/proc/31/stat",
    "31 (rcuc/2) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -2 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 \
     2 1 1 0 0 0",
);
const QEMU: (&str, &str) = (
    "/proc/90/stat",
    "90 (qemu-system-x86) S 1 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 \
     0 0 0 17 1 0 0 0 0 0",
);
const VCPU: (&str, &str) = (
    "/proc/90/task/91/stat",
    "91 (CPU 0/KVM) S 1 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
     17 1 0 0 0 0 0",
);
const MACHINE: (&str, &str) = ("/proc/90/status", "Cpus_allowed_list:\t0-1");
const QEMU_OUT: &[(&str, &str)] =
    &[QEMU, MACHINE, VCPU, ("/proc/90/task/91/status", "Cpus_allowed_list:\t0-3")];
const QEMU_IN: &[(&str, &str)] =
    &[QEMU, MACHINE, VCPU, ("/proc/90/task/91/status", "Cpus_allowed_list:\t2")];
const QEMU_ELSEWHERE: &[(&str, &str)] =
    &[QEMU, MACHINE, VCPU, ("/proc/90/task/91/status", "Cpus_allowed_list:\t0-1")];

/// A real-time program with a port open, and the thread of its interrupt.
const PROGRAM: (&str, &str) = (
    "/proc/700/stat",
    "700 (loop) S 1 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
     17 1 80 1 0 0 0",
);
const PROGRAM_TASK: (&str, &str) = ("/proc/700/task/700/stat", PROGRAM.1);
const PORT: (&str, &str) = ("/proc/700/fd/3", "-> /dev/ttyS0");
const IRQ_THREAD: (&str, &str) = (
    "/proc/61/stat",
    "61 (irq/4-ttyS0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 \
     0 0 0 0 17 0 50 1 0 0 0",
);
const IRQ_THREAD_HIGH: (&str, &str) = (
    "/proc/61/stat",
    "61 (irq/4-ttyS0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 \
     0 0 0 0 17 0 85 1 0 0 0",
);
/// It ran on CPU 0 for 9,990 of the 10,000 ticks since it was started; the other for a tenth.
const POLLER: (&str, &str) = (
    "/proc/701/stat",
    "701 (poller) R 1 0 0 0 -1 4194560 0 0 0 0 9980 10 0 0 20 0 1 0 5000 0 0 0 0 0 0 0 0 0 0 \
     0 0 0 0 0 17 0 80 1 0 0 0",
);
const SLEEPER: (&str, &str) = (
    "/proc/701/stat",
    "701 (poller) R 1 0 0 0 -1 4194560 0 0 0 0 990 10 0 0 20 0 1 0 5000 0 0 0 0 0 0 0 0 0 0 0 \
     0 0 0 0 17 0 80 1 0 0 0",
);
const POLLER_TASK: (&str, &str) = ("/proc/701/task/701/stat", POLLER.1);
const SLEEPER_TASK: (&str, &str) = (POLLER_TASK.0, SLEEPER.1);
const UPTIME: (&str, &str) = ("/proc/uptime", "150.00 90.00");

const CASES: &[Case] = &[
    ("preemption-model", &[NOT_RT, DYNAMIC, (SWITCH, "none voluntary (full)")], Advice),
    ("preemption-model", &[NOT_RT, DYNAMIC, (SWITCH, "none (voluntary) full")], Bad),
    ("preemption-model", &[NOT_RT, (VERSION, "#1 SMP"), (CONFIG, "CONFIG_PREEMPT_NONE=y")], Bad),
    ("preemption-model", &[NOT_RT, DYNAMIC, (CONFIG, GONE)], Unknown),
    ("preemption-request", &[(CMDLINE, "preempt=full")], Ok),
    ("preemption-request", &[(CMDLINE, "preempt=odd")], Warning),
    (
        "preemption-request",
        &[NOT_RT, (VERSION, "#1 SMP PREEMPT"), (CMDLINE, "preempt=none")],
        Warning,
    ),
    (
        "preemption-request",
        &[NOT_RT, DYNAMIC, (CMDLINE, "preempt=full"), (SWITCH, "none voluntary (full)")],
        Ok,
    ),
    ("preemption-request", &[NOT_RT, DYNAMIC, (CMDLINE, "preempt=full")], Unknown),
    ("threaded-interrupts", &[NOT_RT, (VERSION, "#1 SMP PREEMPT")], Advice),
    (
        "threaded-interrupts",
        &[
            NOT_RT,
            (VERSION, "#1 SMP PREEMPT"),
            (CMDLINE, "threadirqs"),
            (CONFIG, "CONFIG_IRQ_FORCED_THREADING=y"),
        ],
        Ok,
    ),
    (
        "threaded-interrupts",
        &[NOT_RT, (VERSION, "#1 SMP PREEMPT"), (CMDLINE, "threadirqs"), (CONFIG, "CONFIG_HZ=250")],
        Warning,
    ),
    (
        "rt-throttling",
        &[(RELEASE, "6.1.0"), ("/proc/sys/kernel/sched_rt_runtime_us", "950000")],
        Warning,
    ),
    ("rt-throttling", &[("/proc/sys/kernel/sched_rt_runtime_us", "950000")], Ok),
    (
        "rt-throttling",
        &[("/proc/sys/kernel/sched_rt_runtime_us", "950000"), (CONFIG, "CONFIG_RT_GROUP_SCHED=y")],
        Warning,
    ),
    (
        "rt-throttling",
        &[(RELEASE, "6.1.0"), ("/proc/sys/kernel/sched_rt_runtime_us", "1000000")],
        Ok,
    ),
    ("fair-server", &[("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "50000000")], Warning),
    (
        "fair-server",
        &[
            ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "50000000"),
            ("/sys/devices/system/cpu/nohz_full", ""),
        ],
        Advice,
    ),
    ("parameter-nobody-reads", &[(CMDLINE, "quiet network.disable_ipv6=1")], Warning),
    ("parameter-nobody-reads", &[(CMDLINE, "isolcpu=2-3")], Warning),
    ("parameter-nobody-reads", &[(CMDLINE, "splash systemd.unit=x rd.luks.uuid=1")], Ok),
    ("parameter-nobody-reads", &[(CMDLINE, "quiet panic=10 punctual.boot=3589736cf401")], Ok),
    ("parameter-nobody-reads", &[(CMDLINE, "blurb=1")], Unknown),
    (
        "parameter-nobody-reads",
        &[(CMDLINE, "isolcpuz=2-3"), ("/proc/1/environ", "HOME=/\0isolcpuz=2-3\0")],
        Warning,
    ),
    (
        "parameter-nobody-reads",
        &[
            (CMDLINE, "BOOT_IMAGE=/vmlinuz blurb=1"),
            ("/proc/1/environ", "HOME=/\0BOOT_IMAGE=/vmlinuz\0"),
        ],
        Ok,
    ),
    (
        "parameter-nobody-reads",
        &[
            (CMDLINE, "blurb=1"),
            ("/var/log/dmesg", "Unknown kernel command line parameters \"blurb=1\", will be"),
        ],
        Warning,
    ),
    ("parameter-nobody-reads", &[(CMDLINE, "pcie_aspm.policy=default")], Ok),
    ("parameter-nobody-reads", &[(CMDLINE, "usbcore.autosuspend=-1")], Unknown),
    ("parameter-nobody-reads", &[(CMDLINE, "usbcore.autosuspend=-1"), BUILTIN, MODINFO], Ok),
    ("parameter-nobody-reads", &[(CMDLINE, "usbcore.autosuspent=-1"), BUILTIN, MODINFO], Warning),
    ("parameter-nobody-reads", &[(CMDLINE, "e1000.x=1"), BUILTIN, MODINFO], Unknown),
    ("parameter-nobody-reads", &[(CMDLINE, "e1000.x=1"), BUILTIN, MODINFO, DEPENDENCIES], Unknown),
    ("parameter-nobody-reads", &[(CMDLINE, "e1001.x=1"), BUILTIN, MODINFO, DEPENDENCIES], Warning),
    ("kernel-thread-order", &[("/proc/30/stat", KSOFTIRQD_RAISED)], Warning),
    (
        "kernel-thread-order",
        &[
            ("/proc/30/stat", KSOFTIRQD_RAISED),
            RCUC_LOW,
            ("/proc/31/status", "Cpus_allowed_list:\t2"),
        ],
        Warning,
    ),
    ("kernel-thread-order", &[RCUC_LOW, ("/proc/31/status", "Cpus_allowed_list:\t2")], Ok),
    ("interrupt-thread-below-program", &[PROGRAM, PROGRAM_TASK, PORT, IRQ_THREAD], Warning),
    ("interrupt-thread-below-program", &[PROGRAM, PROGRAM_TASK, PORT, IRQ_THREAD_HIGH], Ok),
    // A different port, though its name begins alike.
    (
        "interrupt-thread-below-program",
        &[PROGRAM, PROGRAM_TASK, ("/proc/700/fd/3", "-> /dev/ttyS01"), IRQ_THREAD],
        Ok,
    ),
    (
        "interrupt-thread-below-program",
        &[PROGRAM, PROGRAM_TASK, ("/proc/700/fd/3", "-> /dev/ttyS1"), IRQ_THREAD],
        Ok,
    ),
    ("poller-on-cpu-0", &[POLLER, POLLER_TASK, UPTIME], Bad),
    ("poller-on-cpu-0", &[SLEEPER, SLEEPER_TASK, UPTIME], Ok),
    // Its other threads run elsewhere.
    ("poller-on-cpu-0", &[POLLER, SLEEPER_TASK, UPTIME], Ok),
    ("poller-on-cpu-0", &[POLLER, ("/proc/uptime", GONE)], Unknown),
    ("vcpu-threads", QEMU_OUT, Warning),
    ("vcpu-threads", QEMU_IN, Ok),
    ("vcpu-threads", QEMU_ELSEWHERE, Ok),
    ("fair-server", &[("/sys/kernel/debug/sched/fair_server/cpu3/runtime", GONE)], Unknown),
    ("rt-group-budget", &[(CONFIG, "CONFIG_RT_GROUP_SCHED=y")], Advice),
    ("rt-group-budget", &[(CONFIG, "CONFIG_RT_GROUP_SCHED=y"), (CMDLINE, "rt_group_sched=0")], Ok),
    (
        "rt-group-budget",
        &[
            (CONFIG, "CONFIG_RT_GROUP_SCHED=y"),
            V1,
            V1_GROUP,
            ("/cg/cpu/box/cpu.rt_runtime_us", "0"),
        ],
        Bad,
    ),
    (
        "rt-group-budget",
        &[
            (CONFIG, "CONFIG_RT_GROUP_SCHED=y"),
            V1,
            V1_GROUP,
            ("/cg/cpu/box/cpu.rt_runtime_us", "950000"),
        ],
        Ok,
    ),
    ("rt-group-budget", &[(CONFIG, "CONFIG_RT_GROUP_SCHED=y"), V1, V1_GROUP], Unknown),
    ("high-resolution-timers", &[("/proc/timer_list", ".hres_active : 0")], Bad),
    ("high-resolution-timers", &[("/proc/timer_list", GONE), (CMDLINE, "highres=off")], Bad),
    ("high-resolution-timers", &[("/proc/timer_list", GONE), (CMDLINE, "highres=0")], Bad),
    ("high-resolution-timers", &[("/proc/timer_list", GONE), (CMDLINE, "highres=on")], Ok),
    ("high-resolution-timers", &[(CMDLINE, "highres=off")], Ok),
    ("high-resolution-timers", &[("/proc/timer_list", GONE)], Ok),
    (
        "clocksource",
        &[("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")],
        Bad,
    ),
    (
        "clocksource",
        &[("/sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock")],
        Advice,
    ),
    (
        "tsc-stability",
        &[(CPUINFO, "vendor_id : GenuineIntel\nmodel name : x\nflags : tsc nonstop_tsc")],
        Warning,
    ),
    (
        "tsc-stability",
        &[(CPUINFO, "vendor_id : GenuineIntel\nmodel name : x\nflags : tsc constant_tsc")],
        Warning,
    ),
    (
        "tsc-stability",
        &[("/proc/sys/kernel/arch", GONE), (CPUINFO, "CPU implementer : 0x41\nCPU part : 0xd03")],
        Ok,
    ),
    (
        "tsc-deadline-timer",
        &[(CPUINFO, "vendor_id : GenuineIntel\nmodel name : x\nflags : tsc")],
        Advice,
    ),
    (
        "clock-event-device",
        &[("/sys/devices/system/clockevents/clockevent0/current_device", "hpet")],
        Warning,
    ),
    ("timer-migration", &[("/proc/sys/kernel/timer_migration", "1")], Advice),
    (
        "governor",
        &[("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave")],
        Warning,
    ),
    ("governor", &[("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave")], Ok),
    ("governor", &[("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", GONE)], Unknown),
    (
        "energy-preference",
        &[("/sys/devices/system/cpu/cpu3/cpufreq/energy_performance_preference", "balance_power")],
        Advice,
    ),
    (
        "energy-preference",
        &[("/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver", "acpi-cpufreq")],
        Ok,
    ),
    (
        "frequency-cap",
        &[("/sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq", "800000")],
        Advice,
    ),
    ("turbo", &[("/sys/devices/system/cpu/intel_pstate/no_turbo", "0")], Advice),
    (
        "turbo",
        &[
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", GONE),
            ("/sys/devices/system/cpu/cpufreq/boost", "1"),
        ],
        Advice,
    ),
    (
        "turbo",
        &[
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", GONE),
            ("/sys/devices/system/cpu/cpufreq/boost", "0"),
        ],
        Ok,
    ),
    ("turbo", &[("/sys/devices/system/cpu/intel_pstate/no_turbo", GONE)], Unknown),
    ("idle-states", &[("/sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "0")], Warning),
    (
        "idle-states",
        &[("/sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "0"), (CMDLINE, "idle=poll")],
        Ok,
    ),
    (
        "idle-states",
        &[
            ("/sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "0"),
            ("/dev/cpu_dma_latency", "\0\0\0\0"),
        ],
        Ok,
    ),
    (
        "idle-states",
        &[
            ("/sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "0"),
            (CMDLINE, "idle=poll"),
            ("/proc/sys/kernel/arch", "aarch64"),
        ],
        Warning,
    ),
    ("idle-states", &[("/sys/devices/system/cpu/cpu2/cpuidle/state2/latency", GONE)], Unknown),
    (
        "pcie-power-saving",
        &[("/sys/module/pcie_aspm/parameters/policy", "default performance [powersave]")],
        Advice,
    ),
    ("isolated-cpus", &[("/sys/devices/system/cpu/isolated", "")], Advice),
    ("isolated-cpus", &[("/sys/devices/system/cpu/isolated", ""), PARTITION, PARTITION_CPUS], Ok),
    ("isolation-request", &[(CMDLINE, "isolcpus=1")], Warning),
    ("isolation-request", &[(CMDLINE, "isolcpus=2-N nohz_full=2-N")], Ok),
    ("isolation-request", &[(CMDLINE, "nohz_full=1-3")], Warning),
    ("isolation-request", &[(CMDLINE, "isolcpus=2 isolcpus=2-3")], Ok),
    ("isolation-request", &[(CMDLINE, "isolcpus=all")], Warning),
    ("isolation-request", &[(CMDLINE, "isolcpus=2-9")], Unknown),
    ("isolation-request", &[(CMDLINE, "isolcpus=managed_irq,1")], Ok),
    ("isolation-request", &[(CMDLINE, "isolcpus=nohz,1")], Warning),
    ("isolation-request", &[(CMDLINE, "quiet")], Ok),
    ("isolation-lasts", &[(CMDLINE, "quiet")], Advice),
    ("isolation-lasts", &[(CMDLINE, "isolcpus=2-3")], Ok),
    ("isolation-lasts", &[(CMDLINE, "quiet"), SERVICE], Warning),
    ("isolation-lasts", &[(CMDLINE, "quiet"), SERVICE, SERVICE_LINK], Ok),
    (
        "isolation-lasts",
        &[(CMDLINE, "quiet"), SERVICE, SERVICE_LINK, ("/sys/devices/system/cpu/isolated", "1-3")],
        Warning,
    ),
    ("cpus-online", &[("/sys/devices/system/cpu/online", "0-2")], Bad),
    ("housekeeping-cpus", &[("/sys/devices/system/cpu/isolated", "0-3")], Bad),
    ("housekeeping-cpus", &[("/sys/devices/system/cpu/isolated", "0-1")], Warning),
    ("nohz-full", &[("/sys/devices/system/cpu/nohz_full", "(null)")], Advice),
    ("nohz-full", &[("/sys/devices/system/cpu/nohz_full", "3")], Warning),
    ("nohz-full", &[(CONFIG, "CONFIG_HZ=250")], Advice),
    ("nohz-full", &[("/sys/devices/system/cpu/nohz_full", GONE)], Unknown),
    ("nohz-full-isolated", &[("/sys/devices/system/cpu/nohz_full", "1-3")], Warning),
    ("nohz-full-isolated", &[("/sys/devices/system/cpu/nohz_full", "")], Ok),
    ("rcu-callbacks", &[(CMDLINE, "quiet"), ("/sys/devices/system/cpu/nohz_full", "")], Advice),
    ("rcu-callbacks", &[(CMDLINE, "quiet")], Ok),
    ("rcu-callbacks", &[(CMDLINE, "rcu_nocbs=all"), ("/sys/devices/system/cpu/nohz_full", "")], Ok),
    ("rcu-callbacks", &[(CMDLINE, "rcu_nocbs=0-3:1/2")], Ok),
    (
        "rcu-callbacks",
        &[(CMDLINE, "rcu_nocbs=0-3:1/2"), ("/sys/devices/system/cpu/nohz_full", "")],
        Advice,
    ),
    (
        "rcu-callbacks",
        &[(CMDLINE, "rcu_nocbs=3-9"), ("/sys/devices/system/cpu/nohz_full", "")],
        Unknown,
    ),
    ("rcu-callbacks", &[(CMDLINE, "rcu_nocbs=2,x"), ("/sys/devices/system/cpu/nohz_full", "")], Ok),
    (
        "smt-siblings",
        &[("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2")],
        Warning,
    ),
    (
        "shared-cache",
        &[("/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,2")],
        Advice,
    ),
    ("one-memory-node", TWO_NODES, Advice),
    ("systemd-affinity", &[("/sys/devices/system/cpu/isolated", "3")], Ok),
    ("interrupts-elsewhere", &[("/proc/irq/24/effective_affinity_list", "2")], Warning),
    (
        "interrupts-elsewhere",
        &[
            ("/proc/irq/24/effective_affinity_list", GONE),
            ("/proc/irq/24/smp_affinity_list", "0-3"),
        ],
        Warning,
    ),
    (
        "interrupts-elsewhere",
        &[("/proc/irq/24/effective_affinity_list", GONE), ("/proc/irq/24/smp_affinity_list", GONE)],
        Unknown,
    ),
    ("default-irq-affinity", &[("/proc/irq/default_smp_affinity", "f")], Advice),
    ("irqaffinity-parameter", &[(CMDLINE, "quiet")], Advice),
    ("irqaffinity-parameter", &[(CMDLINE, "irqaffinity=0-2")], Warning),
    ("irqaffinity-parameter", &[(CMDLINE, "irqaffinity=0-3:1/4")], Ok),
    ("irqaffinity-parameter", &[(CMDLINE, "irqaffinity=0-N")], Warning),
    ("irqaffinity-parameter", &[(CMDLINE, "irqaffinity=0-1 irqaffinity=0-9")], Unknown),
    (
        "irqaffinity-parameter",
        &[(CMDLINE, "irqaffinity=1"), ("/sys/devices/system/cpu/isolated", "0")],
        Warning,
    ),
    ("managed-interrupts", &[(CMDLINE, "isolcpus=2-3")], Advice),
    ("irqbalance", &[(TASK, BALANCER)], Ok),
    (
        "irqbalance",
        &[
            (TASK, BALANCER),
            ("/sys/devices/system/cpu/isolated", ""),
            ("/sys/devices/system/cpu/nohz_full", ""),
            PARTITION,
            PARTITION_CPUS,
        ],
        Warning,
    ),
    ("irq-thread-priorities", &[("/proc/60/stat", IRQ_AT_99)], Warning),
    ("irq-thread-priorities", &[("/proc/60/stat", IRQ_AT_0)], Warning),
    ("packet-steering", &[("/sys/class/net/eth0/queues/rx-0/rps_cpus", "f")], Advice),
    ("packet-steering", &[("/sys/class/net/eth0/queues/tx-0/xps_cpus", GONE)], Ok),
    ("user-tasks", &[("/proc/1/status", "Cpus_allowed_list:\t0-3")], Warning),
    ("kernel-threads", &[("/proc/2/status", "Cpus_allowed_list:\t0-3")], Advice),
    (
        "competing-priorities",
        &[(TASK, PLAYER), ("/proc/1/status", "Cpus_allowed_list:\t0-3")],
        Advice,
    ),
    ("competing-priorities", &[(TASK, PLAYER)], Ok),
    ("audit", &[(TASK, AUDITOR)], Advice),
    ("audit", &[(TASK, AUDITOR), (CMDLINE, "audit=0")], Ok),
    ("audit", &[(CMDLINE, "audit=1")], Advice),
    ("workqueues", &[("/sys/devices/virtual/workqueue/cpumask", "f")], Advice),
    (
        "writeback-workqueue",
        &[("/sys/devices/virtual/workqueue/writeback/cpumask", "ff,ffffffff")],
        Advice,
    ),
    ("nmi-watchdog", &[("/proc/sys/kernel/nmi_watchdog", "1")], Advice),
    ("soft-watchdog", &[("/proc/sys/kernel/watchdog_cpumask", "0-3")], Advice),
    (
        "soft-watchdog",
        &[("/proc/sys/kernel/watchdog_cpumask", "0-3"), ("/proc/sys/kernel/watchdog", "0")],
        Ok,
    ),
    ("hung-task-detector", &[("/proc/sys/kernel/hung_task_timeout_secs", "120")], Advice),
    (
        "hung-task-detector",
        &[("/proc/sys/kernel/hung_task_timeout_secs", GONE), (CONFIG, "CONFIG_HZ=250")],
        Ok,
    ),
    ("hung-task-detector", &[("/proc/sys/kernel/hung_task_timeout_secs", GONE)], Unknown),
    (
        "machine-check-polling",
        &[("/sys/devices/system/machinecheck/machinecheck0/check_interval", "300")],
        Advice,
    ),
    ("vm-statistics", &[("/proc/sys/vm/stat_interval", "1")], Advice),
    ("console-messages", &[("/proc/sys/kernel/printk", "7 4 1 7")], Advice),
    ("serial-console", &[("/sys/class/tty/console/active", "tty0 ttyS0")], Advice),
    ("access-times", &[(MOUNTS, "/dev/sda1 / ext4 rw 0 0")], Advice),
    ("access-times", &[(MOUNTS, "/dev/sda1 / ext4 rw,sync,relatime 0 0")], Warning),
    ("swap", &[("/proc/meminfo", "SwapTotal: 1000 kB")], Advice),
    ("swap", &[("/proc/meminfo", "MemTotal: 1000 kB")], Unknown),
    (
        "transparent-hugepages",
        &[("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")],
        Warning,
    ),
    (
        "transparent-hugepages",
        &[("/sys/kernel/mm/transparent_hugepage/enabled", GONE), (CONFIG, "CONFIG_HZ=250")],
        Ok,
    ),
    (
        "hugepage-defrag",
        &[("/sys/kernel/mm/transparent_hugepage/defrag", "[always] defer madvise never")],
        Advice,
    ),
    ("proactive-compaction", &[("/proc/sys/vm/compaction_proactiveness", "20")], Advice),
    ("locked-page-compaction", &[("/proc/sys/vm/compact_unevictable_allowed", "1")], Advice),
    ("same-page-merging", &[("/sys/kernel/mm/ksm/run", "1")], Warning),
    ("numa-balancing", &[("/proc/sys/kernel/numa_balancing", "1")], Warning),
    ("lock-debugging", &[(CONFIG, "CONFIG_PROVE_LOCKING=y")], Bad),
    ("lock-debugging", &[(CONFIG, GONE)], Unknown),
    ("sanitizers", &[(CONFIG, "CONFIG_KASAN=y")], Bad),
    ("memory-debugging", &[(CONFIG, "CONFIG_SLUB_DEBUG_ON=y")], Warning),
    ("preemption-debugging", &[(CONFIG, "CONFIG_DEBUG_PREEMPT=y")], Warning),
    ("irqsoff-tracers-built", &[(CONFIG, "CONFIG_IRQSOFF_TRACER=y")], Advice),
    ("current-tracer", &[("/sys/kernel/tracing/current_tracer", "function")], Warning),
    (
        "current-tracer",
        &[
            ("/sys/kernel/tracing/current_tracer", "function"),
            ("/sys/kernel/tracing/tracing_on", "0"),
        ],
        Advice,
    ),
    (
        "current-tracer",
        &[
            ("/sys/kernel/tracing/current_tracer", GONE),
            ("/sys/kernel/debug/tracing/current_tracer", "nop"),
        ],
        Ok,
    ),
    ("trace-events", &[("/sys/kernel/tracing/set_event", "sched:sched_switch")], Advice),
    ("stack-tracer", &[("/proc/sys/kernel/stack_tracer_enabled", "1")], Warning),
    ("scheduler-statistics", &[("/proc/sys/kernel/sched_schedstats", "1")], Advice),
    (
        "hypervisor",
        &[(CPUINFO, "vendor_id : GenuineIntel\nmodel name : x\nflags : tsc hypervisor")],
        Warning,
    ),
    (
        "hypervisor",
        &[(CPUINFO, "CPU part : 0xd03"), ("/proc/device-tree/model", "Raspberry Pi 3 Model B\0")],
        Ok,
    ),
    (
        "hypervisor",
        &[(CPUINFO, "CPU part : 0xd03"), ("/proc/device-tree/compatible", "linux,dummy-virt\0")],
        Warning,
    ),
    ("hypervisor", &[(CPUINFO, "CPU part : 0xd03")], Unknown),
    ("steal-time", &[("/proc/stat", "cpu2 1 0 0 0 0 0 0 7 0 0")], Warning),
    ("steal-time", &[("/proc/stat", "cpu0 1 0 0 0 0 0 0 7 0 0")], Unknown),
    ("smi-count", &[("/dev/cpu/3/msr", SMI_COUNT_7)], Advice),
    ("smi-count", &[("/dev/cpu/3/msr", GONE)], Unknown),
    ("smi-count", &[(CPUINFO, "vendor_id : AuthenticAMD\nmodel name : x\nflags : tsc")], Ok),
    (
        "microcode",
        &[(
            "/sys/devices/system/cpu/vulnerabilities/mds",
            "Vulnerable: Clear CPU buffers attempted, no microcode",
        )],
        Advice,
    ),
    (
        "mitigations",
        &[("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI")],
        Advice,
    ),
    (
        "mitigations",
        &[("/sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: IBRS")],
        Advice,
    ),
    (
        "thermal-throttling",
        &[("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "4")],
        Warning,
    ),
    (
        "realtime-priority-limit",
        &[NO_RIGHTS, (LIMITS, "Max realtime priority     0                    0")],
        Bad,
    ),
    (
        "realtime-priority-limit",
        &[NO_RIGHTS, (LIMITS, "Max realtime priority     20                   20")],
        Advice,
    ),
    ("realtime-priority-limit", &[NO_RIGHTS], Ok),
    (
        "memory-lock-limit",
        &[NO_RIGHTS, (LIMITS, "Max locked memory         8388608              8388608")],
        Warning,
    ),
    ("memory-lock-limit", &[NO_RIGHTS], Ok),
    (
        "realtime-timeout",
        &[(LIMITS, "Max realtime timeout      200000               200000")],
        Advice,
    ),
    ("timer-slack", &[("/proc/self/timerslack_ns", "5000000")], Advice),
    ("cpuset-controller", &[("/sys/fs/cgroup/cgroup.controllers", "cpu io memory")], Advice),
    ("cpuset-controller", &[V1], Ok),
    ("kernel-recorder", &[NO_RIGHTS], Advice),
    ("kernel-recorder", &[("/sys/kernel/btf/vmlinux", GONE)], Advice),
    ("kernel-recorder", &[(CONFIG, "CONFIG_FTRACE=y")], Advice),
    ("kernel-recorder", &[(CONFIG, "CONFIG_HZ=250")], Warning),
    (
        "kernel-recorder",
        &[("/sys/kernel/security/lockdown", "none integrity [confidentiality]")],
        Warning,
    ),
    ("bpf", &[NO_RIGHTS], Advice),
    ("bpf", &[(CONFIG, "CONFIG_HZ=250")], Advice),
    ("kernel-types", &[("/sys/kernel/btf/vmlinux", GONE)], Advice),
    ("lockdown", &[("/sys/kernel/security/lockdown", "none [integrity] confidentiality")], Advice),
    ("lockdown", &[("/sys/kernel/security/lockdown", "none integrity [confidentiality]")], Warning),
    ("lockdown", &[("/sys/kernel/security/lockdown", GONE)], Unknown),
    ("tracefs", &[("/sys/kernel/tracing/tracing_on", GONE)], Advice),
    ("kernel-probes", &[(CONFIG, "CONFIG_HZ=250")], Advice),
    ("user-probes", &[(CONFIG, "CONFIG_HZ=250")], Advice),
    ("latency-tracers", &[("/sys/kernel/tracing/available_tracers", "function nop")], Advice),
    ("perf-events", &[NO_RIGHTS], Advice),
    ("perf-events", &[NO_RIGHTS, ("/proc/sys/kernel/perf_event_paranoid", "-1")], Ok),
    (
        "hardware-counters",
        &[
            ("/sys/bus/event_source/devices/cpu/type", GONE),
            ("/sys/bus/event_source/devices/software/type", "1"),
        ],
        Advice,
    ),
    ("debugfs", &[("/sys/kernel/debug", GONE)], Advice),
];

const V1: (&str, &str) =
    (MOUNTS, "cgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup /cg/cpuset cgroup rw,cpuset 0 0");
const V1_GROUP: (&str, &str) = ("/proc/self/cgroup", "3:cpuset:/\n1:cpu:/box");
const SERVICE: (&str, &str) = (
    "/etc/systemd/system/punctual-isolate.service",
    "[Service]\nExecStart=\"/usr/bin/punctual\" isolate create 2-3 --no-replug\n",
);
const SERVICE_LINK: (&str, &str) =
    ("/etc/systemd/system/basic.target.wants/punctual-isolate.service", "");
const PARTITION: (&str, &str) = ("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated");
const PARTITION_CPUS: (&str, &str) = ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3");
const TWO_NODES: &[(&str, &str)] = &[
    ("/sys/devices/system/node/online", "0-1"),
    ("/sys/devices/system/node/node0/cpulist", "0-2"),
    ("/sys/devices/system/node/node1/cpulist", "3"),
];
const BALANCER: &str = "1 (irqbalance) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 \
                        0 0 0 0 0 0 0 0 0 0 17 0 0 0 0";
const AUDITOR: &str = "1 (auditd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 \
                       0 0 0 0 0 0 0 17 0 0 0 0";
const PLAYER: &str = "1 (player) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 -81 0 1 0 5 0 0 0 0 0 0 0 0 \
                      0 0 0 0 0 0 0 17 0 80 1 0";
const IRQ_AT_99: &str = "60 (irq/24-eth0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -100 0 1 0 5 0 0 0 \
                         0 0 0 0 0 0 0 0 0 0 0 0 17 0 99 1 0";
const IRQ_AT_0: &str = "60 (irq/24-eth0) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 \
                        0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0";
/// 0x34 zero bytes and a count.
const SMI_COUNT_7: &str = "0000000000000000000000000000000000000000000000000000\u{7}\0\0\0\0\0\0\0";

fn changed(changes: &[(&str, &str)]) -> FakeFiles {
    changes.iter().fold(ideal_files(), |files, (path, value)| match *value {
        GONE => files.without_path(path),
        value => files.with_file(path, value),
    })
}

#[test]
fn each_case_has_its_expected_verdict() {
    let mut wrong = Vec::new();
    for (rule, changes, expected) in CASES {
        let result = result(&changed(changes), None, rule);
        if result.verdict != *expected {
            wrong.push(format!(
                "{rule} {changes:?}: {} instead of {expected}: {} ({})",
                result.verdict, result.message, result.evidence
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_rule_has_a_bad_case() {
    let bad = |rule: &Rule| {
        CASES.iter().any(|(id, _, verdict)| *id == rule.id && !matches!(verdict, Ok | Unknown))
    };
    let without: Vec<&str> = all_rules().filter(|rule| !bad(rule)).map(|rule| rule.id).collect();
    // Its bad case needs CPUs that are named and not isolated: see below.
    assert_eq!(without, ["systemd-affinity"]);
    assert!(
        CASES.iter().all(|(id, ..)| all_rules().any(|rule| rule.id == *id)),
        "a case of a rule that is not there"
    );
}

#[test]
fn affinities_of_systemd_services_are_judged() {
    let files = || changed(&[("/sys/devices/system/cpu/isolated", "")]);
    let verdict = |files: FakeFiles| result(&files, Some("2-3"), "systemd-affinity").verdict;
    assert_eq!(verdict(files()), Advice);
    assert_eq!(
        verdict(
            files().with_file(
                "/etc/systemd/system.conf",
                "#CPUAffinity=\n[Manager]\nCPUAffinity=0 1\n"
            )
        ),
        Ok
    );
    assert_eq!(
        verdict(
            files().with_file("/etc/systemd/system.conf.d/rt.conf", "[Manager]\nCPUAffinity=0-2\n")
        ),
        Advice
    );
    assert_eq!(
        verdict(
            files().with_file("/etc/systemd/system.conf", "[Manager]\nCPUAffinity=none of them\n")
        ),
        Advice
    );
    assert_eq!(verdict(files().without_path("/run")), Ok);
    assert_eq!(result(&files(), Some("2-3"), "isolated-cpus").verdict, Warning);
}

#[test]
fn rules_controlled_by_the_host_do_not_apply_in_a_guest() {
    let guest = || {
        changed(&[(
            CPUINFO,
            "vendor_id : GenuineIntel\nmodel name : x\nflags : tsc constant_tsc nonstop_tsc \
             hypervisor",
        )])
        .without_path("/sys/devices/system/cpu/cpu2/cpufreq")
        .without_path("/dev/cpu")
    };
    for rule in ["governor", "frequency-cap", "energy-preference", "smi-count"] {
        let result = result(&guest(), None, rule);
        assert_eq!((result.verdict, result.applies), (Ok, false), "{result:?}");
        assert!(result.message.contains("controlled by the host"), "{result:?}");
    }
}

#[test]
fn version_1_cpusets_outside_load_balancing_are_partitions() {
    let v1 = |own: &str| {
        let files = changed(&[V1, ("/sys/devices/system/cpu/isolated", "")])
            .with_file("/cg/cpuset/cpuset.cpus", "0-3");
        let files = files.with_file("/cg/cpuset/cpuset.sched_load_balance", "0");
        let files = files
            .with_file("/cg/cpuset/rt/cpuset.sched_load_balance", own)
            .with_file("/cg/cpuset/rt/cpuset.cpus", "3");
        let context = Context::new(&files, None);
        (context.cpus.to_string(), context.chosen)
    };
    assert_eq!(v1("0"), ("3".into(), Chosen::Isolated));
    assert_eq!(v1("1"), ("0-3".into(), Chosen::All));
}

#[test]
fn proposed_fixes_make_their_rule_pass() {
    let fixable = [
        "numa-balancing",
        "governor",
        "idle-states",
        "default-irq-affinity",
        "workqueues",
        "interrupts-elsewhere",
    ];
    for (rule, changes, verdict) in
        CASES.iter().filter(|(id, _, v)| fixable.contains(id) && !matches!(v, Ok | Unknown))
    {
        let files = changed(changes);
        let result = result(&files, None, rule);
        assert_eq!(result.verdict, *verdict);
        assert!(!result.writes.is_empty(), "{result:?}");
        // The suggested writes satisfy the rule.
        let after = result.writes.iter().fold(files, |files, w| files.with_file(&w.path, &w.value));
        let again = self::result(&after, None, rule);
        let moved = *rule == "interrupts-elsewhere";
        assert!(again.verdict == Ok || moved, "{again:?}");
    }
}
