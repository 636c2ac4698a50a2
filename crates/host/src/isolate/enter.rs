//! Moves this process, before it becomes a command, or a running task into a partition.

use super::NotedAffinities;
use super::Refusal;
use super::cpusets::Cpusets;
use super::request::check_name;
use super::status::without_rt_budget;
use crate::files::{FileError, Files};
use crate::journal::record::{CgroupVersion, TaskPlace};
use crate::journal::tasks::{self, Membership, TaskStat};
use crate::journal::{self, Journal, JournalError, SavedJournal, Store};
use punctual_core::{CpuSet, Policy};
use punctual_sys::attributes::{Scheduling, set_scheduling};
use std::collections::HashSet;
use std::io;

/// The number of searches for threads that appear while a process moves.
const MAX_ROUNDS: usize = 20;

/// The target partition and settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EnteredPartition {
    pub partition: String,
    /// Some of its CPUs; by default all.
    pub cpus: Option<CpuSet>,
    /// The scheduling there; unchanged by default.
    pub scheduling: Option<Scheduling>,
}

/// The moved threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entered {
    pub threads: Vec<i32>,
    /// The CPUs that they may run on now.
    pub cpus: CpuSet,
    /// Whether the journal has their origins, so that undo moves them back.
    pub recorded: bool,
}

