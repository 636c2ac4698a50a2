//! The only module that opens files in a results directory, for reading and for writing.
//!
//! A bundle may come from anywhere: an attachment, another machine, a directory that others may
//! write. Opening it, perhaps as root, follows no link inside (openat2(2) with `RESOLVE_NO_SYMLINKS
//! | RESOLVE_BENEATH`; before Linux 5.6, and under filters that refuse that call, component by
//! component with `O_NOFOLLOW`), and opens regular files only: a FIFO would block forever, and a
//! device may never end or act on being opened. The directory itself is named by the user and may
//! be a link.

use crate::BundleError;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, renameat, statat,
    unlinkat,
};
use rustix::fs::{CWD, mkdirat};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Display, Path, PathBuf};
use std::sync::Arc;

/// The maximum size of a file that is read in one piece; a larger one is damage or an attack.
const MAX_FILE: u64 = 1 << 30;
/// The mode of new files, before the umask.
const FILE_MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;
/// The mode of files that only their owner may read.
const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

/// A place in a results directory: only a path until it is opened.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// The directory as named by the user; links below it are not followed.
    root: Arc<Path>,
    path: PathBuf,
    /// Whether new files and directories here are for their owner only.
    private: bool,
}

/// Whether others may read nothing of what is recorded in this directory: it is closed to them, or
/// the part of it is that holds events. A file that is made of it must not show them more.
pub fn is_private(directory: &Path) -> bool {
    let closed = |path: &Path| {
        path.symlink_metadata().is_ok_and(|of| of.is_dir() && of.mode() & OTHERS == 0)
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    closed(directory) || HOLD_EVENTS.iter().any(|name| closed(&directory.join(name)))
}

/// The rights of the group and of others.
const OTHERS: u32 = 0o077;
/// The directories of a bundle that hold events of the kernel.
pub(crate) const RECORDING: &str = "recording";
pub(crate) const WINDOWS: &str = "windows";
const HOLD_EVENTS: [&str; 2] = [RECORDING, WINDOWS];

/// A directory handle: renames do not affect it.
#[derive(Debug)]
pub struct Pinned {
    directory: OwnedFd,
}

impl Pinned {
    /// A path to it, for functions that take paths; valid while this lives (proc_pid_fd(5)).
    pub fn proc_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }
}

impl Member {
    pub fn from_root(directory: &Path) -> Member {
        Member { root: directory.into(), path: directory.to_owned(), private: false }
    }

    pub fn join(&self, name: impl AsRef<Path>) -> Member {
        self.with_path(self.path.join(name))
    }

    /// As [`Path::with_extension`].
    pub fn with_extension(&self, extension: &str) -> Member {
        self.with_path(self.path.with_extension(extension))
    }

    /// The same place, where new files can be read by their owner only: a recording shows the
    /// activity of other users' programs.
    pub fn to_private(&self) -> Member {
        Member { private: true, ..self.clone() }
    }

    fn with_path(&self, path: PathBuf) -> Member {
        Member { root: Arc::clone(&self.root), path, private: self.private }
    }

