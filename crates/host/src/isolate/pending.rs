//! Leftovers of killed processes.

use crate::files::Files;
use crate::journal::record::ChangePurpose;
use crate::journal::{self, JournalError, SavedJournal, Store, in_store, tasks};
use serde::Serialize;

/// The state of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// All changes were made and are meant to stay.
    InForce,
    /// The process was killed while it made the changes.
    HalfMade,
    /// The undo was killed, or could not restore everything.
    HalfUndone,
    /// All changes were made for a process that has since died.
    Abandoned,
}

/// An existing journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Pending {
    pub journal: String,
    pub purpose: Option<ChangePurpose>,
    pub standing: JournalState,
}

impl Pending {
    /// Whether `punctual isolate undo` should be run.
    pub fn is_leftover(&self) -> bool {
        self.standing != JournalState::InForce
    }
}

/// The journals of this boot. The next punctual command offers to undo leftovers.
///
/// Empty while another process holds the lock and works on them.
pub fn pending_journals(
    store: &dyn Store,
    files: &dyn Files,
) -> Result<Vec<Pending>, JournalError> {
    if store.file_names().map_err(in_store(store, "list", ""))?.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_lock) = journal::wait_for_lock(store)? else { return Ok(Vec::new()) };
    let boot_id = journal::boot_id(files)?;
    let current = journal::read_all(store)?.into_iter().filter(|saved| !saved.is_stale(&boot_id));
    Ok(current.map(|saved| look_at(store, files, &saved)).collect())
}

fn look_at(store: &dyn Store, files: &dyn Files, saved: &SavedJournal) -> Pending {
    let begin = saved.begin.as_ref();
    let abandoned =
        begin.is_some_and(|begin| begin.for_writer_only && !tasks::is_alive(files, begin.writer));
    let standing = match (saved.undoing, saved.ready) {
        (true, _) => JournalState::HalfUndone,
        (_, false) => JournalState::HalfMade,
        _ if abandoned => JournalState::Abandoned,
        _ => JournalState::InForce,
    };
    let purpose = begin.map(|begin| begin.purpose.clone());
    Pending { journal: format!("{}/{}", store.store_path(), saved.name), purpose, standing }
}
