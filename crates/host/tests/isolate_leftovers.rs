//! Leftovers: tasks that came and went, journals of other boots and of killed processes, full
//! disks.

use crate::isolate_support::Kernel;
use crate::isolate_support::killing::{Death, Fate, Memory, MortalFiles};
use crate::isolate_support::machine::{PF_KTHREAD, PF_NO_SETAFFINITY, set, task, v1, v2};
use punctual_host::isolate::{
    self, CreateError, EnteredPartition, JournalState, Membership, PartitionRequest, TargetCpus,
};
use punctual_host::journal::{IfChanged, Store, UndoReport};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

fn cpu3() -> PartitionRequest {
    PartitionRequest::new(TargetCpus::Cpus(set("3")))
}

fn undo(kernel: &Kernel, store: &Memory) -> UndoReport {
    isolate::undo_partition(store, kernel, IfChanged::Report).unwrap()
}

fn cgroup(kernel: &Kernel, tid: i32) -> String {
    kernel.with(|state| state.tasks[&tid].cgroup.clone())
}

#[test]
fn tasks_forked_meanwhile_are_moved_too_up_to_a_bound() {
    let forking = |forks: usize| {
        let (kernel, store) = (v1("cpuset."), Memory::default());
        kernel.with(|state| state.forks = forks);
        let partition = isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        let outside = kernel.with(|state| {
            let root = state.mount.clone();
            state.tasks.values().filter(|task| task.name == "forked" && task.cgroup == root).count()
        });
        assert!(undo(&kernel, &store).is_complete());
        let root = kernel.with(|state| state.mount.clone());
        assert!(kernel.with(|state| state.tasks.values().all(|task| task.cgroup == root)));
        (partition.tasks.restless, outside)
    };
    assert_eq!(forking(10), (false, 0));
    assert_eq!(forking(100), (true, 1));
}

#[test]
fn undo_moves_new_tasks_to_the_original_cgroup_of_their_parents() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let home = kernel.with(|state| {
        let path = format!("{}/home", state.mount);
        state.make(&path).unwrap();
        let own = state.cgroups.get_mut(&path).unwrap();
        (own.cpus, own.mems) = (set("0-3"), "0".into());
        state.tasks.get_mut(&100).unwrap().cgroup = path.clone();
        path
    });
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    kernel.with(|state| {
        let (rt, nrt) = (format!("{}/rt", state.mount), format!("{}/nrt", state.mount));
        state.tasks.insert(300, task(300, "child", 100, 0, "0-2", &nrt));
        state.tasks.insert(301, task(301, "grandchild", 300, 0, "3", &rt));
        state.tasks.insert(302, task(302, "stranger", 1, 0, "3", &rt));
        // Another task with the number of an ended one.
        state.tasks.insert(110, task(110, "reused", 1, 0, "0-2", &nrt));
        state.tasks.get_mut(&110).unwrap().start = 9999;
        state.tasks.remove(&111);
    });
    assert!(undo(&kernel, &store).is_complete());
    let root = kernel.with(|state| state.mount.clone());
    let homes = [100, 300, 301, 302, 110].map(|tid| cgroup(&kernel, tid));
    assert_eq!(homes, [home.clone(), home.clone(), home, root.clone(), root]);
}

#[test]
fn undo_keeps_an_affinity_or_cgroup_that_a_task_changed_itself() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let elsewhere = kernel.with(|state| {
        let path = format!("{}/elsewhere", state.mount);
        state.make(&path).unwrap();
        state.cgroups.get_mut(&path).unwrap().cpus = set("0-2");
        let chosen = state.tasks.get_mut(&1).unwrap();
        (chosen.allowed, chosen.asked) = (set("1"), Some(set("1")));
        state.tasks.get_mut(&100).unwrap().cgroup = path.clone();
        path
    });
    let report = undo(&kernel, &store);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.journals[0].affinities_left, cgroup(&kernel, 100)), (1, elsewhere));
    assert_eq!(report.journals[0].changed_hands.len(), 1);
    assert_eq!(kernel.with(|state| state.tasks[&1].allowed.clone()), set("1"));
}

#[test]
fn undo_leaves_a_kernel_thread_that_was_bound_meanwhile() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    kernel.with(|state| {
        let root = state.mount.clone();
        state.tasks.insert(400, task(400, "kworker/3:0", 2, PF_KTHREAD, "0-3", &root));
    });
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    kernel.with(|state| {
        let root = state.mount.clone();
        let worker = state.tasks.get_mut(&400).unwrap();
        worker.flags |= PF_NO_SETAFFINITY;
        // A thread under creation can be noted and not be moved.
        (worker.allowed, worker.cgroup) = (set("3"), root);
    });
    let report = undo(&kernel, &store);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.journals[0].affinities_left, 1);
    assert_eq!(kernel.with(|state| state.tasks[&400].allowed.clone()), set("3"));
}

