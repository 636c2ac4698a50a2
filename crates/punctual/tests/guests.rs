//! The command on kernels that this machine does not run: in QEMU guests with Debian's kernels (docs/guests.md).

use punctual_lab::{GuestResult, Job, testing};

/// The settings that isolation changes, and the affinity of two tasks: the same before it and after its undo. Kernel
/// threads are left out, for they come and go, and follow their interrupt to whichever CPU serves it.
const SNAPSHOT: &str = "snapshot() {
    cat /sys/fs/cgroup/cgroup.subtree_control /proc/irq/default_smp_affinity
    grep -r . /proc/irq/*/smp_affinity_list /sys/devices/virtual/workqueue/ /sys/kernel/mm/transparent_hugepage
    grep -r . /proc/sys/kernel/sched_rt_* /proc/sys/kernel/*watchdog* /proc/sys/kernel/timer_migration /proc/sys/vm/stat_interval
    grep Cpus_allowed_list /proc/1/status /proc/$sleeper/status
    find /sys/fs/cgroup -type d
}
";

fn text<'r>(result: &'r GuestResult, name: &str) -> &'r str {
    let bytes = result.results.get(name).unwrap_or_else(|| panic!("no {name}: {}", testing::story(result)));
    std::str::from_utf8(bytes).unwrap().trim()
}

/// Isolates CPU 1 of two in a guest with cgroup version 2, runs a command on it, and undoes it.
fn isolates_a_cpu_and_takes_it_back(kernel: &str) {
    let Some(mut guest) = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), kernel, "", 2) else { return };
    let steps = "sleep 100000 & sleeper=$!
         snapshot >/tmp/before
         punctual isolate create 1 >/results/create 2>&1 || exit 10
         snapshot >/tmp/during; cmp -s /tmp/before /tmp/during && exit 14
         cat /sys/fs/cgroup/rt/cpuset.cpus.partition >/results/partition
         cat /sys/fs/cgroup/cpuset.cpus.effective >/results/remaining
         grep Cpus_allowed_list /proc/$sleeper/status >/results/sleeper
         punctual isolate run --fifo 50 rt -- /punctual/busybox grep -E 'Cpus_allowed_list|Name' /proc/self/status >/results/inside || exit 11
         punctual isolate status >/results/status 2>&1 || exit 12
         punctual isolate undo >/results/undo 2>&1 || exit 13
         snapshot >/tmp/after; diff /tmp/before /tmp/after >/results/difference; true";
    guest.job = Job::Script(format!("{SNAPSHOT}{steps}"));
    let Some(result) = testing::run(&guest) else { return };
    assert_eq!(result.exit_status, Some(0), "{}\n{:#?}", testing::story(&result), strings(&result));
    assert_eq!((text(&result, "partition"), text(&result, "remaining")), ("isolated", "0"));
    assert!(text(&result, "sleeper").ends_with("\t0"), "{}", text(&result, "sleeper"));
    assert!(text(&result, "inside").ends_with("\t1"), "{}", text(&result, "inside"));
    assert_eq!(text(&result, "difference"), "");
}

fn strings(result: &GuestResult) -> Vec<(&str, String)> {
    result.results.iter().map(|(name, bytes)| (name.as_str(), String::from_utf8_lossy(bytes).into_owned())).collect()
}

#[test]
fn a_6_1_kernel_gives_a_cpu_to_real_time_and_back() {
    isolates_a_cpu_and_takes_it_back("debian:6.1");
}

#[test]
fn a_6_12_rt_kernel_gives_a_cpu_to_real_time_and_back() {
    isolates_a_cpu_and_takes_it_back("debian:6.12-rt");
}
