//! The files that a run in virtual time was made of, kept under their SHA-256, so that it can run
//! again: any other byte in them is another timeline.

use crate::LabError;
use crate::cache::Cache;
use crate::ssh::digest_of;
use rustix::fs::{FlockOperation, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// All of them together, in bytes. Those that were used longest ago go first.
const BYTES_MAX: u64 = 4 << 30;

/// The store: a directory of files named by what is in them.
pub struct Artefacts {
    dir: PathBuf,
}

impl Artefacts {
    /// That of the user's cache.
    pub fn open() -> Result<Artefacts, LabError> {
        Artefacts::at(Cache::open()?.dir().join("artefacts"))
    }

    fn at(dir: PathBuf) -> Result<Artefacts, LabError> {
        fs::create_dir_all(&dir).map_err(LabError::io("create", &dir))?;
        Ok(Artefacts { dir })
    }

    /// Keeps a file; the answer is its SHA-256 in hexadecimal digits.
    pub fn keep(&self, path: &Path) -> Result<String, LabError> {
        let name = fs::File::open(path).and_then(digest_of).map_err(LabError::io("read", path))?;
        let place = self.dir.join(&name);
        if place.exists() {
            touch(&place);
            return Ok(name);
        }
        self.make_room(path.metadata().map_err(LabError::io("read", path))?.len())?;
        self.whole(&name, |to| fs::copy(path, to).map(drop).map_err(LabError::io("copy", path)))?;
        Ok(name)
    }

    /// Keeps what was found out about such files, under a name of its own.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        self.make_room(bytes.len() as u64)?;
        self.whole(name, |to| fs::write(to, bytes).map_err(LabError::io("write", to)))
    }

    /// Moves a file, or copies it from another file system, to a name of its own.
    pub fn adopt(&self, name: &str, path: &Path) -> Result<PathBuf, LabError> {
        self.make_room(path.metadata().map_err(LabError::io("read", path))?.len())?;
        let place = self.dir.join(name);
        if fs::rename(path, &place).is_err() {
            self.whole(name, |to| {
                fs::copy(path, to).map(drop).map_err(LabError::io("copy", path))
            })?;
        }
        Ok(place)
    }

    /// What was put under a name of its own, if it is there still.
    pub fn named(&self, name: &str) -> Option<PathBuf> {
        let place = self.dir.join(name);
        place.is_file().then(|| {
            touch(&place);
            place
        })
    }

    /// Holds this name against other processes, until it is dropped; none where one of them does.
    pub fn try_lock(&self, name: &str) -> Result<Option<fs::File>, LabError> {
        // Names share few files: one more that waits is better than a file for each.
        let path = self.dir.join(format!("lock-{}", name.get(..2).unwrap_or(name)));
        let file = fs::File::create(&path).map_err(LabError::io("create", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(why) => Err(LabError::io("lock", &path)(why.into())),
        }
    }

    /// A file has its name when it is whole, whoever else keeps the same at the same time.
    fn whole(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let file = tempfile::NamedTempFile::new_in(&self.dir);
        let file = file.map_err(LabError::io("create a file in", &self.dir))?;
        fill(file.path())?;
        let place = self.dir.join(name);
        file.persist(&place).map(drop).map_err(|why| LabError::io("write", &place)(why.error))
    }

    /// The file with this SHA-256, if it is there still.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| self.named(name)).flatten()
    }

    /// Removes those that were used longest ago, until so many bytes more have room.
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

/// It was used now: what is used stays longest. Without the right to do so it ages.
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
    fn what_is_kept_is_found_under_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let store = Artefacts::at(dir.path().join("store")).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "abc").unwrap();
        let name = store.keep(&file).unwrap();
        // FIPS 180-2, appendix B.1.
        assert_eq!(name, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(store.find(&name).unwrap()).unwrap(), b"abc");
        assert_eq!(store.keep(&file).unwrap(), name);
        for wrong in ["", "../file", &"0".repeat(64)] {
            assert_eq!(store.find(wrong), None, "{wrong}");
        }
    }
}
