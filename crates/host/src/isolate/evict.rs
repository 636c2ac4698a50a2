//! Moves tasks off the CPUs of the partition, and lists those that cannot be moved with the reason.

use super::NotedAffinities;
use super::cpusets::Cpusets;
use super::machine::MachineSplit;
use crate::files::{FileError, Files};
use crate::journal::record::{TaskId, TaskPlace};
use crate::journal::tasks::{self, Membership, TaskStat};
use crate::journal::{Journal, JournalError};
use punctual_core::CpuSet;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The number of searches for newly forked tasks. A system that forks faster is reported.
const MAX_ROUNDS: usize = 20;

/// The result of moving the tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Eviction {
    /// The number of tasks moved into the housekeeping cgroup (version 1; none in version 2).
    pub moved: usize,
    /// The number of further tasks kept off the partition's CPUs by their affinity.
    pub confined: usize,
    pub not_moved: Vec<NotMovedTask>,
    /// Whether new tasks were still appearing after the last round.
    pub restless: bool,
}

/// A task that was not moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotMovedTask {
    pub tid: i32,
    /// Its name: any bytes that the task chose.
    pub name: String,
    /// Whether it belongs to the kernel.
    pub kernel: bool,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// Whether these include CPUs of the partition.
    pub may_run_in_partition: bool,
    /// The kernel's error number, if it refused the move.
    pub errno: Option<i32>,
    pub why: String,
}

/// Threads of processes that must not be moved.
fn threads_to_leave(files: &dyn Files, leave: &[i32]) -> HashSet<i32> {
    leave.iter().flat_map(|pid| tasks::threads_of(files, *pid).unwrap_or_default()).collect()
}