    /// Its path, for messages only: files are opened through this type.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn display(&self) -> Display<'_> {
        self.path.display()
    }

    /// Opens a regular file for reading.
    pub fn open(&self) -> io::Result<File> {
        let (root, inside) = self.open_root()?;
        // Checked before opening: opening a device can have effects.
        check_regular(&open_below(&root, inside, OFlags::PATH)?)?;
        let file = open_below(&root, inside, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        check_regular(&file)?;
        Ok(File::from(file))
    }

    /// Opens a regular file for appending; creates it if missing.
    pub fn open_to_append(&self) -> io::Result<File> {
        self.open_or_create(OFlags::WRONLY | OFlags::APPEND)
    }

    /// Opens a regular file for locking; creates it if missing and keeps its content.
    pub fn open_to_lock(&self) -> io::Result<File> {
        self.open_or_create(OFlags::WRONLY)
    }

    fn open_or_create(&self, flags: OFlags) -> io::Result<File> {
        let (parent, name) = self.open_parent()?;
        match create_new(&parent, name, flags, self.file_mode()) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
        let (root, inside) = self.open_root()?;
        check_regular(&open_below(&root, inside, OFlags::PATH)?)?;
        let file = open_below(&root, inside, flags | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        check_regular(&file)?;
        Ok(File::from(file))
    }

    fn file_mode(&self) -> u32 {
        if self.private { PRIVATE_FILE_MODE } else { FILE_MODE }
    }

    /// Opens a directory as a handle, without following a link.
    pub fn open_directory(&self) -> io::Result<Pinned> {
        let (root, inside) = self.open_root()?;
        Ok(Pinned { directory: open_below(&root, inside, OFlags::RDONLY | OFlags::DIRECTORY)? })
    }

    pub fn read(&self) -> Result<Vec<u8>, BundleError> {
        self.read_at_most(MAX_FILE)
    }

    /// Reads the whole file; one of more than `most` bytes is damage.
    pub fn read_at_most(&self, most: u64) -> Result<Vec<u8>, BundleError> {
        let cannot = |why| BundleError::from_io("read", &self.path)(why);
        let file = self.open().map_err(cannot)?;
        let size = file.metadata().map_err(cannot)?.len();
        if size > most {
            return Err(BundleError::from_damage(&self.path, format!("{size} bytes are too many")));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        file.take(most).read_to_end(&mut bytes).map_err(cannot)?;
        Ok(bytes)
    }

    /// Reads the whole file as text.
    pub fn read_text(&self) -> Result<String, BundleError> {
        String::from_utf8(self.read()?)
            .map_err(|_| BundleError::from_damage(&self.path, "it is not UTF-8"))
    }

    /// Reads the whole file as a document.
    pub fn read_json<T: DeserializeOwned>(&self) -> Result<T, BundleError> {
        serde_json::from_str(&self.read_text()?)
            .map_err(|why| BundleError::from_damage(&self.path, why))
    }

    /// Whether anything has this name.
    pub fn exists(&self) -> bool {
        self.file_type().is_ok()
    }

    /// The same; an error if that cannot be determined.
    pub fn is_there(&self) -> Result<bool, BundleError> {
        match self.file_type() {
            Ok(_) => Ok(true),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(BundleError::from_io("look for", &self.path)(why)),
        }
    }

    /// Whether it is a directory and not a link to one.
    pub fn is_directory(&self) -> bool {
        self.file_type().is_ok_and(|kind| kind == FileType::Directory)
    }

    fn file_type(&self) -> io::Result<FileType> {
        let (root, inside) = self.open_root()?;
        Ok(FileType::from_raw_mode(fstat(open_below(&root, inside, OFlags::PATH)?)?.st_mode))
    }

    /// The entries of a directory with this ending, sorted; none if it does not exist.
    pub fn list_entries(&self, ending: &str) -> Result<Vec<Member>, BundleError> {
        let listed = || -> io::Result<Vec<Member>> {
            let (root, inside) = self.open_root()?;
            let directory = open_below(&root, inside, OFlags::RDONLY | OFlags::DIRECTORY)?;
            let mut entries = Vec::new();
            for entry in Dir::new(directory)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." && name.ends_with(ending.as_bytes()) {
                    entries.push(self.join(OsStr::from_bytes(name)));
                }
            }
            Ok(entries)
        };
        match listed() {
            Ok(mut entries) => {
                entries.sort();
                Ok(entries)
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(why) => Err(BundleError::from_io("read", &self.path)(why)),
        }
    }

    /// The same; an unreadable directory is damage.
    pub(crate) fn readable_entries(&self, ending: &str, damage: &mut Vec<String>) -> Vec<Member> {
        self.list_entries(ending).unwrap_or_else(|why| {
            damage.push(why.to_string());
            Vec::new()
        })
    }

    /// Creates a file, which must not exist.
    pub fn create_new(&self) -> Result<File, BundleError> {
        self.open_parent()
            .and_then(|(parent, name)| create_new(&parent, name, OFlags::WRONLY, self.file_mode()))
            .map_err(BundleError::from_io("create", &self.path))
    }

    /// Creates a directory; an existing one stays.
    pub fn create_directory(&self) -> Result<(), BundleError> {
        let mode = if self.private { PRIVATE_DIRECTORY_MODE } else { DIRECTORY_MODE };
        let created = self.open_parent().and_then(|(parent, name)| {
            match mkdirat(&parent, name, mode.into()) {
                Err(Errno::EXIST) if self.is_directory() => Ok(()),
                made => Ok(made?),
            }
        });
        created.map_err(BundleError::from_io("create", &self.path))
    }

    pub fn remove(&self) -> Result<(), BundleError> {
        let removed = self
            .open_parent()
            .and_then(|(parent, name)| Ok(unlinkat(parent, name, AtFlags::empty())?));
        removed.map_err(BundleError::from_io("remove", &self.path))
    }

    /// Renames the file to `other` and replaces that.
    pub fn rename(&self, other: &Member) -> Result<(), BundleError> {
        let renamed = self.open_parent().and_then(|(parent, name)| {
            let (other_parent, other_name) = other.open_parent()?;
            Ok(renameat(&parent, name, &other_parent, other_name)?)
        });
        renamed.map_err(BundleError::from_io("rename", &self.path))
    }

    /// Replaces a file atomically: a reader, or a later run, sees the old text or the new one.
    /// Anything but a regular file stays and is an error.
    pub fn replace_with(
        &self,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), BundleError> {
        let new_path = self.path.with_extension("new");
        let replaced = self.open_parent().and_then(|(parent, name)| {
            let new_name = new_path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) => only_regular(FileType::from_raw_mode(there.st_mode))?,
                Err(Errno::NOENT) => {}
                Err(why) => return Err(why.into()),
            }
            // A leftover of a killed writer, or a link that another user placed for us to write
            // through.
            let _ = unlinkat(&parent, new_name, AtFlags::empty());
            let new_file = create_new(&parent, new_name, OFlags::WRONLY, self.file_mode());
            let written = new_file.and_then(|file| {
                let mut out = BufWriter::new(file);
                fill(&mut out)?;
                out.flush()?;
                Ok(renameat(&parent, new_name, &parent, name)?)
            });
            // A partial file on a full disk only takes more of its space.
            if written.is_err() {
                let _ = unlinkat(&parent, new_name, AtFlags::empty());
            }
            written
        });
        replaced.map_err(BundleError::from_io("write", &self.path))
    }

    pub fn replace_bytes(&self, bytes: &[u8]) -> Result<(), BundleError> {
        self.replace_with(|out| out.write_all(bytes))
    }

    pub fn replace_json(&self, value: &impl Serialize) -> Result<(), BundleError> {
        self.replace_bytes(&self.encode_json(value)?)
    }

    /// The same for a document that everything else depends on: after a power failure the old or
    /// the new one exists, complete.
    pub fn replace_json_durably(&self, value: &impl Serialize) -> Result<(), BundleError> {
        let text = self.encode_json(value)?;
        self.replace_with(|out| {
            out.write_all(&text)?;
            out.flush()?;
            out.get_ref().sync_data()
        })
    }

    fn encode_json(&self, value: &impl Serialize) -> Result<Vec<u8>, BundleError> {
        let text = serde_json::to_vec_pretty(value);
        let mut text = text.map_err(|why| BundleError::from_damage(&self.path, why))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Writes it, including everything below a directory, through to the disk.
    pub(crate) fn sync_to_disk(&self) -> Result<(), BundleError> {
        let cannot = |why: io::Error| BundleError::from_io("write", &self.path)(why);
        match self.file_type().map_err(cannot)? {
            FileType::Directory => {
                self.list_entries("")?.iter().try_for_each(Member::sync_to_disk)?;
                let (root, inside) = self.open_root().map_err(cannot)?;
                let opened = open_below(&root, inside, OFlags::RDONLY | OFlags::DIRECTORY)
                    .map_err(cannot)?;
                File::from(opened).sync_all().map_err(cannot)
            }
            FileType::RegularFile => self.open().and_then(|file| file.sync_all()).map_err(cannot),
            _ => Ok(()),
        }
    }

    /// The directory as the user named it, and the path from there.
    fn open_root(&self) -> io::Result<(OwnedFd, &Path)> {
        let outside =
            || io::Error::new(io::ErrorKind::InvalidInput, "its name leads out of the bundle");
        let inside = self.path.strip_prefix(&self.root).map_err(|_| outside())?;
        if inside.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(outside());
        }
        // The empty path is the current directory, as in `std::path`.
        let root = if self.root.as_os_str().is_empty() { Path::new(".") } else { &*self.root };
        Ok((
            openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?,
            inside,
        ))
    }

    /// Its directory, opened, and its own name.
    fn open_parent(&self) -> io::Result<(OwnedFd, &OsStr)> {
        let (root, inside) = self.open_root()?;
        let name = inside.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = inside.parent().unwrap_or(Path::new(""));
        Ok((open_below(&root, parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }
}

fn create_new(parent: &OwnedFd, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(parent, name, flags, Mode::from_raw_mode(mode))?))
}

