//! Reserves CPUs for real time, and reverts it.
//!
//! A partition is made in three steps. [`plan()`] compares the system with the [`PartitionRequest`]
//! and returns an ordered list of changes; it changes nothing. [`create`] makes each of them
//! through a [`crate::journal`], which records how to revert it before it is made.
//! [`undo_partition`] reverts them, also after kill -9 at any moment.
//!
//! The versions of cgroups differ in how a partition keeps others out. In version 1 a cpuset is a
//! place for tasks: all movable tasks are moved into a housekeeping cpuset. In version 2 a
//! partition takes its CPUs away from every other cgroup (Documentation/admin-guide/cgroup-v2.rst,
//! `cpuset.cpus.partition`), and tasks stay in the cgroups of their services. In both, everything
//! that may still run on the CPUs is listed with the reason.

mod advice;
mod calculate;
mod cpusets;
mod create;
mod enter;
mod evict;
pub mod lasting;
mod list;
mod machine;
mod partrt;
mod pending;
mod plan;
mod request;
mod sampling;
mod status;
pub mod tweaks;

use crate::files::{FileError, Files};
use crate::journal::record::{TaskAffinity, TaskId};
pub use crate::journal::tasks::Membership;
use crate::journal::{self, IfChanged, Journal, JournalError, Store, UndoReport, tasks};
pub use calculate::{CalculationError, calculate_set};
pub use cpusets::Cpusets;
pub use create::{CreateError, Partition, create_partition};
pub use enter::{EnterError, Entered, EnteredPartition, enter_self, move_process};
pub use evict::{Eviction, NotMovedTask};
pub use list::{PartitionTask, PartitionView, list_partitions};
pub use machine::{MachineSplit, check_rights};
pub use partrt::{PARTRT_SETTINGS, find_partrt, take_over};
pub use pending::{JournalState, Pending, pending_journals};
pub use plan::{Change, IsolationPlan, PlanStep, Skipped, plan_partition};
use punctual_core::CpuSet;
use punctual_core::words::format_suggestion;
pub use request::{PartitionRequest, TargetCpus, parse_cpus_on};
pub use sampling::{Activity, CpuActivity, InterruptActivity, Sampling, TaskActivity, sample_cpus};
pub use status::{InForce, PartitionStatus, partition_status};
use std::collections::HashSet;

/// Why a partition is not made, found before anything is changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A capability is missing.
    #[error("{0}")]
    NoRights(String),
    /// There is no usable cpuset controller.
    #[error("no CPUs can be given to a partition: {0}")]
    NoCpusets(String),
    /// No CPU at all.
    #[error("a partition needs at least one CPU")]
    NoCpus,
    /// CPUs that the machine does not have.
    #[error("this machine has no CPU {cpus}: its CPUs are {possible}")]
    NoSuchCpu { cpus: CpuSet, possible: CpuSet },
    /// CPUs that are offline.
    #[error(
        "CPU {cpus} is offline (online: {online}): write 1 to /sys/devices/system/cpu/cpuN/online \
         first"
    )]
    Offline { cpus: CpuSet, online: CpuSet },
    /// The request covers all CPUs.
    #[error("no CPU would be left for everything else (online: {online}): leave at least one out")]
    NoHousekeeping { online: CpuSet },
    /// A NUMA node that cannot be a partition.
    #[error("NUMA node {node} cannot be a partition: {why}")]
    NoNode { node: usize, why: String },
    /// CPUs that another cgroup has exclusively.
    #[error(
        "CPU {cpus} belongs to the cgroup {path} ({claim}): remove that one first, or choose \
         other CPUs"
    )]
    Overlap { cpus: CpuSet, path: String, claim: String },
    /// A cgroup of that name already exists.
    #[error("{0} exists already: choose other names with --rt-name and --nrt-name, or remove it")]
    Exists(String),
    /// A name that is no single directory in the cgroup tree.
    #[error("`{}` cannot be the name of a partition: {fault}", name.escape_default())]
    BadName {
        name: String,
        /// The defect of the name.
        fault: &'static str,
    },
    /// Both halves have one name.
    #[error("both cgroups of the partition would be called `{0}`")]
    SameName(String),
    /// An unknown tweak.
    #[error("there is no tweak `{}`{}", name.escape_default(), format_suggestion(*near))]
    UnknownTweak {
        name: String,
        /// The most similar tweak.
        near: Option<&'static str>,
    },
    /// A partition already exists.
    #[error("a partition exists already ({0}): undo it first, with `punctual isolate undo`")]
    AlreadyActive(String),
    /// A file with unexpected content.
    #[error("cannot understand {path}: {why}")]
    Unreadable { path: String, why: String },
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Reverts the changes of [`create`]: those of the existing partition, or the rest of one whose
/// creation or undo was killed.
///
/// See [`journal::undo()`]; journals of `check --fix` are not touched.
pub fn undo_partition(
    store: &dyn Store,
    files: &dyn Files,
    if_changed: IfChanged,
) -> Result<UndoReport, JournalError> {
    // A journal without its first line belongs to a process that was killed before it changed
    // anything; it is removed together with the partition's.
    journal::undo_journals(store, files, if_changed, |saved| {
        saved.partition_note().is_some() || saved.begin.is_none()
    })
}

