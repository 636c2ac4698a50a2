//! Tasks: their identity, their cgroups, their affinity.

use super::record::{Hierarchy, TaskId};
use crate::files::{FileError, Files};
use punctual_core::CpuSet;
use std::collections::HashMap;
use std::io;

/// PF_EXITING (include/linux/sched.h): ending, or ended and not yet reaped by its parent.
const PF_EXITING: u64 = 0x4;
/// PF_KTHREAD (include/linux/sched.h): a kernel thread.
pub const PF_KTHREAD: u64 = 0x0020_0000;
/// PF_NO_SETAFFINITY (include/linux/sched.h): bound to its CPUs by the kernel; user space may not
/// move it.
pub const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// Limits of the cgroups read of a hierarchy, and of their depth.
const MAX_CGROUPS: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// The unit that moves between cgroups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membership {
    /// A process with all its threads.
    Process,
    /// One thread: in version 1 always, in version 2 between threaded cgroups of one resource
    /// domain (cgroups(7)).
    Thread,
}

/// The fields of /proc/TID/stat (proc_pid_stat(5)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskStat {
    pub id: TaskId,
    /// Its name: any bytes that the task chose.
    pub name: String,
    pub parent: i32,
    /// PF_ flags of the kernel.
    pub flags: u64,
    /// The CPU that it last ran on.
    pub last_cpu: usize,
}

impl TaskStat {
    /// Whether it belongs to the kernel.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }
    /// Whether the kernel has bound it to its CPUs.
    pub fn is_bound(&self) -> bool {
        self.flags & PF_NO_SETAFFINITY != 0
    }

    /// Parses the text of a `stat` file. The name may hold spaces, parentheses and line feeds: it
    /// ends at the last `)`.
    pub fn parse(text: &str) -> Option<TaskStat> {
        let (tid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // `rest` begins with field 3, the state.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(TaskStat {
            id: TaskId { tid: tid.parse().ok()?, start: field(22)?.parse().ok()? },
            name: name.to_owned(),
            parent: field(4)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            last_cpu: field(39)?.parse().ok()?,
        })
    }
}

/// Reads a task's `stat`; for a task that is gone, the error's [`FileError::is_missing`] holds.
pub fn read_stat(files: &dyn Files, tid: i32) -> Result<TaskStat, FileError> {
    stat_at(files, &format!("/proc/{tid}/stat"))
}

fn stat_at(files: &dyn Files, path: &str) -> Result<TaskStat, FileError> {
    let text = files.read(path)?;
    TaskStat::parse(&text)
        .ok_or_else(|| malformed_error(path, "it does not have the format of proc_pid_stat(5)"))
}

pub fn own_id(files: &dyn Files) -> Result<TaskId, FileError> {
    stat_at(files, "/proc/self/stat").map(|stat| stat.id)
}

/// Whether a task still lives. One that is ending, or is a zombie, does not: it has left its
/// cgroup, and the kernel refuses to set its affinity.
pub fn is_alive(files: &dyn Files, id: TaskId) -> bool {
    read_stat(files, id.tid).is_ok_and(|stat| stat.id == id && stat.flags & PF_EXITING == 0)
}

fn malformed_error(path: &str, why: &str) -> FileError {
    let source = io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    FileError { action: "understand", path: path.to_owned(), source }
}

/// The CPUs that a task may run on.
pub fn read_affinity(files: &dyn Files, tid: i32) -> Result<CpuSet, FileError> {
    let path = format!("/proc/{tid}/status");
    let text = files.read(&path)?;
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| list.trim().parse().ok())
        .ok_or_else(|| malformed_error(&path, "it has no Cpus_allowed_list"))
}

/// The numbers of all threads of all processes, ordered by process.
pub fn all_threads(files: &dyn Files) -> Result<Vec<i32>, FileError> {
    let mut threads = Vec::new();
    for process in files.list("/proc")?.iter().filter_map(|name| name.parse::<i32>().ok()) {
        // A process that ended since it was listed has none.
        threads.extend(threads_of(files, process).unwrap_or_default());
    }
    Ok(threads)
}

