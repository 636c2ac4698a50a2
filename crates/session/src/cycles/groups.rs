//! The control groups of the tasks that ran while a thread was ready: containers, units of systemd.

use punctual_core::cycle::{CycleCulprit, id_here};
use punctual_core::format;
use punctual_core::{Cell, Column, Nanos, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks whose group is looked up, and groups that are kept.
const MAX_TASKS: usize = 1_024;
const MAX_GROUPS: usize = 256;
const SHOWN_GROUPS: usize = 10;
/// The number of digits of a container's id that its tools print.
const ID: usize = 12;
/// The beginnings of a container's group in the layout of systemd, and the tool.
const CONTAINERS: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "container"),
    ("crio-", "container"),
    ("nerdctl-", "container"),
];

/// What the groups' tasks had of the CPU while the thread was ready.
#[derive(Default)]
pub(super) struct CulpritGroups {
    /// The group of each task; `None`: it had ended, or belongs to another container.
    of_tasks: BTreeMap<u32, Option<String>>,
    all: BTreeMap<String, GroupDelay>,
}

#[derive(Default)]
struct GroupDelay {
    tasks: BTreeSet<u32>,
    cycles: u64,
    total: Nanos,
    longest: Nanos,
}

impl CulpritGroups {
    /// Adds the task that delayed a cycle. Its group is looked up once, while it exists.
    pub(super) fn add(&mut self, culprit: &CycleCulprit) {
        self.add_with(culprit, |tid| {
            let text = std::fs::read_to_string(format!("/proc/{tid}/cgroup")).ok()?;
            Some(group_name(group_path(&text)?))
        });
    }

    fn add_with(&mut self, culprit: &CycleCulprit, look_up: impl FnOnce(u32) -> Option<String>) {
        let Some(tid) = id_here(culprit.tid) else { return };
        if !self.of_tasks.contains_key(&tid) {
            if self.of_tasks.len() >= MAX_TASKS {
                return;
            }
            self.of_tasks.insert(tid, look_up(tid));
        }
        let Some(Some(group)) = self.of_tasks.get(&tid) else { return };
        if self.all.len() >= MAX_GROUPS && !self.all.contains_key(group) {
            return;
        }
        let delay = self.all.entry(group.clone()).or_default();
        delay.tasks.insert(tid);
        delay.cycles += 1;
        delay.total += culprit.time;
        delay.longest = delay.longest.max(culprit.time);
    }

    /// A table of them, the longest total first; `None` where there is one group alone.
    pub(super) fn to_table(&self) -> Option<Table> {
        let mut sorted_groups: Vec<(&String, &GroupDelay)> = self.all.iter().collect();
        sorted_groups.sort_by_key(|(_, delay)| std::cmp::Reverse(delay.total));
        let row = |(name, delay): &(&String, &GroupDelay)| {
            vec![
                Cell::from(format::escape_unsafe(name)),
                Cell::from(delay.tasks.len() as u64),
                Cell::from(delay.cycles),
                Cell::from(delay.total),
                Cell::from(delay.longest),
            ]
        };
        (sorted_groups.len() > 1).then(|| Table {
            name: "culprit-groups".to_owned(),
            title: "which control groups ran while the thread was ready".to_owned(),
            columns: vec![
                Column::new("group", ""),
                Column::new("tasks", "count"),
                Column::new("cycles", "count"),
                Column::new("total", "ns"),
                Column::new("longest", "ns"),
            ],
            rows: sorted_groups.iter().take(SHOWN_GROUPS).map(row).collect(),
        })
    }
}

/// The group in /proc/PID/cgroup (cgroups(7)) that says most: of version 2 if it is not the root,
/// else of the controllers that share out the CPU, else of systemd's hierarchy, else of any.
fn group_path(text: &str) -> Option<&str> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let rank = |controllers: &str| match controllers {
        "" => 0,
        of if of.split(',').any(|one| one == "cpu") => 1,
        "cpuset" => 2,
        "name=systemd" => 3,
        _ => 4,
    };
    // The root says nothing.
    let lines: Vec<(&str, &str)> = lines.collect();
    let named = lines.iter().filter(|(_, path)| *path != "/");
    let found = named.min_by_key(|(controllers, _)| rank(controllers)).or(lines.first());
    found.map(|(_, path)| *path)
}

