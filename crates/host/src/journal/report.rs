//! The result of undoing changes.

use super::record::FileValue;
use serde::Serialize;

/// What [`undo`](super::undo()) did.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct UndoReport {
    /// Each journal that was undone, the newest first.
    pub journals: Vec<JournalReport>,
    /// Journals of an earlier boot, whose changes are gone; under their new names.
    pub put_aside: Vec<String>,
}

impl UndoReport {
    /// Whether everything is as it was.
    pub fn is_complete(&self) -> bool {
        self.journals.iter().all(|journal| journal.complete)
    }
}

/// What became of one journal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct JournalReport {
    pub name: String,
    /// `partition`, `fix` or `tuning`.
    pub purpose: &'static str,
    /// Files that hold their old value again because it was written, with that value.
    pub restored: Vec<FileValue>,
    /// Changes of which nothing was left to undo.
    pub already: usize,
    /// Tasks that were moved back where they came from.
    pub tasks_returned: usize,
    /// Tasks whose affinity the kernel had forgotten and that have it again.
    pub affinities_restored: usize,
    /// Tasks whose affinity another process has set since; they keep it.
    pub affinities_left: usize,
    /// What another process has changed since.
    pub changed_hands: Vec<ChangedHands>,
    /// What could not be restored.
    pub failed: Vec<Failed>,
    /// Lines of the journal that could not be read.
    pub damaged: Vec<usize>,
    /// Whether nothing is left to be done, and the journal is gone.
    pub complete: bool,
}

/// A file, or a task, that is not as the journal left it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChangedHands {
    /// The file, or the task.
    pub path: String,
    /// What the journal's change had left there.
    pub expected: String,
    pub found: String,
    /// What was there before the journal's change.
    pub before: String,
    /// Whether that has been written now, because it was requested.
    pub overwritten: bool,
}

/// Something that could not be restored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failed {
    /// The file, the cgroup or the task.
    pub path: String,
    pub why: String,
}
