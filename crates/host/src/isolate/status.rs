//! The settings in force, and the tasks that still run in the partition.

use super::cpusets::Cpusets;
use super::pending::{Pending, pending_journals};
use crate::files::Files;
use crate::journal::record::{CgroupVersion, ChangePurpose, JournalAction, PartitionNote};
use crate::journal::saved::{ChangeOutcome, SavedJournal};
use crate::journal::value::{is_same_value, normalize_value};
use crate::journal::{JournalError, Store, read_all, tasks};
use punctual_core::Fact;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// The state of the partition made by punctual.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartitionStatus {
    /// Its journal and its state.
    pub journal: Pending,
    /// Its CPUs, names and hierarchy.
    pub note: PartitionNote,
    /// Version 2: the content of `cpuset.cpus.partition`.
    pub kind: Fact<String>,
    /// Each setting made, and whether it is still in force.
    pub in_force: Vec<InForce>,
    /// Version 1 cgroups that deny tasks of the partition real-time scheduling, with the number of
    /// tasks in each.
    pub without_rt_budget: BTreeMap<String, usize>,
    /// The threads of the partition.
    pub members: HashSet<i32>,
}

/// A setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InForce {
    /// The tweak, or the part of the partition.
    pub step: String,
    pub path: String,
    /// The written value, as the kernel formats it.
    pub set_to: String,
    pub holds: Fact<String>,
    /// Whether both are equal.
    pub in_force: bool,
}

/// The existing partition; `None` if there is none.
pub fn partition_status(
    files: &dyn Files,
    store: &dyn Store,
) -> Result<Option<PartitionStatus>, JournalError> {
    let standing = pending_journals(store, files)?;
    let find = |pending: &Pending| matches!(pending.purpose, Some(ChangePurpose::Partition(_)));
    let Some(journal) = standing.into_iter().find(find) else { return Ok(None) };
    let saved = read_all(store)?;
    let Some(saved) = saved.iter().find(|saved| journal.journal.ends_with(&saved.name)) else {
        return Ok(None);
    };
    let Some(note) = saved.partition_note().cloned() else { return Ok(None) };
    let rt = format!("{}/{}", note.hierarchy.mount, note.rt);
    let members =
        tasks::threads_in(files, &note.hierarchy, &rt).unwrap_or_default().into_iter().collect();
    let in_force = settings_in_force(files, saved);
    let kind = match note.hierarchy.version {
        CgroupVersion::V1 => Fact::NotAsked,
        CgroupVersion::V2 => files.read_trimmed(&format!("{rt}/cpuset.cpus.partition")).into(),
    };
    let without_rt_budget = without_rt_budget(files, &members);
    Ok(Some(PartitionStatus { journal, note, kind, in_force, without_rt_budget, members }))
}

fn settings_in_force(files: &dyn Files, saved: &SavedJournal) -> Vec<InForce> {
    let is_applied = |entry: &&crate::journal::saved::SavedChange| {
        matches!(entry.outcome, ChangeOutcome::Applied(_)) && !entry.undone
    };
    let setting = |entry: &crate::journal::saved::SavedChange| {
        let (JournalAction::Write(write), ChangeOutcome::Applied(did)) =
            (&entry.intent.action, &entry.outcome)
        else {
            return None;
        };
        let set_to = did.now.clone().unwrap_or_else(|| write.new.clone());
        let holds: Fact<String> = files.read(&write.path).map(|text| normalize_value(&text)).into();
        let in_force = holds.known_value().is_some_and(|now| is_same_value(now, &set_to));
        Some(InForce {
            step: entry.intent.step.clone(),
            path: write.path.clone(),
            set_to,
            holds,
            in_force,
        })
    };
    saved.entries.iter().filter(is_applied).filter_map(setting).collect()
}

/// With CONFIG_RT_GROUP_SCHED a version 1 `cpu` cgroup has no real-time budget by default
/// (Documentation/scheduler/sched-rt-group.rst): SCHED_FIFO and SCHED_RR get EPERM in it, unless
/// throttling is off (kernel/sched/rt.c, rt_bandwidth_enabled).
pub(super) fn without_rt_budget(files: &dyn Files, tids: &HashSet<i32>) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let throttling = files.read_trimmed("/proc/sys/kernel/sched_rt_runtime_us");
    if throttling.is_ok_and(|runtime| runtime.starts_with('-')) {
        return found;
    }
    let Some(mount) = Cpusets::v1_mount_of(files, "cpu") else { return found };
    for tid in tids {
        let text = files.read(&format!("/proc/{tid}/cgroup")).unwrap_or_default();
        let of_cpu = |line: &&str| {
            line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == "cpu"))
        };
        let path = text.lines().find(of_cpu).and_then(|line| line.splitn(3, ':').nth(2));
        let Some(cgroup) = path.map(|path| format!("{mount}{}", path.trim_end_matches('/'))) else {
            continue;
        };
        if files
            .read_trimmed(&format!("{cgroup}/cpu.rt_runtime_us"))
            .is_ok_and(|budget| budget == "0")
        {
            *found.entry(cgroup).or_insert(0) += 1;
        }
    }
    found
}
