//! The files of a run in virtual time, stored under their SHA-256, so that it can run again: any
//! other byte in them is another timeline.

use crate::LabError;
use crate::cache::PackageCache;
use crate::private;
use crate::ssh::digest_of;
use rustix::fs::{Timestamps, UTIME_NOW};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum total size. The least recently used files are removed first.
const BYTES_MAX: u64 = 4 << 30;

/// The store: a directory of files named by their hash, closed to other users. At each use a file
/// must belong to this user and match its hash.
pub struct Artefacts {
    dir: PathBuf,
}

impl Artefacts {
    /// The store in the user's cache.
    pub fn open() -> Result<Artefacts, LabError> {
        Artefacts::from_dir(PackageCache::open()?.dir().join("artefacts"))
    }

    fn from_dir(dir: PathBuf) -> Result<Artefacts, LabError> {
        private::create_directory(&dir)?;
        Ok(Artefacts { dir })
    }

    /// Stores a file; returns its SHA-256 in hexadecimal digits.
    pub(crate) fn store_file(&self, path: &Path) -> Result<String, LabError> {
        let name = fs::File::open(path).and_then(digest_of).map_err(LabError::io("read", path))?;
        if self.find_by_digest(&name)?.is_none() {
            self.make_room(path.metadata().map_err(LabError::io("read", path))?.len())?;
            self.write_atomically(&name, |to| {
                let mut from = fs::File::open(path).map_err(LabError::io("open", path))?;
                std::io::copy(&mut from, to).map(drop).map_err(LabError::io("copy", path))
            })?;
        }
        Ok(name)
    }

    /// Stores a result about such files under a separate name.
    pub(crate) fn store_result(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        // Reading from memory cannot fail.
        let digest = digest_of(bytes).unwrap_or_default();
        self.make_room(bytes.len() as u64)?;
        let write = |bytes: &[u8], to: &mut fs::File| {
            to.write_all(bytes).map_err(LabError::io("write", self.dir.join(name)))
        };
        self.write_atomically(&digest, |to| write(bytes, to))?;
        self.write_atomically(name, |to| write(digest.as_bytes(), to))
    }

    /// Stores a file under a separate name.
    pub(crate) fn store_as(&self, name: &str, path: &Path) -> Result<PathBuf, LabError> {
        let digest = self.store_file(path)?;
        self.write_atomically(name, |to| {
            to.write_all(digest.as_bytes()).map_err(LabError::io("write", self.dir.join(name)))
        })?;
        Ok(self.dir.join(digest))
    }

    /// The file stored under a separate name, if it still exists.
    pub(crate) fn find_by_name(&self, name: &str) -> Result<Option<PathBuf>, LabError> {
        let Some(file) = private::open_file(&self.dir.join(name))? else { return Ok(None) };
        let mut digest = String::new();
        // Half a name is none.
        let _ = file.take(64).read_to_string(&mut digest);
        touch_file(&self.dir.join(name));
        self.find_by_digest(&digest)
    }

    /// Locks this name against other processes until dropped; none if another process has it.
    pub fn try_lock(&self, name: &str) -> Result<Option<fs::File>, LabError> {
        // Names share few lock files: an additional wait is better than a file for each.
        private::try_lock(&self.dir.join(format!("lock-{}", name.get(..2).unwrap_or(name))))
    }

    /// Creates a file atomically, also beside concurrent writers of the same.
    fn write_atomically(
        &self,
        name: &str,
        fill: impl FnOnce(&mut fs::File) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let file = tempfile::NamedTempFile::new_in(&self.dir);
        let mut file = file.map_err(LabError::io("create a file in", &self.dir))?;
        fill(file.as_file_mut())?;
        let place = self.dir.join(name);
        file.persist(&place).map(drop).map_err(|why| LabError::io("write", &place)(why.error))
    }

    /// The file with this SHA-256, if it still exists. One with other contents is removed.
    ///
    /// # Errors
    /// The file is another user's, or others may write to it.
    pub(crate) fn find_by_digest(&self, name: &str) -> Result<Option<PathBuf>, LabError> {
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let place = self.dir.join(name);
        let Some(file) = private::open_file(&place)? else { return Ok(None) };
        if digest_of(file).map_err(LabError::io("read", &place))? != name {
            fs::remove_file(&place).map_err(LabError::io("remove", &place))?;
            return Ok(None);
        }
        touch_file(&place);
        Ok(Some(place))
    }

    /// Removes the least recently used files until there is room for this many more bytes.
    fn make_room(&self, bytes: u64) -> Result<(), LabError> {
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.dir)
            .map_err(LabError::io("read", &self.dir))?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        kept.sort();
        let mut total_bytes: u64 = kept.iter().map(|(_, len, _)| len).sum::<u64>() + bytes;
        for (_, len, path) in kept {
            if total_bytes <= BYTES_MAX {
                break;
            }
            // Another process may have removed it meanwhile.
            let _ = fs::remove_file(path);
            total_bytes -= len;
        }
        Ok(())
    }
}

/// Marks the file as used now. Without the right to do so it ages.
fn touch_file(path: &Path) {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let flags = rustix::fs::AtFlags::empty();
    let _ = rustix::fs::utimensat(rustix::fs::CWD, path, &times, flags);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_artefact_is_found_by_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let store = Artefacts::from_dir(dir.path().join("store")).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "abc").unwrap();
        let name = store.store_file(&file).unwrap();
        // FIPS 180-2, appendix B.1.
        assert_eq!(name, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(store.find_by_digest(&name).unwrap().unwrap()).unwrap(), b"abc");
        assert_eq!(store.store_file(&file).unwrap(), name);
        for wrong in ["", "../file", &"0".repeat(64)] {
            assert_eq!(store.find_by_digest(wrong).unwrap(), None, "{wrong}");
        }
    }

    #[test]
    fn an_artefact_that_was_changed_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let store = Artefacts::from_dir(dir.path().join("store")).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "abc").unwrap();
        let name = store.store_file(&file).unwrap();
        store.store_as("key.saved", &file).unwrap();
        store.store_result("key.symbols", b"what it is called").unwrap();
        let read =
            |name: &str| store.find_by_name(name).unwrap().map(|path| fs::read(path).unwrap());
        assert_eq!(read("key.saved").unwrap(), b"abc");
        assert_eq!(read("key.symbols").unwrap(), b"what it is called");
        fs::write(dir.path().join("store").join(&name), "abd").unwrap();
        assert_eq!((read("key.saved"), store.find_by_digest(&name).unwrap()), (None, None));
        // The file is stored again.
        assert_eq!(store.store_file(&file).unwrap(), name);
        assert_eq!(read("key.saved").unwrap(), b"abc");
        for half in ["", "ba7816bf", "../../file"] {
            fs::write(dir.path().join("store/key.saved"), half).unwrap();
            assert_eq!(read("key.saved"), None, "{half}");
        }
        fs::remove_file(dir.path().join("store").join(&name)).unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("store").join(&name)).unwrap();
        assert!(store.find_by_digest(&name).is_err());
    }
}
