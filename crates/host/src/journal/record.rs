//! The records of a journal: one JSON object a line, each synced to disk before the change that it
//! announces.

use punctual_core::CpuSet;
use serde::{Deserialize, Serialize};

/// The version of the format that this program writes and reads.
pub const VERSION: u32 = 2;

/// One line of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its number, counting from 0; an `applied`, `refused` or `undone` names the `intent` that it
    /// belongs to by this number.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The event of a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Begin(Begin),
    /// A change that is about to be made.
    Intent(Intent),
    /// It was made.
    Applied(Applied),
    /// The kernel refused it; nothing was changed.
    Refused(Refusal),
    /// Every change has been made: what stands now is meant to stand.
    Ready {},
    /// A change has been undone, or needs no undoing.
    Undone {
        /// The `intent` that it belongs to.
        of: u64,
    },
}

/// Who wrote the journal, when, and what for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Begin {
    /// [`VERSION`].
    pub version: u32,
    /// What the changes are for.
    pub purpose: Purpose,
    /// /proc/sys/kernel/random/boot_id: no change of this kind outlives the boot in which it was
    /// made.
    pub boot_id: String,
    /// The process that wrote it.
    pub writer: TaskId,
    /// Whether the changes are to stand only as long as that process lives (an experiment), not
    /// until they are undone.
    #[serde(default)]
    pub for_writer_only: bool,
}

/// What the changes are for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// `punctual isolate create`, or an experiment's partition.
    Partition(PartitionNote),
    /// `punctual check --fix`.
    Fix,
    /// Settings that `punctual tune` tries, while a block is measured.
    Tuning,
}

/// The partition that a journal is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PartitionNote {
    /// The CPUs given to real time.
    pub cpus: CpuSet,
    /// All others that were online.
    pub housekeeping: CpuSet,
    /// Where the cgroup hierarchy with the cpuset controller is mounted.
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
    /// The file of a cgroup that lists its tasks and takes them in: threads in version 1, processes
    /// in version 2.
    pub fn members_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.procs",
        }
    }
    /// The file of a cgroup that lists its threads and takes one in.
    pub fn threads_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::V1 => "tasks",
            CgroupVersion::V2 => "cgroup.threads",
        }
    }
}

/// A change that is about to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The step that requests it: the name of a tweak, or of a part of the partition.
    pub step: String,
    pub action: Action,
}

/// A change to the system, with all that is needed to undo it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// One write to a file of the kernel.
    Write(Write),
    /// A new cgroup. Undone by moving its tasks back and removing it.
    MakeCgroup {
        /// The hierarchy that it is in.
        hierarchy: Hierarchy,
        path: String,
    },
    /// Tasks enter a cgroup. Undone by moving each back to the cgroup it came from.
    MoveTasks {
        /// The hierarchy in which they move.
        hierarchy: Hierarchy,
        to: String,
        /// The tasks, in the order in which they move.
        tasks: Vec<TaskPlace>,
    },
    /// Nothing changes; these tasks' affinities are noted because the kernel may forget them during
    /// the next changes.
    NoteAffinities { tasks: Vec<TaskAffinity> },
    /// A controller is made available to the children of a cgroup of version 2.
    EnableController {
        hierarchy: Hierarchy,
        /// The file, `cgroup.subtree_control`.
        path: String,
        controller: String,
    },
    /// A CPU goes offline and comes back, so that its timers move to others (kernel/time/timer.c:
    /// timers_dead_cpu).
    Replug {
        cpu: usize,
        /// Files which the kernel changes by itself when the CPU goes, with what they hold before.
        side_effects: Vec<FileValue>,
    },
}

/// One write to a file of the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Write {
    pub path: String,
    /// What it holds before (of a choice like `always [madvise] never`: the word in brackets).
    pub old: String,
    pub new: String,
    /// What to write, in this order, to get back to `old`. Empty: the file goes away with the
    /// cgroup that it is in.
    pub undo: Vec<String>,
    /// A file that shows when all but the last of these have taken effect, and what it holds then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<FileValue>,
}

impl Write {
    /// A write that is taken back by writing what the file held.
    pub fn new(path: &str, old: String, new: &str) -> Write {
        Write {
            path: path.to_owned(),
            undo: vec![old.clone()],
            old,
            new: new.to_owned(),
            settles: None,
        }
    }

    /// A write to a file in a cgroup of our own: it goes away with that, and needs no undo.
    pub fn inside(path: String, new: String) -> Write {
        Write { path, old: String::new(), new, undo: Vec::new(), settles: None }
    }
}

/// A file with what it held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileValue {
    pub path: String,
    pub value: String,
}

/// A task that cannot be mistaken for a later one with the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TaskId {
    pub tid: i32,
    /// When it began, in clock ticks since boot (/proc/TID/stat, field 22).
    pub start: u64,
}

/// A task and the cgroup that it was in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskPlace {
    /// Which task.
    #[serde(flatten)]
    pub id: TaskId,
    /// Its name (/proc/TID/comm): any bytes that the task chose.
    pub name: String,
    /// The directory of its cgroup before.
    pub from: String,
}

/// A task and the CPUs that it was allowed to run on.
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
    /// What the file holds now, as the kernel writes it; `None` where the change is not a write or
    /// it cannot be read.
    pub now: Option<String>,
    /// Of several tasks: those that the kernel did not let in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_moved: Vec<NotMoved>,
}

/// A task that the kernel did not let into a cgroup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotMoved {
    /// Which task.
    #[serde(flatten)]
    pub id: TaskId,
    /// The kernel's error number, where there is one.
    pub errno: Option<i32>,
    pub why: String,
}

/// The kernel refused a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// The `intent` that it belongs to.
    pub of: u64,
    /// The kernel's error number, where there is one.
    pub errno: Option<i32>,
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_flat_line_of_json() {
        let write = Write::new("/proc/sys/vm/stat_interval", "1".into(), "1000");
        let intent = Intent { step: "vmstat".into(), action: Action::Write(write) };
        let line = serde_json::to_string(&Record { seq: 4, event: Event::Intent(intent) }).unwrap();
        insta::assert_snapshot!(line, @r#"{"seq":4,"intent":{"step":"vmstat","action":{"write":{"path":"/proc/sys/vm/stat_interval","old":"1","new":"1000","undo":["1"]}}}}"#);
        let ready = serde_json::to_string(&Record { seq: 5, event: Event::Ready {} }).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&ready).unwrap().event, Event::Ready {});
    }
}
