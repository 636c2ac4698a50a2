//! The command on other kernels: in QEMU guests with Debian's kernels (docs/reference/guests.md). A
//! boot serves several tests.

mod disturbed;

use crate::common::Place;
use punctual_lab::{Guest, GuestFile, GuestOutcome, GuestResult, Job};
use punctual_testing as testing;
use punctual_testing::section;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The job of the guests with a partition.
const JOB: &str = include_str!("guests/partition.sh");

/// One CPU, isolated at boot. An emulated clock counts as stable only with tsc=reliable: an
/// unstable one keeps the tick.
const ISOLATED_AT_BOOT: &str = "isolcpus=1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 tsc=reliable";

static PLAIN: LazyLock<Option<GuestResult>> = LazyLock::new(|| partitioned("debian:6.1"));
static ISOLATED: LazyLock<Option<GuestResult>> = LazyLock::new(|| isolated("debian:6.1"));
static ISOLATED_6_12: LazyLock<Option<GuestResult>> = LazyLock::new(|| isolated("debian:6.12"));

/// 200 writes and 200 reads of one process, timed in two kernel functions; one calls the other.
const KERNEL_FUNCTIONS: &str = "cd /results && punctual probe -q --json --events none --output \
                                /tmp/probed kernel:__x64_sys_write kernel:vfs_write -- \
                                /punctual/busybox dd if=/dev/zero of=/dev/null bs=1 count=200 \
                                >timed || exit 1
    punctual probe -q --output /tmp/none kernel:vfs_wrte -- /punctual/busybox true 2>refused; echo \
                                $? >code; true";
static PROBED: LazyLock<Option<GuestResult>> =
    LazyLock::new(|| booted("debian:6.1", "", KERNEL_FUNCTIONS, Vec::new()));

fn partitioned(kernel: &str) -> Option<GuestResult> {
    booted(kernel, "", JOB, vec![GuestFile::from_text("/experiment.toml", experiment())])
}

/// The isolated CPU of four, checked, and then disturbed.
fn isolated(kernel: &str) -> Option<GuestResult> {
    let check = "punctual check --json --cpus 1 >/results/check-named && punctual check --json \
                 >/results/check-all || exit 1\n";
    let program = disturbed::program();
    let script = match &program {
        Some(_) => check.to_owned() + disturbed::SCRIPT,
        None => check.to_owned(),
    };
    booted_with(kernel, ISOLATED_AT_BOOT, &script, Vec::new(), |guest| {
        guest.cpus = 4;
        guest.programs.extend(program.clone());
        let link = |path: PathBuf| ("/usr/bin/disturb".into(), path.to_string_lossy().into_owned());
        guest.links.extend(program.map(link));
    })
}

fn booted(kernel: &str, cmdline: &str, script: &str, files: Vec<GuestFile>) -> Option<GuestResult> {
    booted_with(kernel, cmdline, script, files, |_| ())
}

fn booted_with(
    kernel: &str,
    cmdline: &str,
    script: &str,
    files: Vec<GuestFile>,
    change: impl FnOnce(&mut Guest),
) -> Option<GuestResult> {
    let mut guest = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), kernel, cmdline, 2)?;
    guest.job = Job::Script(script.into());
    guest.files = files;
    change(&mut guest);
    guest.programs.extend(stress_ng().then(|| "/usr/bin/stress-ng".into()));
    let mut result = testing::or_skip(guest.run())?;
    // A fault of QEMU (docs/reference/guests.md), which can occur later than at boot here:
    // isolation enables parts of the kernel by patching it.
    if matches!(result.outcome, GuestOutcome::Panicked(_))
        && result.console_log.contains("int3: 0000")
    {
        result = testing::or_skip(guest.run())?;
    }
    let finished = result.outcome == GuestOutcome::Finished && result.problems.is_empty();
    assert!(
        finished && result.exit_status == Some(0),
        "{}\n{:#?}",
        testing::story(&result),
        strings(&result)
    );
    Some(result)
}

/// The result of a boot, unless this machine lacks a prerequisite.
fn of<'r>(boot: &'r LazyLock<Option<GuestResult>>, test: &str) -> Option<&'r GuestResult> {
    if boot.is_none() {
        println!(
            "SKIPPED: {test} lacks what another test of this file names \
             (docs/reference/guests.md lists all)"
        );
    }
    boot.as_ref()
}

fn stress_ng() -> bool {
    Path::new("/usr/bin/stress-ng").exists()
}

/// examples/partition.toml for a small and slow machine: shorter, in two phases, with its own load.
fn experiment() -> String {
    let example = include_str!("../../../examples/partition.toml");
    let (measures, _) = example.split_once("# Loads run outside").unwrap();
    let measures = measures.replace("\"6s\"", "\"1s\"").replace("\"1ms\"", "\"5ms\"");
    let work = match stress_ng() {
        true => "/usr/bin/stress-ng --cpu 0 --vm 1 --vm-bytes 32M --fork 1 --quiet",
        false => "/punctual/busybox sh -c 'while :; do :; done'",
    };
    let load = |name: &str, command: &str| {
        format!("[[load]]\nname = \"{name}\"\ncommand = \"{command}\"\n")
    };
    let phase = |name: &str| format!("[[phase]]\nname = \"{name}\"\nloads = [\"work\"]\n");
    measures + &load("work", work) + &phase("first") + &phase("second")
}

