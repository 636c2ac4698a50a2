//! Isolation on the running kernel and in guests: the last CPU is reserved for real time and
//! released again, by processes that are killed with SIGKILL meanwhile. Needs root, or QEMU. Here
//! only the creation is killed; guests run all of it.
//! PUNCTUAL_TEST_EVERY_STEP=1 tries every step instead of some twenty of them.

mod guests;
#[path = "isolate_support/killing.rs"]
mod killing;

use killing::{Death, Fate, MortalFiles, MortalStore};
use punctual_core::CpuSet;
use punctual_host::files::{Files, Root};
use punctual_host::isolate::{self, Change, Cpusets, PartitionRequest, TargetCpus};
use punctual_host::journal::apply::RequestedWrite;
use punctual_host::journal::{
    self, IfChanged, Journal, JournalDirectory, JournalLock, Store, tasks,
};
use punctual_sys::attributes;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The action of the process that is killed, and the step: `create 17`.
const ORDER: &str = "PUNCTUAL_TEST_ORDER";

/// Set in a guest, where no other work can be disturbed.
const IN_GUEST: &str = "PUNCTUAL_TEST_IN_GUEST";

/// There is only one machine: its tests take turns, also with those of other processes.
fn take_turn() -> JournalLock {
    let turns = JournalDirectory::from_path("/run/punctual-tests");
    for _ in 0..600 {
        if let Some(turn) = turns.try_lock().unwrap() {
            return turn;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("another test has had its turn for ten minutes");
}

struct Sigkill;

impl Death for Sigkill {
    fn die(&self) -> ! {
        // SAFETY: kill(2) and getpid(2) touch no memory; the signal ends this process before the
        // call returns.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        unreachable!("SIGKILL cannot be survived")
    }
}

/// The reason why these tests cannot run on this machine.
fn lacking() -> Option<String> {
    let files = Root::from_system();
    match isolate::plan_partition(&files, &request(&files)) {
        Err(refusal) => return Some(format!("a partition that can be made: {refusal}")),
        Ok(plan) if plan.machine.housekeeping.is_empty() => return Some("a second CPU".into()),
        Ok(_) => {}
    }
    match journal::read_all(&JournalDirectory::from_system()) {
        Ok(journals) if journals.is_empty() => None,
        Ok(_) => Some("a machine without changes that punctual made: undo them first".into()),
        Err(error) => Some(error.to_string()),
    }
}

/// The right to change the machine; without it the test is skipped.
fn turn() -> Option<JournalLock> {
    let root = Root::from_system().read("/proc/self/status").is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
    });
    if !root {
        println!("SKIPPED: root");
        return None;
    }
    let turn = take_turn();
    match lacking() {
        Some(lack) => {
            println!("SKIPPED: {lack}");
            None
        }
        None => Some(turn),
    }
}

/// The last CPU. Process 1 and its children, which may supervise this test, are not moved; CPUs are
/// not unplugged.
fn request(files: &dyn Files) -> PartitionRequest {
    let online: CpuSet = files.read("/sys/devices/system/cpu/online").unwrap().parse().unwrap();
    let last = online.iter().last().unwrap();
    let processes =
        files.list("/proc").unwrap().into_iter().filter_map(|name| name.parse::<i32>().ok());
    let near_init =
        |pid: &i32| *pid == 1 || tasks::read_stat(files, *pid).is_ok_and(|stat| stat.parent == 1);
    PartitionRequest {
        rt_name: "punctual-test-rt".into(),
        nrt_name: "punctual-test-nrt".into(),
        without: vec!["replug".into()],
        leave: processes.filter(near_init).collect(),
        ..PartitionRequest::new(TargetCpus::Cpus(CpuSet::from_cpu(last)))
    }
}

fn fixes() -> Vec<RequestedWrite> {
    let fix = |path: &str, value: &str| RequestedWrite {
        step: "fix".into(),
        path: path.into(),
        value: value.into(),
    };
    let all = [("/proc/sys/vm/stat_interval", "7"), ("/proc/sys/kernel/timer_migration", "0")];
    let all = all
        .into_iter()
        .chain([("/proc/sys/vm/stat_interval", "9"), ("/sys/kernel/mm/ksm/run", "1")]);
    all.filter(|(path, _)| Root::from_system().exists(path))
        .map(|(path, value)| fix(path, value))
        .collect()
}