/// The threads of one process.
pub fn threads_of(files: &dyn Files, process: i32) -> Result<Vec<i32>, FileError> {
    let names = files.list(&format!("/proc/{process}/task"))?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// The directories of a hierarchy's cgroups, a parent before its children.
pub fn list_cgroups(files: &dyn Files, mount: &str) -> Result<Vec<String>, FileError> {
    let mut found = vec![mount.to_owned()];
    let mut next = 0;
    while next < found.len() && found.len() < MAX_CGROUPS {
        let parent = found[next].clone();
        next += 1;
        if parent[mount.len()..].matches('/').count() >= MAX_DEPTH {
            continue;
        }
        let names = match files.list(&parent) {
            Ok(names) => names,
            // The cgroup was removed since its parent was listed.
            Err(error) if error.is_missing() && parent != mount => continue,
            Err(error) => return Err(error),
        };
        // Every directory in a cgroup is a cgroup with its own `cgroup.procs`; the kernel's files
        // contain a dot or are known.
        let children = names.iter().map(|name| format!("{parent}/{name}"));
        found.extend(children.filter(|path| files.exists(&format!("{path}/cgroup.procs"))));
    }
    Ok(found)
}

/// The numbers in a cgroup's list of members: threads in version 1 and in threaded cgroups of
/// version 2, otherwise processes.
pub(crate) fn list_members(
    files: &dyn Files,
    hierarchy: &Hierarchy,
    cgroup: &str,
) -> Result<Vec<i32>, FileError> {
    match read_numbers(files, &format!("{cgroup}/{}", hierarchy.members_file())) {
        // The error of a threaded cgroup: its processes count as members of its domain
        // (kernel/cgroup/cgroup.c, cgroup_procs_start).
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => {
            threads_in(files, hierarchy, cgroup)
        }
        other => other,
    }
}

/// The threads in a cgroup of any kind.
pub(crate) fn threads_in(
    files: &dyn Files,
    hierarchy: &Hierarchy,
    cgroup: &str,
) -> Result<Vec<i32>, FileError> {
    read_numbers(files, &format!("{cgroup}/{}", hierarchy.threads_file()))
}

/// 0 represents a task of another PID namespace and is omitted.
fn read_numbers(files: &dyn Files, path: &str) -> Result<Vec<i32>, FileError> {
    let text = files.read(path)?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).filter(|tid| *tid > 0).collect())
}

/// The cgroup of each of the [`list_members`] of all cgroups.
pub fn cgroup_by_task(
    files: &dyn Files,
    hierarchy: &Hierarchy,
) -> Result<HashMap<i32, String>, FileError> {
    let mut places = HashMap::new();
    for cgroup in list_cgroups(files, &hierarchy.mount)? {
        // Cgroups can vanish meanwhile. The domain of threaded cgroups also lists their processes,
        // but comes before them.
        for tid in list_members(files, hierarchy, &cgroup).unwrap_or_default() {
            places.insert(tid, cgroup.clone());
        }
    }
    Ok(places)
}

/// Moves a task. In version 1 this is a single thread in any case: to move a process, move each of
/// its threads.
pub(crate) fn move_task(
    files: &dyn Files,
    hierarchy: &Hierarchy,
    cgroup: &str,
    tid: i32,
    membership: Membership,
) -> Result<(), FileError> {
    let file = match membership {
        Membership::Process => hierarchy.members_file(),
        Membership::Thread => hierarchy.threads_file(),
    };
    files.write(&format!("{cgroup}/{file}"), &tid.to_string())
}

/// Why the kernel refuses to move a task into another cgroup, in words.
pub(crate) fn explain_refusal(stat: &TaskStat, error: &FileError) -> String {
    // kernel/cgroup/cgroup.c, cgroup_procs_write_start: EINVAL for kthreadd and for bound threads.
    match error.errno() {
        Some(libc::EINVAL) if stat.is_bound() => {
            "bound to its CPUs by the kernel (PF_NO_SETAFFINITY)".to_owned()
        }
        Some(libc::EINVAL) if stat.is_kernel_thread() => {
            "the kernel keeps it in the root cgroup".to_owned()
        }
        // cgroup_attach_permissions: source and target belong to different resource domains.
        Some(libc::EOPNOTSUPP) => {
            "a thread leaves its process only for a threaded cgroup of the same domain".to_owned()
        }
        Some(libc::EBUSY) => "its SCHED_DEADLINE bandwidth does not fit there (EBUSY)".to_owned(),
        _ if error.is_forbidden() => format!("no right to move it ({})", error.source),
        _ => error.source.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KSOFTIRQD: &str = "32 (ksoftirqd/3) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 30 0 \
                             0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 3 0 0 0 0 \
                             0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_bound_kernel_thread_is_known_by_its_flags() {
        let stat = TaskStat::parse(KSOFTIRQD).unwrap();
        assert_eq!((stat.id, stat.last_cpu, stat.parent), (TaskId { tid: 32, start: 30 }, 3, 2));
        assert!(stat.is_bound() && stat.is_kernel_thread());
    }

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let hostile = KSOFTIRQD.replace("ksoftirqd/3", "a) R 1 (b\n");
        let stat = TaskStat::parse(&hostile).unwrap();
        assert_eq!((stat.name.as_str(), stat.id.start), ("a) R 1 (b\n", 30));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = TaskStat::parse(&text);
        }
    }
}
