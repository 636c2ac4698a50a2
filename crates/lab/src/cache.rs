//! The store of fetched packages between runs.

use crate::LabError;
use crate::private;
use crate::waiting::wait_for;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of apt's package lists and the unpacked packages, closed to other users. It can be
/// removed at any time when no guest runs; everything in it is fetched again.
#[derive(Clone, Debug)]
pub struct PackageCache {
    dir: PathBuf,
}

/// Held while one process changes the cache; released when dropped.
pub(crate) struct CacheLock {
    _file: fs::File,
}

impl PackageCache {
    /// The user's cache: `$XDG_CACHE_HOME/punctual` if set, /var/cache/punctual if writable, else
    /// `~/.cache/punctual`.
    pub fn open() -> Result<PackageCache, LabError> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        if let Some(dir) = absolute("XDG_CACHE_HOME") {
            return PackageCache::open_at(dir.join("punctual"));
        }
        PackageCache::open_at("/var/cache/punctual").or_else(|error| match absolute("HOME") {
            Some(home) => PackageCache::open_at(home.join(".cache/punctual")),
            None => Err(error),
        })
    }

    /// A cache in this directory, created if needed.
    ///
    /// # Errors
    /// Another user owns the directory, or may write to it.
    pub fn open_at(dir: impl Into<PathBuf>) -> Result<PackageCache, LabError> {
        let cache = PackageCache { dir: dir.into() };
        private::create_directory(&cache.dir)?;
        // Only trying shows whether it is writable; the lock file is needed anyway.
        private::lock_file(&cache.lock_path())?;
        Ok(cache)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn lock_path(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Waits until no other process changes the cache.
    pub(crate) fn lock(&self) -> Result<CacheLock, LabError> {
        let path = self.lock_path();
        let what = format!("another punctual that uses the cache (it holds {})", path.display());
        wait_for(&what, || private::try_lock(&path)).map(|file| CacheLock { _file: file })
    }
}
