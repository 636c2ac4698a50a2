//! Isolation on a scripted kernel: plans, refusals, undo, and death at every step.

use crate::isolate_support::killing::{Death, Fate, Memory, MortalFiles, MortalStore};
use crate::isolate_support::machine::{PF_KTHREAD, PF_NO_SETAFFINITY, set, task, v1, v2};
use crate::isolate_support::{Kernel, Kind, Refusal as Scripted};
use punctual_host::files::Files;
use punctual_host::isolate::{
    self, Change, CreateError, JournalState, PartitionRequest, Refusal, TargetCpus,
};
use punctual_host::journal::apply::RequestedWrite;
use punctual_host::journal::{IfChanged, Journal, Store, UndoReport};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

/// Dies by unwinding; of the code under test only the closing of files runs, as with kill -9.
pub struct Unwinding;

struct Killed;

impl Death for Unwinding {
    fn die(&self) -> ! {
        panic_any(Killed)
    }
}

/// Runs code that may be killed; returns whether it was.
pub fn mortal(run: impl FnOnce()) -> bool {
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Killed>() {
                loud(info)
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => false,
        Err(payload) if payload.is::<Killed>() => true,
        Err(other) => std::panic::resume_unwind(other),
    }
}

fn cpu3() -> PartitionRequest {
    PartitionRequest::new(TargetCpus::Cpus(set("3")))
}

fn undo(kernel: &Kernel, store: &dyn Store) -> UndoReport {
    isolate::undo_partition(store, kernel, IfChanged::Report).unwrap()
}