/// The process that is killed: started by the tests below, with its order in the environment.
#[test]
#[ignore = "a part of another test"]
fn child() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let (what, when) = order.split_once(' ').unwrap();
    let fate = Fate::new(when.parse().ok(), &Sigkill);
    let (root, directory) = (Root::from_system(), JournalDirectory::from_system());
    let files = MortalFiles { inner: &root, fate: &fate };
    let store = MortalStore { inner: &directory, fate: &fate, torn: true };
    match what {
        "create" => drop(isolate::create_partition(&request(&root), &files, &store).unwrap()),
        "replug" => {
            let request = PartitionRequest { without: Vec::new(), ..request(&root) };
            drop(isolate::create_partition(&request, &files, &store).unwrap());
        }
        "fix" => drop(Journal::apply_writes(&store, &files, &fixes()).unwrap()),
        "undo" => {
            let report =
                journal::undo_journals(&store, &files, IfChanged::Report, |_| true).unwrap();
            assert!(report.is_complete(), "{report:#?}");
        }
        _ => unreachable!("{order}"),
    }
}

/// Runs the process above; returns whether it was killed. Any other failure fails the test.
fn run(what: &str, when: Option<usize>) -> bool {
    let when = when.map_or("never".to_owned(), |step| step.to_string());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "isolate_real::child", "--ignored", "--nocapture"])
        .env(ORDER, format!("{what} {when}"))
        .output()
        .unwrap();
    let killed = output.status.signal() == Some(libc::SIGKILL);
    let text = || {
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    assert!(killed || output.status.success(), "{what} {when}: {}\n{}", output.status, text());
    killed
}

/// The current state of everything that isolation changes.
fn snapshot(paths: &[String]) -> BTreeMap<String, String> {
    let files = Root::from_system();
    let cpusets = Cpusets::find_controller(&files).unwrap();
    let mut all = BTreeMap::new();
    for path in paths {
        all.insert(path.clone(), files.read(path).unwrap_or_else(|error| error.to_string()));
    }
    let cgroups = tasks::list_cgroups(&files, &cpusets.hierarchy.mount).unwrap();
    all.insert("cgroups".into(), cgroups.join(" "));
    for (tid, place) in tasks::cgroup_by_task(&files, &cpusets.hierarchy).unwrap() {
        if let (Ok(stat), Ok(cpus)) =
            (tasks::read_stat(&files, tid), tasks::read_affinity(&files, tid))
        {
            // The kernel moves threads that it has bound: a workqueue's rescuer stays where it last
            // helped.
            let cpus = if stat.is_bound() { "bound".to_owned() } else { cpus.to_string() };
            all.insert(format!("task {tid} of {}", stat.id.start), format!("{place} {cpus}"));
        }
    }
    all
}

/// The files that the plan would write to, and others that could change with them.
fn paths() -> Vec<String> {
    let files = Root::from_system();
    let mut request = request(&files);
    request.without.clear();
    let plan = isolate::plan_partition(&files, &request).unwrap();
    let mut paths: Vec<String> = Vec::new();
    for step in plan.steps {
        match step.change {
            Change::Write(write) if files.exists(&write.path) => paths.push(write.path),
            Change::EnableController { path } if files.exists(&path) => paths.push(path),
            Change::Replug { cpu, may_change } => {
                paths.push(journal::apply::online_file(cpu));
                paths.extend(may_change);
            }
            _ => {}
        }
    }
    paths.extend(fixes().into_iter().map(|fix| fix.path));
    paths.extend(
        ["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/isolated"].map(String::from),
    );
    paths
}

/// Compares everything but tasks that come and go.
fn assert_same(before: &BTreeMap<String, String>, paths: &[String], about: &str) {
    let after = snapshot(paths);
    let differs =
        |(key, value): &(&String, &String)| after.get(*key).is_some_and(|now| now != *value);
    let different: Vec<String> = before
        .iter()
        .filter(differs)
        .map(|(key, value)| {
            format!("{key}\n  before {}\n  after  {}", value.trim(), after[key].trim())
        })
        .collect();
    assert!(different.is_empty(), "{about}:\n{}", different.join("\n"));
    assert_eq!(narrow_newborn(before), [""; 0], "{about}: kernel threads that were born meanwhile");
}