/// Why a task is not in the partition as requested.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The request was wrong; nothing has been changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no such partition.
    #[error("there is no partition `{}`: {why}", name.escape_default())]
    NoPartition { name: String, why: String },
    /// CPUs that are not in the partition.
    #[error("CPU {requested} is not in the partition, which has {has}")]
    OtherCpus {
        /// The requested ones outside of it.
        requested: CpuSet,
        has: CpuSet,
    },
    /// There is no such task.
    #[error("there is no task {0}")]
    NoTask(i32),
    /// A single thread cannot move.
    #[error(
        "thread {0} cannot move without its process: version 2 cgroups take whole processes \
         (cgroups(7), thread mode)"
    )]
    ThreadAlone(i32),
    /// The kernel refuses to move it.
    #[error("task {tid} is not let in: {why}")]
    Stays { tid: i32, why: String },
    /// The kernel refuses the scheduling.
    #[error("cannot be scheduled as {scheduling}: {source}{hint}")]
    Scheduling {
        scheduling: Scheduling,
        source: io::Error,
        /// A possible cause.
        hint: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A partition found by its name.
struct NamedPartition {
    cpusets: Cpusets,
    path: String,
    cpus: CpuSet,
}

impl NamedPartition {
    fn find_partition(
        files: &dyn Files,
        entry: &EnteredPartition,
    ) -> Result<NamedPartition, EnterError> {
        check_name(&entry.partition)?;
        let cpusets = Cpusets::find_controller(files)?;
        let path = cpusets.child_path(&entry.partition);
        let name = || entry.partition.clone();
        if !files.exists(&format!("{path}/cgroup.procs")) {
            let reason =
                format!("{path} is not a cgroup; `punctual isolate list` shows those that exist");
            return Err(EnterError::NoPartition { name: name(), why: reason });
        }
        let file = if cpusets.is_v1() { "cpus" } else { "cpus.effective" };
        let text = files.read_trimmed(&cpusets.file_path(&path, file))?;
        let cpus: CpuSet = text.parse().unwrap_or_default();
        if cpus.is_empty() {
            return Err(EnterError::NoPartition {
                name: name(),
                why: format!("{path} has no CPUs"),
            });
        }
        if let Some(requested) = &entry.cpus {
            let requested = requested.difference(&cpus);
            if !requested.is_empty() || entry.cpus.as_ref().is_some_and(CpuSet::is_empty) {
                return Err(EnterError::OtherCpus { requested, has: cpus });
            }
        }
        Ok(NamedPartition { cpusets, path, cpus })
    }

    /// Whether a thread may enter without the rest of its process.
    fn takes_threads(&self, files: &dyn Files) -> bool {
        let threaded = || {
            files
                .read_trimmed(&format!("{}/cgroup.type", self.path))
                .is_ok_and(|kind| kind == "threaded")
        };
        self.cpusets.is_v1() || threaded()
    }

    /// The journal that must note a move into this partition, if punctual made the partition.
    fn find_journal(&self, store: &dyn Store) -> Result<Option<SavedJournal>, JournalError> {
        let ours = |saved: &SavedJournal| {
            let names = saved.partition_note().map(|note| {
                [self.cpusets.child_path(&note.rt), self.cpusets.child_path(&note.nrt)]
            });
            names.is_some_and(|names| names.contains(&self.path))
        };
        Ok(journal::read_all(store)?.into_iter().find(ours))
    }
}

/// Moves this single-threaded process, which is about to become a command, and sets the requested
/// scheduling.
pub fn enter_self(
    files: &dyn Files,
    store: &dyn Store,
    entry: &EnteredPartition,
) -> Result<Entered, EnterError> {
    let own_tid = tasks::own_id(files)?.tid;
    let entered = move_process(files, store, own_tid, Membership::Process, entry)?;
    if let Some(scheduling) = &entry.scheduling {
        set_scheduling(0, scheduling).map_err(|source| {
            let hint = refusal_hint(files, own_tid, scheduling, &source);
            EnterError::Scheduling { scheduling: *scheduling, source, hint }
        })?;
    }
    Ok(entered)
}

/// Why the kernel may have refused a policy (sched(7)).
fn refusal_hint(files: &dyn Files, tid: i32, scheduling: &Scheduling, error: &io::Error) -> String {
    if error.raw_os_error() != Some(libc::EPERM) {
        return String::new();
    }
    let without_budget = without_rt_budget(files, &HashSet::from([tid]));
    match (without_budget.keys().next(), scheduling.policy) {
        (Some(cgroup), Policy::Fifo | Policy::Rr) => {
            format!(
                " ({cgroup}/cpu.rt_runtime_us is 0: give that cgroup a real-time budget, or leave \
                 it)"
            )
        }
        (_, Policy::Deadline) => " (SCHED_DEADLINE needs an affinity that is a whole root domain: \
                                  enter the partition without --cpus, and with load-balance among \
                                  its tweaks)"
            .into(),
        _ => " (CAP_SYS_NICE or a higher RLIMIT_RTPRIO is needed)".into(),
    }
}

/// Moves a running task.
///
/// If punctual made the partition, its journal first notes the task's cgroup and affinity.
pub fn move_process(
    files: &dyn Files,
    store: &dyn Store,
    pid: i32,
    membership: Membership,
    entry: &EnteredPartition,
) -> Result<Entered, EnterError> {
    let place = NamedPartition::find_partition(files, entry)?;
    if membership == Membership::Thread && !place.takes_threads(files) {
        return Err(EnterError::ThreadAlone(pid));
    }
    if tasks::read_stat(files, pid).is_err() {
        return Err(EnterError::NoTask(pid));
    }
    let saved = place.find_journal(store)?;
    let _lock = saved.as_ref().map(|_| journal::acquire_lock(store)).transpose()?;
    // Read again under the lock: another process may have appended to it.
    let saved = if saved.is_some() { place.find_journal(store)? } else { None };
    let mut journal =
        saved.as_ref().map(|saved| Journal::resume_saved(store, saved)).transpose()?;
    let mut mover = Mover {
        files,
        place: &place,
        journal: journal.as_mut(),
        noted: NotedAffinities::default(),
    };
    let threads = mover.move_all(pid, membership)?;
    for tid in &threads {
        if let Some(cpus) = &entry.cpus {
            files.set_affinity(*tid, cpus)?;
        }
    }
    let cpus = entry.cpus.clone().unwrap_or_else(|| place.cpus.clone());
    Ok(Entered { threads, cpus, recorded: journal.is_some() })
}

struct Mover<'a, 'j> {
    files: &'a dyn Files,
    place: &'a NamedPartition,
    journal: Option<&'a mut Journal<'j>>,
    noted: NotedAffinities,
}

impl Mover<'_, '_> {
    /// Moves threads until no new ones appear.
    fn move_all(&mut self, pid: i32, membership: Membership) -> Result<Vec<i32>, EnterError> {
        let mut moved: Vec<i32> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let threads = match membership {
                Membership::Thread => vec![pid],
                // An ended process has no threads left.
                Membership::Process => tasks::threads_of(self.files, pid).unwrap_or_default(),
            };
            let fresh: Vec<i32> = threads.into_iter().filter(|tid| !moved.contains(tid)).collect();
            if fresh.is_empty() {
                break;
            }
            self.move_some(pid, &fresh, membership)?;
            moved.extend(fresh);
        }
        Ok(moved)
    }

    fn move_some(
        &mut self,
        pid: i32,
        threads: &[i32],
        membership: Membership,
    ) -> Result<(), EnterError> {
        let hierarchy = &self.place.cpusets.hierarchy;
        let v2 = hierarchy.version == CgroupVersion::V2;
        // In version 2 the threads move with the process.
        let units = if v2 && membership == Membership::Process { &[pid][..] } else { threads };
        let cgroup_by_task = tasks::cgroup_by_task(self.files, hierarchy)?;
        // Only threaded cgroups list single threads.
        if v2 && membership == Membership::Thread && !cgroup_by_task.contains_key(&pid) {
            return Err(EnterError::ThreadAlone(pid));
        }
        let movers: Vec<(TaskStat, TaskPlace)> = units
            .iter()
            .filter_map(|tid| {
                Some((tasks::read_stat(self.files, *tid).ok()?, cgroup_by_task.get(tid)?.clone()))
            })
            .map(|(stat, from)| {
                let place = TaskPlace { id: stat.id, name: stat.name.clone(), from };
                (stat, place)
            })
            .collect();
        let Some(journal) = self.journal.as_deref_mut() else {
            return movers.iter().try_for_each(|(stat, _)| self.move_unrecorded(stat, membership));
        };
        self.noted.note_threads(self.files, journal, "move", threads)?;
        let not_moved = journal.move_tasks(
            self.files,
            "move",
            hierarchy,
            &self.place.path,
            &movers,
            membership,
        )?;
        let refusal = not_moved.into_iter().next();
        refusal.map_or(Ok(()), |one| Err(EnterError::Stays { tid: one.id.tid, why: one.why }))
    }

    fn move_unrecorded(&self, stat: &TaskStat, membership: Membership) -> Result<(), EnterError> {
        let tid = stat.id.tid;
        match tasks::move_task(
            self.files,
            &self.place.cpusets.hierarchy,
            &self.place.path,
            tid,
            membership,
        ) {
            Err(error) if error.errno() != Some(libc::ESRCH) => {
                Err(EnterError::Stays { tid, why: tasks::explain_refusal(stat, &error) })
            }
            _ => Ok(()),
        }
    }
}
