//! Changes to the system that can be reverted, also after kill -9 at any moment.
//!
//! A journal is a file of JSON lines in [`store::SYSTEM_DIRECTORY`]. Each change is announced in
//! it, with the data needed to revert it, and the line has reached the disk before the change is
//! made. The result of the change is recorded after it, with the value as the kernel formats it.
//! [`undo`] processes the file backwards and records each step too, so that it can be killed and
//! repeated:
//!
//! - announced, and the file still holds the old value: nothing was changed, nothing is done;
//! - the file holds the written value: the old value is restored;
//! - the file holds another value: another process changed it since; that is reported, and
//!   overwritten only on request.
//!
//! The boot id in the first line identifies a journal of an earlier boot, whose changes are gone;
//! it is set aside. A lock keeps two processes from changing the system at the same time.

pub mod apply;
pub mod record;
pub mod report;
pub(crate) mod restore_tasks;
pub mod saved;
pub mod store;
pub mod tasks;
pub mod undo;
pub mod value;

pub use apply::{ChangeResult, RequestedWrite, StepResult};
pub use report::UndoReport;
pub(crate) use saved::put_aside_stale;
pub use saved::{SavedJournal, read_all};
pub use store::{JournalDirectory, JournalLock, Store};
pub use undo::{IfChanged, undo_journals};

use crate::files::{FileError, Files};
use record::{ChangePurpose, JournalBegin, JournalEvent, JournalRecord, VERSION};
use std::io;
use std::time::Duration;

/// An error of a journal itself. Every change made so far is in the journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The directory or a file in it.
    #[error("cannot {action} the journal {path}: {source}")]
    Store { action: &'static str, path: String, source: io::Error },
    /// Another process holds the lock.
    #[error("another punctual process is changing this system: it holds {0}/lock")]
    Busy(String),
    /// A journal of a later version.
    #[error(
        "{name} was written by a newer punctual (version {version} of the format; this one knows \
         {VERSION})"
    )]
    Newer { name: String, version: u64 },
    /// The boot id cannot be read, so that a journal could not be trusted after the next boot.
    #[error("cannot read the id of this boot: {0}")]
    NoBootId(FileError),
    /// Something about this process or its tasks could not be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Converts an error of the store into one with its path.
pub(crate) fn in_store(
    store: &dyn Store,
    action: &'static str,
    name: &str,
) -> impl FnOnce(io::Error) -> JournalError {
    let place = store.store_path();
    let path = if name.is_empty() { place } else { format!("{place}/{name}") };
    move |source| JournalError::Store { action, path, source }
}

/// The number of attempts to take a held lock, and the pause between them: every command holds it
/// while it looks for leftovers.
const LOCK_TRIES: u32 = 25;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Takes the lock, or reports its holder.
pub fn acquire_lock(store: &dyn Store) -> Result<JournalLock, JournalError> {
    wait_for_lock(store)?.ok_or_else(|| JournalError::Busy(store.store_path()))
}

/// Takes the lock; `None` if another process holds it longer than a look at the journals takes.
pub(crate) fn wait_for_lock(store: &dyn Store) -> Result<Option<JournalLock>, JournalError> {
    for _ in 1..LOCK_TRIES {
        if let Some(lock) = store.try_lock().map_err(in_store(store, "lock", ""))? {
            return Ok(Some(lock));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    store.try_lock().map_err(in_store(store, "lock", ""))
}

/// The id of this boot (random(4)).
pub fn boot_id(files: &dyn Files) -> Result<String, JournalError> {
    files.read_trimmed("/proc/sys/kernel/random/boot_id").map_err(JournalError::NoBootId)
}

/// A journal that is being written.
pub struct Journal<'a> {
    store: &'a dyn Store,
    name: String,
    next_seq: u64,
    /// The length of the file: the rest of an append that failed half-way is cut off.
    bytes: u64,
}

impl<'a> Journal<'a> {
    /// Begins a new journal. The caller must hold the lock while the journal is written.
    pub fn begin_new(
        store: &'a dyn Store,
        files: &dyn Files,
        purpose: ChangePurpose,
        for_writer_only: bool,
    ) -> Result<Journal<'a>, JournalError> {
        let writer = tasks::own_id(files)?;
        let boot_id = boot_id(files)?;
        let mut journal = Journal { store, name: saved::next_name(store)?, next_seq: 0, bytes: 0 };
        journal.append_event(JournalEvent::Begin(JournalBegin {
            version: VERSION,
            purpose,
            boot_id,
            writer,
            for_writer_only,
        }))?;
        Ok(journal)
    }

    /// Continues a journal of another process; an incomplete last line is removed first.
    pub(crate) fn resume_saved(
        store: &'a dyn Store,
        saved: &SavedJournal,
    ) -> Result<Journal<'a>, JournalError> {
        if saved.torn {
            store.truncate_file(&saved.name, saved.whole_bytes).map_err(in_store(
                store,
                "repair",
                &saved.name,
            ))?;
        }
        Ok(Journal {
            store,
            name: saved.name.clone(),
            next_seq: saved.next_seq,
            bytes: saved.whole_bytes,
        })
    }

    /// The name of its file.
    pub fn file_name(&self) -> &str {
        &self.name
    }

    /// Records that every change has been made.
    pub fn mark_ready(&mut self) -> Result<(), JournalError> {
        self.append_event(JournalEvent::Ready {}).map(drop)
    }

    /// Adds a record and returns its number. The record is on the disk on return.
    fn append_event(&mut self, event: JournalEvent) -> Result<u64, JournalError> {
        let seq = self.next_seq;
        let broken =
            |error: serde_json::Error| in_store(self.store, "write", &self.name)(error.into());
        let mut line = serde_json::to_vec(&JournalRecord { seq, event }).map_err(broken)?;
        line.push(b'\n');
        if let Err(full) = self.store.append(&self.name, &line) {
            // If this fails as well, the next reader recognises the torn line.
            let _ = self.store.truncate_file(&self.name, self.bytes);
            return Err(in_store(self.store, "write", &self.name)(full));
        }
        self.bytes += line.len() as u64;
        self.next_seq += 1;
        Ok(seq)
    }
}
