//! Moves tasks back: into their former cgroups, and to their former CPUs.

use super::apply::{PAUSE, TRIES, write_with_retries};
use super::record::{
    CgroupVersion, Hierarchy, JournalAction, PartitionNote, TaskAffinity, TaskId, TaskPlace,
};
use super::saved::{ChangeOutcome, SavedJournal};
use super::tasks::{self, Membership};
use crate::files::{FileError, Files};
use punctual_core::CpuSet;
use std::collections::{HashMap, HashSet};

/// The number of generations of parents that are searched for an original cgroup.
const MAX_GENERATIONS: usize = 64;

/// The result of moving a task back.
#[derive(Debug)]
pub enum Return {
    /// It is back in its cgroup, or never left it.
    Home {
        /// Whether anything had to be done.
        moved: bool,
    },
    Gone,
    /// Another process has changed it since; it is not touched.
    ChangedSince,
    Failed(FileError),
}

/// The former cgroups of the tasks of a journal, and the cgroups that the journal created.
#[derive(Debug, Default)]
pub(crate) struct TaskOrigins {
    from: HashMap<TaskId, String>,
    made: HashSet<String>,
}

impl TaskOrigins {
    /// Collects the origins from a journal.
    pub(crate) fn from_journal(journal: &SavedJournal) -> TaskOrigins {
        let mut origins = TaskOrigins::default();
        for entry in journal
            .entries
            .iter()
            .filter(|entry| !matches!(entry.outcome, ChangeOutcome::Refused(_)))
        {
            match &entry.intent.action {
                JournalAction::MakeCgroup { path, .. } => drop(origins.made.insert(path.clone())),
                JournalAction::MoveTasks { tasks, .. } => {
                    for task in tasks.iter().filter(|task| !origins.made.contains(&task.from)) {
                        // The origin of a task that moved twice is its first cgroup.
                        origins.from.entry(task.id).or_insert_with(|| task.from.clone());
                    }
                }
                _ => {}
            }
        }
        origins
    }

    /// The origin of a task: its former cgroup, else that of its nearest recorded ancestor, else
    /// the root.
    fn origin_of(&self, files: &dyn Files, hierarchy: &Hierarchy, tid: i32) -> String {
        let mut next = tid;
        for _ in 0..MAX_GENERATIONS {
            let Ok(stat) = tasks::read_stat(files, next) else { break };
            if let Some(home) = self.from.get(&stat.id).filter(|home| files.exists(home)) {
                return home.clone();
            }
            next = stat.parent;
        }
        hierarchy.mount.clone()
    }

    /// Moves one task back from the cgroup into which this journal's changes moved it.
    pub(crate) fn send_back(
        &self,
        files: &dyn Files,
        hierarchy: &Hierarchy,
        task: &TaskPlace,
        cgroup_by_task: &HashMap<i32, String>,
    ) -> Return {
        if !tasks::is_alive(files, task.id) {
            return Return::Gone;
        }
        match cgroup_by_task.get(&task.id.tid) {
            Some(now) if *now == task.from => Return::Home { moved: false },
            Some(now) if self.made.contains(now) => {
                let home = if files.exists(&task.from) { &task.from } else { &hierarchy.mount };
                let entered =
                    tasks::move_task(files, hierarchy, home, task.id.tid, Membership::Process);
                entered.map_or_else(gone_or_failed, |()| Return::Home { moved: true })
            }
            Some(_) => Return::ChangedSince,
            None => Return::Gone,
        }
    }

    /// Empties a cgroup and removes it. Returns the number of its tasks.
    pub(crate) fn remove_cgroup(
        &self,
        files: &dyn Files,
        hierarchy: &Hierarchy,
        path: &str,
    ) -> Result<usize, FileError> {
        give_cpus_back(files, hierarchy, path);
        let mut sent = HashSet::new();
        let mut tries = 1;
        loop {
            for tid in tasks::list_members(files, hierarchy, path)? {
                let home = self.origin_of(files, hierarchy, tid);
                match tasks::move_task(files, hierarchy, &home, tid, Membership::Process) {
                    Ok(()) => drop(sent.insert(tid)),
                    Err(error) if error.errno() == Some(libc::ESRCH) => {}
                    // A task that is being forked or is ending can be refused for a moment.
                    Err(error) if tries >= TRIES => return Err(error),
                    Err(_) => {}
                }
            }
            match files.remove_dir(path) {
                Ok(()) => return Ok(sent.len()),
                Err(error) if error.is_missing() => return Ok(sent.len()),
                Err(error) if tries >= TRIES => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
            tries += 1;
        }
    }
}

/// Ends a partition of version 2 before its cgroup is removed, so that its CPUs are available to
/// all on return.
///
/// Removing the cgroup alone returns them later, in a workqueue (kernel/cgroup/cgroup.c,
/// css_killed_work_fn): until then a task that requests them is refused (EINVAL), and kernels
/// before 6.2 then overwrite the affinities of all tasks.
fn give_cpus_back(files: &dyn Files, hierarchy: &Hierarchy, cgroup: &str) {
    let file = format!("{cgroup}/cpuset.cpus.partition");
    let is_partition = files.read_trimmed(&file).is_ok_and(|kind| kind != "member");
    if hierarchy.version == CgroupVersion::V2 && is_partition {
        // If this fails, removing it has the same effect later.
        let _ = write_with_retries(files, &file, "member");
    }
}

/// Restores the affinity of a task if the kernel has lost it.
///
/// Since 6.2 the kernel itself remembers the affinity that a task requested (kernel/sched/core.c,
/// `user_cpus_ptr`); before, and for kernel threads, a move between cpusets overwrites it. A set
/// that no such move leaves behind was chosen by another process since, and is kept.
pub(crate) fn restore_affinity(
    files: &dyn Files,
    note: Option<&PartitionNote>,
    task: &TaskAffinity,
) -> Return {
    if !tasks::is_alive(files, task.id) {
        return Return::Gone;
    }
    let now = match tasks::read_affinity(files, task.id.tid) {
        Ok(now) => now,
        Err(error) => return gone_or_failed(error),
    };
    if now == task.cpus {
        return Return::Home { moved: false };
    }
    // A kernel thread that was noted during its creation: the kernel has bound it since.
    let is_bound = tasks::read_stat(files, task.id.tid).is_ok_and(|stat| stat.is_bound());
    if is_bound || !note.is_some_and(|note| left_by_a_move(note, &task.cpus, &now)) {
        return Return::ChangedSince;
    }
    match files.set_affinity(task.id.tid, &task.cpus) {
        Ok(()) => Return::Home { moved: true },
        // It has ended.
        Err(_) if !tasks::is_alive(files, task.id) => Return::Gone,
        Err(error) => gone_or_failed(error),
    }
}

fn left_by_a_move(note: &PartitionNote, before: &CpuSet, now: &CpuSet) -> bool {
    let halves = [&note.cpus, &note.housekeeping];
    let of_a_half = |half: &&CpuSet| now == *half || *now == before.intersection(half);
    halves.iter().any(of_a_half) || note.cpus.union(&note.housekeeping).is_subset(now)
}

fn gone_or_failed(error: FileError) -> Return {
    if error.is_missing() || error.errno() == Some(libc::ESRCH) {
        Return::Gone
    } else {
        Return::Failed(error)
    }
}