#[test]
fn a_process_that_was_excluded_is_not_moved() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let request = PartitionRequest { leave: vec![100], ..cpu3() };
    let partition = isolate::create_partition(&request, &kernel, &store).unwrap();
    let root = kernel.with(|state| state.mount.clone());
    assert_eq!([cgroup(&kernel, 100), cgroup(&kernel, 101)], [root.clone(), root]);
    let left: Vec<i32> = partition
        .tasks
        .not_moved
        .iter()
        .filter(|task| task.why.contains("asked"))
        .map(|task| task.tid)
        .collect();
    assert_eq!(left, [100, 101]);
}

#[test]
fn a_journal_of_an_earlier_boot_is_put_aside() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let rebooted = v1("cpuset.");
    rebooted.set("/proc/sys/kernel/random/boot_id", "boot-2");
    let before = rebooted.snapshot();
    assert_eq!(isolate::pending_journals(&store, &rebooted).unwrap(), []);
    let report = undo(&rebooted, &store);
    assert_eq!(
        (report.put_aside, report.journals),
        (vec!["stale-journal-0001.jsonl".to_owned()], vec![])
    );
    assert_eq!(rebooted.snapshot(), before, "nothing of another boot is written");
    let partition = isolate::create_partition(&cpu3(), &rebooted, &store).unwrap();
    assert_eq!(partition.journal, "memory/journal-0002.jsonl");
}

struct Unwinding;

impl Death for Unwinding {
    fn die(&self) -> ! {
        panic_any("killed")
    }
}

#[test]
fn leftovers_of_a_killed_command_are_reported_by_the_next() {
    let standing = |kernel: &Kernel, store: &Memory| {
        let pending = isolate::pending_journals(store, kernel).unwrap();
        pending.first().map(|one| (one.standing, one.is_leftover()))
    };
    let (kernel, store) = (v1("cpuset."), Memory::default());
    assert_eq!(standing(&kernel, &store), None);
    let fate = Fate::new(Some(20), &Unwinding);
    let files = MortalFiles { inner: &kernel, fate: &fate };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        isolate::create_partition(&cpu3(), &files, &store).map(drop)
    }));
    assert_eq!(standing(&kernel, &store), Some((JournalState::HalfMade, true)));
    assert!(undo(&kernel, &store).is_complete());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    assert_eq!(standing(&kernel, &store), Some((JournalState::InForce, false)));
    assert!(undo(&kernel, &store).is_complete());

    let request = PartitionRequest { for_this_process: true, ..cpu3() };
    isolate::create_partition(&request, &kernel, &store).unwrap();
    assert_eq!(
        standing(&kernel, &store),
        Some((JournalState::InForce, false)),
        "its process lives"
    );
    kernel.with(|state| state.tasks.get_mut(&state.own).unwrap().start += 1);
    assert_eq!(standing(&kernel, &store), Some((JournalState::Abandoned, true)));
}

#[test]
fn create_reverts_all_changes_if_the_disk_is_full() {
    for (room, machine) in
        (0..40).map(|k| k * 400).flat_map(|room| [(room, v1("cpuset.")), (room, v2())])
    {
        let store = Memory::default();
        store.room.set(Some(room));
        let before = machine.snapshot();
        match isolate::create_partition(&cpu3(), &machine, &store) {
            Ok(_) => assert!(undo(&machine, &store).is_complete(), "{room}"),
            Err(CreateError::Failed { what, undone }) => {
                assert!(what.contains("No space left"), "{what}");
                assert!(undone.is_complete(), "{room}: {undone:?}");
            }
            Err(CreateError::Journal(error)) => {
                assert!(error.to_string().contains("No space left"), "{error}")
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(machine.snapshot(), before, "{room}");
        // The rest has no complete line; the next undo removes it.
        assert!(undo(&machine, &store).is_complete());
        assert_eq!(store.file_names().unwrap(), [""; 0], "{room}");
    }
}

#[test]
fn undo_reports_a_damaged_journal_line_and_reverts_the_others() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let before = kernel.snapshot();
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let lost = "\"step\":\"vmstat\"";
    let damage = |bytes: &mut Vec<u8>| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text
            .lines()
            .map(|line| if line.contains(lost) { "garbage\n".into() } else { format!("{line}\n") })
            .collect::<String>()
            .into_bytes();
    };
    damage(store.files.borrow_mut().get_mut("journal-0001.jsonl").unwrap());
    let report = undo(&kernel, &store);
    assert_eq!((report.journals[0].damaged.len(), report.is_complete()), (1, false));
    let different: Vec<String> = kernel
        .snapshot()
        .into_iter()
        .filter(|(key, value)| before[key] != *value)
        .map(|(key, _)| key)
        .collect();
    assert_eq!(different, ["/proc/sys/vm/stat_interval"]);
    assert!(isolate::undo_partition(&store, &kernel, IfChanged::Keep).unwrap().is_complete());
}

