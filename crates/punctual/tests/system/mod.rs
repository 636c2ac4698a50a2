//! The running machine as the subject of a test: one test at a time, its state before and after,
//! and everything restored.

#![allow(dead_code)] // each test file uses its share

use crate::common::{is_root, punctual, text};
use punctual_core::CpuSet;
use punctual_host::files::{Files, Root};
use punctual_host::isolate::Cpusets;
use punctual_host::journal::{self, IfChanged, JournalDirectory, JournalLock, Store, tasks};
use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The right to change this machine. On drop, leftovers of a failed test are reverted.
pub struct Turn {
    _lock: JournalLock,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = journal::undo_journals(
            &JournalDirectory::from_system(),
            &Root::from_system(),
            IfChanged::Overwrite,
            |_| true,
        );
    }
}

/// Waits for the tests of this and of other processes. Without a prerequisite of partitions it
/// prints that, and the test is skipped.
pub fn turn(test: &str) -> Option<Turn> {
    if !is_root(test) {
        return None;
    }
    // The same lock as in the tests of crates/host.
    let turns = JournalDirectory::from_path("/run/punctual-tests");
    let lock = (0..18_000).find_map(|_| {
        let lock = turns.try_lock().expect("a lock under /run");
        if lock.is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        lock
    });
    let turn = Turn { _lock: lock.expect("a turn within half an hour") };
    let left = journal::read_all(&JournalDirectory::from_system()).expect("the journals");
    if !left.is_empty() {
        println!(
            "SKIPPED: {test} lacks a machine without changes that punctual made: `punctual \
             isolate undo --all` first"
        );
        return None;
    }
    let planned = punctual()
        .args(["isolate", "create", &last_cpu(), "--dry-run"])
        .output()
        .expect("punctual starts");
    if !planned.status.success() {
        println!("SKIPPED: {test} lacks a partition that can be made: {}", text(&planned).trim());
        return None;
    }
    Some(turn)
}

pub fn online() -> CpuSet {
    Root::from_system()
        .read_trimmed("/sys/devices/system/cpu/online")
        .expect("a file")
        .parse()
        .expect("a list")
}

/// The last online CPU: the one that tests use for real time.
pub fn last_cpu() -> String {
    online().iter().last().expect("a CPU").to_string()
}

/// Runs `punctual ARGS…`, with this expected exit code.
pub fn expect(code: i32, arguments: &[&str]) -> Output {
    let output = punctual().args(arguments).stdin(Stdio::null()).output().expect("punctual starts");
    assert_eq!(
        output.status.code(),
        Some(code),
        "punctual {}: {}",
        arguments.join(" "),
        text(&output)
    );
    output
}

/// The output of a command, as JSON.
pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

/// Every file that a partition of the last CPU and `check --fix` would write, as they report it,
/// and some related ones.
pub fn paths() -> Vec<String> {
    let cpu = last_cpu();
    let partition = text(&expect(0, &["isolate", "create", &cpu, "--dry-run"]));
    let fixes = text(&expect(0, &["check", "--cpus", &cpu, "--fix", "--dry-run"]));
    let target = |line: &str| {
        let (_, rest) = line.split_once(" to /")?;
        let path = rest.split([' ', ',', ';']).next()?;
        Some(format!("/{path}"))
    };
    let mut paths: Vec<String> =
        partition.lines().chain(fixes.lines()).filter_map(target).collect();
    assert!(paths.len() > 10, "{partition}{fixes}");
    paths.extend(
        ["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/isolated"].map(String::from),
    );
    paths
}

/// These files, the cgroups, and the cgroup and affinity of tasks that no other process should move
/// meanwhile: the first process, the kernel's threads, and these.
pub fn snapshot(paths: &[String], bystanders: &Bystanders) -> BTreeMap<String, String> {
    let files = Root::from_system();
    let hierarchy = Cpusets::find_controller(&files).expect("cpusets").hierarchy;
    let read = |path: &String| {
        (path.clone(), files.read_trimmed(path).unwrap_or_else(|error| error.to_string()))
    };
    let mut all: BTreeMap<String, String> = paths.iter().map(read).collect();
    all.insert(
        "cgroups".into(),
        tasks::list_cgroups(&files, &hierarchy.mount).expect("cgroups").join(" "),
    );
    for (tid, place) in tasks::cgroup_by_task(&files, &hierarchy).expect("tasks") {
        let (Ok(stat), Ok(cpus)) =
            (tasks::read_stat(&files, tid), tasks::read_affinity(&files, tid))
        else {
            continue;
        };
        // A thread of an interrupt follows it to the CPU that serves it; the kernel moves bound
        // ones.
        let still = stat.is_kernel_thread() && !stat.is_bound() && !stat.name.starts_with("irq/");
        if still || tid == 1 || bystanders.0.iter().any(|one| one.id() as i32 == tid) {
            all.insert(
                format!("task {tid} ({}) of {}", stat.name, stat.id.start),
                format!("{place} {cpus}"),
            );
        }
    }
    all
}

/// Asserts that all but ended tasks are unchanged.
pub fn assert_same(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    about: &str,
) {
    let changed = before.iter().filter_map(|(key, was)| {
        let now = after.get(key).filter(|now| *now != was)?;
        Some(format!("{key}\n  before {was}\n  after  {now}"))
    });
    let changed: Vec<String> = changed.collect();
    assert!(changed.is_empty(), "{about}:\n{}", changed.join("\n"));
}

/// Tasks with different affinities: for the last CPU, for the first, and default.
pub struct Bystanders(Vec<Child>);

impl Bystanders {
    /// Starts the tasks.
    pub fn new() -> Bystanders {
        let first = online().first_cpu().expect("a CPU").to_string();
        let with = |cpus: &str| Command::new("taskset").args(["-c", cpus, "sleep", "3600"]).spawn();
        let any = Command::new("sleep").arg("3600").spawn();
        let all = Bystanders(
            [with(&last_cpu()), with(&first), any]
                .into_iter()
                .map(|child| child.expect("a task"))
                .collect(),
        );
        let pinned = |child: &Child, cpus: &str| allowed(child.id() as i32) == cpus;
        crate::common::eventually("their affinity", || {
            pinned(&all.0[0], &last_cpu()) && pinned(&all.0[1], &first)
        });
        all
    }
    /// The one with default affinity.
    pub fn any(&self) -> i32 {
        self.0[2].id() as i32
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The affinity of a task, as a list; empty after its end.
pub fn allowed(tid: i32) -> String {
    tasks::read_affinity(&Root::from_system(), tid).map(|cpus| cpus.to_string()).unwrap_or_default()
}
