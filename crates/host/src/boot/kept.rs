//! Files that outlive a boot, with their earlier contents on disk before each change, so that they
//! can be reverted. The journals of `punctual isolate` end with a boot, and so do the changes in
//! them; these do not. The note of them is in a directory that outlives boots, too, beside the boot
//! loader's files.

use super::{BootError, grub, systemd_boot};
use punctual_core::encode_hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The list of changes.
const NOTE: &str = "reboots-files.json";
/// The longest file that is read: any of a boot loader's is much shorter.
const MAX: u64 = 16 << 20;

/// How a file is reverted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revert {
    /// The file is punctual's alone, and is removed.
    Own,
    /// Like `Own`, and the name has a count that the boot loader changes.
    Counted,
    /// Our entry is removed; later changes of others stay.
    GrubCustom,
    /// The setting for the next boot is restored; GRUB's other changes stay.
    GrubEnvironment,
    /// All of its earlier contents are restored.
    Whole,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Note {
    /// Directories that were created, the outer ones first.
    directories: Vec<PathBuf>,
    files: Vec<KeptFileEntry>,
}

impl Note {
    /// A path in the note that is not one of these files or above one: its writer could have root
    /// change other files.
    fn find_foreign_path(&self, files: &[(String, Revert)]) -> Option<&Path> {
        let is_file = |entry: &&KeptFileEntry| {
            files.iter().any(|(path, how)| Path::new(path) == entry.path && *how == entry.how)
        };
        let is_above = |path: &&PathBuf| {
            files.iter().any(|(of, _)| Path::new(of).ancestors().skip(1).any(|of| of == *path))
        };
        let mut foreign_entries = self.files.iter().filter(|entry| !is_file(entry));
        let mut outside = self.directories.iter().filter(|path| !is_above(path));
        foreign_entries
            .next()
            .map(|entry| entry.path.as_path())
            .or_else(|| outside.next().map(PathBuf::as_path))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct KeptFileEntry {
    path: PathBuf,
    how: Revert,
    /// The earlier contents; `None` if the file did not exist.
    before: Option<String>,
    /// The digests of the text written last, and of the one being written.
    wrote: Vec<String>,
}

/// Files below a root, and the note of them. Paths are relative to the root.
pub struct KeptFiles {
    root: PathBuf,
    place: PathBuf,
    /// Called before each change of a disk; tests kill there.
    step: Box<dyn Fn()>,
}

impl KeptFiles {
    /// Files below this root, with the note in this directory.
    pub fn new(root: &Path, place: &Path) -> KeptFiles {
        KeptFiles { root: root.to_owned(), place: place.to_owned(), step: Box::new(|| {}) }
    }

    /// The same files; this is called before each change of a disk.
    pub(super) fn with_step(self, step: Box<dyn Fn()>) -> KeptFiles {
        KeptFiles { step, ..self }
    }

    fn read_note(&self) -> Result<Note, BootError> {
        self.read_document(NOTE)
    }

    /// A document in the directory of the note; the default if it was never written.
    pub(super) fn read_document<T: for<'d> Deserialize<'d> + Default>(
        &self,
        name: &str,
    ) -> Result<T, BootError> {
        let path = self.place.join(name);
        let Some(bytes) = read(&path)? else { return Ok(T::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|why| BootError::Failed(format!("cannot read {}: {why}", display_path(&path))))
    }

    /// Replaces a document there, durably.
    pub(super) fn write_document(
        &self,
        name: &str,
        document: &impl Serialize,
    ) -> Result<(), BootError> {
        let path = self.place.join(name);
        let write = || -> io::Result<()> {
            let new_path = temporary_path(&path);
            let mut file = fs::File::create(&new_path)?;
            serde_json::to_writer(&mut file, document)?;
            file.sync_all()?;
            fs::rename(&new_path, &path)?;
            sync_directory(Some(&self.place))
        };
        (self.step)();
        write().map_err(|why| {
            BootError::Failed(format!("cannot write {}: {why}", display_path(&path)))
        })
    }

    /// Makes the directory of the note, and syncs its parent.
    pub(super) fn make_place(&self) -> Result<(), BootError> {
        if self.place.is_dir() {
            return Ok(());
        }
        (self.step)();
        let creation =
            fs::create_dir_all(&self.place).and_then(|()| sync_directory(self.place.parent()));
        creation.map_err(|why| {
            BootError::Failed(format!("cannot create {}: {why}", display_path(&self.place)))
        })
    }

    /// Removes a document of that directory, and the directory itself if nothing else is in it.
    pub(super) fn leave_place(&self, name: &str) -> Result<(), BootError> {
        let path = self.place.join(name);
        for path in [&temporary_path(&path), &temporary_path(&self.place.join(NOTE)), &path] {
            remove(path, &self.step).map_err(|why| {
                BootError::Failed(format!("cannot remove {}: {why}", display_path(path)))
            })?;
        }
        if self.place.is_dir() {
            (self.step)();
            let _ = fs::remove_dir(&self.place);
            let _ = sync_directory(self.place.parent());
        }
        Ok(())
    }

    /// The current text of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The path is not a file, or the file is not text.
    pub fn read_text(&self, path: &str) -> Result<Option<String>, BootError> {
        let target = self.root.join(path);
        read(&target)?.map(|bytes| parse_text(bytes, &target)).transpose()
    }

    /// The text of a file before its first change, or the current one.
    pub(super) fn text_before_change(&self, path: &str) -> Result<Option<String>, BootError> {
        let note = self.read_note()?;
        match note.files.into_iter().find(|entry| entry.path == Path::new(path)) {
            Some(entry) => Ok(entry.before),
            None => self.read_text(path),
        }
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written, or exists already although it should be ours.
    pub fn write(&self, path: &str, bytes: &[u8], how: Revert) -> Result<(), BootError> {
        let target = self.root.join(path);
        let mut note = self.read_note()?;
        let digest = digest_of(bytes);
        let known_entry = note.files.iter().position(|entry| entry.path == Path::new(path));
        let place = match known_entry {
            Some(place) => place,
            None => {
                let is_ours = matches!(how, Revert::Own | Revert::Counted);
                if is_ours && target.symlink_metadata().is_ok() {
                    return Err(BootError::Refused(format!(
                        "{} is there already: another change of the boot is in progress, or was \
                         not reverted (`punctual boot restore`)",
                        display_path(&target)
                    )));
                }
                let before = match is_ours {
                    true => None,
                    false => read(&target)?.map(|bytes| parse_text(bytes, &target)).transpose()?,
                };
                let parents = Path::new(path).ancestors().skip(1);
                let missing = parents.filter(|path| !self.root.join(path).exists());
                let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
                missing.reverse();
                note.directories.extend(missing);
                note.files.push(KeptFileEntry {
                    path: path.into(),
                    how,
                    before,
                    wrote: Vec::new(),
                });
                note.files.len() - 1
            }
        };
        let wrote = &mut note.files[place].wrote;
        if wrote.last() != Some(&digest) {
            wrote.push(digest);
            let old = wrote.len().saturating_sub(2);
            wrote.drain(..old);
            self.write_document(NOTE, &note)?;
        }
        let written = match read(&target)?.as_deref() == Some(bytes) {
            true => Ok(()),
            false => self.replace_file(&target, bytes, how),
        };
        written.map_err(|why| {
            BootError::Failed(format!("cannot write {}: {why}", display_path(&target)))
        })
    }

    /// Writes beside it, then renames: at any instant the old or the new file exists.
    fn replace_file(&self, target: &Path, bytes: &[u8], how: Revert) -> io::Result<()> {
        let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if !parent.exists() {
            (self.step)();
            fs::create_dir_all(parent)?;
        }
        if how == Revert::Counted {
            self.remove_counted(target)?;
        }
        let new_path = temporary_path(target);
        remove(&new_path, &self.step)?;
        (self.step)();
        let mut file = fs::File::create_new(&new_path)?;
        if let Ok(there) = fs::metadata(target) {
            // Not every file system of a boot loader has owners and modes.
            let _ = fchown(&file, Some(there.uid()), Some(there.gid()));
            let mode = there.permissions().mode() & 0o7777;
            let _ = file.set_permissions(fs::Permissions::from_mode(mode));
        }
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        (self.step)();
        file.write_all(rest)?;
        file.sync_all()?;
        (self.step)();
        fs::rename(&new_path, target)?;
        sync_directory(Some(parent))
    }

    /// Removes the entry of systemd-boot, whatever its count is now.
    fn remove_counted(&self, target: &Path) -> io::Result<()> {
        let Some(parent) = target.parent() else { return Ok(()) };
        let Ok(names) = fs::read_dir(parent) else { return Ok(()) };
        for entry in names {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(systemd_boot::STEM) && name.ends_with(".conf") {
                remove(&path, &self.step)?;
            }
        }
        Ok(())
    }

    /// Removes the entry of systemd-boot, which the note keeps.
    ///
    /// # Errors
    /// The entry cannot be removed.
    pub(super) fn remove_entry(&self, path: &str) -> Result<(), BootError> {
        let target = self.root.join(path);
        self.remove_counted(&target).map_err(|why| {
            BootError::Failed(format!("cannot remove {}: {why}", display_path(&target)))
        })
    }

    /// Whether a file was written.
    ///
    /// # Errors
    /// The note cannot be read.
    pub(super) fn has_written(&self, path: &str) -> Result<bool, BootError> {
        Ok(self.read_note()?.files.iter().any(|entry| entry.path == Path::new(path)))
    }

    /// Reverts everything. Returns each failure with its reason. `files`: the paths that may be in
    /// the note.
    ///
    /// # Errors
    /// The note cannot be read, or names another file: nothing is changed then.
    pub(crate) fn undo_all(&self, files: &[(String, Revert)]) -> Result<Vec<String>, BootError> {
        let note = self.read_note()?;
        let note_path = self.place.join(NOTE);
        if let Some(other) = note.find_foreign_path(files) {
            return Err(BootError::Refused(format!(
                "{} names {}, which punctual does not write",
                display_path(&note_path),
                display_path(other)
            )));
        }
        let mut not_done = Vec::new();
        for entry in note.files.iter().rev() {
            let target = self.root.join(&entry.path);
            if let Err(why) = self.undo_one(entry, &target) {
                not_done.push(format!("{}: {why}", display_path(&target)));
            }
        }
        for directory in note.directories.iter().rev() {
            (self.step)();
            // A directory that others use now stays.
            let _ = fs::remove_dir(self.root.join(directory));
        }
        if not_done.is_empty() {
            remove(&note_path, &self.step).map_err(|why| {
                BootError::Failed(format!("cannot remove {}: {why}", display_path(&note_path)))
            })?;
        }
        Ok(not_done)
    }

    fn undo_one(&self, entry: &KeptFileEntry, target: &Path) -> Result<(), String> {
        let plain = |why: io::Error| why.to_string();
        remove(&temporary_path(target), &self.step).map_err(plain)?;
        if entry.how == Revert::Counted {
            return self.remove_counted(target).map_err(plain);
        }
        if target.is_symlink() {
            return Err("it was changed since: it stays".to_owned());
        }
        let Some(bytes) = read(target).map_err(|why| why.to_string())? else { return Ok(()) };
        let is_ours = entry.wrote.contains(&digest_of(&bytes));
        let now = || parse_text(bytes.clone(), target).map_err(|why| why.to_string());
        let restored = match entry.how {
            Revert::GrubEnvironment => {
                let before = entry.before.as_deref().map(grub::next_entry);
                let before = before.transpose()?.flatten();
                Some(grub::with_next_entry(&now()?, before.as_deref())?)
            }
            Revert::GrubCustom => {
                let rest = grub::without_entry(&now()?);
                (entry.before.is_some() || !rest.is_empty()).then_some(rest)
            }
            Revert::Whole if entry.before.as_deref().map(str::as_bytes) == Some(&bytes) => {
                return Ok(());
            }
            Revert::Whole if is_ours => entry.before.clone(),
            Revert::Own | Revert::Counted if is_ours => None,
            Revert::Own | Revert::Counted | Revert::Whole => {
                return Err("it was changed since: it stays".to_owned());
            }
        };
        match restored {
            Some(text) if text.as_bytes() == bytes => Ok(()),
            Some(text) => self.replace_file(target, text.as_bytes(), entry.how).map_err(plain),
            None => remove(target, &self.step).map_err(plain),
        }
    }
}

fn digest_of(bytes: &[u8]) -> String {
    encode_hex(&Sha256::digest(bytes))
}

fn display_path(path: &Path) -> String {
    punctual_core::format::escape_unsafe(&path.display().to_string())
}

/// The temporary name of a file being written. Neither GRUB nor systemd read such a name.
fn temporary_path(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.punctual-new"))
}

fn remove(path: &Path, step: &dyn Fn()) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    step();
    fs::remove_file(path)?;
    sync_directory(path.parent())
}

fn sync_directory(directory: Option<&Path>) -> io::Result<()> {
    directory.map_or(Ok(()), |path| fs::File::open(path)?.sync_all())
}

/// The bytes of a file that is not a link.
fn read(path: &Path) -> Result<Option<Vec<u8>>, BootError> {
    let cannot = |why: &dyn std::fmt::Display| {
        BootError::Refused(format!("cannot change {}: {why}", display_path(path)))
    };
    match path.symlink_metadata() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(cannot(&why)),
        Ok(meta) if !meta.is_file() => Err(cannot(&"it is not a regular file")),
        Ok(_) => {
            let mut bytes = Vec::new();
            let file = fs::File::open(path).map_err(|why| cannot(&why))?;
            file.take(MAX + 1).read_to_end(&mut bytes).map_err(|why| cannot(&why))?;
            match bytes.len() as u64 > MAX {
                true => Err(cannot(&"it is too long")),
                false => Ok(Some(bytes)),
            }
        }
    }
}

fn parse_text(bytes: Vec<u8>, path: &Path) -> Result<String, BootError> {
    String::from_utf8(bytes).map_err(|_| {
        BootError::Refused(format!("cannot change {}: it is not text", display_path(path)))
    })
}