/// `docker 3f2a9c1b7d44`, `podman …`, `pod 8a41c2d0 container …`, `ssh.service`; otherwise the
/// path.
fn group_name(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_id = |id: &str| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let container = |(at, part): (usize, &&str)| {
        let bare = part.strip_suffix(".scope").unwrap_or(part);
        let by_systemd =
            CONTAINERS.iter().find_map(|(begin, tool)| Some((*tool, bare.strip_prefix(begin)?)));
        let before = at.checked_sub(1).map(|before| parts[before]);
        let tool = if before == Some("docker") { "docker" } else { "container" };
        let (tool, id) = by_systemd.unwrap_or((tool, bare));
        is_id(id).then(|| format!("{tool} {}", &id[..ID]))
    };
    let pod = parts.iter().rev().find_map(|part| {
        let bare = part.strip_suffix(".slice").unwrap_or(part);
        let id = bare.strip_prefix("pod").or_else(|| bare.split_once("-pod").map(|(_, id)| id))?;
        Some(format!("pod {}", id.split(['-', '_']).next().unwrap_or(id)))
    });
    let container = parts.iter().enumerate().rev().find_map(container);
    let lxc = parts.iter().find_map(|part| part.strip_prefix("lxc.payload."));
    let unit = parts
        .iter()
        .rev()
        .find(|part| [".service", ".scope", ".slice"].iter().any(|end| part.ends_with(end)));
    match (pod.filter(|_| path.contains("kubepods")), container, lxc, unit) {
        (Some(pod), Some(container), ..) => format!("{pod} {container}"),
        (Some(pod), None, ..) => pod,
        (None, Some(container), ..) => container,
        (None, None, Some(name), _) => format!("lxc {name}"),
        (None, None, None, Some(unit)) => (*unit).to_owned(),
        (None, None, None, None) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::cycle::TaskComm;

    #[test]
    fn containers_pods_and_units_are_named_by_their_paths() {
        let id = "3f2a9c1b7d44".to_owned() + &"0".repeat(52);
        let pod =
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8a41c2d0_11_22.slice";
        for (path, name) in [
            (format!("/system.slice/docker-{id}.scope"), "docker 3f2a9c1b7d44"),
            (format!("/docker/{id}"), "docker 3f2a9c1b7d44"),
            (format!("/machine.slice/libpod-{id}.scope/container"), "podman 3f2a9c1b7d44"),
            (format!("/{pod}/cri-containerd-{id}.scope"), "pod 8a41c2d0 container 3f2a9c1b7d44"),
            (format!("/kubepods/besteffort/pod8a41c2d0-11-22/{id}"), {
                "pod 8a41c2d0 container 3f2a9c1b7d44"
            }),
            ("/lxc.payload.web/init.scope".to_owned(), "lxc web"),
            ("/system.slice/ssh.service".to_owned(), "ssh.service"),
            ("/user.slice/user-0.slice/session-3.scope".to_owned(), "session-3.scope"),
            ("/batch/night".to_owned(), "/batch/night"),
            ("/podium".to_owned(), "/podium"),
            ("/".to_owned(), "/"),
        ] {
            assert_eq!(group_name(&path), name, "{path}");
        }
    }

    #[test]
    fn the_hierarchy_that_says_most_is_taken() {
        assert_eq!(group_path("0::/a.slice\n"), Some("/a.slice"));
        let both = "9:name=systemd:/s\n4:memory:/m\n3:cpu,cpuacct:/batch\n0::/\n";
        assert_eq!(group_path(both), Some("/batch"));
        assert_eq!(group_path("9:name=systemd:/\n0::/\n"), Some("/"));
        assert_eq!(group_path("broken\n"), None);
    }

    #[test]
    fn times_are_summed_by_group_and_ended_tasks_are_left_out() {
        let mut groups = CulpritGroups::default();
        let delay = |tid, ns| CycleCulprit {
            tid,
            name: TaskComm::default(),
            time: Nanos(ns),
            behind: Nanos::ZERO,
        };
        let look_up = |tid: u32| match tid {
            1 | 2 => Some("batch".to_owned()),
            3 => Some("ssh.service".to_owned()),
            _ => None,
        };
        for (tid, ns) in [(1, 5), (2, 7), (4, 100), (1, 1)] {
            groups.add_with(&delay(tid, ns), look_up);
        }
        assert!(groups.to_table().is_none(), "one group says nothing");
        groups.add_with(&delay(3, 2), look_up);
        let table = groups.to_table().expect("two groups");
        let batch = ["batch".into(), 2_u64.into(), 3_u64.into(), Nanos(13).into(), Nanos(7).into()];
        assert_eq!(table.rows[0], Vec::<Cell>::from(batch));
        assert_eq!(table.rows.len(), 2);
    }
}
