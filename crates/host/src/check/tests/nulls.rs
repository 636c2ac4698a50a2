//! A null test of `check`: randomly chosen machines with only good settings get no warning.
//!
//! The settings are those of the ideal machine, and each with several good values takes one of
//! them; the isolated CPUs and the missing kernel options are random as well.
//! them; which CPUs are set apart is chosen as well, and which options the kernel is built without.

use super::*;
use crate::files::Files;
use proptest::prelude::*;

/// The number of machines.
const MACHINES: u32 = 1_000;
/// Removes the file.
const GONE: &str = "(gone)";
const CONFIG: &str = "/boot/config-6.12.30-rt-amd64";
const CMDLINE: &str = "/proc/cmdline";

/// Files with their good values. `{rt}` and `{rest}` are the isolated and the other CPUs, `{mask}`
/// the latter as a mask, `{cpu}` each CPU.
const GOOD: &[(&str, &[&str])] = &[
    ("/sys/devices/system/clockevents/clockevent0/current_device", &["lapic-deadline", "lapic"]),
    ("/proc/timer_list", &[".hres_active    : 1", "cpu: 0\n  .hres_active    : 1\n", GONE]),
    ("/proc/sys/kernel/sched_rt_runtime_us", &["-1", "1000000", "950000"]),
    ("/sys/devices/system/cpu/isolated", &["{rt}"]),
    ("/sys/devices/system/cpu/nohz_full", &["{rt}"]),
    ("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver", &["intel_pstate", "acpi-cpufreq"]),
    (
        "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq",
        &["3000000", "3000001", "4700000"],
    ),
    ("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/latency", &["133", "1034"]),
    ("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1/latency", &["0", "1", "2", "10"]),
    ("/sys/devices/system/cpu/cpuidle/current_driver", &["intel_idle", "acpi_idle", "none"]),
    ("/sys/devices/virtual/workqueue/cpumask", &["{mask}", "1", "00000000,0000000{mask}"]),
    ("/sys/devices/virtual/workqueue/writeback/cpumask", &["{mask}", "1"]),
    (
        "/sys/module/pcie_aspm/parameters/policy",
        &["[default] performance powersave", "default [performance] powersave"],
    ),
    ("/sys/kernel/mm/ksm/run", &["0", "2"]),
    (
        "/sys/kernel/mm/transparent_hugepage/enabled",
        &["always [madvise] never", "always madvise [never]"],
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/defrag",
        &[
            "always [defer] defer+madvise madvise never",
            "always defer [defer+madvise] madvise never",
            "always defer defer+madvise [madvise] never",
            "always defer defer+madvise madvise [never]",
        ],
    ),
    ("/sys/kernel/tracing/tracing_on", &["0", "1"]),
    ("/sys/class/tty/console/active", &["tty0", "tty1", "tty0 tty1", "hvc0", ""]),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", &["0", "00000000", "{mask}", "1"]),
    ("/sys/class/net/eth0/queues/tx-0/xps_cpus", &["{mask}", "1", GONE]),
    ("/proc/irq/default_smp_affinity", &["{mask}", "1"]),
    ("/proc/irq/24/smp_affinity_list", &["{rest}", "0", "0-3"]),
    ("/proc/irq/24/effective_affinity_list", &["{rest}", "0"]),
    ("/proc/sys/kernel/hung_task_timeout_secs", &["0", "600", "601", "86400"]),
    ("/proc/sys/kernel/watchdog_cpumask", &["{rest}", "0"]),
    ("/proc/sys/kernel/soft_watchdog", &["0", "1"]),
    ("/proc/sys/kernel/watchdog", &["0", "1"]),
    ("/proc/sys/kernel/perf_event_paranoid", &["-1", "0", "2", "3", "4"]),
    ("/proc/sys/kernel/printk", &["1 4 1 7", "4 4 1 7", "5 5 1 7", "3\t4\t1\t3"]),
    ("/proc/sys/vm/stat_interval", &["10", "60", "3600"]),
    ("/proc/self/timerslack_ns", &["1", "49999", "50000"]),
    (
        "/proc/self/mounts",
        &[
            "/dev/sda1 / ext4 rw,relatime 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
            "/dev/sda1 / xfs rw,noatime 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
            "/dev/sda1 / ext4 rw,lazytime 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
            "tmpfs / tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
        ],
    ),
    ("/proc/1/status", &["Cpus_allowed_list:\t{rest}", "Cpus_allowed_list:\t0"]),
    ("/proc/2/status", &["Cpus_allowed_list:\t{rest}", "Cpus_allowed_list:\t0"]),
    ("/proc/60/status", &["Cpus_allowed_list:\t{rest}"]),
    ("/run/systemd/system/.there", &["", GONE]),
    ("/sys/devices/system/cpu/vulnerabilities/meltdown", &["Not affected"]),
    (
        "/sys/devices/system/cpu/vulnerabilities/retbleed",
        &["Not affected", "Mitigation: Enhanced IBRS", GONE],
    ),
    (
        "/sys/devices/system/cpu/vulnerabilities/spec_store_bypass",
        &["Not affected", "Mitigation: Speculative Store Bypass disabled via prctl", GONE],
    ),
];

