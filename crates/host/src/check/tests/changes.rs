//! Configuration that was once misread: captured systems with changed files
//! (fixtures/host-changes), each judged as by the program that reads it.

use super::*;
use crate::files::{FileError, Files, Root};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn fixtures(place: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(place)
}

/// A captured system, overlaid with the files of a case.
struct Changed {
    upper: Root,
    lower: Root,
    removed: Vec<String>,
}

impl Changed {
    fn new(case: &str) -> Changed {
        let upper = Root::from_base(fixtures("host-changes").join(case));
        let base = upper.read_trimmed("/base").expect("the case names its base");
        let removed = upper.read("/removed").unwrap_or_default();
        let removed = removed.lines().map(str::to_owned).collect();
        Changed { upper, lower: Root::from_base(fixtures("hosts").join(base)), removed }
    }

    fn root(&self, path: &str) -> &Root {
        let lower = !self.upper.exists(path) && !self.removed.iter().any(|gone| gone == path);
        if lower { &self.lower } else { &self.upper }
    }
}

impl Files for Changed {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.root(path).read(path)
    }
    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.root(path).read_bytes(path)
    }
    fn exists(&self, path: &str) -> bool {
        self.root(path).exists(path)
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let both = (self.upper.list(path), self.lower.list(path));
        let names: BTreeSet<String> = match both {
            (Err(why), Err(_)) => return Err(why),
            (upper, lower) => upper.into_iter().chain(lower).flatten().collect(),
        };
        Ok(names.into_iter().collect())
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        self.root(path).read_link(path)
    }
    fn write(&self, path: &str, _: &str) -> Result<(), FileError> {
        panic!("a rule wrote to {path}")
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        panic!("a rule made {path}")
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        panic!("a rule removed {path}")
    }
}

fn of(case: &str, cpus: Option<&str>, rule: &str) -> RuleResult {
    let files = Changed::new(case);
    let context = Context::new(&files, cpus.map(|list| list.parse().expect("a list")));
    evaluate_rule(rule, &context).unwrap_or_else(|| panic!("no rule {rule}"))
}

/// Checks the verdict, or that the rule does not apply, and a part of the message or evidence.
fn assert_judged(case: &str, cpus: Option<&str>, rule: &str, verdict: &str, part: &str) {
    let result = of(case, cpus, rule);
    let judged =
        if result.applies { result.verdict.to_string() } else { "does not apply".to_owned() };
    let text = format!("{} | {}", result.message, result.evidence);
    assert!(judged == verdict && text.contains(part), "{case}: {result:?}");
}

#[test]
fn a_boot_parameter_is_judged_by_what_is_in_force() {
    let request =
        |case, verdict, part| assert_judged(case, None, "isolation-request", verdict, part);
    request("isolcpus-0", "warning", "asked for and not in force: isolcpus=0");
    request("isolcpus-0-in-force", "ok", "isolcpus=0");
    request("isolcpus-0-one-cpu", "warning", "asked for and not in force: isolcpus=0");
    request("isolcpus-to-N-5.10", "warning", "`N` is read by Linux 5.13 and later only");
    request("rcu-nocbs-to-N", "ok", "the requested isolation is in force");
    assert_judged("isolcpus-0", None, "managed-interrupts", "does not apply", "not in force");
    let advised = of("isolcpus-0-in-force", None, "managed-interrupts");
    assert!(advised.fix.is_some_and(|fix| fix.contains("isolcpus=managed_irq,domain,0`")));
}

#[test]
fn lists_are_read_as_the_running_kernel_reads_them() {
    assert_judged("rcu-nocbs-to-N", None, "rcu-callbacks", "ok", "rcu_nocbs=2-N");
    // Linux 5.10 refuses the list and then offloads all CPUs.
    let rule = "rcu-callbacks";
    assert_judged("isolcpus-to-N-5.10", Some("3"), rule, "ok", "takes all CPUs then");
}