type Machine = (&'static str, fn() -> Kernel);

fn every_machine() -> Vec<Machine> {
    fn forgetful(kernel: Kernel) -> Kernel {
        kernel.with(|state| state.remembers = false);
        kernel
    }
    fn crowded() -> Kernel {
        let kernel = v1("cpuset.");
        kernel.with(|state| {
            let path = format!("{}/docker", state.mount);
            state.make(&path).unwrap();
            let cgroup = state.cgroups.get_mut(&path).unwrap();
            (cgroup.cpus, cgroup.mems) = (set("0-3"), "0".into());
            state.tasks.get_mut(&100).unwrap().cgroup = path;
        });
        kernel
    }
    vec![
        ("version 1", || v1("cpuset.")),
        ("version 1 without prefix", || v1("")),
        ("version 1 before 6.2", || forgetful(v1("cpuset."))),
        ("version 1 with a container", crowded),
        ("version 2", v2),
        ("version 2 before 6.2", || forgetful(v2())),
    ]
}

#[test]
fn undo_restores_the_original_state() {
    for (name, machine) in every_machine() {
        let (kernel, store) = (machine(), Memory::default());
        let before = kernel.snapshot();
        let partition = isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        assert_ne!(kernel.snapshot(), before, "{name}");
        assert_eq!(
            partition.refused_changes().count(),
            0,
            "{name}: {:?}",
            partition.refused_changes().collect::<Vec<_>>()
        );
        let report = undo(&kernel, &store);
        assert!(report.is_complete(), "{name}: {report:?}");
        assert_eq!(kernel.snapshot(), before, "{name}");
        assert_eq!(store.file_names().unwrap(), [""; 0], "{name}");
        assert_eq!(undo(&kernel, &store).journals, [], "{name}: a second undo finds nothing");
    }
}

/// khugepaged ends when transparent huge pages are disabled, and is created again, with the CPUs
/// that the partition leaves, when they are enabled.
#[test]
fn kernel_threads_born_meanwhile_get_all_cpus() {
    for (name, machine) in every_machine() {
        let (kernel, store) = (machine(), Memory::default());
        isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        let newborn = [(300, PF_KTHREAD, "0-2"), (301, PF_KTHREAD | PF_NO_SETAFFINITY, "1")];
        kernel.with(|state| {
            for (tid, flags, allowed) in newborn {
                let newborn = task(tid, "khugepaged", 2, flags, allowed, &state.mount);
                state.tasks.insert(tid, newborn);
            }
        });
        assert!(undo(&kernel, &store).is_complete(), "{name}");
        let allowed = |tid: i32| kernel.with(|state| state.tasks[&tid].allowed.clone());
        assert_eq!(allowed(300), set("0-3"), "{name}");
        // Bound by the kernel: it cannot be moved.
        assert_eq!(allowed(301), set("1"), "{name}");
    }
}

/// The kernel returns the CPUs of a removed partition some time later, and then disturbs
/// affinities.
#[test]
fn undo_restores_all_although_the_kernel_acts_with_delay() {
    for (name, machine) in every_machine() {
        for late in 0..50 {
            let (kernel, store) = (machine(), Memory::default());
            kernel.with(|state| state.late = late);
            let before = kernel.snapshot();
            isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
            let report = undo(&kernel, &store);
            assert!(report.is_complete(), "{name}, {late} changes late: {report:?}");
            kernel.with(|state| (0..=late).for_each(|_| state.pass_time()));
            assert_eq!(kernel.snapshot(), before, "{name}, {late} changes late");
        }
    }
}

#[test]
fn only_bound_threads_may_run_in_the_partition() {
    for (name, machine) in every_machine() {
        let (kernel, store) = (machine(), Memory::default());
        let partition = isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        let visitors: Vec<&str> = partition
            .tasks
            .not_moved
            .iter()
            .filter(|task| task.may_run_in_partition)
            .map(|task| task.name.as_str())
            .collect();
        assert_eq!(visitors, ["ksoftirqd/3"], "{name}");
        kernel.with(|state| {
            let on_it = |tid: i32| state.tasks[&tid].allowed.contains(3);
            assert!(![1, 2, 40, 100, 101, 110, 111, 200].into_iter().any(on_it), "{name}");
        });
    }
}

/// Creates, killed before change `first`; then undoes, killed before change `second`; then undoes.
fn killed(
    machine: fn() -> Kernel,
    first: usize,
    second: Option<usize>,
    torn: bool,
) -> (bool, bool) {
    let (kernel, store) = (machine(), Memory::default());
    let before = kernel.snapshot();
    let fate = Fate::new(Some(first), &Unwinding);
    let killed_creating = mortal(|| {
        let files = MortalFiles { inner: &kernel, fate: &fate };
        let mortal_store = MortalStore { inner: &store, fate: &fate, torn };
        isolate::create_partition(&cpu3(), &files, &mortal_store).map(drop).unwrap();
    });
    let mut killed_undoing = false;
    if let Some(second) = second {
        let fate = Fate::new(Some(second), &Unwinding);
        killed_undoing = mortal(|| {
            let files = MortalFiles { inner: &kernel, fate: &fate };
            let mortal_store = MortalStore { inner: &store, fate: &fate, torn };
            isolate::undo_partition(&mortal_store, &files, IfChanged::Report).map(drop).unwrap();
        });
    }
    let report = undo(&kernel, &store);
    assert!(report.is_complete(), "killed at {first}, {second:?}: {report:?}");
    assert_eq!(kernel.snapshot(), before, "killed at {first}, {second:?}");
    assert_eq!(report.journals.iter().map(|journal| journal.changed_hands.len()).sum::<usize>(), 0);
    assert_eq!(store.file_names().unwrap(), [""; 0], "killed at {first}, {second:?}");
    (killed_creating, killed_undoing)
}

/// A process killed after one change is the same as one killed before the next: there is nothing
/// between them.
#[test]
fn killed_at_every_step_of_create() {
    for (name, machine) in every_machine() {
        for torn in [false, true] {
            let survived = (0..1000).find(|step| !killed(machine, *step, None, torn).0);
            assert!(survived.is_some_and(|steps| steps > 30), "{name}: {survived:?}");
        }
    }
}

#[test]
fn undo_killed_at_every_step_restores_all_when_repeated() {
    for (name, machine) in every_machine() {
        for torn in [false, true] {
            let survived = (0..1000).find(|step| !killed(machine, usize::MAX, Some(*step), torn).1);
            assert!(survived.is_some_and(|steps| steps > 30), "{name}: {survived:?}");
        }
    }
}

/// Every pair of steps takes thousands of runs; each seventh takes a few seconds and covers all
/// kinds of steps.
#[test]
fn killed_in_create_and_in_undo_the_next_undo_restores_all() {
    for (_, machine) in every_machine() {
        for first in (0..1000).step_by(7) {
            let mut deaths = (0..1000)
                .step_by(5)
                .map(|second| killed(machine, first, Some(second), second % 2 == 0));
            let last = deaths.find(|(_, in_undo)| !in_undo);
            if last.is_some_and(|(in_create, _)| !in_create) {
                break;
            }
        }
    }
}

#[test]
fn a_fix_killed_at_every_step_is_reverted_by_undo() {
    let requested: Vec<RequestedWrite> = [
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
        ("/proc/sys/vm/stat_interval", "10"),
    ]
    .into_iter()
    .map(|(path, value)| RequestedWrite {
        step: "fix".into(),
        path: path.into(),
        value: value.into(),
    })
    .collect();
    let fix = |kernel: &dyn Files, store: &dyn Store| {
        Journal::apply_writes(store, kernel, &requested).map(drop).unwrap()
    };
    let take_back = |kernel: &dyn Files, store: &dyn Store| {
        punctual_host::journal::undo_journals(store, kernel, IfChanged::Report, |_| true).unwrap()
    };
    let mut deaths = (0, 0);
    for (first, second) in (0..20).flat_map(|first| (0..20).map(move |second| (first, second))) {
        let (kernel, store) = (v2(), Memory::default());
        let before = kernel.snapshot();
        for (step, undoing) in [(first, false), (second, true)] {
            let fate = Fate::new(Some(step), &Unwinding);
            let died = mortal(|| {
                let files = MortalFiles { inner: &kernel, fate: &fate };
                let mortal_store = MortalStore { inner: &store, fate: &fate, torn: true };
                if undoing {
                    drop(take_back(&files, &mortal_store))
                } else {
                    fix(&files, &mortal_store)
                }
            });
            if undoing { deaths.1 += usize::from(died) } else { deaths.0 += usize::from(died) }
        }
        assert!(take_back(&kernel, &store).is_complete());
        assert_eq!(kernel.snapshot(), before, "killed at {first} and {second}");
    }
    assert!(deaths.0 > 100 && deaths.1 > 50, "{deaths:?}");
}

#[test]
fn a_change_of_hands_is_reported_and_not_overwritten() {
    let path = "/proc/sys/vm/stat_interval";
    let made = || {
        let (kernel, store) = (v1("cpuset."), Memory::default());
        isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
        kernel.set(path, "60");
        (kernel, store)
    };
    let (kernel, store) = made();
    let report = undo(&kernel, &store);
    let changed = &report.journals[0].changed_hands;
    assert_eq!(
        (changed.len(), report.is_complete(), kernel.holds(path).as_str()),
        (1, false, "60")
    );
    let one = &changed[0];
    let shown = [&one.path, &one.expected, &one.found, &one.before].map(String::as_str);
    assert_eq!(shown, [path, "1000", "60", "1"]);
    assert!(matches!(
        isolate::create_partition(&cpu3(), &kernel, &store),
        Err(CreateError::Refused(Refusal::AlreadyActive(_)))
    ));
    assert!(isolate::undo_partition(&store, &kernel, IfChanged::Overwrite).unwrap().is_complete());
    assert_eq!(kernel.holds(path), "1");

    let (kernel, store) = made();
    assert!(isolate::undo_partition(&store, &kernel, IfChanged::Keep).unwrap().is_complete());
    assert_eq!(kernel.holds(path), "60");
    assert_eq!(store.file_names().unwrap(), [""; 0]);
}

#[test]
fn undo_accepts_a_setting_that_others_restored() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    kernel.set("/proc/sys/vm/stat_interval", "1");
    assert!(undo(&kernel, &store).is_complete());
}

