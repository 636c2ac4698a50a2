//! The directories of applications' files, and which of them can be trusted as files.

use crate::quota::Stranger;
use punctual_testpoint::layout::{COLLECTOR, SUFFIX};
use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of files read in one directory: more than there are processes with points.
pub const FILES_MAX: usize = 4_096;
/// `f_type` of file systems in userspace (FUSE_SUPER_MAGIC in fs/fuse/inode.c): the only ones that
/// users can mount themselves.
const FUSE: u64 = 0x6573_5546;

/// The directory of the kernel's points: of the module in crates/measure/module.
const KERNEL: &str = "/sys/kernel/debug/punctual";

/// The directories of this user's applications and, for root, of every user's and the kernel's.
pub(crate) fn default_directories() -> Vec<PathBuf> {
    let user = geteuid();
    if let Some(chosen) =
        std::env::var_os("PUNCTUAL_POINTS_DIR").filter(|chosen| !chosen.is_empty())
    {
        return vec![chosen.into()];
    }
    if !user.is_root() {
        let base = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|base| base.is_absolute());
        return vec![
            base.unwrap_or_else(|| format!("/run/user/{}", user.as_raw()).into())
                .join("punctual/points"),
        ];
    }
    let users = std::fs::read_dir("/run/user")
        .into_iter()
        .flatten()
        .flatten()
        .map(|user| user.path().join("punctual/points"));
    let own_directory = PathBuf::from("/run/punctual/points");
    [own_directory, KERNEL.into()].into_iter().chain(users).collect()
}

/// A directory of points, locked.
pub struct PointsDirectory {
    pub path: PathBuf,
    directory: File,
    owner: u32,
    _lock: Option<File>,
}

/// Why a directory is not read.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    #[error("another collector is recording there")]
    Busy,
    #[error("it belongs to user {0} and is accessible to others: applications do not use it")]
    NotPrivate(u32),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl PointsDirectory {
    /// Opens a directory, created if it is this user's and missing; `None` if it is another's and
    /// missing. With the lock, applications that start record.
    pub fn open(path: &Path, locked: bool) -> Result<Option<PointsDirectory>, NotRead> {
        let own_uid = geteuid().as_raw();
        // A user may put a link in place of the last two names.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let under_user = path.starts_with("/run/user");
        // Nobody but the module makes files there.
        let of_kernel = path == Path::new(KERNEL);
        if !of_kernel && (!under_user || path.starts_with(format!("/run/user/{own_uid}"))) {
            create_directory(path)?;
        }
        let opened = match path.strip_prefix("/run/user") {
            Ok(below) => {
                let base = fs::open("/run/user", flags, Mode::empty()).map(File::from);
                below.components().fold(base, |parent, name| {
                    Ok(fs::openat(parent?, name.as_os_str(), flags, Mode::empty())?.into())
                })
            }
            Err(_) => fs::open(path, flags, Mode::empty()).map(File::from),
        };
        let directory = match opened {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            other => other.map_err(io::Error::from)?,
        };
        let metadata = directory.metadata()?;
        let is_private = of_kernel || metadata.mode() & 0o077 == 0;
        if !is_private || (own_uid != 0 && metadata.uid() != own_uid) {
            return Err(NotRead::NotPrivate(metadata.uid()));
        }
        let lock = if locked && !of_kernel {
            Some(lock_directory(&directory, metadata.uid())?)
        } else {
            None
        };
        Ok(Some(PointsDirectory {
            path: path.to_owned(),
            directory,
            owner: metadata.uid(),
            _lock: lock,
        }))
    }

    /// The names of the files of points in it.
    pub fn file_names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.directory).map_err(io::Error::from)?.take(FILES_MAX) {
            let entry = entry.map_err(io::Error::from)?;
            if entry.file_name().to_bytes().ends_with(SUFFIX.as_bytes()) {
                names.push(entry.file_name().to_bytes().to_vec());
            }
        }
        Ok(names)
    }

    /// Opens one: a file of the directory's owner without another name, whose reading cannot block.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.directory, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        // Another user's file system may answer arbitrarily late (FUSE).
        let foreign = self.owner != geteuid().as_raw() && fs::fstatfs(&file)?.f_type as u64 == FUSE;
        if !metadata.is_file() || metadata.uid() != self.owner || metadata.nlink() != 1 || foreign {
            return Err(io::Error::other(
                "it is not a regular file with a single name, of its directory's owner, on a \
                 kernel file system",
            ));
        }
        Ok(file)
    }

    /// Its owner, if another user.
    pub(crate) fn foreign_owner(&self) -> Option<Stranger> {
        (self.owner != geteuid().as_raw()).then_some(Stranger(self.owner))
    }

    /// Removes a file under this name; whether it does not have it any more. A process that has
    /// executed another program may have another file there by now.
    pub fn remove(&self, name: &[u8], file: &File) -> bool {
        let entry_stat = fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        match (entry_stat, file.metadata()) {
            (Ok(there), Ok(own)) if there.st_ino == own.ino() => {
                fs::unlinkat(&self.directory, name, AtFlags::empty()).is_ok()
            }
            (there, own) => own.is_ok() && matches!(there, Ok(_) | Err(rustix::io::Errno::NOENT)),
        }
    }
}

/// Creates the directory and its parent.
fn create_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700);
    for path in path.parent().into_iter().chain([path]) {
        match builder.create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Takes the lock that makes applications record from their start.
fn lock_directory(directory: &File, owner: u32) -> Result<File, NotRead> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match fs::openat(
        directory,
        COLLECTOR,
        flags | OFlags::CREATE | OFlags::EXCL,
        Mode::from_raw_mode(0o600),
    ) {
        Ok(file) => {
            let file = File::from(file);
            // The owner's applications must be able to open it, also if root created it.
            std::os::unix::fs::fchown(&file, Some(owner), None)?;
            file
        }
        Err(rustix::io::Errno::EXIST) => File::from(
            fs::openat(directory, COLLECTOR, flags, Mode::empty()).map_err(io::Error::from)?,
        ),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    for _ in 0..20 {
        match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            // A starting application tests the lock by sharing it for a moment.
            Err(rustix::io::Errno::WOULDBLOCK) => {
                std::thread::sleep(std::time::Duration::from_millis(2))
            }
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Err(NotRead::Busy)
}

pub fn display_name(name: &[u8]) -> String {
    std::ffi::OsStr::from_bytes(name).to_string_lossy().into_owned()
}