#[test]
fn irqbalance_is_told_by_its_mask() {
    assert_judged("irqbalance-mask", Some("2-3"), "irqbalance", "ok", "CPUs `2-3`");
    assert_judged("irqbalance-mask", Some("1-3"), "irqbalance", "warning", "CPUs `2-3`");
}

#[test]
fn a_ban_of_irqbalance_replaces_what_it_detects() {
    const DAEMON: &str = "7 (irqbalance) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 \
                          0 0 0 0 0 0 0 0 0 0 17 0 0 0 0";
    let judged = |setting: &str| {
        let files = ideal_files().with_file("/proc/7/stat", DAEMON);
        result(&files.with_file("/etc/default/irqbalance", setting), None, "irqbalance").verdict
    };
    // CPUs 2-3 are isolated.
    assert_eq!(judged(""), RuleVerdict::Ok);
    assert_eq!(judged("IRQBALANCE_BANNED_CPULIST=2-3\n"), RuleVerdict::Ok);
    assert_eq!(judged("IRQBALANCE_BANNED_CPULIST=1\n"), RuleVerdict::Warning);
    assert_eq!(
        judged("IRQBALANCE_BANNED_CPUS=2\nIRQBALANCE_BANNED_CPULIST=2-3\n"),
        RuleVerdict::Warning
    );
    assert_eq!(judged("IRQBALANCE_BANNED_CPULIST=\n"), RuleVerdict::Unknown);
    assert_eq!(judged("IRQBALANCE_BANNED_CPULIST=2-N\n"), RuleVerdict::Unknown);
}

#[test]
fn services_run_where_all_lines_of_systemd_together_say() {
    let rule = "systemd-affinity";
    assert_judged("cpuaffinity-drop-in", Some("2-3"), rule, "advice", "on all of CPUs 0-3");
    let files = ideal_files().with_file("/etc/systemd/system.conf", "[Manager]\nCPUAffinity=0-3\n");
    // Isolation keeps services off only while no affinity is set.
    assert_eq!(result(&files, None, rule).verdict, RuleVerdict::Advice);
    let line = "isolcpus=2-3 systemd.cpu_affinity=0-1";
    assert_eq!(
        result(&files.with_file("/proc/cmdline", line), None, rule).verdict,
        RuleVerdict::Ok
    );
}

#[test]
fn in_a_container_partitions_may_be_out_of_sight() {
    let part = "only a part of the groups, `/docker/4f`";
    assert_judged("container-v1", None, "isolated-cpus", "unknown", part);
    assert_judged("container-v1", None, "rt-group-budget", "bad", "/sys/fs/cgroup/cpu/cpu.rt");
    let elsewhere = "1 0 0:1 /docker/a /cg/cpu rw - cgroup none rw,cpu";
    let files = ideal_files()
        .with_file("/boot/config-6.12.30-rt-amd64", "CONFIG_RT_GROUP_SCHED=y")
        .with_file("/proc/self/mountinfo", elsewhere)
        .with_file("/proc/self/cgroup", "1:cpu:/docker/b\n");
    let budget = result(&files, None, "rt-group-budget");
    assert_eq!(budget.verdict, RuleVerdict::Unknown, "{budget:?}");
    let v2 = ideal_files()
        .with_file("/sys/fs/cgroup/cgroup.type", "domain")
        .with_file("/sys/devices/system/cpu/isolated", "");
    assert_eq!(result(&v2, None, "isolated-cpus").verdict, RuleVerdict::Unknown);
}

#[test]
fn rules_about_x86_do_not_apply_elsewhere() {
    let x86 = [
        "tsc-stability",
        "tsc-deadline-timer",
        "machine-check-polling",
        "smi-count",
        "microcode",
        "thermal-throttling",
        "energy-preference",
        "turbo",
    ];
    for rule in x86 {
        assert_judged("riscv64", Some("3"), rule, "does not apply", "");
        let named = ideal_files().with_file("/proc/sys/kernel/arch", "riscv64");
        let named = named
            .with_file("/proc/cpuinfo", "processor : 0\nisa : rv64imac")
            .without_path("/sys/devices/system/cpu/intel_pstate");
        assert!(!result(&named, None, rule).applies, "{rule}");
    }
}