fn strings(result: &GuestResult) -> BTreeMap<&str, String> {
    let short = result.results.iter().filter(|(_, bytes)| bytes.len() < 10_000);
    short
        .map(|(name, bytes)| (name.as_str(), String::from_utf8_lossy(bytes).into_owned()))
        .collect()
}

fn isolates_a_cpu_and_takes_it_back(result: &GuestResult) {
    assert_eq!((section(result, "partition"), section(result, "remaining")), ("isolated", "0"));
    assert!(section(result, "sleeper").ends_with("\t0"), "{}", section(result, "sleeper"));
    assert!(section(result, "inside").ends_with("\t1"), "{}", section(result, "inside"));
    assert_eq!(section(result, "difference-create"), "");
    assert!(
        section(result, "offline").contains("CPU 1 is offline (online: 0)"),
        "{}",
        section(result, "offline")
    );
}

#[test]
fn a_6_1_kernel_gives_a_cpu_to_real_time_and_back() {
    let Some(result) = of(&PLAIN, "a_6_1_kernel_gives_a_cpu_to_real_time_and_back") else { return };
    isolates_a_cpu_and_takes_it_back(result);
}

#[test]
fn functions_of_the_kernel_are_timed_by_kprobes() {
    let Some(result) = of(&PROBED, "functions_of_the_kernel_are_timed_by_kprobes") else { return };
    let timed: serde_json::Value = serde_json::from_str(section(result, "timed")).unwrap();
    let functions = timed["functions"].as_array().unwrap();
    let of = |name: &str| {
        functions.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{timed:#}"))
    };
    let (outer, inner) = (of("__x64_sys_write"), of("vfs_write"));
    for function in [outer, inner] {
        // dd writes its own result too.
        let count = function["count"].as_u64().unwrap();
        assert!((200..=210).contains(&count) && function["left"] == 0, "{timed:#}");
        assert_eq!(function["object"], "kernel");
    }
    assert_eq!(outer["count"], inner["count"], "{timed:#}");
    let median = |of: &serde_json::Value| of["median"].as_i64().unwrap();
    // The called function takes less, and the exclusive time of the caller excludes it.
    assert!(median(inner) < median(outer), "{timed:#}");
    assert!(median(&outer["exclusive"]) < median(outer), "{timed:#}");
    let ids: Vec<&str> =
        timed["findings"].as_array().unwrap().iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(ids.contains(&"probe-cost"), "{ids:?}");
    assert_eq!(section(result, "code"), "2");
    assert!(
        section(result, "refused").contains("did you mean `kernel:vfs_write`?"),
        "{}",
        section(result, "refused")
    );
}

/// The threads of one process are on both sides of the partition, the loads outside; the kernel
/// reports it as isolated.
fn measures_in_and_out(result: &GuestResult) {
    assert_eq!(section(result, "experiment-partition"), "isolated");
    if result.results.contains_key("isolated") && !section(result, "isolated").is_empty() {
        assert_eq!(section(result, "isolated"), "1");
    }
    let all = section(result, "threads").lines();
    let (inside, outside): (Vec<&str>, Vec<&str>) = all.partition(|line| line.ends_with(" /rt"));
    assert_eq!(inside, ["measure 1 /rt"]);
    assert!(
        outside.contains(&"measure 0 /rt-housekeeping")
            && outside.contains(&"punctual 0 /rt-housekeeping")
    );
    // The guard of the loads, and loads.
    assert!(
        outside.len() > 3 && outside.iter().all(|line| line.ends_with(" 0 /rt-housekeeping")),
        "{outside:#?}"
    );
    assert_eq!(section(result, "difference-experiment"), "");

    // The bundle was returned complete: this machine shows the same figures.
    let place = Place::with("");
    for (name, bytes) in result.results.iter().filter(|(name, _)| name.starts_with("bundle/")) {
        std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
        place.write(name, bytes);
    }
    let mut summary = place.summary();
    assert!(summary.as_object_mut().is_some_and(|of| of.remove("answer").is_some()));
    assert_eq!(
        summary,
        serde_json::from_str::<serde_json::Value>(section(result, "bundle/summary.json")).unwrap()
    );
    assert_eq!(summary["ending"]["outcome"], "completed", "{summary}");
    for phase in 0..2 {
        for (series, name, cpu) in [(0, "inside/cpu1", "1"), (1, "outside/cpu0", "0")] {
            let series = &summary["phases"][phase]["series"][series];
            assert_eq!((series["name"].as_str(), series["cpus"].as_str()), (Some(name), Some(cpu)));
            // A thread late at the end may miss some more periods.
            assert!(
                series["count"].as_u64() > Some(0) && series["expected"].as_u64() >= Some(200),
                "{series}"
            );
            assert!(section(result, "report.html").contains(name));
        }
    }
}

#[test]
fn an_experiment_in_version_2_measures_in_and_out_of_its_partition() {
    let Some(result) =
        of(&PLAIN, "an_experiment_in_version_2_measures_in_and_out_of_its_partition")
    else {
        return;
    };
    measures_in_and_out(result);
}

#[test]
fn an_experiment_killed_in_version_2_is_told_of_and_undone() {
    let test = "an_experiment_killed_in_version_2_is_told_of_and_undone";
    of(&PLAIN, test).into_iter().for_each(is_reported_and_undone);
}

fn is_reported_and_undone(result: &GuestResult) {
    assert!(
        section(result, "note").contains("left by an experiment that was killed"),
        "{}",
        section(result, "note")
    );
    assert_eq!(section(result, "difference-killed"), "");
}

#[test]
fn a_6_12_rt_kernel_isolates_measures_and_gives_back() {
    let Some(result) = partitioned("debian:6.12-rt") else { return };
    isolates_a_cpu_and_takes_it_back(&result);
    measures_in_and_out(&result);
    is_reported_and_undone(&result);
}

/// `id: verdict -> verdict` for each rule that differs between two answers of `check --json`.
fn differences(plain: &str, isolated: &str) -> Vec<String> {
    let rules = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        value["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| (word(&rule["id"]), word(&rule["verdict"])))
            .collect::<Vec<_>>()
    };
    let both = rules(plain).into_iter().zip(rules(isolated));
    both.filter(|(one, other)| one != other)
        .map(|(one, other)| format!("{}: {} -> {}", one.0, one.1, other.1))
        .collect()
}

/// The same kernel with and without [`ISOLATED_AT_BOOT`], with CPU 1 named for real time.
#[test]
fn isolation_at_boot_changes_exactly_the_rules_about_it() {
    let test = "isolation_at_boot_changes_exactly_the_rules_about_it";
    let (Some(plain), Some(isolated)) = (of(&PLAIN, test), of(&ISOLATED, test)) else { return };
    let expected = [
        "clocksource: bad -> ok",              // tsc=reliable
        "isolated-cpus: warning -> ok",        // isolcpus=1
        "nohz-full: advice -> ok",             // nohz_full=1
        "rcu-callbacks: advice -> ok",         // rcu_nocbs=1
        "interrupts-elsewhere: warning -> ok", // irqaffinity=0, while they are set up
        "default-irq-affinity: advice -> ok",  // irqaffinity=0 is what the file holds at first
        "irqaffinity-parameter: advice -> ok", // irqaffinity=0 itself
        "managed-interrupts: ok -> advice",    /* isolcpus= is used, and without its flag
                                                * managed_irq */
        "user-tasks: warning -> ok", /* isolcpus= is the affinity of the first process, which
                                      * all inherit */
        "workqueues: advice -> ok", /* the mask starts without isolcpus= and nohz_full=
                                     * (kernel/workqueue.c) */
        "soft-watchdog: advice -> ok", // so does this one, without nohz_full= (kernel/watchdog.c)
    ];
    assert_eq!(
        differences(section(plain, "check-named"), section(isolated, "check-named")),
        expected
    );
}

/// Without named CPUs, the isolated CPU is checked, or else all: rules about an isolated CPU do not
/// apply then, and pass.
#[test]
fn without_isolation_rules_about_it_do_not_apply() {
    let test = "without_isolation_rules_about_it_do_not_apply";
    let (Some(plain), Some(isolated)) = (of(&PLAIN, test), of(&ISOLATED, test)) else { return };
    let expected = [
        "clocksource: bad -> ok",
        "timer-migration: ok -> advice",
        "isolated-cpus: advice -> ok",
        "managed-interrupts: ok -> advice",
        "kernel-threads: ok -> advice",
        "writeback-workqueue: ok -> advice",
        "hung-task-detector: ok -> advice",
        "vm-statistics: ok -> advice",
    ];
    assert_eq!(differences(section(plain, "check-all"), section(isolated, "check-all")), expected);
}

/// The kernel in a guest's bundle is the guest's own.
#[test]
fn a_guest_reports_its_own_kernel() {
    let Some(result) = of(&PLAIN, "a_guest_reports_its_own_kernel") else { return };
    let environment = section(result, "bundle/environment.json");
    assert!(environment.contains(result.release.as_deref().unwrap()), "{environment}");
}

/// Each disturbance of the isolated CPU has its originator.
#[test]
fn on_6_12_whoever_disturbs_an_isolated_cpu_is_named() {
    let test = "on_6_12_whoever_disturbs_an_isolated_cpu_is_named";
    let Some(summary) = disturbed::summary(of(&ISOLATED_6_12, test)) else { return };
    disturbed::assert_named(&summary);
    disturbed::assert_callers_named(&summary);
}

/// Before 6.5 the kernel does not show the senders of IPIs, which is reported.
#[test]
fn on_6_1_whoever_disturbs_an_isolated_cpu_is_named_but_for_ipis() {
    let test = "on_6_1_whoever_disturbs_an_isolated_cpu_is_named_but_for_ipis";
    let Some(summary) = disturbed::summary(of(&ISOLATED, test)) else { return };
    disturbed::assert_named(&summary);
    disturbed::assert_callers_unknown(&summary);
}