/// The tasks whose affinities are noted in the journal.
#[derive(Default)]
pub(crate) struct NotedAffinities {
    known: HashSet<TaskId>,
}

impl NotedAffinities {
    /// Notes the given threads that are not yet noted and whose affinity user space may set.
    pub(crate) fn note_threads(
        &mut self,
        files: &dyn Files,
        journal: &mut Journal<'_>,
        step: &str,
        threads: &[i32],
    ) -> Result<(), JournalError> {
        let mut fresh = Vec::new();
        for tid in threads {
            // An ended task needs no note.
            let (Ok(stat), Ok(cpus)) =
                (tasks::read_stat(files, *tid), tasks::read_affinity(files, *tid))
            else {
                continue;
            };
            if !stat.is_bound() && self.known.insert(stat.id) {
                fresh.push(TaskAffinity { id: stat.id, cpus });
            }
        }
        if fresh.is_empty() { Ok(()) } else { journal.note_affinities(step, fresh) }
    }

    /// Notes all threads of the system.
    pub(crate) fn note_all(
        &mut self,
        files: &dyn Files,
        journal: &mut Journal<'_>,
        step: &str,
    ) -> Result<Result<(), FileError>, JournalError> {
        match tasks::all_threads(files) {
            Ok(threads) => self.note_threads(files, journal, step, &threads).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}

/// A cgroup with CPUs of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OtherCpuset {
    pub path: String,
    pub cpus: CpuSet,
    /// Its claim: `exclusive`, or the kind of its partition; `None` for one that shares its CPUs.
    pub claim: Option<String>,
}

/// Every cgroup with its own CPUs, except the root.
pub(crate) fn cpusets_of_others(
    files: &dyn Files,
    cpusets: &Cpusets,
) -> Result<Vec<OtherCpuset>, Refusal> {
    let mount = &cpusets.hierarchy.mount;
    let cgroups = tasks::list_cgroups(files, mount)?.into_iter().filter(|path| path != mount);
    Ok(cgroups.filter_map(|path| look_at(files, cpusets, path)).collect())
}

fn look_at(files: &dyn Files, cpusets: &Cpusets, path: String) -> Option<OtherCpuset> {
    let read = |name: &str| files.read_trimmed(&cpusets.file_path(&path, name)).ok();
    let cpus: CpuSet = read("cpus")?.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty())?;
    let claim = if cpusets.is_v1() {
        read("cpu_exclusive").filter(|flag| flag == "1").map(|_| "exclusive".to_owned())
    } else {
        // `member`, or `root`, `isolated`, or one of these with `invalid (why)`.
        read("cpus.partition").filter(|kind| kind != "member" && !kind.contains("invalid"))
    };
    Some(OtherCpuset { path, cpus, claim })
}

/// Refuses CPUs that another cpuset has claimed.
pub(crate) fn check_overlap(
    files: &dyn Files,
    cpusets: &Cpusets,
    rt: &CpuSet,
) -> Result<(), Refusal> {
    for other in cpusets_of_others(files, cpusets)? {
        let shared = other.cpus.intersection(rt);
        if let (Some(claim), false) = (other.claim, shared.is_empty()) {
            return Err(Refusal::Overlap { cpus: shared, path: other.path, claim });
        }
    }
    Ok(())
}
