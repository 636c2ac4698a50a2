//! Every rule on every captured system of fixtures/hosts.

use super::*;
use crate::files::{FileError, Files, Root};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn hosts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

fn conclude(host: &str, cpus: Option<&str>) -> Vec<RuleResult> {
    let files = Root::from_base(hosts().join(host));
    evaluate_all(&Context::new(&files, cpus.map(|list| list.parse().expect("a list"))))
}

/// The rules by verdict, one line each, for human readers.
fn summary(host: &str, cpus: Option<&str>) -> String {
    let mut by_verdict: BTreeMap<RuleVerdict, Vec<String>> = BTreeMap::new();
    for result in conclude(host, cpus) {
        // Rules that do not apply are in brackets.
        let name = if result.applies { result.id } else { format!("({})", result.id) };
        by_verdict.entry(result.verdict).or_default().push(name);
    }
    let wrapped = |names: Vec<String>| {
        names.chunks(6).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n  ")
    };
    let blocks = by_verdict
        .into_iter()
        .rev()
        .map(|(verdict, names)| format!("{verdict}:\n  {}", wrapped(names)));
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_standard_debian_kernel_is_judged() {
    insta::assert_snapshot!(summary("debian-standard", None), @"
    bad:
      preemption-model clocksource
    warning:
      rt-throttling tsc-stability transparent-hugepages hypervisor
    advice:
      threaded-interrupts tsc-deadline-timer isolated-cpus machine-check-polling serial-console proactive-compaction
      latency-tracers hardware-counters
    unknown:
      locked-page-compaction
    ok:
      preemption-request (fair-server) (rt-group-budget) parameter-nobody-reads high-resolution-timers clock-event-device
      (timer-migration) (governor) (energy-preference) (frequency-cap) (turbo) idle-states
      pcie-power-saving isolation-request (isolation-lasts) cpus-online (housekeeping-cpus) (nohz-full)
      (nohz-full-isolated) (rcu-callbacks) (systemd-affinity) smt-siblings (shared-cache) (one-memory-node)
      (interrupts-elsewhere) (default-irq-affinity) (irqaffinity-parameter) (managed-interrupts) irqbalance (irq-thread-priorities)
      (packet-steering) (user-tasks) (kernel-threads) competing-priorities audit kernel-thread-order
      (vcpu-threads) (interrupt-thread-below-program) poller-on-cpu-0 (workqueues) (writeback-workqueue) nmi-watchdog
      (soft-watchdog) (hung-task-detector) (vm-statistics) console-messages (access-times) swap
      hugepage-defrag same-page-merging numa-balancing lock-debugging sanitizers memory-debugging
      preemption-debugging irqsoff-tracers-built current-tracer trace-events stack-tracer scheduler-statistics
      steal-time (smi-count) microcode mitigations (thermal-throttling) realtime-priority-limit
      memory-lock-limit realtime-timeout timer-slack cpuset-controller kernel-recorder bpf
      kernel-types lockdown tracefs kernel-probes user-probes perf-events
      debugfs
    ");
}

#[test]
fn the_debian_rt_kernel_is_judged() {
    insta::assert_snapshot!(summary("debian-rt", None), @"
    bad:
      clocksource
    warning:
      rt-throttling tsc-stability hypervisor
    advice:
      tsc-deadline-timer timer-migration kernel-threads writeback-workqueue hung-task-detector machine-check-polling
      vm-statistics serial-console proactive-compaction hardware-counters
    unknown:
      locked-page-compaction
    ok:
      preemption-model preemption-request threaded-interrupts (fair-server) (rt-group-budget) parameter-nobody-reads
      high-resolution-timers clock-event-device (governor) (energy-preference) (frequency-cap) (turbo)
      idle-states pcie-power-saving isolated-cpus isolation-request isolation-lasts cpus-online
      housekeeping-cpus nohz-full nohz-full-isolated rcu-callbacks (systemd-affinity) smt-siblings
      shared-cache one-memory-node interrupts-elsewhere default-irq-affinity irqaffinity-parameter managed-interrupts
      irqbalance irq-thread-priorities packet-steering user-tasks competing-priorities audit
      kernel-thread-order (vcpu-threads) (interrupt-thread-below-program) poller-on-cpu-0 workqueues nmi-watchdog
      soft-watchdog console-messages (access-times) swap (transparent-hugepages) (hugepage-defrag)
      same-page-merging (numa-balancing) lock-debugging sanitizers memory-debugging preemption-debugging
      irqsoff-tracers-built current-tracer trace-events stack-tracer scheduler-statistics steal-time
      (smi-count) microcode mitigations (thermal-throttling) realtime-priority-limit memory-lock-limit
      realtime-timeout timer-slack cpuset-controller kernel-recorder bpf kernel-types
      lockdown tracefs kernel-probes user-probes latency-tracers perf-events
      debugfs
    ");
}

#[test]
fn an_arm64_board_is_judged() {
    insta::assert_snapshot!(summary("arm64-board", Some("3")), @"
    bad:
      preemption-model
    warning:
      rt-throttling isolated-cpus interrupts-elsewhere user-tasks transparent-hugepages
    advice:
      threaded-interrupts timer-migration nohz-full rcu-callbacks shared-cache default-irq-affinity
      irqaffinity-parameter kernel-threads workqueues writeback-workqueue soft-watchdog hung-task-detector
      vm-statistics serial-console proactive-compaction latency-tracers
    unknown:
      governor frequency-cap locked-page-compaction
    ok:
      preemption-request (fair-server) (rt-group-budget) parameter-nobody-reads high-resolution-timers clocksource
      (tsc-stability) (tsc-deadline-timer) clock-event-device (energy-preference) (turbo) idle-states
      pcie-power-saving isolation-request (isolation-lasts) cpus-online housekeeping-cpus (nohz-full-isolated)
      (systemd-affinity) smt-siblings one-memory-node (managed-interrupts) irqbalance (irq-thread-priorities)
      packet-steering competing-priorities audit kernel-thread-order (vcpu-threads) (interrupt-thread-below-program)
      poller-on-cpu-0 nmi-watchdog (machine-check-polling) console-messages (access-times) swap
      hugepage-defrag same-page-merging numa-balancing lock-debugging sanitizers memory-debugging
      preemption-debugging irqsoff-tracers-built current-tracer trace-events stack-tracer scheduler-statistics
      hypervisor steal-time (smi-count) (microcode) mitigations (thermal-throttling)
      realtime-priority-limit memory-lock-limit realtime-timeout timer-slack cpuset-controller kernel-recorder
      bpf kernel-types lockdown tracefs kernel-probes user-probes
      perf-events hardware-counters debugfs
    ");
}

#[test]
fn a_cloud_guest_is_judged() {
    insta::assert_snapshot!(summary("cloud-guest", None), @"
    bad:
      preemption-model
    warning:
      rt-throttling hypervisor steal-time
    advice:
      threaded-interrupts isolated-cpus serial-console proactive-compaction microcode tracefs
      kernel-probes hardware-counters debugfs
    unknown:
      fair-server locked-page-compaction current-tracer trace-events lockdown user-probes
      latency-tracers
    ok:
      preemption-request rt-group-budget parameter-nobody-reads high-resolution-timers clocksource tsc-stability
      tsc-deadline-timer clock-event-device (timer-migration) (governor) (energy-preference) (frequency-cap)
      (turbo) idle-states pcie-power-saving isolation-request (isolation-lasts) cpus-online
      (housekeeping-cpus) (nohz-full) (nohz-full-isolated) (rcu-callbacks) (systemd-affinity) smt-siblings
      (shared-cache) (one-memory-node) (interrupts-elsewhere) (default-irq-affinity) (irqaffinity-parameter) (managed-interrupts)
      irqbalance irq-thread-priorities (packet-steering) (user-tasks) (kernel-threads) competing-priorities
      audit kernel-thread-order (vcpu-threads) (interrupt-thread-below-program) poller-on-cpu-0 (workqueues)
      (writeback-workqueue) nmi-watchdog (soft-watchdog) (hung-task-detector) (machine-check-polling) (vm-statistics)
      console-messages access-times swap transparent-hugepages hugepage-defrag same-page-merging
      numa-balancing lock-debugging sanitizers memory-debugging preemption-debugging irqsoff-tracers-built
      (stack-tracer) (scheduler-statistics) (smi-count) mitigations (thermal-throttling) realtime-priority-limit
      memory-lock-limit realtime-timeout timer-slack cpuset-controller kernel-recorder bpf
      kernel-types perf-events
    ");
}

/// The same kernel booted with and without `isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0`, with
/// CPU 1 chosen for real time.
#[test]
fn isolation_at_boot_changes_exactly_the_rules_about_it() {
    let (plain, isolated) =
        (conclude("debian-standard", Some("1")), conclude("debian-standard-isolated", Some("1")));
    let changed: Vec<String> = plain
        .iter()
        .zip(&isolated)
        .filter(|(before, after)| before.verdict != after.verdict)
        .map(|(before, after)| format!("{}: {} -> {}", before.id, before.verdict, after.verdict))
        .collect();
    insta::assert_snapshot!(changed.join("\n"), @"
    isolated-cpus: warning -> ok
    nohz-full: advice -> ok
    rcu-callbacks: advice -> ok
    interrupts-elsewhere: warning -> ok
    default-irq-affinity: advice -> ok
    irqaffinity-parameter: advice -> ok
    managed-interrupts: ok -> advice
    user-tasks: warning -> ok
    workqueues: advice -> ok
    soft-watchdog: advice -> ok
    ");
}

/// A tree that records the files read from it.
struct Watched {
    files: Root,
    read: RefCell<BTreeSet<String>>,
}

impl Watched {
    fn note(&self, path: &str) {
        self.read.borrow_mut().insert(path.to_owned());
    }
}

impl Files for Watched {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.note(path);
        self.files.read(path)
    }
    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.note(path);
        self.files.read_bytes(path)
    }
    fn read_at(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        self.note(path);
        self.files.read_at(path, offset, length)
    }
    fn exists(&self, path: &str) -> bool {
        self.note(path);
        self.files.exists(path)
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.files.list(path)
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        self.note(path);
        self.files.read_link(path)
    }
    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        panic!("a rule wrote `{text}` to {path}")
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        panic!("a rule made the directory {path}")
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        panic!("a rule removed the directory {path}")
    }
}

/// Whether a shell pattern of `files-read` matches a path: `*` within one component, `[0-9]*` a
/// number.
fn names(pattern: &str, path: &str) -> bool {
    let (wanted, parts): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), path.split('/').collect());
    let part = |wanted: &str, part: &str| match wanted.replace("[0-9]*", "*").split_once('*') {
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
        None => wanted == part,
    };
    wanted.len() == parts.len() && wanted.iter().zip(&parts).all(|(w, p)| part(w, p))
}

#[test]
fn the_capture_script_copies_every_file_that_rules_read() {
    let list = std::fs::read_to_string(hosts().join("files-read")).expect("the list is there");
    let patterns: Vec<&str> = list
        .lines()
        .filter(|line| line.contains('/') && !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().find(|word| word.len() > 1))
        .collect();
    // Read instead of data that is captured in another form, or by registers.
    let elsewhere = [
        "/proc/config.gz",
        "/lib/modules/*/config",
        "/usr/lib/modules/*/config",
        // Lists of all modules: only parameters with a dot are looked up in them.
        "/lib/modules/*/modules.builtin",
        "/usr/lib/modules/*/modules.builtin",
        "/dev/cpu/*/msr",
        // Only two variables of the environment are relevant.
        "/proc/*/environ",
        "/sys/kernel/debug/tracing/*",
    ];
    for host in ["debian-standard", "debian-rt", "arm64-board", "cloud-guest"] {
        let files =
            Watched { files: Root::from_base(hosts().join(host)), read: RefCell::default() };
        evaluate_all(&Context::new(&files, Some("1".parse().expect("a list"))));
        let read = files.read.into_inner();
        let forgotten: Vec<&String> = read
            .iter()
            .filter(|path| !patterns.iter().chain(&elsewhere).any(|pattern| names(pattern, path)))
            .collect();
        assert_eq!(
            forgotten,
            Vec::<&String>::new(),
            "{host}: add them to fixtures/hosts/files-read"
        );
    }
    for option in crate::environment::OPTIONS {
        assert!(
            list.contains(&format!("|{option}|"))
                || list.contains(&format!("({option}|"))
                || list.contains(&format!("|{option})")),
            "CONFIG_{option} is not in files-read"
        );
    }
}