/// Optional kernel parts, and the files that are missing without them.
const OPTIONAL: &[(&str, &[&str])] = &[
    ("NUMA_BALANCING", &["/proc/sys/kernel/numa_balancing"]),
    ("KSM", &["/sys/kernel/mm/ksm"]),
    ("TRANSPARENT_HUGEPAGE", &["/sys/kernel/mm/transparent_hugepage"]),
    (
        "LOCKUP_DETECTOR",
        &[
            "/proc/sys/kernel/nmi_watchdog",
            "/proc/sys/kernel/soft_watchdog",
            "/proc/sys/kernel/watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
        ],
    ),
    ("DETECT_HUNG_TASK", &["/proc/sys/kernel/hung_task_timeout_secs"]),
    ("X86_MCE", &["/sys/devices/system/machinecheck"]),
    ("PCIEASPM", &["/sys/module/pcie_aspm"]),
    (
        "COMPACTION",
        &["/proc/sys/vm/compaction_proactiveness", "/proc/sys/vm/compact_unevictable_allowed"],
    ),
    ("SCHEDSTATS", &["/proc/sys/kernel/sched_schedstats"]),
    ("STACK_TRACER", &["/proc/sys/kernel/stack_tracer_enabled"]),
];

/// Tasks on the CPUs that are not isolated: name, flags, priority.
const BESIDE: &[(&str, u64, u32)] = &[
    ("irqbalance", 0x40_0000, 0),
    ("sshd", 0x40_0000, 0),
    ("player", 0x40_0000, 80),
    ("kworker/u8:1", 0x20_8040, 0),
    ("irq/25-nvme0q1", 0x20_8040, 89),
    ("irq/9-acpi", 0x20_8040, 1),
];

/// Words of the kernel's command line besides the partition's.
const WORDS: &[&str] = &["quiet", "audit=0", "idle=poll", "threadirqs", "skew_tick=1", "nomodeset"];

/// Random numbers that choose among alternatives.
struct Choices(std::vec::IntoIter<u16>);

impl Choices {
    fn among(&mut self, count: usize) -> usize {
        usize::from(self.0.next().expect("enough numbers")) % count
    }

    fn is(&mut self) -> bool {
        self.among(2) == 1
    }
}

/// The maximum number of random values that a machine uses.
const NUMBERS: usize = 128;

