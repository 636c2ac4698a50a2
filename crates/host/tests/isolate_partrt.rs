//! A partition that partrt made: recognised, entered, and undone as one of our own.

use crate::isolate_scripted::{Unwinding, mortal};
use crate::isolate_support::killing::{Fate, Memory, MortalFiles, MortalStore};
use crate::isolate_support::machine::{set, v1, v2};
use crate::isolate_support::{Kernel, Kind};
use punctual_host::files::Files;
use punctual_host::isolate::{
    self, EnteredPartition, Membership, find_partrt, move_process, take_over,
};
use punctual_host::journal::{IfChanged, Store};

/// The file that it writes, with a line that somebody else has added.
const FORMER: &str = "partrt_settings: 2026-11-28-05-00-00\n\
                      /proc/sys/kernel/sched_rt_runtime_us 950000\n\
                      /proc/sys/vm/stat_interval 1\n\
                      /sys/bus/workqueue/devices/writeback/numa \n\
                      /proc/sys/vm/swappiness 0\n\
                      /sys/devices/virtual/workqueue/cpumask f\n\
                      /sys/devices/system/machinecheck/machinecheck0/check_interval 300\n";

fn machine() -> Kernel {
    let kernel = v1("cpuset.");
    kernel.with(|state| {
        let mask = (Kind::Mask, "0000000f".to_owned());
        state.settings.insert("/proc/irq/24/smp_affinity".to_owned(), mask.clone());
        state.settings.insert("/proc/irq/25/smp_affinity".to_owned(), (Kind::Mask, "2".to_owned()));
    });
    kernel
}

/// Does what `partrt create 0x8` does, without its replugging of CPUs.
fn partrt_create(kernel: &Kernel) {
    let mount = kernel.with(|state| state.mount.clone());
    let write = |path: &str, text: &str| kernel.write(path, text).expect("the kernel takes it");
    let group = |path: &str| format!("{mount}/{path}");
    kernel.create_dir(&group("rt")).expect("a cgroup");
    write(&group("rt/cpuset.cpus"), "3");
    write(&group("rt/cpuset.cpu_exclusive"), "1");
    write(&group("rt/cpuset.mems"), "0");
    kernel.create_dir(&group("nrt")).expect("a cgroup");
    write(&group("nrt/cpuset.mems"), "0");
    write(&group("nrt/cpuset.cpus"), "0-2");
    let tasks: Vec<i32> = kernel.with(|state| state.tasks.keys().copied().collect());
    for tid in tasks {
        // Some are refused: they stay.
        let _ = kernel.write(&group("nrt/tasks"), &tid.to_string());
    }
    write(&group("cpuset.sched_load_balance"), "0");
    write(&group("nrt/cpuset.sched_load_balance"), "1");
    write(&group("rt/cpuset.sched_load_balance"), "0");
    write("/proc/irq/default_smp_affinity", "7");
    write("/proc/irq/24/smp_affinity", "7");
    write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    write("/proc/sys/vm/stat_interval", "1000");
    write("/sys/devices/virtual/workqueue/cpumask", "7");
    write("/sys/devices/system/machinecheck/machinecheck0/check_interval", "0");
}

/// Everything but affinities, which partrt does not note.
fn snapshot(kernel: &Kernel) -> Vec<(String, String)> {
    let all = kernel.snapshot().into_iter();
    all.map(|(name, value)| (name, value.split(" on ").next().unwrap_or_default().to_owned()))
        .collect()
}

