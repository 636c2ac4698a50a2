//! Control groups for the rules: the owner of the cpuset controller, and the CPUs of its
//! partitions.

use crate::environment::{cpu_list, read_text};
use crate::files::{FileError, Files};
use punctual_core::{CpuSet, Fact};

/// At most this many children of the root are examined.
const MAX_GROUPS: usize = 1024;

/// The mounted hierarchies.
#[derive(Clone, Debug)]
pub struct Cgroups {
    /// The cgroup version that owns the cpuset controller, and its mount point.
    pub cpuset: Fact<(u32, String)>,
    /// The mount point of the cpu controller of version 1.
    pub cpu_v1: Option<Mounted>,
    /// CPUs in partitions of their own: `cpuset.cpus.partition` isolated or root, or version 1 sets
    /// outside of load balancing.
    pub partitioned: CpuSet,
    /// The file that names them.
    pub partition_evidence: String,
    /// Why partitions may be invisible here: in a container, only a part of the hierarchy is
    /// mounted.
    pub unseen: Option<String>,
}

impl Cgroups {
    pub fn read(files: &dyn Files) -> Cgroups {
        let mounts = match Mounts::read(files) {
            Ok(mounts) => mounts,
            Err(why) => return Cgroups::from_failure(why.to_string()),
        };
        let cpu_v1 = mounts.find_v1("cpu");
        if let Some(mounted) = mounts.find_v1("cpuset") {
            let point = mounted.point.clone();
            let (partitioned, partition_evidence) = match mounts.is_whole(files, &mounted) {
                true => partitions_v1(files, &point),
                false => (CpuSet::new(), format!("{point}: `{}`", mounted.root)),
            };
            let unseen = mounts.unseen_reason(files, &mounted);
            let cpuset = Fact::Known((1, point));
            return Cgroups { cpuset, cpu_v1, partitioned, partition_evidence, unseen };
        }
        let Some(mounted) = mounts.find_v2() else {
            let reason = format!("{} has neither cgroup2 nor a cpuset", mounts.path);
            return Cgroups { cpu_v1, ..Cgroups::from_failure(reason) };
        };
        let point = mounted.point.clone();
        let path = format!("{point}/cgroup.controllers");
        let cpuset = match read_text(files, &path) {
            Fact::Known(controllers) if controllers.split_whitespace().any(|c| c == "cpuset") => {
                Fact::Known((2, point.clone()))
            }
            Fact::Known(controllers) => {
                Fact::Unavailable(format!("{path} is `{controllers}`, without cpuset"))
            }
            other => other.map(|_| (2, String::new())),
        };
        let (partitioned, partition_evidence) = partitions_v2(files, &point);
        let unseen = mounts.unseen_reason(files, &mounted);
        Cgroups { cpuset, cpu_v1, partitioned, partition_evidence, unseen }
    }

    fn from_failure(why: String) -> Cgroups {
        let partition_evidence = why.clone();
        Cgroups {
            cpuset: Fact::Unavailable(why),
            cpu_v1: None,
            partitioned: CpuSet::new(),
            partition_evidence,
            unseen: None,
        }
    }
}

/// A hierarchy of control groups, with the mounted part and its mount point.
#[derive(Clone, Debug)]
pub struct Mounted {
    pub point: String,
    /// The group at the mount point: `/` for the whole hierarchy, as far as this process's
    /// namespace shows it.
    pub root: String,
    kind: &'static str,
    options: String,
}

impl Mounted {
    /// The directory of a group, as /proc/self/cgroup names it; `None` if it is outside of the
    /// mounted part (cgroups(7)).
    pub fn directory_of(&self, group: &str) -> Option<String> {
        let inside = group.strip_prefix(self.root.trim_end_matches('/'))?;
        let below = inside.is_empty() || inside.starts_with('/');
        below.then(|| format!("{}{}", self.point, inside.trim_end_matches('/')))
    }
}

/// The mounts of control groups.
pub(super) struct Mounts {
    path: &'static str,
    all: Vec<Mounted>,
}

impl Mounts {
    /// /proc/self/mountinfo names the mounted part; older captured trees only have the other file.
    pub(super) fn read(files: &dyn Files) -> Result<Mounts, FileError> {
        let path = "/proc/self/mountinfo";
        if let Ok(text) = files.read(path) {
            return Ok(Mounts { path, all: text.lines().filter_map(mount_of_info).collect() });
        }
        let path = "/proc/self/mounts";
        let of_line = |line: &str| {
            let CgroupMount { point, kind, options } = CgroupMount::parse(line)?;
            Some(Mounted { point, root: "/".into(), kind: cgroup_kind(&kind)?, options })
        };
        let all_mounts = files.read(path)?.lines().filter_map(of_line).collect();
        Ok(Mounts { path, all: all_mounts })
    }

    pub(super) fn find_v1(&self, controller: &str) -> Option<Mounted> {
        let owns = |mount: &&Mounted| {
            mount.kind == "cgroup" && mount.options.split(',').any(|o| o == controller)
        };
        self.all.iter().find(owns).cloned()
    }

