//! Moves tasks back: into the cgroup that each came from, and to the CPUs that each was allowed.

use super::apply::{PAUSE, TRIES, write_with_retries};
use super::record::{
    Action, CgroupVersion, Hierarchy, PartitionNote, TaskAffinity, TaskId, TaskPlace,
};
use super::saved::{Outcome, Saved};
use super::tasks::{self, Membership};
use crate::files::{FileError, Files};
use punctual_core::CpuSet;
use std::collections::{HashMap, HashSet};

/// How many generations of parents are searched for an original cgroup.
const MAX_GENERATIONS: usize = 64;

/// The result of moving a task back.
#[derive(Debug)]
pub enum Return {
    /// It is in its cgroup again, or never left it.
    Home {
        /// Whether anything had to be done.
        moved: bool,
    },
    Gone,
    /// Another process has changed it since; it was left alone.
    ChangedSince,
    Failed(FileError),
}

/// Where the tasks of a journal came from, and the cgroups that it made.
#[derive(Debug, Default)]
pub struct TaskOrigins {
    from: HashMap<TaskId, String>,
    made: HashSet<String>,
}

impl TaskOrigins {
    /// Collects the origins from a journal.
    pub fn of(journal: &Saved) -> TaskOrigins {
        let mut origins = TaskOrigins::default();
        for entry in
            journal.entries.iter().filter(|entry| !matches!(entry.outcome, Outcome::Refused(_)))
        {
            match &entry.intent.action {
                Action::MakeCgroup { path, .. } => drop(origins.made.insert(path.clone())),
                Action::MoveTasks { tasks, .. } => {
                    for task in tasks.iter().filter(|task| !origins.made.contains(&task.from)) {
                        // A task that moved twice came from where it was first.
                        origins.from.entry(task.id).or_insert_with(|| task.from.clone());
                    }
                }
                _ => {}
            }
        }
        origins
    }

    /// Where a task belongs: where it came from, or else where its nearest recorded ancestor came
    /// from, or else the root.
    fn origin_of(&self, files: &dyn Files, hierarchy: &Hierarchy, tid: i32) -> String {
        let mut next = tid;
        for _ in 0..MAX_GENERATIONS {
            let Ok(stat) = tasks::stat(files, next) else { break };
            if let Some(home) = self.from.get(&stat.id).filter(|home| files.exists(home)) {
                return home.clone();
            }
            next = stat.parent;
        }
        hierarchy.mount.clone()
    }

    /// Sends one task back from where this journal's changes had put it.
    pub fn send(
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
                    tasks::enter(files, hierarchy, home, task.id.tid, Membership::Process);
                entered.map_or_else(gone_or_failed, |()| Return::Home { moved: true })
            }
            Some(_) => Return::ChangedSince,
            None => Return::Gone,
        }
    }

    /// Empties a cgroup and removes it. Gives back how many tasks it held.
    pub fn remove_cgroup(
        &self,
        files: &dyn Files,
        hierarchy: &Hierarchy,
        path: &str,
    ) -> Result<usize, FileError> {
        give_cpus_back(files, hierarchy, path);
        let mut sent = HashSet::new();
        let mut tries = 1;
        loop {
            for tid in tasks::members(files, hierarchy, path)? {
                let home = self.origin_of(files, hierarchy, tid);
                match tasks::enter(files, hierarchy, &home, tid, Membership::Process) {
                    Ok(()) => drop(sent.insert(tid)),
                    Err(error) if error.errno() == Some(libc::ESRCH) => {}
                    // A task that is being forked or is ending can refuse for a moment.
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
/// all when this returns.
///
/// Removing the cgroup alone gives them back later, in a workqueue (kernel/cgroup/cgroup.c,
/// css_killed_work_fn): until then a task that asks for them is refused (EINVAL), and when it comes
/// the kernel before 6.2 overwrites the affinities of all.
fn give_cpus_back(files: &dyn Files, hierarchy: &Hierarchy, cgroup: &str) {
    let file = format!("{cgroup}/cpuset.cpus.partition");
    let is_partition = files.read_trimmed(&file).is_ok_and(|kind| kind != "member");
    if hierarchy.version == CgroupVersion::V2 && is_partition {
        // Where that fails, removing it still does the same, if later.
        let _ = write_with_retries(files, &file, "member");
    }
}

/// Gives a task the CPUs back that it was allowed, where the kernel has forgotten them.
///
/// From 6.2 on the kernel itself remembers the affinity that a task requested (kernel/sched/core.c,
/// `user_cpus_ptr`); before, and for kernel threads, a move between cpusets overwrites it. What is
/// none of the sets that such a move leaves behind was chosen by another process since, and stays.
pub fn restore_affinity(
    files: &dyn Files,
    note: Option<&PartitionNote>,
    task: &TaskAffinity,
) -> Return {
    if !tasks::is_alive(files, task.id) {
        return Return::Gone;
    }
    let now = match tasks::affinity(files, task.id.tid) {
        Ok(now) => now,
        Err(error) => return gone_or_failed(error),
    };
    if now == task.cpus {
        return Return::Home { moved: false };
    }
    // A kernel thread that was being made when it was noted: the kernel has bound it since.
    let is_bound = tasks::stat(files, task.id.tid).is_ok_and(|stat| stat.is_bound());
    if is_bound || !note.is_some_and(|note| left_by_a_move(note, &task.cpus, &now)) {
        return Return::ChangedSince;
    }
    match files.set_affinity(task.id.tid, &task.cpus) {
        Ok(()) => Return::Home { moved: true },
        // It ended meanwhile.
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
