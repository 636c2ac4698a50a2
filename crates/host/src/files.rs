//! Access to the kernel's file systems: a live system, a captured tree, or a scripted one in tests.

use punctual_core::CpuSet;
use punctual_sys::{attributes, pace};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A failed file operation: the action, the path, and the error.
#[derive(Debug)]
pub struct FileError {
    /// `read`, `write`, `list`, …
    pub action: &'static str,
    /// The path on that system (without the root's prefix).
    pub path: String,
    pub source: io::Error,
}

impl FileError {
    /// Whether the file or directory does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO))
            || self.source.kind() == io::ErrorKind::NotFound
    }
    /// Whether a permission is missing.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }
    /// The error number of the kernel, if any.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.action, self.path, self.source)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// File operations of the system. Paths are absolute, as on the system itself.
pub trait Files {
    /// The whole text of a file. Bytes that are not UTF-8 are replaced: the kernel's files can hold
    /// any task's name.
    fn read(&self, path: &str) -> Result<String, FileError>;
    /// Writes a text in one write(2), as the kernel's files require. Never creates a file.
    fn write(&self, path: &str, text: &str) -> Result<(), FileError>;
    /// The names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, FileError>;
    /// Whether the path exists.
    fn exists(&self, path: &str) -> bool;
    /// The target of a symbolic link, as written in it.
    fn read_link(&self, path: &str) -> Result<String, FileError>;
    /// Makes a directory (a cgroup).
    fn create_dir(&self, path: &str) -> Result<(), FileError>;
    /// Removes an empty directory (a cgroup).
    fn remove_dir(&self, path: &str) -> Result<(), FileError>;

    /// Sets the CPUs that a task may run on, the only setting that /proc shows but that only a
    /// system call changes. A tree that is not the running system refuses.
    fn set_affinity(&self, tid: i32, _cpus: &CpuSet) -> Result<(), FileError> {
        let source = io::ErrorKind::Unsupported.into();
        Err(FileError { action: "set the affinity of", path: format!("task {tid}"), source })
    }

    /// The bytes of a file, for the few kernel files that are not text (/proc/config.gz).
    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.read(path).map(String::into_bytes)
    }
    /// Exactly `length` bytes from `offset` on, for files that map registers (/dev/cpu/0/msr).
    fn read_at(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        let bytes = self.read_bytes(path)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let window =
            start.checked_add(length).and_then(|end| bytes.get(start..end)).map(<[u8]>::to_vec);
        let cut = || {
            io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file ends before the expected content",
            )
        };
        window.ok_or_else(|| FileError { action: "read", path: path.to_owned(), source: cut() })
    }

    /// The text of a file without surrounding white space.
    fn read_trimmed(&self, path: &str) -> Result<String, FileError> {
        self.read(path).map(|text| text.trim().to_owned())
    }
}

/// The real file system, from `/` or from another root directory.
#[derive(Clone, Debug)]
pub struct Root {
    base: PathBuf,
}

impl Root {
    pub fn from_system() -> Root {
        Root { base: PathBuf::from("/") }
    }
    /// A captured tree: `/proc/version` is read from `<base>/proc/version`.
    pub fn from_base(base: impl Into<PathBuf>) -> Root {
        Root { base: base.into() }
    }
    /// The path on the real file system.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        self.base.join(Path::new(path.trim_start_matches('/')))
    }
    fn run_operation<T>(
        &self,
        action: &'static str,
        path: &str,
        operation: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, FileError> {
        pace::between_samples();
        operation(&self.resolve_path(path)).map_err(|source| FileError {
            action,
            path: path.to_owned(),
            source,
        })
    }
}

impl Files for Root {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.run_operation("read", path, |p| {
            fs::read(p).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        })
    }
    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        self.run_operation("read", path, |p| fs::read(p))
    }
    fn read_at(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        self.run_operation("read", path, |p| {
            let mut bytes = vec![0; length];
            fs::File::open(p)?.read_exact_at(&mut bytes, offset)?;
            Ok(bytes)
        })
    }
    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        self.run_operation("write", path, |p| {
            let mut file = fs::OpenOptions::new().write(true).open(p)?;
            // A single write: the kernel parses each write(2) to a sysfs or cgroup file separately.
            match file.write(text.as_bytes())? {
                n if n == text.len() => Ok(()),
                n => Err(io::Error::new(
                    io::ErrorKind::WriteZero,
                    format!("took {n} of {} bytes", text.len()),
                )),
            }
        })
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.run_operation("list", path, |p| {
            let names =
                fs::read_dir(p)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<String>>>()?;
            names.sort();
            Ok(names)
        })
    }
    fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.resolve_path(path)).is_ok()
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        self.run_operation("read the link", path, |p| {
            fs::read_link(p).map(|target| target.to_string_lossy().into_owned())
        })
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        self.run_operation("create the directory", path, |p| fs::create_dir(p))
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        self.run_operation("remove the directory", path, |p| fs::remove_dir(p))
    }
    fn set_affinity(&self, tid: i32, cpus: &CpuSet) -> Result<(), FileError> {
        let system = self.base == Path::new("/");
        let outcome = if system {
            attributes::set_affinity(tid, cpus)
        } else {
            Err(io::ErrorKind::Unsupported.into())
        };
        outcome.map_err(|source| FileError {
            action: "set the affinity of",
            path: format!("task {tid}"),
            source,
        })
    }
}
