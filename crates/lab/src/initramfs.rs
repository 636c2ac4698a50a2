//! The guest's first file system: a tree of files, written as a cpio archive in the kernel's format
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Not compressed: QEMU loads it at memory speed, while decompressing costs emulated instructions.

use crate::LabError;
use cpio::newc::{Builder, ModeFileType, trailer};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The source of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSource {
    /// A file of this machine (symbolic links are followed).
    Host(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

#[derive(Debug)]
enum TreeEntry {
    Directory,
    Link(String),
    File { source: FileSource, mode: u32 },
}

/// The tree, by path without the leading slash; a directory sorts before its contents.
#[derive(Debug, Default)]
pub struct InitramfsTree {
    entries: BTreeMap<String, TreeEntry>,
}

/// Directories that are links into /usr, as on every merged-usr system; files for them go there.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// The mount points of the kernel's own file systems.
const HIDDEN: [&str; 3] = ["proc", "sys", "dev"];

/// The normalised path of a file in the tree: absolute, without `..`, merged directories resolved.
fn tree_path(path: &str) -> Result<String, LabError> {
    let wrong = |why| LabError::Request(format!("the path `{path}` in the guest {why}"));
    if !path.starts_with('/') {
        return Err(wrong("is not absolute"));
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.contains(&"..") || path.contains('\0') {
        return Err(wrong("is not a file name"));
    }
    if HIDDEN.contains(&parts[0]) {
        return Err(wrong("would be hidden by a file system that the kernel mounts there"));
    }
    let merged = if MERGED.contains(&parts[0]) && parts.len() > 1 { "usr/" } else { "" };
    Ok(format!("{merged}{}", parts.join("/")))
}

impl InitramfsTree {
    /// The tree with the links of a merged-usr system.
    pub fn new() -> InitramfsTree {
        let link = |name: &str| (name.to_owned(), TreeEntry::Link(format!("usr/{name}")));
        let mut tree = InitramfsTree { entries: MERGED.iter().map(|name| link(name)).collect() };
        MERGED.iter().for_each(|name| tree.add_parents(&format!("usr/{name}/")));
        tree
    }

    /// Moves these files, by their paths in the guest, to a separate tree.
    ///
    /// # Errors
    /// A path is invalid in the tree.
    pub fn split_off(&mut self, paths: &[String]) -> Result<InitramfsTree, LabError> {
        let mut split_tree = InitramfsTree::default();
        for path in paths {
            let path = tree_path(path)?;
            if let Some(entry) = self.entries.remove(&path) {
                split_tree.add_parents(&path);
                split_tree.entries.insert(path, entry);
            }
        }
        Ok(split_tree)
    }

    /// Adds an empty directory. For the lab's own paths, which are known to be valid.
    pub(crate) fn add_directory(&mut self, path: &str) {
        self.add_parents(&format!("{}/", path.trim_matches('/')));
    }

    /// Adds a symbolic link under `prefix` unless the path exists.
    pub(crate) fn link_if_absent(
        &mut self,
        prefix: &str,
        path: &str,
        target: &str,
    ) -> Result<(), LabError> {
        let path = format!("{prefix}{}", tree_path(path)?);
        self.add_parents(&path);
        self.entries.entry(path).or_insert_with(|| TreeEntry::Link(target.to_owned()));
        Ok(())
    }

    /// Adds a file under `prefix` (empty, or a directory without leading slash and with an ending
    /// one), replacing an existing one.
    pub(crate) fn add_file(
        &mut self,
        prefix: &str,
        path: &str,
        source: FileSource,
        mode: u32,
    ) -> Result<(), LabError> {
        let path = format!("{prefix}{}", tree_path(path)?);
        let through = |entry: Option<&TreeEntry>| {
            matches!(entry, Some(TreeEntry::File { .. } | TreeEntry::Link(_)))
        };
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        if above.any(|dir| through(self.entries.get(dir)))
            || matches!(self.entries.get(&path), Some(TreeEntry::Directory | TreeEntry::Link(_)))
        {
            return Err(LabError::Request(format!(
                "/{path} would be both a file and a directory in the guest"
            )));
        }
        self.add_parents(&path);
        self.entries.insert(path, TreeEntry::File { source, mode: mode & 0o7777 });
        Ok(())
    }

    /// Makes the directories above a path.
    fn add_parents(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            self.entries.entry(path[..end].to_owned()).or_insert(TreeEntry::Directory);
        }
    }

    /// Writes the archive to a file and returns its size in bytes. Times and owners are all zero,
    /// so that the same tree gives the same bytes: in virtual time a different initramfs is a
    /// different timeline.
    pub fn write(&self, path: &Path) -> Result<u64, LabError> {
        let file = fs::File::create(path).map_err(LabError::io("create", path))?;
        let mut out = io::BufWriter::new(file);
        for (name, entry) in &self.entries {
            let kind = |kind, mode| Builder::new(name).mode(mode).set_mode_file_type(kind);
            let write =
                |builder: Builder, data: &mut dyn io::Read, size: u64, out| -> io::Result<_> {
                    let size = u32::try_from(size)
                        .map_err(|_| io::Error::other("a file of 4 GiB or more"))?;
                    let mut writer = builder.write(out, size);
                    // Never more than announced, should the file grow meanwhile; less is detected
                    // below.
                    let copied = io::copy(&mut io::Read::take(data, u64::from(size)), &mut writer)?;
                    if copied < u64::from(size) {
                        return Err(io::Error::other("the file shrank while it was read"));
                    }
                    writer.finish()
                };
            let in_archive = LabError::io("write the initramfs", path);
            out = match entry {
                TreeEntry::Directory => {
                    write(kind(ModeFileType::Directory, 0o755), &mut io::empty(), 0, out)
                        .map_err(in_archive)?
                }
                TreeEntry::Link(target) => write(
                    kind(ModeFileType::Symlink, 0o777),
                    &mut target.as_bytes(),
                    target.len() as u64,
                    out,
                )
                .map_err(in_archive)?,
                TreeEntry::File { source: FileSource::Bytes(bytes), mode } => write(
                    kind(ModeFileType::Regular, *mode),
                    &mut bytes.as_slice(),
                    bytes.len() as u64,
                    out,
                )
                .map_err(in_archive)?,
                TreeEntry::File { source: FileSource::Host(host), mode } => {
                    let mut file = fs::File::open(host).map_err(LabError::io("open", host))?;
                    let size = file.metadata().map_err(LabError::io("read", host))?.len();
                    write(kind(ModeFileType::Regular, *mode), &mut file, size, out)
                        .map_err(LabError::io("copy into the initramfs", host))?
                }
            };
        }
        let written = trailer(out).and_then(|mut out| out.flush().map(|()| out));
        let size = written
            .and_then(|out| out.get_ref().metadata())
            .map_err(LabError::io("write the initramfs", path))?;
        Ok(size.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(tree: &InitramfsTree) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("archive");
        let size = tree.write(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, size);
        let mut rest = bytes.as_slice();
        let mut names = Vec::new();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return names;
            }
            names.push(format!("{:o} {}", reader.entry().mode(), reader.entry().name()));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn an_initramfs_lists_directories_before_files_with_usr_merged() {
        let mut tree = InitramfsTree::new();
        tree.add_file("", "/lib/x/libc.so", FileSource::Bytes(b"abc".to_vec()), 0o100644).unwrap();
        tree.add_file("", "/usr//bin/./tool", FileSource::Host("/proc/self/exe".into()), 0o755)
            .unwrap();
        tree.add_file("over/", "/bin/tool", FileSource::Bytes(vec![]), 0o755).unwrap();
        tree.link_if_absent("", "/bin/tool", "busybox").unwrap();
        tree.link_if_absent("", "/bin/sh", "busybox").unwrap();
        insta::assert_snapshot!(listing(&tree).join("\n"), @r"
        120777 bin
        120777 lib
        120777 lib64
        40755 over
        40755 over/usr
        40755 over/usr/bin
        100755 over/usr/bin/tool
        120777 sbin
        40755 usr
        40755 usr/bin
        120777 usr/bin/sh
        100755 usr/bin/tool
        40755 usr/lib
        40755 usr/lib/x
        100644 usr/lib/x/libc.so
        40755 usr/lib64
        40755 usr/sbin
        ");
    }

    #[test]
    fn paths_that_cannot_be_are_refused() {
        let mut tree = InitramfsTree::new();
        let mut add = |path: &str| tree.add_file("", path, FileSource::Bytes(vec![]), 0o644);
        add("/etc/passwd").unwrap();
        for wrong in
            ["", "/", "relative", "/../etc", "/etc/passwd/x", "/etc", "/a\0b", "/bin", "/dev/x"]
        {
            assert!(matches!(add(wrong), Err(LabError::Request(_))), "{wrong}");
        }
    }

    #[test]
    fn a_missing_file_of_an_initramfs_is_named() {
        let mut tree = InitramfsTree::new();
        tree.add_file("", "/a", FileSource::Host("/no/such".into()), 0o644).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let error = tree.write(&dir.path().join("x")).unwrap_err().to_string();
        assert!(error.starts_with("cannot open /no/such: No such file"), "{error}");
    }
}
