//! A machine with four CPUs, two memory nodes, some interrupts, tasks and settings.

use super::{Cgroup, Kernel, Kind, State, Task};
use punctual_core::CpuSet;
use std::cell::RefCell;
use std::collections::BTreeMap;

pub const PF_KTHREAD: u64 = 0x0020_0000;
pub const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

pub fn set(list: &str) -> CpuSet {
    list.parse().expect("a list of CPUs")
}

fn settings() -> BTreeMap<String, (Kind, String)> {
    let plain = [
        ("/proc/sys/kernel/random/boot_id", "boot-1"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("/proc/sys/kernel/timer_migration", "1"),
        ("/proc/sys/kernel/numa_balancing", "1"),
        ("/proc/sys/vm/stat_interval", "1"),
        ("/sys/kernel/mm/ksm/run", "1"),
        ("/sys/devices/system/machinecheck/machinecheck0/check_interval", "300"),
        ("/sys/devices/virtual/workqueue/writeback/numa", "1"),
        ("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us", "0"),
        ("/sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "0"),
        ("/sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0"),
        ("/sys/devices/system/cpu/cpu3/cpuidle/state1/latency", "33"),
        ("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0"),
        ("/sys/devices/system/cpu/cpufreq/policy3/scaling_governor", "schedutil"),
        (
            "/sys/devices/system/cpu/cpufreq/policy3/scaling_available_governors",
            "performance schedutil",
        ),
        ("/sys/devices/system/node/online", "0-1"),
        ("/sys/devices/system/node/has_memory", "0-1"),
        ("/sys/devices/system/node/node0/cpulist", "0-2"),
        ("/sys/devices/system/node/node1/cpulist", "3"),
        ("/proc/cgroups", "cpuset\t3\t1\t1"),
        (
            "/proc/interrupts",
            "   CPU0 CPU1 CPU2 CPU3\n 24: 0 0 0 7 PCI-MSIX-0000:00:02.0 1-edge disk\n 25: 0 9 0 0 \
             IO-APIC 4-edge net",
        ),
        ("/proc/irq/24/effective_affinity_list", "3"),
        ("/proc/irq/25/effective_affinity_list", "1"),
        ("/proc/irq/26/effective_affinity_list", "3"),
    ];
    let mut all: BTreeMap<String, (Kind, String)> = plain
        .iter()
        .map(|(path, value)| ((*path).to_owned(), (Kind::Plain, (*value).to_owned())))
        .collect();
    let masks = [
        "/proc/irq/default_smp_affinity",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/devices/virtual/workqueue/writeback/cpumask",
        "/sys/devices/virtual/workqueue/blkcg_punt_bio/cpumask",
        "/sys/class/net/eth0/queues/tx-0/xps_cpus",
    ];
    all.extend(masks.iter().map(|path| ((*path).to_owned(), (Kind::Mask, "0000000f".to_owned()))));
    all.insert("/sys/class/net/eth0/queues/rx-0/rps_cpus".into(), (Kind::Mask, "00000008".into()));
    let lists = [
        ("/proc/irq/24/smp_affinity_list", "0-3"),
        ("/proc/irq/25/smp_affinity_list", "1"),
        ("/proc/irq/26/smp_affinity_list", "3"),
        ("/proc/sys/kernel/watchdog_cpumask", "0-3"),
    ];
    all.extend(
        lists.iter().map(|(path, value)| ((*path).to_owned(), (Kind::List, (*value).to_owned()))),
    );
    let huge = Kind::Choice(vec!["always", "madvise", "never"]);
    all.insert("/sys/kernel/mm/transparent_hugepage/enabled".into(), (huge, "always".into()));
    for cpu in 1..4 {
        all.insert(
            format!("/sys/devices/system/cpu/cpu{cpu}/online"),
            (Kind::Online(cpu), "1".into()),
        );
    }
    all
}

/// A thread; `tgid` is the first of its process.
pub fn task(tgid: i32, name: &str, parent: i32, flags: u64, allowed: &str, cgroup: &str) -> Task {
    let (name, cgroup) = (name.to_owned(), cgroup.to_owned());
    Task {
        tgid,
        start: 1000 + tgid as u64,
        name,
        parent,
        flags,
        allowed: set(allowed),
        asked: None,
        cgroup,
    }
}

fn tasks(mount: &str) -> BTreeMap<i32, Task> {
    let bound = PF_KTHREAD | PF_NO_SETAFFINITY;
    let mut all = BTreeMap::from([
        (1, task(1, "init", 0, 0, "0-3", mount)),
        (2, task(2, "kthreadd", 0, PF_KTHREAD, "0-3", mount)),
        (32, task(32, "ksoftirqd/3", 2, bound, "3", mount)),
        (40, task(40, "kauditd", 2, PF_KTHREAD, "0-3", mount)),
        (41, task(41, "rcu_gp", 2, PF_KTHREAD, "0-1", mount)),
        (100, task(100, "a) R 1 (b", 1, 0, "0-3", mount)),
        (101, task(100, "a thread", 1, 0, "0-3", mount)),
        (110, task(110, "pinned", 1, 0, "3", mount)),
        (111, task(111, "chosen", 1, 0, "1,3", mount)),
        (200, task(200, "punctual", 100, 0, "0-3", mount)),
    ]);
    for tid in [110, 111] {
        let one = all.get_mut(&tid).expect("it was just put there");
        one.asked = Some(one.allowed.clone());
    }
    all
}

/// The machine with cgroups of version 1, file names with or without prefix.
pub fn v1(prefix: &'static str) -> Kernel {
    machine(true, prefix, "/sys/fs/cgroup/cpuset")
}

/// The machine with cgroups of version 2, and services in cgroups of their own.
pub fn v2() -> Kernel {
    let kernel = machine(false, "cpuset.", "/sys/fs/cgroup");
    kernel.with(|state| {
        for name in ["system.slice", "system.slice/audio.service", "user.slice"] {
            state.cgroups.insert(format!("{}/{name}", state.mount), Cgroup::new());
        }
        for (tid, cgroup) in [
            (100, "system.slice/audio.service"),
            (101, "system.slice/audio.service"),
            (200, "user.slice"),
        ] {
            state.tasks.get_mut(&tid).expect("it is there").cgroup =
                format!("{}/{cgroup}", state.mount);
        }
    });
    kernel
}

fn machine(v1: bool, prefix: &'static str, mount: &str) -> Kernel {
    let root = Cgroup { cpus: set("0-3"), mems: "0-1".into(), exclusive: true, ..Cgroup::new() };
    let link = ("/sys/devices/system/cpu/cpu3/cpufreq".to_owned(), "../cpufreq/policy3".to_owned());
    Kernel {
        state: RefCell::new(State {
            v1,
            prefix,
            mount: mount.to_owned(),
            possible: set("0-3"),
            online: set("0-3"),
            settings: settings(),
            links: BTreeMap::from([link]),
            tasks: tasks(mount),
            cgroups: BTreeMap::from([(mount.to_owned(), root)]),
            late: 30,
            dying: None,
            remembers: true,
            refusals: Vec::new(),
            forks: 0,
            own: 200,
            uid: 0,
            rights: "000001ffffffffff".into(),
            mounted: true,
        }),
    }
}