#[test]
fn create_reverts_all_changes_if_an_essential_one_is_refused() {
    for (name, machine) in every_machine() {
        let before = machine().snapshot();
        // Refuses every change that the plan calls essential once.
        let plan = isolate::plan_partition(&machine(), &cpu3()).unwrap();
        let essential =
            plan.steps.iter().filter(|step| step.essential).filter_map(|step| match &step.change {
                Change::MakeCgroup { path } | Change::EnableController { path } => {
                    Some(path.clone())
                }
                Change::Write(write) => Some(write.path.clone()),
                _ => None,
            });
        for path in essential.collect::<Vec<_>>() {
            let (kernel, store) = (machine(), Memory::default());
            kernel.refuse(&path, libc::ENOSPC, 1);
            match isolate::create_partition(&cpu3(), &kernel, &store) {
                Err(CreateError::Failed { what, undone }) => {
                    assert!(undone.is_complete(), "{name}: {path}: {undone:?}");
                    assert!(what.contains(&path) && what.contains("No space left"), "{what}");
                }
                other => panic!("{name}: {path}: {other:?}"),
            }
            assert_eq!(kernel.snapshot(), before, "{name}: {path}");
            assert_eq!(store.file_names().unwrap(), [""; 0]);
        }
    }
}

#[test]
fn a_refused_optional_setting_is_listed_and_the_partition_created() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    kernel.refuse("/proc/irq/24/smp_affinity_list", libc::EPERM, usize::MAX);
    kernel.refuse("/proc/irq/26/smp_affinity_list", libc::EIO, 1);
    kernel.with(|state| {
        state.settings.get_mut("/proc/sys/kernel/timer_migration").unwrap().0 = Kind::Deaf
    });
    let before = kernel.snapshot();
    let partition = isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    let refused: Vec<String> =
        partition.refused_changes().map(|one| format!("{} {:?}", one.path, one.effect)).collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
    /proc/irq/24/smp_affinity_list (disk) Refused { errno: Some(1), why: "Operation not permitted (os error 1)" }
    /proc/irq/26/smp_affinity_list (no handler) Refused { errno: Some(5), why: "Input/output error (os error 5)" }
    /proc/sys/kernel/timer_migration Ignored { value: "1" }
    "#);
    assert!(undo(&kernel, &store).is_complete());
    assert_eq!(kernel.snapshot(), before);
}

