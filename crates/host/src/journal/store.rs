//! Storage of journals: a directory of files that only their owner can write, and one lock.

use rustix::fs::FlockOperation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The directory of the system's journals. On most systems /run is empty after a reboot, when the
/// changes are gone too.
const SYSTEM_DIRECTORY: &str = "/run/punctual";

/// The largest journal that is read; a partition of a machine with 100,000 threads writes some 20
/// MB.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// The right to write journals and to make changes, held by one process at a time.
///
/// The kernel releases it when the process ends in any way (flock(2)).
#[derive(Debug)]
pub struct JournalLock {
    _file: Option<File>,
}

impl JournalLock {
    /// The lock of a store that no other process can access.
    pub fn without_file() -> JournalLock {
        JournalLock { _file: None }
    }
}

/// Storage operations of a journal. Each change has reached the disk on return.
pub trait Store {
    /// Its path, for messages.
    fn store_path(&self) -> String;
    /// Takes the lock; `None` if another process holds it.
    fn try_lock(&self) -> io::Result<Option<JournalLock>>;
    /// The names of all files, sorted; empty if there is no directory yet.
    fn file_names(&self) -> io::Result<Vec<String>>;
    /// A whole file, at most [`MAX_JOURNAL_BYTES`].
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Appends bytes to a file, which is created if missing.
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Truncates a file to a length.
    fn truncate_file(&self, name: &str, length: u64) -> io::Result<()>;
    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct JournalDirectory {
    path: PathBuf,
}

impl JournalDirectory {
    /// [`SYSTEM_DIRECTORY`].
    pub fn from_system() -> JournalDirectory {
        JournalDirectory::from_path(SYSTEM_DIRECTORY)
    }
    /// Another directory, for tests. The first write creates it.
    pub fn from_path(path: impl Into<PathBuf>) -> JournalDirectory {
        JournalDirectory { path: path.into() }
    }
    /// The path of a file in it.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Creates the directory, readable only by its owner, or checks that no other user can write to
    /// the existing one.
    fn prepare_directory(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => sync_directory(self.path.parent().unwrap_or(Path::new("/"))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.check_ownership(),
            Err(error) => Err(error),
        }
    }

    fn check_ownership(&self) -> io::Result<()> {
        let meta = fs::symlink_metadata(&self.path)?;
        let own_uid = rustix::process::geteuid().as_raw();
        let fault = if !meta.is_dir() {
            "it is not a directory"
        } else if meta.uid() != own_uid {
            "another user owns it"
        } else if meta.mode() & 0o022 != 0 {
            "others may write to it"
        } else {
            return Ok(());
        };
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} cannot be trusted: {fault}", self.path.display()),
        ))
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

impl Store for JournalDirectory {
    fn store_path(&self) -> String {
        self.path.display().to_string()
    }

    fn try_lock(&self) -> io::Result<Option<JournalLock>> {
        self.prepare_directory()?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(self.path_of("lock"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(JournalLock { _file: Some(file) })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<String>>>()?;
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.path_of(name))?;
        let mut bytes = Vec::new();
        file.take(MAX_JOURNAL_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_JOURNAL_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("larger than {MAX_JOURNAL_BYTES} bytes"),
            ));
        }
        Ok(bytes)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path_of(name);
        let mut options = OpenOptions::new();
        options.append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let (mut file, new) = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (options.create_new(true).open(&path)?, true)
            }
            other => (other?, false),
        };
        file.write_all(bytes)?;
        file.sync_all()?;
        if new { sync_directory(&self.path) } else { Ok(()) }
    }

    fn truncate_file(&self, name: &str, length: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.path_of(name))?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path_of(from), self.path_of(to))?;
        sync_directory(&self.path)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path_of(name))?;
        sync_directory(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_process_can_lock_the_journals() {
        let place = tempfile::tempdir().unwrap();
        let store = JournalDirectory::from_path(place.path().join("run"));
        assert_eq!(
            store.file_names().unwrap(),
            Vec::<String>::new(),
            "nothing is made for a mere look"
        );
        let held = store.try_lock().unwrap();
        assert!(held.is_some());
        assert!(store.try_lock().unwrap().is_none());
        drop(held);
        assert!(store.try_lock().unwrap().is_some());
        // The lock waits for a reader of the journals.
        let held = store.try_lock().unwrap();
        let short = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(held);
        });
        assert!(crate::journal::acquire_lock(&store).is_ok());
        short.join().unwrap();
    }

    #[test]
    fn a_journal_directory_writable_by_others_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = JournalDirectory::from_path(place.path()).try_lock().unwrap_err().to_string();
        assert!(error.ends_with("cannot be trusted: others may write to it"), "{error}");
    }

    #[test]
    fn a_link_in_place_of_a_journal_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(
            place.path().join("victim"),
            place.path().join("journal-0001.jsonl"),
        )
        .unwrap();
        let store = JournalDirectory::from_path(place.path());
        assert!(store.append("journal-0001.jsonl", b"x").is_err());
        assert!(store.read("journal-0001.jsonl").is_err());
        assert_eq!(fs::read_to_string(place.path().join("victim")).unwrap(), "precious");
    }
}
