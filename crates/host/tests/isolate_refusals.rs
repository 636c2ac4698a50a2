//! Requests that isolation refuses before it changes anything, with its messages.

use crate::isolate_support::killing::Memory;
use crate::isolate_support::machine::{set, v1, v2};
use crate::isolate_support::{Cgroup, Kernel};
use punctual_host::isolate::{self, PartitionRequest, TargetCpus};
use punctual_host::journal::Store;

/// A machine's answer to a request; nothing may have changed.
fn refusal(kernel: &Kernel, request: &PartitionRequest) -> String {
    let (before, store) = (kernel.snapshot(), Memory::default());
    let error = isolate::create_partition(request, kernel, &store)
        .expect_err("it is to be refused")
        .to_string();
    assert_eq!(kernel.snapshot(), before);
    assert_eq!(store.file_names().unwrap(), [""; 0]);
    error
}

fn cpus(list: &str) -> PartitionRequest {
    PartitionRequest::new(TargetCpus::Cpus(set(list)))
}

#[test]
fn partitions_of_all_or_unusable_cpus_are_refused() {
    let refused = |list: &str| refusal(&v1("cpuset."), &cpus(list));
    insta::assert_snapshot!(refused(""), @"a partition needs at least one CPU");
    insta::assert_snapshot!(refused("0-3"), @"no CPU would be left for everything else (online: 0-3): leave at least one out");
    insta::assert_snapshot!(refused("3-5"), @"this machine has no CPU 4-5: its CPUs are 0-3");
    let kernel = v2();
    kernel.with(|state| state.plug(3, false));
    insta::assert_snapshot!(refusal(&kernel, &cpus("2-3")), @"CPU 3 is offline (online: 0-2): write 1 to /sys/devices/system/cpu/cpuN/online first");
    let kernel = v2();
    kernel.with(|state| [0, 1, 2].map(|cpu| state.plug(cpu, false)));
    insta::assert_snapshot!(refusal(&kernel, &cpus("3")), @"no CPU would be left for everything else (online: 3): leave at least one out");
}

#[test]
fn cpus_claimed_by_another_cpuset_are_refused() {
    let claimed = |kernel: Kernel, cgroup: Cgroup| {
        kernel.with(|state| {
            let path = format!("{}/theirs", state.mount);
            state.cgroups.insert(path, cgroup);
            let mount = state.mount.clone();
            state.cgroups.get_mut(&mount).unwrap().passes_on = true;
        });
        refusal(&kernel, &cpus("2-3"))
    };
    let exclusive = Cgroup { cpus: set("3"), mems: "0".into(), exclusive: true, ..Cgroup::new() };
    insta::assert_snapshot!(claimed(v1("cpuset."), exclusive), @"CPU 3 belongs to the cgroup /sys/fs/cgroup/cpuset/theirs (exclusive): remove that one first, or choose other CPUs");
    let partition = Cgroup { cpus: set("3"), partition: "root".into(), ..Cgroup::new() };
    insta::assert_snapshot!(claimed(v2(), partition), @"CPU 3 belongs to the cgroup /sys/fs/cgroup/theirs (root): remove that one first, or choose other CPUs");
}

#[test]
fn names() {
    let named =
        |rt: &str| refusal(&v1("cpuset."), &PartitionRequest { rt_name: rt.into(), ..cpus("3") });
    insta::assert_snapshot!(named("../../etc"), @"`../../etc` cannot be the name of a partition: it would leave its place in the cgroup tree");
    insta::assert_snapshot!(named("a\u{1b}[2J"), @r"`a\u{1b}[2J` cannot be the name of a partition: it contains a control character");
    insta::assert_snapshot!(named(""), @"`` cannot be the name of a partition: it is empty");
    insta::assert_snapshot!(named("nrt"), @"both cgroups of the partition would be called `nrt`");
    let kernel = v2();
    kernel.with(|state| state.make("/sys/fs/cgroup/rt").unwrap());
    insta::assert_snapshot!(refusal(&kernel, &cpus("3")), @"/sys/fs/cgroup/rt exists already: choose other names with --rt-name and --nrt-name, or remove it");
    let request = PartitionRequest { without: vec!["irq-afinity".into()], ..cpus("3") };
    insta::assert_snapshot!(refusal(&v2(), &request), @"there is no tweak `irq-afinity`: did you mean `irq-affinity`?");
}

