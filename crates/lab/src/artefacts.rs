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
        Artefacts::at(PackageCache::open()?.dir().join("artefacts"))
    }

    fn at(dir: PathBuf) -> Result<Artefacts, LabError> {
        private::directory(&dir)?;
        Ok(Artefacts { dir })
    }

    /// Stores a file; returns its SHA-256 in hexadecimal digits.
    pub fn keep(&self, path: &Path) -> Result<String, LabError> {
        let name = fs::File::open(path).and_then(digest_of).map_err(LabError::io("read", path))?;
        if self.find(&name)?.is_none() {
            self.make_room(path.metadata().map_err(LabError::io("read", path))?.len())?;
            self.whole(&name, |to| {
                let mut from = fs::File::open(path).map_err(LabError::io("open", path))?;
                std::io::copy(&mut from, to).map(drop).map_err(LabError::io("copy", path))
            })?;
        }
        Ok(name)
    }

    /// Stores a result about such files under a separate name.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        // Reading from memory cannot fail.
        let digest = digest_of(bytes).unwrap_or_default();
        self.make_room(bytes.len() as u64)?;
        let write = |bytes: &[u8], to: &mut fs::File| {
            to.write_all(bytes).map_err(LabError::io("write", self.dir.join(name)))
        };
        self.whole(&digest, |to| write(bytes, to))?;
        self.whole(name, |to| write(digest.as_bytes(), to))
    }

    /// Stores a file under a separate name.
    pub fn adopt(&self, name: &str, path: &Path) -> Result<PathBuf, LabError> {
        let digest = self.keep(path)?;
        self.whole(name, |to| {
            to.write_all(digest.as_bytes()).map_err(LabError::io("write", self.dir.join(name)))
        })?;
        Ok(self.dir.join(digest))
    }

    /// The file stored under a separate name, if it still exists.
    pub fn named(&self, name: &str) -> Result<Option<PathBuf>, LabError> {
        let Some(file) = private::open(&self.dir.join(name))? else { return Ok(None) };
        let mut digest = String::new();
        // Half a name is none.
        let _ = file.take(64).read_to_string(&mut digest);
        touch(&self.dir.join(name));
        self.find(&digest)
    }

    /// Locks this name against other processes until dropped; none if another process has it.
    pub fn try_lock(&self, name: &str) -> Result<Option<fs::File>, LabError> {
        // Names share few lock files: an additional wait is better than a file for each.
        private::try_lock(&self.dir.join(format!("lock-{}", name.get(..2).unwrap_or(name))))
    }

    /// Creates a file atomically, also beside concurrent writers of the same.
    fn whole(
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
    pub fn find(&self, name: &str) -> Result<Option<PathBuf>, LabError> {
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let place = self.dir.join(name);
        let Some(file) = private::open(&place)? else { return Ok(None) };
        if digest_of(file).map_err(LabError::io("read", &place))? != name {
            fs::remove_file(&place).map_err(LabError::io("remove", &place))?;
            return Ok(None);
        }
        touch(&place);
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
        let mut all: u64 = kept.iter().map(|(_, len, _)| len).sum::<u64>() + bytes;
        for (_, len, path) in kept {
            if all <= BYTES_MAX {
                break;
            }
            // Another process may have removed it meanwhile.
            let _ = fs::remove_file(path);
            all -= len;
        }
        Ok(())
    }
}

/// Marks the file as used now. Without the right to do so it ages.
fn touch(path: &Path) {
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
        let store = Artefacts::at(dir.path().join("store")).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "abc").unwrap();
        let name = store.keep(&file).unwrap();
        // FIPS 180-2, appendix B.1.
        assert_eq!(name, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(store.find(&name).unwrap().unwrap()).unwrap(), b"abc");
        assert_eq!(store.keep(&file).unwrap(), name);
        for wrong in ["", "../file", &"0".repeat(64)] {
            assert_eq!(store.find(wrong).unwrap(), None, "{wrong}");
        }
    }

    #[test]
    fn an_artefact_that_was_changed_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let store = Artefacts::at(dir.path().join("store")).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "abc").unwrap();
        let name = store.keep(&file).unwrap();
        store.adopt("key.saved", &file).unwrap();
        store.put("key.symbols", b"what it is called").unwrap();
        let read = |name: &str| store.named(name).unwrap().map(|path| fs::read(path).unwrap());
        assert_eq!(read("key.saved").unwrap(), b"abc");
        assert_eq!(read("key.symbols").unwrap(), b"what it is called");
        fs::write(dir.path().join("store").join(&name), "abd").unwrap();
        assert_eq!((read("key.saved"), store.find(&name).unwrap()), (None, None));
        // The file is stored again.
        assert_eq!(store.keep(&file).unwrap(), name);
        assert_eq!(read("key.saved").unwrap(), b"abc");
        for half in ["", "ba7816bf", "../../file"] {
            fs::write(dir.path().join("store/key.saved"), half).unwrap();
            assert_eq!(read("key.saved"), None, "{half}");
        }
        fs::remove_file(dir.path().join("store").join(&name)).unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("store").join(&name)).unwrap();
        assert!(store.find(&name).is_err());
    }
}
