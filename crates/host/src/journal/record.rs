//! The records of a journal: one JSON object per line, each synced to disk before the change that
//! it announces.

use punctual_core::CpuSet;
use serde::{Deserialize, Serialize};

/// The version of the format that this program writes and reads.
pub const VERSION: u32 = 2;

/// One line of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct JournalRecord {
    /// Its number, counting from 0; an `applied`, `refused` or `undone` refers to its `intent` by
    /// this number.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// The event of a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEvent {
    Begin(JournalBegin),
    /// A change about to be made.
    Intent(Intent),
    /// The change was made.
    Applied(Applied),
    /// The kernel refused it; nothing was changed.
    Refused(ChangeRefusal),
    /// Every change has been made, and is meant to stay.
    Ready {},
    /// A change has been undone, or needs no undoing.
    Undone {
        /// The `intent` that it belongs to.
        of: u64,
    },
}

/// The writer, the time and the purpose of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JournalBegin {
    /// [`VERSION`].
    pub version: u32,
    /// The purpose of the changes.
    pub purpose: ChangePurpose,
    /// /proc/sys/kernel/random/boot_id: no such change outlives its boot.
    pub boot_id: String,
    /// The process that wrote it.
    pub writer: TaskId,
    /// Whether the changes end with that process (an experiment), not with an undo.
    #[serde(default)]
    pub for_writer_only: bool,
}

/// The purpose of the changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangePurpose {
    /// `punctual isolate create`, or an experiment's partition.
    Partition(PartitionNote),
    /// `punctual check --fix`.
    Fix,
    /// Settings that `punctual tune` tries while a block is measured.
    Tuning,
    /// Settings that an experiment fixes while it runs.
    Experiment,
}

/// The partition of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartitionNote {
    /// The CPUs given to real time.
    pub cpus: CpuSet,
    /// All others that were online.
    pub housekeeping: CpuSet,
    /// The cgroup hierarchy with the cpuset controller.
    pub hierarchy: Hierarchy,
    /// The name of the real-time cgroup, a child of the hierarchy's root.
    pub rt: String,
    /// The name of the housekeeping cgroup.
    pub nrt: String,
}

/// A cgroup hierarchy and the file through which its tasks are moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hierarchy {
    pub mount: String,
    pub version: CgroupVersion,
}

/// The two kinds of cgroups (cgroups(7)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// Version 1, the cpuset controller in a hierarchy of its own or with others.
    V1,
    /// Version 2, the unified hierarchy.
    V2,
}

impl Hierarchy {
    /// The file of a cgroup that lists its tasks and accepts new ones: threads in version 1,
    /// processes in version 2.
    pub fn members_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.procs",
        }
    }
    /// The file of a cgroup that lists its threads and accepts one.
    pub(crate) fn threads_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.threads",
        }
    }
}

/// A change about to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The step that requests it: the name of a tweak, or of a part of the partition.
    pub step: String,
    pub action: JournalAction,
}

/// A change to the system, with the data needed to undo it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalAction {
    /// One write to a file of the kernel.
    Write(KernelWrite),
    /// Creates a cgroup. Undone by moving its tasks back and removing it.
    MakeCgroup {
        /// The hierarchy that it is in.
        hierarchy: Hierarchy,
        path: String,
    },
    /// Moves tasks into a cgroup. Undone by moving each back to its former cgroup.
    MoveTasks {
        /// The hierarchy in which they move.
        hierarchy: Hierarchy,
        to: String,
        /// The tasks, in the order in which they move.
        tasks: Vec<TaskPlace>,
    },
    /// Changes nothing; notes these tasks' affinities because the kernel may forget them during the
    /// next changes.
    NoteAffinities { tasks: Vec<TaskAffinity> },
    /// Makes a controller available to the children of a cgroup of version 2.
    EnableController {
        hierarchy: Hierarchy,
        /// The file, `cgroup.subtree_control`.
        path: String,
        controller: String,
    },
    /// Takes a CPU offline and online again, so that its timers move to others
    /// (kernel/time/timer.c: timers_dead_cpu).
    Replug {
        cpu: usize,
        /// Files that the kernel changes by itself when the CPU goes offline, with their former
        /// values.
        side_effects: Vec<FileValue>,
    },
}

/// One write to a file of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelWrite {
    pub path: String,
    /// The value before (of a choice like `always [madvise] never`: the word in brackets).
    pub old: String,
    pub new: String,
    /// The values to write, in this order, to restore `old`. Empty: the file is removed with its
    /// cgroup.
    pub undo: Vec<String>,
    /// A file that shows when all but the last of these have taken effect, with its value then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<FileValue>,
}

impl KernelWrite {
    /// A write that is reverted by writing the old value.
    pub fn new(path: &str, old: String, new: &str) -> KernelWrite {
        KernelWrite {
            path: path.to_owned(),
            undo: vec![old.clone()],
            old,
            new: new.to_owned(),
            settles: None,
        }
    }

    /// A write to a file in a cgroup of our own: it is removed with that, and needs no undo.
    pub(crate) fn without_undo(path: String, new: String) -> KernelWrite {
        KernelWrite { path, old: String::new(), new, undo: Vec::new(), settles: None }
    }
}

/// A file with its former value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileValue {
    pub path: String,
    pub value: String,
}

/// A task, distinguishable from a later one with the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskId {
    pub tid: i32,
    /// Its start time, in clock ticks since boot (/proc/TID/stat, field 22).
    pub start: u64,
}

/// A task and its former cgroup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskPlace {
    /// Which task.
    #[serde(flatten)]
    pub id: TaskId,
    /// Its name (/proc/TID/comm): any bytes that the task chose.
    pub name: String,
    /// The directory of its former cgroup.
    pub from: String,
}

/// A task and the CPUs that it was allowed to use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskAffinity {
    /// Which task.
    #[serde(flatten)]
    pub id: TaskId,
    pub cpus: CpuSet,
}

/// A change was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The `intent` that it belongs to.
    pub of: u64,
    /// The value now, as the kernel formats it; `None` if the change is not a write or it cannot be
    /// read.
    pub now: Option<String>,
    /// If several tasks were moved: those that the kernel refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_moved: Vec<NotMoved>,
}

/// A task that the kernel did not let into a cgroup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotMoved {
    /// Which task.
    #[serde(flatten)]
    pub id: TaskId,
    /// The kernel's error number, if any.
    pub errno: Option<i32>,
    pub why: String,
}

/// The kernel refused a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChangeRefusal {
    /// The `intent` that it belongs to.
    pub of: u64,
    /// The kernel's error number, if any.
    pub errno: Option<i32>,
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_flat_line_of_json() {
        let write = KernelWrite::new("/proc/sys/vm/stat_interval", "1".into(), "1000");
        let intent = Intent { step: "vmstat".into(), action: JournalAction::Write(write) };
        let line =
            serde_json::to_string(&JournalRecord { seq: 4, event: JournalEvent::Intent(intent) })
                .unwrap();
        insta::assert_snapshot!(line, @r#"{"seq":4,"intent":{"step":"vmstat","action":{"write":{"path":"/proc/sys/vm/stat_interval","old":"1","new":"1000","undo":["1"]}}}}"#);
        let ready = serde_json::to_string(&JournalRecord { seq: 5, event: JournalEvent::Ready {} })
            .unwrap();
        assert_eq!(
            serde_json::from_str::<JournalRecord>(&ready).unwrap().event,
            JournalEvent::Ready {}
        );
    }
}
