//! A process and its ancestors, as /proc shows them.

use super::answer::{Ancestor, ThreadScheduling};
use crate::check::process::{ProcessFacts, ProcessLimit};
use crate::check::tasks::TaskStat;
use crate::files::Files;
use punctual_core::{Fact, Policy};
use punctual_sys::rights::Capability;
use punctual_sys::{attributes, status};

/// The maximum number of threads and of ancestors read.
const MAX_THREADS: usize = 4096;
const MAX_ANCESTORS: usize = 64;
/// The first user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "user:[4026531837]";

pub(super) const RTPRIO: &str = "Max realtime priority";
pub(super) const MEMLOCK: &str = "Max locked memory";

/// A process.
pub(super) struct ProcessSeen {
    pub pid: u32,
    pub stat: TaskStat,
    pub status: String,
    pub facts: ProcessFacts,
}

impl ProcessSeen {
    fn read(files: &dyn Files, pid: u32) -> Result<ProcessSeen, String> {
        let path = format!("/proc/{pid}/stat");
        let text = files.read(&path).map_err(|why| why.to_string())?;
        let stat = TaskStat::parse(&text).ok_or_else(|| format!("{path} is not readable"))?;
        let status = files.read(&format!("/proc/{pid}/status")).unwrap_or_default();
        Ok(ProcessSeen {
            pid,
            stat,
            status,
            facts: ProcessFacts::from_process(files, &pid.to_string()),
        })
    }

    /// Its effective user.
    pub fn effective_user(&self) -> Option<u32> {
        status::find_field(&self.status, "Uid")?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Its groups, the first one included.
    pub(crate) fn group_ids(&self) -> Vec<u32> {
        let ids = |name: &str| {
            let ids = status::find_field(&self.status, name).unwrap_or_default().split_whitespace();
            ids.filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
        };
        ids("Groups").into_iter().chain(ids("Gid")).collect()
    }

    /// A soft limit.
    pub(crate) fn soft_limit(&self, name: &str) -> Option<ProcessLimit> {
        self.facts.soft_limit(name).known_value().copied()
    }

    pub(super) fn may_by_limit(&self) -> Option<bool> {
        self.soft_limit(RTPRIO).map(|limit| limit != Some(0))
    }

    pub(super) fn has_sys_nice(&self) -> Option<bool> {
        self.facts.has_capability(Capability::SysNice).known_value().copied()
    }

    /// Name and number.
    pub fn label(&self) -> String {
        format!("{} ({})", self.stat.name, self.pid)
    }
}

/// The process asked about.
pub(super) struct Subject {
    pub own: ProcessSeen,
    /// From the parent up, as far as they are there.
    pub ancestors: Vec<ProcessSeen>,
    /// Whether capabilities count for the scheduler: not in a user namespace but the first.
    pub first_namespace: Fact<bool>,
    /// The lines of /proc/PID/cgroup.
    pub groups: String,
    /// Whether its session's first process is there.
    pub session_there: bool,
}

impl Subject {
    pub fn read(files: &dyn Files, pid: u32) -> Result<Subject, String> {
        let own_process = ProcessSeen::read(files, pid)?;
        let mut ancestors: Vec<ProcessSeen> = Vec::new();
        let mut next = own_process.stat.parent;
        while next > 0 && ancestors.len() < MAX_ANCESTORS {
            // The numbers of a hostile tree may run in a circle.
            let is_known = next == pid || ancestors.iter().any(|one| one.pid == next);
            let Some(one) = ProcessSeen::read(files, next).ok().filter(|_| !is_known) else {
                break;
            };
            next = one.stat.parent;
            ancestors.push(one);
        }
        let groups = files.read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let first_namespace = first_namespace(files, pid);
        let session = own_process.stat.session;
        let session_there = session == 0 || files.exists(&format!("/proc/{session}"));
        Ok(Subject { own: own_process, ancestors, first_namespace, groups, session_there })
    }

    pub fn process_name(&self) -> &str {
        &self.own.stat.name
    }

    /// Whether a seccomp filter is in force (proc_pid_status(5)).
    pub(super) fn has_filter(&self) -> bool {
        status::find_field(&self.own.status, "Seccomp") == Some("2")
    }

    /// An ancestor in the answer.
    pub(crate) fn describe_ancestor(of: &ProcessSeen) -> Ancestor {
        let limit = |name: &str| {
            of.soft_limit(name).map(|limit| limit.map_or("unlimited".to_owned(), |n| n.to_string()))
        };
        Ancestor {
            process: of.pid,
            name: of.stat.name.clone(),
            user: of.effective_user(),
            rtprio: limit(RTPRIO),
            memlock: limit(MEMLOCK),
            cap_sys_nice: of.has_sys_nice(),
        }
    }
}

/// The threads of a process; those that end meanwhile are omitted.
pub fn list_threads(files: &dyn Files, process: u32) -> Vec<ThreadScheduling> {
    let directory = format!("/proc/{process}/task");
    let ids = files.list(&directory).unwrap_or_default();
    let mut ids: Vec<u32> = ids.iter().filter_map(|id| id.parse().ok()).collect();
    ids.sort_unstable();
    let read = |thread: u32| {
        let stat = TaskStat::parse(&files.read(&format!("{directory}/{thread}/stat")).ok()?)?;
        let TaskStat { name, nice, rt_priority, policy, .. } = stat;
        let policy = attributes::policy_from_number(policy?)?;
        let priority = matches!(policy, Policy::Fifo | Policy::Rr).then_some(rt_priority);
        Some(ThreadScheduling { thread, name, policy, priority, nice })
    };
    ids.into_iter().take(MAX_THREADS).filter_map(read).collect()
}

/// The link names the namespace; where it may not be read, a map of less than all users is another
/// one (user_namespaces(7)).
fn first_namespace(files: &dyn Files, pid: u32) -> Fact<bool> {
    if let Ok(link) = files.read_link(&format!("/proc/{pid}/ns/user")) {
        return Fact::Known(link == FIRST_NAMESPACE);
    }
    let map = files.read(&format!("/proc/{pid}/uid_map"));
    let whole = |map: String| map.split_whitespace().eq(["0", "0", "4294967295"]);
    map.map(whole).into()
}
