//! The result of undoing changes.

use super::record::FileValue;
use serde::Serialize;

/// The result of [`undo`](super::undo()).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct UndoReport {
    /// Each journal that was undone, the newest first.
    pub journals: Vec<JournalReport>,
    /// Journals of an earlier boot, whose changes are gone, by their new names.
    pub put_aside: Vec<String>,
}

impl UndoReport {
    /// Whether everything was restored.
    pub fn is_complete(&self) -> bool {
        self.journals.iter().all(|journal| journal.complete)
    }
}

/// The result for one journal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct JournalReport {
    pub name: String,
    /// `partition`, `fix` or `tuning`.
    pub purpose: &'static str,
    /// Files whose old value was written again, with that value.
    pub restored: Vec<FileValue>,
    /// Changes with nothing left to undo.
    pub already: usize,
    /// Tasks that were moved back to their cgroups.
    pub tasks_returned: usize,
    /// Tasks whose affinity the kernel had lost and that was restored.
    pub affinities_restored: usize,
    /// Tasks whose affinity another process has set since; it is kept.
    pub affinities_left: usize,
    /// Changes that another process has made since.
    pub changed_hands: Vec<ChangedHands>,
    /// Values that could not be restored.
    pub failed: Vec<Failed>,
    /// Lines of the journal that could not be read.
    pub damaged: Vec<usize>,
    /// Whether nothing is left to do, and the journal is gone.
    pub complete: bool,
}

/// A file, or a task, that differs from the state in the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChangedHands {
    /// The file, or the task.
    pub path: String,
    /// The value after the journal's change.
    pub expected: String,
    pub found: String,
    /// The value before the journal's change.
    pub before: String,
    /// Whether it was overwritten on request.
    pub overwritten: bool,
}

/// A value that could not be restored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failed {
    /// The file, the cgroup or the task.
    pub path: String,
    pub why: String,
}