#[test]
fn a_write_that_failed_but_took_effect_is_reverted() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let before = kernel.snapshot();
    let path = "/proc/sys/vm/stat_interval".to_owned();
    kernel.with(|state| {
        state.refusals.push(Scripted { path, errno: libc::EINTR, times: 1, after_all: true })
    });
    let partition = isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    assert_eq!(partition.refused_changes().count(), 0, "the file has the requested value");
    assert_eq!(kernel.holds("/proc/sys/vm/stat_interval"), "1000");
    assert!(undo(&kernel, &store).is_complete());
    assert_eq!(kernel.snapshot(), before);
}

#[test]
fn undo_retries_on_ebusy_and_reports_refused_settings() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let before = kernel.snapshot();
    isolate::create_partition(&cpu3(), &kernel, &store).unwrap();
    kernel.refuse("/proc/irq/default_smp_affinity", libc::EBUSY, 3);
    kernel.refuse("/proc/sys/vm/stat_interval", libc::EPERM, 1);
    let report = undo(&kernel, &store);
    let failed: Vec<&str> = report.journals[0].failed.iter().map(|one| one.path.as_str()).collect();
    assert_eq!((failed, report.is_complete()), (vec!["/proc/sys/vm/stat_interval"], false));
    let standing = isolate::pending_journals(&store, &kernel).unwrap();
    let [one] = &standing[..] else { panic!("{standing:?}") };
    assert!(one.standing == JournalState::HalfUndone && one.is_leftover());
    assert!(undo(&kernel, &store).is_complete());
    assert_eq!(kernel.snapshot(), before);
}

#[test]
fn create_fails_and_is_reverted_if_a_cpu_stays_offline() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    let before = kernel.snapshot();
    struct Stubborn<'a>(&'a Kernel, std::cell::Cell<usize>);
    impl Files for Stubborn<'_> {
        fn read(&self, path: &str) -> Result<String, punctual_host::files::FileError> {
            self.0.read(path)
        }
        fn write(&self, path: &str, text: &str) -> Result<(), punctual_host::files::FileError> {
            if path.ends_with("cpu3/online") && text == "1" && self.1.get() > 0 {
                self.1.set(self.1.get() - 1);
                let source = std::io::Error::from_raw_os_error(libc::EBUSY);
                return Err(punctual_host::files::FileError {
                    action: "write",
                    path: path.into(),
                    source,
                });
            }
            self.0.write(path, text)
        }
        fn list(&self, path: &str) -> Result<Vec<String>, punctual_host::files::FileError> {
            self.0.list(path)
        }
        fn exists(&self, path: &str) -> bool {
            self.0.exists(path)
        }
        fn read_link(&self, path: &str) -> Result<String, punctual_host::files::FileError> {
            self.0.read_link(path)
        }
        fn create_dir(&self, path: &str) -> Result<(), punctual_host::files::FileError> {
            self.0.create_dir(path)
        }
        fn remove_dir(&self, path: &str) -> Result<(), punctual_host::files::FileError> {
            self.0.remove_dir(path)
        }
        fn set_affinity(
            &self,
            tid: i32,
            cpus: &punctual_core::CpuSet,
        ) -> Result<(), punctual_host::files::FileError> {
            self.0.set_affinity(tid, cpus)
        }
    }
    let stubborn = Stubborn(&kernel, std::cell::Cell::new(12));
    match isolate::create_partition(&cpu3(), &stubborn, &store) {
        Err(CreateError::Failed { what, undone }) => {
            assert!(what.contains("CPU 3 went offline and does not come back"), "{what}");
            assert!(undone.is_complete(), "{undone:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(kernel.snapshot(), before);
}