fn machine(numbers: Vec<u16>) -> FakeFiles {
    let mut choices = Choices(numbers.into_iter());
    let first = 1 + choices.among(3);
    let rt = if first == 3 { "3".to_owned() } else { format!("{first}-3") };
    let rest = if first == 1 { "0".to_owned() } else { format!("0-{}", first - 1) };
    let mask = format!("{:x}", (1 << first) - 1);
    let filled =
        |text: &str| text.replace("{rt}", &rt).replace("{rest}", &rest).replace("{mask}", &mask);
    let mut files = ideal_files();
    for (path, values) in GOOD {
        let value = values[choices.among(values.len())];
        for cpu in 0..4 {
            let path = path.replace("{cpu}", &cpu.to_string());
            files = match value {
                GONE => files.without_path(&path),
                value => files.with_file(&path, &filled(value)),
            };
        }
    }
    let mut config = files.read(CONFIG).expect("the ideal machine's");
    for (option, paths) in OPTIONAL {
        if choices.is() {
            config = config.replace(&format!("CONFIG_{option}=y\n"), "");
            files = paths.iter().fold(files, |files, path| files.without_path(path));
        }
    }
    let hz = ["100", "250", "300", "1000"][choices.among(4)];
    files = files.with_file(CONFIG, &config.replace("CONFIG_HZ=250", &format!("CONFIG_HZ={hz}")));
    let isolcpus = ["managed_irq,domain,", "domain,managed_irq,", "nohz,managed_irq,domain,"];
    let isolcpus = isolcpus[choices.among(isolcpus.len())];
    let rcu = ["rcu_nocbs={rt}", "rcu_nocbs=all", ""][choices.among(3)];
    let line = format!("isolcpus={isolcpus}{{rt}} nohz_full={{rt}} {rcu} irqaffinity={{rest}}");
    let mut line = filled(&line);
    for word in WORDS {
        if choices.is() {
            line = format!("{line} {word}");
        }
    }
    files = files.with_file(CMDLINE, &line);
    for (place, (name, flags, priority)) in BESIDE.iter().enumerate() {
        if choices.is() {
            let (pid, kernel) = (100 + place, if flags & 0x20_0000 != 0 { 2 } else { 1 });
            let shown = if *priority > 0 { -1 - i64::from(*priority) } else { 20 };
            let policy = u32::from(*priority > 0);
            // proc_pid_stat(5): the fields from vsize to cnswap are not read.
            let (counts, unread) = (" 0".repeat(8), " 0".repeat(15));
            let stat = format!(
                "{pid} ({name}) S {kernel} 0 0 0 -1 {flags}{counts} {shown} 0 1 0 5{unread} 17 0 \
                 {priority} {policy} 0"
            );
            files = files
                .with_file(&format!("/proc/{pid}/stat"), &stat)
                .with_file(&format!("/proc/{pid}/status"), &filled("Cpus_allowed_list:\t{rest}"));
        }
    }
    // Turbo is off by the switch of intel_pstate or by that of the other drivers.
    if choices.is() {
        files = files
            .without_path("/sys/devices/system/cpu/intel_pstate")
            .with_file("/sys/devices/system/cpu/cpufreq/boost", "0");
    }
    // Without the capabilities the limits decide; 64 MiB are enough.
    if choices.is() {
        let locked = ["unlimited", "67108864", "1073741824"][choices.among(3)];
        files = files.with_file(
            "/proc/self/limits",
            &format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  {locked}  unlimited  \
                 bytes\nMax realtime priority  99  99\nMax realtime timeout  unlimited  \
                 unlimited  us\n"
            ),
        );
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(MACHINES))]

    #[test]
    fn good_settings_at_random_get_no_warning(
        numbers in prop::collection::vec(any::<u16>(), NUMBERS),
    ) {
        let unhappy: Vec<RuleResult> = results(&machine(numbers), None)
            .into_iter()
            .filter(|result| result.verdict != RuleVerdict::Ok)
            .collect();
        prop_assert_eq!(unhappy, vec![]);
    }

    /// A single bad setting of the same machines is found.
    #[test]
    fn a_single_bad_setting_is_found_by_its_rule_alone(
        numbers in prop::collection::vec(any::<u16>(), NUMBERS),
        bad in prop::sample::select(BAD),
    ) {
        let (path, value, rule) = bad;
        let files = machine(numbers);
        // The kernel may be built without it.
        prop_assume!(files.exists(path));
        let files = files.with_file(path, value);
        let found: Vec<String> = results(&files, None)
            .into_iter()
            .filter(|result| result.verdict != RuleVerdict::Ok)
            .map(|result| result.id)
            .collect();
        prop_assert_eq!(found, vec![rule.to_owned()]);
    }
}

/// Values that are bad on every machine: file, value, and the only rule that reports it.
const BAD: &[(&str, &str, &str)] = &[
    ("/sys/kernel/mm/ksm/run", "1", "same-page-merging"),
    ("/proc/sys/kernel/numa_balancing", "1", "numa-balancing"),
    ("/proc/sys/vm/stat_interval", "9", "vm-statistics"),
    ("/proc/irq/24/effective_affinity_list", "3", "interrupts-elsewhere"),
    ("/sys/devices/virtual/workqueue/cpumask", "f", "workqueues"),
    ("/proc/sys/kernel/timer_migration", "1", "timer-migration"),
    ("/proc/1/status", "Cpus_allowed_list:\t3", "user-tasks"),
    ("/sys/kernel/tracing/current_tracer", "function", "current-tracer"),
    ("/proc/self/timerslack_ns", "50001", "timer-slack"),
    ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave", "governor"),
];