/// The tasks, by number, in cgroups other than `to` whose CPUs overlap with the partition's.
/// Version 1.
fn find_candidates(
    files: &dyn Files,
    machine: &MachineSplit,
    to: &str,
    leave: &[i32],
) -> Result<Vec<(i32, String)>, FileError> {
    let mut overlaps: HashMap<String, bool> = HashMap::new();
    let left = threads_to_leave(files, leave);
    let mut found: Vec<(i32, String)> = Vec::new();
    for (tid, cgroup) in tasks::cgroup_by_task(files, &machine.cpusets.hierarchy)? {
        let overlap = *overlaps
            .entry(cgroup.clone())
            .or_insert_with(|| shares_cpus(files, &machine.cpusets, &cgroup, &machine.rt));
        if overlap && cgroup != to && !left.contains(&tid) {
            found.push((tid, cgroup));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The number of tasks that would be moved now. Version 1.
pub(crate) fn count_movable(
    files: &dyn Files,
    machine: &MachineSplit,
    to: &str,
    leave: &[i32],
) -> Result<usize, FileError> {
    let candidates = find_candidates(files, machine, to, leave)?;
    let free = |(tid, _): &&(i32, String)| {
        tasks::read_stat(files, *tid).is_ok_and(|stat| !stat.is_bound())
    };
    Ok(candidates.iter().filter(free).count())
}

fn shares_cpus(files: &dyn Files, cpusets: &Cpusets, cgroup: &str, rt: &CpuSet) -> bool {
    let cpus = files
        .read(&cpusets.file_path(cgroup, "cpus"))
        .ok()
        .and_then(|text| text.parse::<CpuSet>().ok());
    cpus.is_some_and(|cpus| !cpus.intersection(rt).is_empty())
}

/// Moves every movable task, in rounds, until no new ones appear. Version 1.
pub(crate) fn evict_tasks(
    files: &dyn Files,
    journal: &mut Journal<'_>,
    machine: &MachineSplit,
    noted: &mut NotedAffinities,
    to: &str,
    leave: &[i32],
) -> Result<Eviction, JournalError> {
    let hierarchy = &machine.cpusets.hierarchy;
    let mut eviction = Eviction::default();
    let mut not_moved: HashMap<TaskId, (Option<i32>, String)> = HashMap::new();
    for round in 0.. {
        let movers: Vec<(TaskStat, TaskPlace)> = find_candidates(files, machine, to, leave)?
            .into_iter()
            .filter_map(|(tid, from)| tasks::read_stat(files, tid).ok().map(|stat| (stat, from)))
            .filter(|(stat, _)| !not_moved.contains_key(&stat.id))
            .map(|(stat, from)| {
                let place = TaskPlace { id: stat.id, name: stat.name.clone(), from };
                (stat, place)
            })
            .collect();
        let (bound, movers): (Vec<_>, Vec<_>) =
            movers.into_iter().partition(|(stat, _)| stat.is_bound());
        not_moved.extend(bound.into_iter().map(|(stat, _)| (stat.id, (None, BOUND.to_owned()))));
        if movers.is_empty() {
            break;
        }
        if round == MAX_ROUNDS {
            eviction.restless = true;
            let restless_reason =
                || (None, format!("new tasks kept appearing for {MAX_ROUNDS} rounds"));
            not_moved.extend(movers.into_iter().map(|(stat, _)| (stat.id, restless_reason())));
            break;
        }
        let threads: Vec<i32> = movers.iter().map(|(stat, _)| stat.id.tid).collect();
        noted.note_threads(files, journal, "tasks", &threads)?;
        let refused =
            journal.move_tasks(files, "tasks", hierarchy, to, &movers, Membership::Thread)?;
        eviction.moved += movers.len() - refused.len();
        not_moved.extend(refused.into_iter().map(|one| (one.id, (one.errno, one.why))));
    }
    eviction.not_moved = not_moved
        .into_iter()
        .filter_map(|(id, why)| describe_task(files, machine, id, why))
        .collect();
    Ok(eviction)
}

const BOUND: &str = "bound to its CPUs by the kernel (PF_NO_SETAFFINITY)";

fn describe_task(
    files: &dyn Files,
    machine: &MachineSplit,
    id: TaskId,
    (errno, why): (Option<i32>, String),
) -> Option<NotMovedTask> {
    // Ended tasks are irrelevant.
    let stat = tasks::read_stat(files, id.tid).ok().filter(|stat| stat.id == id)?;
    let cpus = tasks::read_affinity(files, id.tid).ok()?;
    let may_run_in_partition = !cpus.intersection(&machine.rt).is_empty();
    let kernel = stat.is_kernel_thread();
    Some(NotMovedTask {
        tid: id.tid,
        name: stat.name,
        kernel,
        cpus,
        may_run_in_partition,
        errno,
        why,
    })
}

/// Removes the partition's CPUs from the affinity of every thread that still has them and is
/// outside of the partition. These are kernel threads that exist only in the root cgroup, and that
/// the kernel gives all CPUs again when one comes online.
pub(crate) fn confine_threads(
    files: &dyn Files,
    journal: &mut Journal<'_>,
    machine: &MachineSplit,
    noted: &mut NotedAffinities,
    eviction: &mut Eviction,
    leave: &[i32],
) -> Result<(), JournalError> {
    let left = threads_to_leave(files, leave);
    let listed: HashSet<i32> = eviction.not_moved.iter().map(|task| task.tid).collect();
    for tid in tasks::all_threads(files)? {
        // Ended tasks are irrelevant.
        let (Ok(stat), Ok(cpus)) = (tasks::read_stat(files, tid), tasks::read_affinity(files, tid))
        else {
            continue;
        };
        if cpus.intersection(&machine.rt).is_empty() {
            continue;
        }
        let reason = if stat.is_bound() {
            (None, BOUND.to_owned())
        } else if left.contains(&tid) {
            (None, "left where it is, as asked".to_owned())
        } else {
            noted.note_threads(files, journal, "tasks", &[tid])?;
            match files.set_affinity(tid, &machine.keep_off(&cpus)) {
                Ok(()) => {
                    eviction.confined += 1;
                    continue;
                }
                Err(error) => (error.errno(), error.source.to_string()),
            }
        };
        if !listed.contains(&tid) {
            eviction.not_moved.extend(describe_task(files, machine, stat.id, reason));
        }
    }
    let update_task = |task: &mut NotMovedTask| {
        if let Ok(cpus) = tasks::read_affinity(files, task.tid) {
            (task.may_run_in_partition, task.cpus) =
                (!cpus.intersection(&machine.rt).is_empty(), cpus);
        }
    };
    eviction.not_moved.iter_mut().for_each(update_task);
    eviction.not_moved.sort_by_key(|task| task.tid);
    Ok(())
}
