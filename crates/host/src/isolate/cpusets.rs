//! The cpuset controller: the cgroup version that owns it, its mount point, and the names of its
//! files.

use super::Refusal;
use crate::files::Files;
use crate::journal::record::{CgroupVersion, Hierarchy};

/// The hierarchy with the cpuset controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpusets {
    pub hierarchy: Hierarchy,
    /// The prefix of the controller's file names: empty on a version 1 mount with `noprefix`.
    pub prefix: &'static str,
}

impl Cpusets {
    /// Finds it at run time.
    pub fn find_controller(files: &dyn Files) -> Result<Cpusets, Refusal> {
        let mounts = files.read("/proc/mounts")?;
        let mounts: Vec<CpusetMount> = mounts.lines().filter_map(CpusetMount::parse).collect();
        // The older `mount -t cpuset` is shown as `cgroup` with `noprefix`, too.
        if let Some(mount) = mounts.iter().find(|mount| mount.has_v1("cpuset")) {
            let prefixed = files.exists(&format!("{}/cpuset.cpus", mount.point));
            let hierarchy = Hierarchy { mount: mount.point.clone(), version: CgroupVersion::V1 };
            return Ok(Cpusets { hierarchy, prefix: if prefixed { "cpuset." } else { "" } });
        }
        let owns = |mount: &&CpusetMount| {
            let controllers =
                files.read(&format!("{}/cgroup.controllers", mount.point)).unwrap_or_default();
            mount.kind == "cgroup2"
                && controllers.split_whitespace().any(|controller| controller == "cpuset")
        };
        match mounts.iter().find(owns) {
            Some(mount) => {
                let hierarchy =
                    Hierarchy { mount: mount.point.clone(), version: CgroupVersion::V2 };
                Ok(Cpusets { hierarchy, prefix: "cpuset." })
            }
            None => Err(Refusal::NoCpusets(why_none(files, &mounts))),
        }
    }

    /// The mount point of a controller of version 1, if it is mounted.
    pub(crate) fn v1_mount_of(files: &dyn Files, controller: &str) -> Option<String> {
        let mounts = files.read("/proc/mounts").ok()?;
        mounts
            .lines()
            .filter_map(CpusetMount::parse)
            .find(|mount| mount.has_v1(controller))
            .map(|mount| mount.point)
    }

    /// Whether it is version 1.
    pub(crate) fn is_v1(&self) -> bool {
        self.hierarchy.version == CgroupVersion::V1
    }
    /// The directory of a child of the root.
    pub(crate) fn child_path(&self, name: &str) -> String {
        format!("{}/{name}", self.hierarchy.mount)
    }
    /// One of the controller's files in a cgroup.
    pub fn file_path(&self, cgroup: &str, name: &str) -> String {
        format!("{cgroup}/{}{name}", self.prefix)
    }
}

/// A line of /proc/mounts (fstab(5)).
struct CpusetMount {
    point: String,
    kind: String,
    options: String,
}

impl CpusetMount {
    fn parse(line: &str) -> Option<CpusetMount> {
        let mut words = line.split(' ');
        let (_, point, kind, options) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(CpusetMount {
            point: unescape_octal(point),
            kind: kind.into(),
            options: options.into(),
        })
    }

    fn has_v1(&self, controller: &str) -> bool {
        self.kind == "cgroup" && self.options.split(',').any(|option| option == controller)
    }
}

/// Space, tab, line feed and backslash are written in octal (fs/proc_namespace.c, mangle).
fn unescape_octal(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, meant)| text.replace(code, meant))
}

fn why_none(files: &dyn Files, mounts: &[CpusetMount]) -> String {
    // `cpuset <hierarchy> <cgroups> <enabled>`; hierarchy 0 is version 2, or none.
    let cgroups = files.read("/proc/cgroups").unwrap_or_default();
    let line = cgroups.lines().find(|line| line.split_whitespace().next() == Some("cpuset"));
    let fields: Vec<&str> = line.map(|line| line.split_whitespace().collect()).unwrap_or_default();
    match fields[..] {
        [_, _, _, "0"] => "the kernel was booted with cgroup_disable=cpuset".into(),
        [_, hierarchy, ..] if hierarchy != "0" => {
            "version 1 owns the cpuset controller, but it is not mounted: mkdir -p \
             /sys/fs/cgroup/cpuset && mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset"
                .into()
        }
        _ if mounts.iter().any(|mount| mount.kind == "cgroup2") => {
            "the mounted version 2 hierarchy does not list cpuset in cgroup.controllers: the \
             kernel has no CONFIG_CPUSETS, or this container was not given the controller"
                .into()
        }
        [_, ..] => "no cgroup hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup".into(),
        [] => "the kernel has no CONFIG_CPUSETS".into(),
    }
}
