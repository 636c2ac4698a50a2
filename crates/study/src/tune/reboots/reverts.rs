//! Files of the system that outlive a boot, with their earlier contents stored on disk in the
//! tuning's directory before each change, so that they can be reverted. The journals of `punctual
//! isolate` end with a boot, and so do the changes in them; these do not.

use super::{grub, systemd_boot, unit};
use crate::store::Store;
use punctual_core::hex;
use punctual_session::exit::Failure;
use punctual_session::messages::shown;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The list of changes, in the tuning's directory.
const NOTE: &str = "reboots-files.json";

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
}

impl Revert {
    /// Whether a file with this path is reverted this way.
    fn is_of(self, path: &Path) -> bool {
        match self {
            Revert::Own => [unit::UNIT, unit::WANTED].iter().any(|own| path == Path::new(own)),
            Revert::Counted => path.ends_with(systemd_boot::FILE),
            Revert::GrubCustom => path.ends_with("custom.cfg"),
            Revert::GrubEnvironment => path.ends_with("grubenv"),
        }
    }
}

/// The contents to write.
pub enum NewContent<'a> {
    Text(&'a str),
    /// A symbolic link to this path.
    Link(&'a str),
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
    fn other(&self, files: &[(String, &str)]) -> Option<&Path> {
        let files: Vec<&Path> =
            files.iter().filter_map(|(path, _)| path.strip_prefix('/')).map(Path::new).collect();
        let is_file = |entry: &KeptFileEntry| {
            files.contains(&entry.path.as_path()) && entry.how.is_of(&entry.path)
        };
        let is_above =
            |path: &Path| files.iter().any(|file| file.ancestors().skip(1).any(|of| of == path));
        let mut other = self.files.iter().filter(|entry| !is_file(entry));
        let mut outside = self.directories.iter().filter(|path| !is_above(path));
        other
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

/// Files below a root, and the note of them.
pub struct KeptFiles {
    root: PathBuf,
    store: Store,
    /// Called before each change of a disk; tests kill there.
    step: Box<dyn Fn()>,
}

impl KeptFiles {
    /// Files below this root, with the note in this directory.
    pub fn new(root: &Path, place: &Path) -> KeptFiles {
        KeptFiles { root: root.to_owned(), store: Store::join(place), step: Box::new(|| {}) }
    }

    #[cfg(test)]
    pub(crate) fn with_step(self, step: Box<dyn Fn()>) -> KeptFiles {
        KeptFiles { step, ..self }
    }

    fn read_note(&self) -> Result<Note, Failure> {
        self.store.read(NOTE)
    }

    /// The current contents of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The path is not a file, or the file is not text.
    pub fn text(&self, path: &str) -> Result<Option<String>, Failure> {
        read(&self.root.join(path))
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The file cannot be written, or exists already although it should be ours.
    pub fn write(&self, path: &str, content: &NewContent, how: Revert) -> Result<(), Failure> {
        let target = self.root.join(path);
        let mut note = self.read_note()?;
        let digest = match content {
            NewContent::Text(text) => digest_of(text),
            NewContent::Link(to) => digest_of(to),
        };
        let known = note.files.iter().position(|entry| entry.path == Path::new(path));
        let place = match known {
            Some(place) => place,
            None => {
                let is_ours = matches!(how, Revert::Own | Revert::Counted);
                if is_ours && target.symlink_metadata().is_ok() {
                    return Err(Failure::refused(format!(
                        "{} is there already: another tuning is in progress, or was not reverted \
                         (`punctual tune undo DIR`)",
                        shown(&target)
                    )));
                }
                let before = if is_ours { None } else { read(&target)? };
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
            (self.step)();
            self.store.write(NOTE, &note)?;
            sync(Some(self.store.path())).map_err(Failure::failed)?;
        }
        let written = match content {
            // A link of this name is ours and is created once.
            NewContent::Link(_) if target.symlink_metadata().is_ok() => Ok(()),
            NewContent::Text(text) if read(&target)?.as_deref() == Some(*text) => Ok(()),
            _ => self.put(&target, content, how),
        };
        written.map_err(|why| Failure::failed(format!("cannot write {}: {why}", shown(&target))))
    }

    /// Writes beside it, then renames: at any instant the old or the new file exists.
    fn put(&self, target: &Path, content: &NewContent, how: Revert) -> io::Result<()> {
        let parent = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if !parent.exists() {
            (self.step)();
            fs::create_dir_all(parent)?;
        }
        if how == Revert::Counted {
            self.remove_counted(target)?;
        }
        let beside = beside(target);
        remove(&beside, &self.step)?;
        (self.step)();
        match content {
            NewContent::Link(to) => symlink(to, &beside)?,
            NewContent::Text(text) => {
                let mut file = fs::File::create_new(&beside)?;
                if let Ok(there) = fs::metadata(target) {
                    // Not every file system of a boot loader has modes.
                    let _ = file.set_permissions(fs::Permissions::from_mode(
                        there.permissions().mode() & 0o7777,
                    ));
                }
                let half = text.len() / 2;
                file.write_all(&text.as_bytes()[..half])?;
                (self.step)();
                file.write_all(&text.as_bytes()[half..])?;
                file.sync_all()?;
            }
        }
        (self.step)();
        fs::rename(&beside, target)?;
        sync(Some(parent))
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
    pub(crate) fn remove_entry(&self, path: &str) -> Result<(), Failure> {
        let target = self.root.join(path);
        self.remove_counted(&target)
            .map_err(|why| Failure::failed(format!("cannot remove {}: {why}", shown(&target))))
    }

    /// Whether a file was written.
    ///
    /// # Errors
    /// The note cannot be read.
    pub fn has(&self, path: &str) -> Result<bool, Failure> {
        Ok(self.read_note()?.files.iter().any(|entry| entry.path == Path::new(path)))
    }

    /// Reverts everything. Returns each failure with its reason. `files`: the absolute paths that
    /// may be in the note.
    ///
    /// # Errors
    /// The note cannot be read, or names another file: nothing is changed then.
    pub fn undo(&self, files: &[(String, &str)]) -> Result<Vec<String>, Failure> {
        let note = self.read_note()?;
        if let Some(other) = note.other(files) {
            return Err(Failure::refused(format!(
                "{} names {}, which no tuning writes",
                self.store.member(NOTE).display(),
                shown(other)
            )));
        }
        let mut not_done = Vec::new();
        for entry in note.files.iter().rev() {
            let target = self.root.join(&entry.path);
            if let Err(why) = self.undo_one(entry, &target) {
                not_done.push(format!("{}: {why}", shown(&target)));
            }
        }
        for directory in note.directories.iter().rev() {
            (self.step)();
            // A directory that others use now stays.
            let _ = fs::remove_dir(self.root.join(directory));
        }
        if not_done.is_empty() && self.store.member(NOTE).exists() {
            (self.step)();
            self.store.member(NOTE).remove().map_err(Failure::failed)?;
        }
        Ok(not_done)
    }

    fn undo_one(&self, entry: &KeptFileEntry, target: &Path) -> Result<(), String> {
        let plain = |why: io::Error| why.to_string();
        remove(&beside(target), &self.step).map_err(plain)?;
        if entry.how == Revert::Counted {
            return self.remove_counted(target).map_err(plain);
        }
        if let Ok(to) = fs::read_link(target) {
            return match entry.wrote.contains(&digest_of(&to.to_string_lossy())) {
                true => remove(target, &self.step).map_err(plain),
                false => Err("it was changed since: it stays".to_owned()),
            };
        }
        let Some(now) = read(target).map_err(|why| why.render(false))? else { return Ok(()) };
        let restored = match entry.how {
            Revert::GrubEnvironment => {
                let before = entry.before.as_deref().map(grub::next_entry);
                let before = before.transpose()?.flatten();
                Some(grub::with_next_entry(&now, before.as_deref())?)
            }
            Revert::GrubCustom => {
                let rest = grub::without_entry(&now);
                (entry.before.is_some() || !rest.is_empty()).then_some(rest)
            }
            Revert::Own | Revert::Counted if entry.wrote.contains(&digest_of(&now)) => None,
            Revert::Own | Revert::Counted => {
                return Err("it was changed since: it stays".to_owned());
            }
        };
        match restored {
            Some(text) if text == now => Ok(()),
            Some(text) => self.put(target, &NewContent::Text(&text), entry.how).map_err(plain),
            None => remove(target, &self.step).map_err(plain),
        }
    }
}

fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// The temporary name of a file being written. Neither GRUB nor systemd read such a name.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.punctual-new"))
}

fn remove(path: &Path, step: &dyn Fn()) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    step();
    fs::remove_file(path)?;
    sync(path.parent())
}

fn sync(directory: Option<&Path>) -> io::Result<()> {
    directory.map_or(Ok(()), |path| fs::File::open(path)?.sync_all())
}

/// The text of a file that is not a link.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::refused(format!("cannot change {}: {why}", shown(path)))
    };
    match path.symlink_metadata() {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(cannot(&why)),
        Ok(meta) if !meta.is_file() => Err(cannot(&"it is not a regular file")),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(|why| cannot(&why)),
    }
}