fn check_regular(file: &OwnedFd) -> io::Result<()> {
    only_regular(FileType::from_raw_mode(fstat(file)?.st_mode))
}

fn only_regular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => return Err(link_error()),
        FileType::Fifo => "a FIFO",
        FileType::Directory => "a directory",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        FileType::Unknown => "of an unknown type",
    };
    Err(io::Error::other(format!("it is {what}, and should be a regular file")))
}

fn link_error() -> io::Error {
    io::Error::other("a symbolic link is on its way, and links in a bundle are not followed")
}

/// Opens `inside` below a directory without following links.
fn open_below(root: &OwnedFd, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        // EAGAIN: a concurrent rename left the kernel unsure. ENOTDIR: the steps show whether a
        // link is the reason.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::NOTDIR) => {
            walk_by_steps(root, path, flags)
        }
        Err(Errno::LOOP) => Err(link_error()),
        opened => Ok(opened?),
    }
}

/// The same without openat2(2).
fn walk_by_steps(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let at = directory.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        let opened =
            match openat(at, part.as_os_str(), if last { flags } else { step }, Mode::empty()) {
                Ok(opened) => opened,
                // The kernel checks O_DIRECTORY before O_NOFOLLOW.
                Err(Errno::LOOP) => return Err(link_error()),
                Err(Errno::NOTDIR) if is_link(at, part.as_os_str()) => return Err(link_error()),
                Err(why) => return Err(why.into()),
            };
        if last {
            return Ok(opened);
        }
        directory = Some(opened);
    }
    Err(io::ErrorKind::InvalidInput.into())
}

fn is_link(at: impl AsFd, name: &OsStr) -> bool {
    let kind = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        .map(|there| FileType::from_raw_mode(there.st_mode));
    kind == Ok(FileType::Symlink)
}

#[cfg(test)]
mod tests;