/// Kernel threads that are not in a snapshot and may run only on the first CPUs, those that a
/// partition of the last one leaves: khugepaged, if enabling transparent huge pages started it.
fn narrow_newborn(before: &BTreeMap<String, String>) -> Vec<String> {
    let files = Root::from_system();
    let all = tasks::read_affinity(&files, 2).unwrap();
    let left = all.difference(&CpuSet::from_cpu(all.iter().last().unwrap()));
    let threads = tasks::all_threads(&files)
        .unwrap()
        .into_iter()
        .filter_map(|tid| tasks::read_stat(&files, tid).ok());
    let kernel = threads.filter(|stat| stat.is_kernel_thread() && !stat.is_bound());
    let newborn = kernel
        .filter(|stat| !before.contains_key(&format!("task {} of {}", stat.id.tid, stat.id.start)));
    let narrow = newborn
        .filter(|stat| tasks::read_affinity(&files, stat.id.tid).is_ok_and(|cpus| cpus == left));
    narrow.map(|stat| stat.name).collect()
}

/// Two tasks that requested CPUs: one the last CPU, one the first.
struct Bystanders(Vec<Child>);

impl Bystanders {
    fn new() -> Bystanders {
        let online: CpuSet =
            Root::from_system().read("/sys/devices/system/cpu/online").unwrap().parse().unwrap();
        let ends = [online.first_cpu().unwrap(), online.iter().last().unwrap()];
        let start = |cpu: usize| {
            let child = Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap();
            attributes::set_affinity(child.id() as i32, &CpuSet::from_cpu(cpu)).unwrap();
            child
        };
        Bystanders(ends.into_iter().map(start).collect())
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

/// Reverts the leftovers of a failed assertion.
struct PutBack;

impl Drop for PutBack {
    fn drop(&mut self) {
        let _ = journal::undo_journals(
            &JournalDirectory::from_system(),
            &Root::from_system(),
            IfChanged::Overwrite,
            |_| true,
        );
    }
}

/// Kills `what` at each step (or at some twenty) until it survives, and undoes each time; `prepare`
/// runs before it.
fn at_every_step(prepare: Option<&str>, what: &str) {
    let Some(_turn) = turn() else { return };
    let (_put_back, _bystanders) = (PutBack, Bystanders::new());
    let paths = paths();
    let before = snapshot(&paths);
    let every = std::env::var("PUNCTUAL_TEST_EVERY_STEP").is_ok_and(|value| value == "1");
    // A guest takes some ten times longer for each.
    let apart = if std::env::var_os(IN_GUEST).is_some() { 2 } else { 4 };
    let (mut step, mut deaths) = (0, 0);
    loop {
        if let Some(prepare) = prepare {
            assert!(!run(prepare, None));
        }
        let killed = run(what, Some(step));
        assert!(!run("undo", None));
        assert_same(&before, &paths, &format!("{what} killed at step {step}"));
        if !killed {
            break;
        }
        deaths += 1;
        // The first steps individually, then at growing distances, until one beyond the end is
        // survived.
        step += if every { 1 } else { 1 + step / apart };
    }
    assert!(deaths > 3, "{what} was killed {deaths} times only");
    println!("{what}: killed {deaths} times, at steps 0 to {step}");
    let left = JournalDirectory::from_system().file_names().unwrap();
    assert!(!left.iter().any(|name| name.starts_with("journal-")), "{left:?}");
}

#[test]
fn create_killed() {
    at_every_step(None, "create");
}

#[test]
#[ignore = "a part of another test"]
fn undo_killed_at_any_step_is_completed_by_the_next_undo() {
    at_every_step(Some("create"), "undo");
}

#[test]
#[ignore = "a part of another test"]
fn a_fix_killed_at_any_step_is_reverted_by_undo() {
    at_every_step(None, "fix");
}

#[test]
#[ignore = "a part of another test"]
fn an_undo_of_a_fix_killed_at_any_step_is_completed() {
    at_every_step(Some("fix"), "undo");
}

/// With the CPU unplugged meanwhile.
#[test]
#[ignore = "a part of another test"]
fn undo_restores_the_machine_after_a_cpu_was_unplugged() {
    at_every_step(None, "replug");
}