#[test]
fn nodes() {
    let node = |kernel: &Kernel, node: usize| {
        refusal(kernel, &PartitionRequest::new(TargetCpus::Node(node)))
    };
    insta::assert_snapshot!(node(&v1("cpuset."), 7), @"NUMA node 7 cannot be a partition: the nodes are 0-1");
    let kernel = v1("cpuset.");
    kernel.set("/sys/devices/system/node/has_memory", "0");
    insta::assert_snapshot!(node(&kernel, 1), @"NUMA node 1 cannot be a partition: it has no memory; nodes with memory are 0");
    let kernel = v1("cpuset.");
    kernel.with(|state| {
        state.settings.retain(|path, _| !path.starts_with("/sys/devices/system/node"))
    });
    insta::assert_snapshot!(node(&kernel, 0), @"NUMA node 0 cannot be a partition: the kernel has no CONFIG_NUMA");
}

#[test]
fn a_node_is_a_partition_with_its_memory() {
    let kernel = v1("cpuset.");
    isolate::create_partition(
        &PartitionRequest::new(TargetCpus::Node(1)),
        &kernel,
        &Memory::default(),
    )
    .unwrap();
    kernel.with(|state| {
        let mems = |name: &str| state.cgroups[&format!("{}/{name}", state.mount)].mems.clone();
        assert_eq!((mems("rt"), mems("nrt")), ("1".into(), "0".into()));
    });
}

#[test]
fn rights() {
    let as_user = |uid: u32, rights: &str| {
        let kernel = v1("cpuset.");
        kernel.with(|state| (state.uid, state.rights) = (uid, rights.into()));
        refusal(&kernel, &cpus("3"))
    };
    insta::assert_snapshot!(as_user(1000, "0"), @"this process runs as user 1000; root is needed: run it with sudo");
    insta::assert_snapshot!(as_user(0, "0"), @"this process is root but lacks CAP_SYS_ADMIN (a container?)");
}

#[test]
fn without_cpusets_a_partition_is_refused() {
    let without = |cgroups: &str, v1_mounted: bool| {
        let kernel = v2();
        kernel.set("/proc/cgroups", cgroups);
        kernel.with(|state| {
            state.cgroups.clear();
            state.mounted = v1_mounted;
        });
        refusal(&kernel, &cpus("3"))
    };
    insta::assert_snapshot!(without("#subsys_name hierarchy num_cgroups enabled\ncpuset\t3\t1\t1", false), @"no CPUs can be given to a partition: version 1 owns the cpuset controller, but it is not mounted: mkdir -p /sys/fs/cgroup/cpuset && mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset");
    insta::assert_snapshot!(without("cpuset\t0\t1\t0", false), @"no CPUs can be given to a partition: the kernel was booted with cgroup_disable=cpuset");
    insta::assert_snapshot!(without("cpuset\t0\t1\t1", false), @"no CPUs can be given to a partition: no cgroup hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup");
    insta::assert_snapshot!(without("cpu\t0\t1\t1", true), @"no CPUs can be given to a partition: the mounted version 2 hierarchy does not list cpuset in cgroup.controllers: the kernel has no CONFIG_CPUSETS, or this container was not given the controller");
}

#[test]
fn a_second_partition_is_refused() {
    let (kernel, store) = (v1("cpuset."), Memory::default());
    isolate::create_partition(&cpus("3"), &kernel, &store).unwrap();
    let error = isolate::create_partition(&cpus("2"), &kernel, &store).unwrap_err().to_string();
    insta::assert_snapshot!(error, @"a partition exists already (memory/journal-0001.jsonl): undo it first, with `punctual isolate undo`");
}