    pub(super) fn find_v2(&self) -> Option<Mounted> {
        self.all.iter().find(|mount| mount.kind == "cgroup2").cloned()
    }

    /// Whether a mount point is the root of its hierarchy. Within a namespace every part is shown
    /// as `/`; files differ: `release_agent` is only in the root of version 1, `cgroup.type` of
    /// version 2 everywhere but there (kernel/cgroup/cgroup-v1.c, cgroup1_base_files;
    /// cgroup-v2.rst).
    fn is_whole(&self, files: &dyn Files, mounted: &Mounted) -> bool {
        let Mounted { point, root, kind, .. } = mounted;
        let v1 =
            || self.path.ends_with("mounts") || files.exists(&format!("{point}/release_agent"));
        root == "/"
            && if *kind == "cgroup" { v1() } else { !files.exists(&format!("{point}/cgroup.type")) }
    }

    fn unseen_reason(&self, files: &dyn Files, mounted: &Mounted) -> Option<String> {
        let Mounted { point, root, .. } = mounted;
        let partial_reason =
            || format!("{}: only a part of the groups, `{root}`, is mounted at {point}", self.path);
        (!self.is_whole(files, mounted)).then(partial_reason)
    }
}

fn cgroup_kind(kind: &str) -> Option<&'static str> {
    ["cgroup", "cgroup2"].into_iter().find(|known| *known == kind)
}

/// `36 35 0:31 ROOT POINT OPTIONS … - KIND SOURCE OPTIONS` (proc_pid_mountinfo(5)).
fn mount_of_info(line: &str) -> Option<Mounted> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let (root, point) = (unescape_octal(words.next()?), unescape_octal(words.next()?));
    let mut words = file_system.split(' ');
    let kind = cgroup_kind(words.next()?)?;
    Some(Mounted { point, root, kind, options: words.nth(1)?.to_owned() })
}

/// A line of /proc/self/mounts (fstab(5)).
pub(crate) struct CgroupMount {
    pub point: String,
    pub kind: String,
    pub options: String,
}

impl CgroupMount {
    pub fn parse(line: &str) -> Option<CgroupMount> {
        let mut words = line.split(' ').skip(1);
        let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
        Some(CgroupMount {
            point: unescape_octal(point),
            kind: kind.to_owned(),
            options: options.to_owned(),
        })
    }
}

/// The mount that holds an absolute path: the longest one, and of equal ones the last, which hides
/// the earlier ones.
pub(crate) fn mount_of(mounts: &str, path: &str) -> Option<CgroupMount> {
    let holds = |mount: &CgroupMount| {
        let point = mount.point.trim_end_matches('/');
        path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mounts
        .lines()
        .filter_map(CgroupMount::parse)
        .filter(holds)
        .max_by_key(|mount| mount.point.len())
}

/// Space, tab, newline and backslash are written in octal (proc_pid_mounts(5)).
fn unescape_octal(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Since Linux 6.7 the root lists its isolated CPUs itself; before, each child is read.
fn partitions_v2(files: &dyn Files, point: &str) -> (CpuSet, String) {
    let mut cpus = CpuSet::new();
    let path = format!("{point}/cpuset.cpus.isolated");
    if let Fact::Known(isolated) = cpu_list(files, &path) {
        cpus = isolated;
    }
    for child in files.list(point).unwrap_or_default().iter().take(MAX_GROUPS) {
        let partition = read_text(files, &format!("{point}/{child}/cpuset.cpus.partition"));
        // An invalid one is shown as `isolated invalid (…)`.
        if matches!(partition.known_value().map(String::as_str), Some("isolated" | "root"))
            && let Fact::Known(own) =
                cpu_list(files, &format!("{point}/{child}/cpuset.cpus.effective"))
        {
            cpus = cpus.union(&own);
        }
    }
    (cpus, format!("{point}/*/cpuset.cpus.partition"))
}

/// Version 1 takes a set out of load balancing if neither its parent nor itself requests it
/// (Documentation/admin-guide/cgroup-v1/cpusets.rst, section 1.7). With `noprefix` the prefix is
/// missing.
fn partitions_v1(files: &dyn Files, point: &str) -> (CpuSet, String) {
    let prefix = if files.exists(&format!("{point}/cpuset.cpus")) { "cpuset." } else { "" };
    let balanced = |group: &str| read_text(files, &format!("{group}/{prefix}sched_load_balance"));
    let evidence = format!("{point}/*/{prefix}sched_load_balance");
    let mut cpus = CpuSet::new();
    if balanced(point).known_value().is_none_or(|flag| flag != "0") {
        return (cpus, evidence);
    }
    for child in files.list(point).unwrap_or_default().iter().take(MAX_GROUPS) {
        let group = format!("{point}/{child}");
        if balanced(&group).known_value().is_some_and(|flag| flag == "0")
            && let Fact::Known(own) = cpu_list(files, &format!("{group}/{prefix}cpus"))
        {
            cpus = cpus.union(&own);
        }
    }
    (cpus, evidence)
}
