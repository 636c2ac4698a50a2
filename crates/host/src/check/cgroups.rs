//! Control groups as far as the rules ask: who owns the cpuset controller, and which CPUs its
//! partitions hold.

use crate::environment::{cpu_list, text};
use crate::files::Files;
use punctual_core::{CpuSet, Fact};

/// At most this many children of the root are examined.
const MAX_GROUPS: usize = 1024;

/// The hierarchies that are mounted.
#[derive(Clone, Debug)]
pub struct Cgroups {
    /// Where the cpuset controller is, and which version of cgroups owns it.
    pub cpuset: Fact<(u32, String)>,
    /// Where the cpu controller of version 1 is mounted.
    pub cpu_v1: Option<String>,
    /// CPUs in partitions of their own: `cpuset.cpus.partition` isolated or root, or version 1
    /// sets outside load balancing.
    pub partitioned: CpuSet,
    /// The file that names them.
    pub partition_evidence: String,
}

impl Cgroups {
    pub fn read(files: &dyn Files) -> Cgroups {
        let mounts = match files.read("/proc/self/mounts") {
            Ok(mounts) => mounts,
            Err(why) => return Cgroups::without(why.to_string()),
        };
        let mount_of = |controller: &str| {
            let owns = |mount: &&Mount| {
                mount.kind == "cgroup" && mount.options.split(',').any(|o| o == controller)
            };
            mounts
                .lines()
                .filter_map(Mount::parse)
                .find(|mount| owns(&mount))
                .map(|mount| mount.point)
        };
        let cpu_v1 = mount_of("cpu");
        if let Some(point) = mount_of("cpuset") {
            let (partitioned, partition_evidence) = partitions_v1(files, &point);
            return Cgroups {
                cpuset: Fact::Known((1, point)),
                cpu_v1,
                partitioned,
                partition_evidence,
            };
        }
        let v2 = mounts
            .lines()
            .filter_map(Mount::parse)
            .find(|mount| mount.kind == "cgroup2")
            .map(|mount| mount.point);
        let Some(point) = v2 else {
            return Cgroups {
                cpu_v1,
                ..Cgroups::without("/proc/self/mounts has neither cgroup2 nor a cpuset".into())
            };
        };
        let path = format!("{point}/cgroup.controllers");
        let cpuset = match text(files, &path) {
            Fact::Known(controllers) if controllers.split_whitespace().any(|c| c == "cpuset") => {
                Fact::Known((2, point.clone()))
            }
            Fact::Known(controllers) => {
                Fact::Unavailable(format!("{path} is `{controllers}`, without cpuset"))
            }
            other => other.map(|_| (2, String::new())),
        };
        let (partitioned, partition_evidence) = partitions_v2(files, &point);
        Cgroups { cpuset, cpu_v1, partitioned, partition_evidence }
    }

    fn without(why: String) -> Cgroups {
        let partition_evidence = why.clone();
        Cgroups {
            cpuset: Fact::Unavailable(why),
            cpu_v1: None,
            partitioned: CpuSet::new(),
            partition_evidence,
        }
    }
}

/// A line of /proc/self/mounts (fstab(5)).
pub struct Mount {
    pub point: String,
    pub kind: String,
    pub options: String,
}

impl Mount {
    pub fn parse(line: &str) -> Option<Mount> {
        let mut words = line.split(' ').skip(1);
        let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
        Some(Mount { point: unescape(point), kind: kind.to_owned(), options: options.to_owned() })
    }
}

/// The mount that holds an absolute path: the longest one, and of equal ones the last, which hides
/// those before.
pub fn mount_of(mounts: &str, path: &str) -> Option<Mount> {
    let holds = |mount: &Mount| {
        let point = mount.point.trim_end_matches('/');
        path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mounts.lines().filter_map(Mount::parse).filter(holds).max_by_key(|mount| mount.point.len())
}

/// Space, tab, newline and backslash are written in octal (proc_pid_mounts(5)).
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Since Linux 6.7 the root lists its isolated CPUs itself; before, each child is asked.
fn partitions_v2(files: &dyn Files, point: &str) -> (CpuSet, String) {
    let mut cpus = CpuSet::new();
    let path = format!("{point}/cpuset.cpus.isolated");
    if let Fact::Known(isolated) = cpu_list(files, &path) {
        cpus = isolated;
    }
    for child in files.list(point).unwrap_or_default().iter().take(MAX_GROUPS) {
        let partition = text(files, &format!("{point}/{child}/cpuset.cpus.partition"));
        // An invalid one says so: `isolated invalid (…)`.
        if matches!(partition.known().map(String::as_str), Some("isolated" | "root"))
            && let Fact::Known(own) =
                cpu_list(files, &format!("{point}/{child}/cpuset.cpus.effective"))
        {
            cpus = cpus.union(&own);
        }
    }
    (cpus, format!("{point}/*/cpuset.cpus.partition"))
}

/// Version 1 takes a set out of load balancing when neither its parent nor itself asks for it
/// (Documentation/admin-guide/cgroup-v1/cpusets.rst, section 1.7). The prefix is missing with
/// `noprefix`.
fn partitions_v1(files: &dyn Files, point: &str) -> (CpuSet, String) {
    let prefix = if files.exists(&format!("{point}/cpuset.cpus")) { "cpuset." } else { "" };
    let balanced = |group: &str| text(files, &format!("{group}/{prefix}sched_load_balance"));
    let evidence = format!("{point}/*/{prefix}sched_load_balance");
    let mut cpus = CpuSet::new();
    if balanced(point).known().is_none_or(|flag| flag != "0") {
        return (cpus, evidence);
    }
    for child in files.list(point).unwrap_or_default().iter().take(MAX_GROUPS) {
        let group = format!("{point}/{child}");
        if balanced(&group).known().is_some_and(|flag| flag == "0")
            && let Fact::Known(own) = cpu_list(files, &format!("{group}/{prefix}cpus"))
        {
            cpus = cpus.union(&own);
        }
    }
    (cpus, evidence)
}