#[test]
fn it_is_recognised_entered_and_undone() {
    let (kernel, store) = (machine(), Memory::default());
    let before = snapshot(&kernel);
    assert_eq!(find_partrt(&kernel).expect("it can be read"), None);
    assert_eq!(take_over(&kernel, &store, Some(FORMER)).expect("nothing to do"), None);
    partrt_create(&kernel);
    let note = find_partrt(&kernel).expect("it can be read").expect("it is found");
    assert_eq!((note.rt.as_str(), note.nrt.as_str()), ("rt", "nrt"));
    assert_eq!((note.cpus, note.housekeeping), (set("3"), set("0-2")));
    let entry = EnteredPartition { partition: "rt".to_owned(), ..EnteredPartition::default() };
    let entered = move_process(&kernel, &store, 100, Membership::Process, &entry);
    assert_eq!(entered.expect("it enters").cpus, set("3"));
    let unknown = take_over(&kernel, &store, Some(FORMER)).expect("it is taken over");
    assert_eq!(unknown, Some(vec![]));
    let status =
        isolate::partition_status(&kernel, &store).expect("it can be read").expect("a partition");
    assert!(status.in_force.iter().all(|one| one.in_force), "{:#?}", status.in_force);
    let report = isolate::undo_partition(&store, &kernel, IfChanged::Report).expect("it is undone");
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(snapshot(&kernel), before);
    assert_eq!(store.file_names().expect("a list"), [""; 0]);
}

#[test]
fn without_its_file_the_former_settings_are_not_guessed() {
    for text in [None, Some("something else\n/proc/sys/vm/stat_interval 1\n")] {
        let (kernel, store) = (machine(), Memory::default());
        partrt_create(&kernel);
        let unknown = take_over(&kernel, &store, text).expect("it is taken over");
        let expected = [
            "/proc/sys/kernel/sched_rt_runtime_us",
            "/proc/sys/vm/stat_interval",
            "/sys/devices/virtual/workqueue/cpumask",
            "/sys/devices/system/machinecheck/machinecheck0/check_interval",
        ];
        assert_eq!(unknown, Some(expected.map(str::to_owned).to_vec()));
        let report =
            isolate::undo_partition(&store, &kernel, IfChanged::Report).expect("it is undone");
        assert!(report.is_complete(), "{report:#?}");
        assert_eq!(kernel.holds("/proc/sys/vm/stat_interval"), "1000");
        assert_eq!(find_partrt(&kernel).expect("it can be read"), None);
    }
}

#[test]
fn killed_at_every_step_the_next_undo_restores_all() {
    for torn in [false, true] {
        let survived = (0..500).find(|step| {
            let (kernel, store) = (machine(), Memory::default());
            let before = snapshot(&kernel);
            partrt_create(&kernel);
            let fate = Fate::new(Some(*step), &Unwinding);
            let undo = |files: &dyn Files, store: &dyn Store| {
                take_over(files, store, Some(FORMER)).expect("it is taken over");
                isolate::undo_partition(store, files, IfChanged::Report).expect("it is undone")
            };
            let killed = mortal(|| {
                let files = MortalFiles { inner: &kernel, fate: &fate };
                undo(&files, &MortalStore { inner: &store, fate: &fate, torn });
            });
            let report = undo(&kernel, &store);
            assert!(report.is_complete(), "killed at {step}: {report:#?}");
            assert_eq!(snapshot(&kernel), before, "killed at {step}");
            assert_eq!(store.file_names().expect("a list"), [""; 0], "killed at {step}");
            !killed
        });
        assert!(survived.is_some_and(|steps| steps > 30), "{survived:?}");
    }
}

#[test]
fn partitions_of_others_are_not_taken_for_it() {
    let (kernel, store) = (machine(), Memory::default());
    let request = isolate::PartitionRequest::new(isolate::TargetCpus::Cpus(set("3")));
    isolate::create_partition(&request, &kernel, &store).expect("it is made");
    assert_eq!(take_over(&kernel, &store, Some(FORMER)).expect("one of ours"), None);
    assert_eq!(find_partrt(&v2()).expect("it can be read"), None);
    // A cpuset without CPUs of its own.
    let kernel = machine();
    partrt_create(&kernel);
    let mount = kernel.with(|state| state.mount.clone());
    kernel.write(&format!("{mount}/rt/cpuset.cpu_exclusive"), "0").expect("the kernel takes it");
    assert_eq!(find_partrt(&kernel).expect("it can be read"), None);
}