#[test]
fn moved_tasks_are_restored_with_their_affinity() {
    for kernel in [v1("cpuset."), v2()] {
        let store = Memory::default();
        let before = kernel.snapshot();
        isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        let entry = EnteredPartition { partition: "rt".into(), ..EnteredPartition::default() };
        let entered =
            isolate::move_process(&kernel, &store, 100, Membership::Process, &entry).unwrap();
        assert_eq!(
            (entered.threads, entered.cpus, entered.recorded),
            (vec![100, 101], set("3"), true)
        );
        assert!(cgroup(&kernel, 101).ends_with("/rt"));
        assert_eq!(kernel.with(|state| state.tasks[&101].allowed.clone()), set("3"));
        let report = undo(&kernel, &store);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(kernel.snapshot(), before);
    }
}

/// The threads of an experiment are in both halves at once, in both versions.
#[test]
fn an_experiment_has_threads_in_each_half() {
    for kernel in [v1("cpuset."), v2()] {
        let store = Memory::default();
        // The experiment is process 100, with the thread 101.
        kernel.with(|state| state.own = 100);
        let before = kernel.snapshot();
        isolate::create_partition(
            &PartitionRequest { for_this_process: true, ..cpu3() },
            &kernel,
            &store,
        )
        .unwrap();
        let go = |tid: i32, half: &str, membership| {
            let entry = EnteredPartition { partition: half.into(), ..EnteredPartition::default() };
            isolate::move_process(&kernel, &store, tid, membership, &entry).map(drop)
        };
        if kernel.with(|state| !state.v1) {
            let alone = |tid: i32| go(tid, "rt", Membership::Thread).unwrap_err().to_string();
            insta::assert_snapshot!(alone(101), @"thread 101 cannot move without its process: version 2 cgroups take whole processes (cgroups(7), thread mode)");
            insta::assert_snapshot!(alone(100), @"task 100 is not let in: a thread leaves its process only for a threaded cgroup of the same domain");
            go(100, "nrt", Membership::Process).unwrap();
        }
        go(101, "rt", Membership::Thread).unwrap();
        assert_eq!(cgroup(&kernel, 101).rsplit_once('/').unwrap().1, "rt");
        assert_eq!(cgroup(&kernel, 100).rsplit_once('/').unwrap().1, "nrt");
        let allowed = |tid: i32| kernel.with(|state| state.tasks[&tid].allowed.clone());
        assert_eq!((allowed(101), allowed(100)), (set("3"), set("0-2")));
        let status = isolate::partition_status(&kernel, &store).unwrap().unwrap();
        assert_eq!(status.members.into_iter().collect::<Vec<_>>(), [101]);
        let report = undo(&kernel, &store);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(kernel.snapshot(), before);
    }
}

#[test]
fn moving_a_process_is_refused_with_the_reason() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let into = |name: &str, cpus: Option<&str>| EnteredPartition {
        partition: name.into(),
        cpus: cpus.map(set),
        scheduling: None,
    };
    let refused = |tid: i32, entry: EnteredPartition, membership| {
        isolate::move_process(&kernel, &store, tid, membership, &entry).unwrap_err().to_string()
    };
    let whole = Membership::Process;
    insta::assert_snapshot!(refused(32, into("rt", None), whole), @"task 32 is not let in: bound to its CPUs by the kernel (PF_NO_SETAFFINITY)");
    insta::assert_snapshot!(refused(4711, into("rt", None), whole), @"there is no task 4711");
    insta::assert_snapshot!(refused(100, into("none", None), whole), @"there is no partition `none`: /sys/fs/cgroup/cpuset/none is not a cgroup; `punctual isolate list` shows those that exist");
    insta::assert_snapshot!(refused(100, into("rt", Some("1,3")), whole), @"CPU 1 is not in the partition, which has 3");
    insta::assert_snapshot!(refused(100, into("../rt", None), whole), @"`../rt` cannot be the name of a partition: it would leave its place in the cgroup tree");
    isolate::move_process(&kernel, &store, 101, Membership::Thread, &into("rt", None)).unwrap();
    assert!(cgroup(&kernel, 101).ends_with("/rt") && cgroup(&kernel, 100).ends_with("/nrt"));
    let (kernel, store) = (v2(), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let error = isolate::move_process(&kernel, &store, 101, Membership::Thread, &into("rt", None))
        .unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"thread 101 cannot move without its process: version 2 cgroups take whole processes (cgroups(7), thread mode)");
}

#[test]
fn undo_keeps_a_controller_that_others_use() {
    let (kernel, store) = (v2(), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    kernel
        .with(|state| state.cgroups.get_mut("/sys/fs/cgroup/user.slice").unwrap().cpus = set("0"));
    let report = undo(&kernel, &store);
    let found: Vec<&str> =
        report.journals[0].changed_hands.iter().map(|one| one.found.as_str()).collect();
    assert_eq!(found, ["cpuset, which /sys/fs/cgroup/user.slice uses"]);
    assert!(isolate::undo_partition(&store, &kernel, IfChanged::Keep).unwrap().is_complete());
}
