//! The directory of a study: the request, each result as it was measured, and the findings. One
//! process holds it by a lock; others may read it at any time. A study that was killed resumes from
//! it.

use punctual_bundle::Member;
use punctual_session::exit::Failure;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The directory, held by this process alone, or joined beside others.
pub struct Store {
    path: PathBuf,
    _lock: Option<File>,
}

impl Store {
    /// Holds a directory by the lock in this file of it. `other` says who holds it already.
    pub(crate) fn open_locked(path: &Path, lock: &str, other: &str) -> Result<Store, String> {
        let lock =
            Member::from_root(path).join(lock).open_to_lock().map_err(|why| why.to_string())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| other.to_owned())?;
        Ok(Store { path: path.to_owned(), _lock: Some(lock) })
    }

    /// The directory of a study that another process may hold.
    pub fn join(path: &Path) -> Store {
        Store { path: path.to_owned(), _lock: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn member(&self, name: impl AsRef<Path>) -> Member {
        Member::from_root(&self.path).join(name)
    }

    /// Replaces a file as a whole, durably.
    pub fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.member(name).replace_with(|out| {
            out.write_all(bytes)?;
            out.flush()?;
            out.get_ref().sync_all()
        });
        written.map_err(Failure::failed)
    }

    /// Replaces a document, durably.
    pub fn write(&self, name: &str, document: &impl Serialize) -> Result<(), Failure> {
        self.member(name).replace_json_durably(document).map_err(Failure::failed)
    }

    /// Appends a result as a line: it has reached the disk when this returns.
    pub(crate) fn append_record(&self, name: &str, record: &impl Serialize) -> Result<(), Failure> {
        let append = || {
            let mut line = serde_json::to_vec(record)?;
            line.push(b'\n');
            let mut file = self.member(name).open_to_append()?;
            file.write_all(&line)?;
            file.sync_data()
        };
        let path = self.path.join(name);
        append().map_err(|why| Failure::failed(format!("cannot write {}: {why}", path.display())))
    }

    /// The results. A truncated line is removed: its result is measured again.
    pub(crate) fn read_records<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, String> {
        let member = self.member(name);
        let bytes = match member.exists() {
            true => member.read().map_err(|why| why.to_string())?,
            false => Vec::new(),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole < bytes.len() {
            member.replace_bytes(&bytes[..whole]).map_err(|why| why.to_string())?;
        }
        let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate();
        let read = |(place, line)| {
            serde_json::from_slice(line).map_err(|why| format!("{name}, line {}: {why}", place + 1))
        };
        lines.map(read).collect()
    }
}