#[test]
fn types_that_cannot_be_read_are_not_there() {
    let files = ideal_files().with_refusal("/sys/kernel/btf/vmlinux", libc::EACCES);
    for rule in ["kernel-types", "kernel-recorder"] {
        let unread = result(&files, None, rule);
        assert_eq!(unread.verdict, RuleVerdict::Advice, "{unread:?}");
        assert!(unread.evidence.contains("cannot read /sys/kernel/btf/vmlinux"), "{unread:?}");
    }
}

#[test]
fn for_timer_migration_both_vendors_are_named() {
    let path = "/proc/sys/kernel/timer_migration";
    for value in ["0", "1"] {
        let both = result(&ideal_files().with_file(path, value), None, "timer-migration");
        assert!(both.message.contains("TuneD") && both.message.contains("Red Hat"), "{both:?}");
        assert!(both.writes.is_empty(), "neither is written: {both:?}");
    }
    let other = ideal_files()
        .without_path("/sys/kernel/realtime")
        .with_file("/proc/sys/kernel/version", "#1 SMP PREEMPT")
        .with_file(path, "1");
    assert_eq!(result(&other, None, "timer-migration").writes.len(), 1);
}

/// The CPUs that follow a word in a remedy.
fn named_after(fix: &str, word: &str) -> Option<String> {
    let (_, rest) = fix.split_once(word)?;
    let list = rest.trim_start_matches("managed_irq,domain,");
    Some(list.chars().take_while(|c| c.is_ascii_digit() || "-,".contains(*c)).collect())
}

#[test]
fn no_remedy_adds_a_parameter_that_is_there() {
    let rule = "nohz-full";
    let line = |words: &str| ideal_files().with_file("/proc/cmdline", words);
    let full = |files: FakeFiles, list| files.with_file("/sys/devices/system/cpu/nohz_full", list);
    let fix_of = |files: &FakeFiles, rule| result(files, None, rule).fix.unwrap_or_default();
    let unseen = of("nohz-full-unseen", None, rule);
    assert_judged("nohz-full-unseen", None, rule, "unknown", "asks for nohz_full=3");
    assert_judged("nohz-full-unseen", None, "isolation-request", "unknown", "has nohz_full=3");
    assert_eq!(unseen.fix, None);
    let unread = ["parameter-nobody-reads", "warning", "network.disable_ipv6=1` (`ipv6.disable=1`"];
    assert_judged("nohz-full-unseen", None, unread[0], unread[1], unread[2]);
    let asked = full(line("isolcpus=2-3 nohz_full=2-3"), "");
    let judged = result(&asked, None, rule);
    assert!(judged.message.ends_with("nohz_full=2-3 is asked for and not in force"), "{judged:?}");
    assert_eq!(
        (judged.fix, result(&asked, None, "isolation-request").verdict),
        (None, RuleVerdict::Warning)
    );
    // It is added to an empty line, and replaces a smaller list.
    assert!(fix_of(&full(line("quiet"), ""), rule).starts_with("add `nohz_full=2-3`"));
    let part = fix_of(&full(line("nohz_full=2"), "2"), rule);
    assert!(part.starts_with("replace `nohz_full=2` by `nohz_full=2-3`"), "{part}");
    let callbacks = full(line("rcu_nocbs=1"), "");
    let callbacks = fix_of(&callbacks, "rcu-callbacks");
    assert!(callbacks.starts_with("replace `rcu_nocbs=1` by `rcu_nocbs=1-3`"), "{callbacks}");
    let managed = fix_of(&line("isolcpus=nohz,domain,2-3"), "managed-interrupts");
    assert!(managed.contains("by `isolcpus=nohz,managed_irq,domain,2-3`"), "{managed}");
    // The remedy names the known file of the command line.
    let grub = full(line("quiet"), "").with_file("/etc/default/grub", "");
    assert!(fix_of(&grub, rule).contains("(GRUB_CMDLINE_LINUX, update-grub)"));
    assert!(!fix_of(&full(line("quiet"), ""), rule).contains("GRUB"));
    let board = full(line("quiet"), "").with_file("/boot/firmware/cmdline.txt", "");
    assert!(fix_of(&board, rule).contains("(/boot/firmware/cmdline.txt)"));
}

