//! Where fetched packages stay between runs.

use crate::LabError;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory that holds apt's package lists and the unpacked packages. It can be removed at any
/// time when no guest runs; everything in it is fetched again.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

/// Held while one process changes the cache; released when dropped.
pub(crate) struct CacheLock {
    _file: fs::File,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/punctual` where that is set, /var/cache/punctual where
    /// that can be written to, else `~/.cache/punctual`.
    pub fn open() -> Result<Cache, LabError> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        if let Some(dir) = absolute("XDG_CACHE_HOME") {
            return Cache::at(dir.join("punctual"));
        }
        Cache::at("/var/cache/punctual").or_else(|error| match absolute("HOME") {
            Some(home) => Cache::at(home.join(".cache/punctual")),
            None => Err(error),
        })
    }

    /// A cache in this directory, which is made if need be.
    pub fn at(dir: impl Into<PathBuf>) -> Result<Cache, LabError> {
        let cache = Cache { dir: dir.into() };
        fs::create_dir_all(&cache.dir)
            .map_err(LabError::io("create the cache directory", &cache.dir))?;
        // Whether it can be written to shows only by trying; the lock's file is wanted anyway.
        cache.lock_file()?;
        Ok(cache)
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn lock_file(&self) -> Result<fs::File, LabError> {
        let path = self.dir.join("lock");
        let mut options = fs::OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(LabError::io("open", path))
    }

    /// Waits until no other process changes the cache.
    pub(crate) fn lock(&self) -> Result<CacheLock, LabError> {
        let file = self.lock_file()?;
        // A signal of a timer or a child, as its owner handles it, ends a wait; not this one.
        rustix::io::retry_on_intr(|| {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
        })
        .map_err(|errno| LabError::io("lock", self.dir.join("lock"))(errno.into()))?;
        Ok(CacheLock { _file: file })
    }
}
