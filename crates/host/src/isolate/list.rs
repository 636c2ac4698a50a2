//! The existing partitions, with their CPUs and tasks.

use super::Refusal;
use super::cpusets::Cpusets;
use super::cpusets_of_others;
use crate::files::Files;
use crate::journal::record::PartitionNote;
use crate::journal::{Store, read_all, tasks};
use punctual_core::CpuSet;
use serde::Serialize;

/// A cgroup with CPUs of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartitionView {
    /// Its name: the directory under the mount of the hierarchy.
    pub name: String,
    pub path: String,
    pub cpus: CpuSet,
    /// `exclusive` (version 1), `isolated`, `root` (version 2), or `None`.
    pub claim: Option<String>,
    /// `rt` or `nrt` if a journal of this boot shows that punctual made it.
    pub half: Option<&'static str>,
    /// Its tasks: threads in version 1 and in threaded cgroups of version 2, otherwise processes.
    pub tasks: Vec<PartitionTask>,
}

/// A task of a partition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartitionTask {
    pub tid: i32,
    /// Its name: any bytes that the task chose.
    pub name: String,
}

/// Lists every cgroup with its own CPUs.
pub fn list_partitions(
    files: &dyn Files,
    store: &dyn Store,
) -> Result<Vec<PartitionView>, Refusal> {
    let cpusets = Cpusets::find_controller(files)?;
    // Without permission to read the journals the list is complete, but the owners of the cgroups
    // are unknown.
    let journals = read_all(store).unwrap_or_default();
    let own_partition = journals.iter().find_map(|saved| saved.partition_note());
    let mount = &cpusets.hierarchy.mount;
    let view = |other: super::OtherCpuset| PartitionView {
        name: other.path[mount.len()..].trim_start_matches('/').to_owned(),
        half: own_partition.and_then(|note| half_of(&cpusets, note, &other.path)),
        tasks: read_members(files, &cpusets, &other.path),
        path: other.path,
        cpus: other.cpus,
        claim: other.claim,
    };
    Ok(cpusets_of_others(files, &cpusets)?.into_iter().map(view).collect())
}

fn half_of(cpusets: &Cpusets, note: &PartitionNote, path: &str) -> Option<&'static str> {
    [("rt", &note.rt), ("nrt", &note.nrt)]
        .into_iter()
        .find(|(_, name)| cpusets.child_path(name) == path)
        .map(|(half, _)| half)
}

fn read_members(files: &dyn Files, cpusets: &Cpusets, path: &str) -> Vec<PartitionTask> {
    let numbers = tasks::list_members(files, &cpusets.hierarchy, path).unwrap_or_default();
    let member =
        |tid| tasks::read_stat(files, tid).ok().map(|stat| PartitionTask { tid, name: stat.name });
    numbers.into_iter().filter_map(member).collect()
}