#[test]
fn a_limit_that_a_line_grants_is_not_to_be_written() {
    let limits = "Max realtime priority     0                    0";
    let none = ideal_files().with_file("/proc/self/limits", limits);
    let none = none.with_file("/proc/self/status", "CapEff:\t0000000000000000");
    let with =
        |path: &str, text: &str| none.clone().with_file(&format!("/etc/security/{path}"), text);
    let fix = |files: &FakeFiles| result(files, None, "realtime-priority-limit").fix;
    let granted =
        ["@realtime - rtprio 99", "@audio\tsoft  rtprio unlimited # jack", "* - rtprio 99"];
    for line in granted {
        let fix = fix(&with("limits.d/95-rt.conf", line)).expect("a fix");
        assert!(fix.contains("/95-rt.conf grants it") && !fix.contains("echo"), "{fix}");
    }
    let fix_of = fix(&with("limits.conf", "@realtime - rtprio 99")).expect("a fix");
    assert!(fix_of.contains("/etc/security/limits.conf grants it"), "{fix_of}");
    for line in [
        "",
        "#@realtime - rtprio 99",
        "@realtime - rtprio 50",
        "@realtime - memlock 99",
        "@realtime hard rtprio 99",
        "@realtime rtprio 99",
    ] {
        let fix = fix(&with("limits.d/95-rt.conf", line)).expect("a fix");
        assert!(fix.starts_with("echo '@realtime - rtprio 99' > "), "{line}: {fix}");
    }
    assert!(fix(&with("limits.d/95-rt.txt", granted[0])).expect("a fix").starts_with("echo"));
}

#[test]
fn no_remedy_sets_all_cpus_apart_or_names_none() {
    let hosts =
        ["debian-standard", "debian-standard-isolated", "debian-rt", "arm64-board", "cloud-guest"];
    let hosts =
        hosts.map(|host| Box::new(Root::from_base(fixtures("hosts").join(host))) as Box<dyn Files>);
    let cases = std::fs::read_dir(fixtures("host-changes")).expect("it is there").flatten();
    let cases = cases.filter(|case| case.path().is_dir());
    let cases = cases
        .map(|case| Box::new(Changed::new(&case.file_name().to_string_lossy())) as Box<dyn Files>);
    let everything = "/sys/devices/system/cpu/online";
    for files in hosts.into_iter().chain(cases) {
        let online: CpuSet =
            files.read_trimmed(everything).expect("a list").parse().expect("a list");
        for cpus in [None, Some("0-3"), Some("3"), Some("0")] {
            let cpus: Option<CpuSet> = cpus.map(|list| list.parse().expect("a list"));
            for result in evaluate_all(&Context::new(&*files, cpus.clone())) {
                let fix = result.fix.unwrap_or_default();
                let apart = ["isolcpus=", "nohz_full=", "isolate create ", "BANNED_CPULIST="];
                for word in apart {
                    let Some(list) = named_after(&fix, word).filter(|list| !list.is_empty()) else {
                        continue;
                    };
                    let set: CpuSet = list.trim_end_matches(',').parse().expect("a list");
                    assert!(!online.is_subset(&set), "{}: {fix}", result.id);
                    // `housekeeping-cpus` excludes the first CPU; `isolcpus=` keeps it if it is in
                    // force.
                    assert!(word == "isolcpus=" || !set.contains(0), "{}: {fix}", result.id);
                }
                for word in ["irqaffinity=", "set CPUAffinity="] {
                    assert_ne!(
                        named_after(&fix, word).as_deref(),
                        Some(""),
                        "{}: {fix}",
                        result.id
                    );
                }
                let empty = result.writes.iter().find(|write| write.value.trim().is_empty());
                assert_eq!(empty, None, "{}", result.id);
            }
        }
    }
}
