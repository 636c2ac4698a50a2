//! Directories and files that belong to this user alone: executed programs and contents of guests
//! come only from these.

use crate::LabError;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates a directory that only its owner may enter. An existing one must be this user's, and no
/// link, without files that others could have added; it is closed to them.
///
/// # Errors
/// The directory is another user's, or others may write to it.
pub fn create_directory(path: &Path) -> Result<(), LabError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(LabError::io("create", parent))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(LabError::io("create", path)),
    }
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let directory = opened.map_err(LabError::io("open", path))?;
    let metadata = directory.metadata().map_err(LabError::io("read", path))?;
    check_ownership(path, &metadata)?;
    if metadata.mode() & 0o077 != 0 {
        let closed = directory.set_permissions(Permissions::from_mode(0o700));
        closed.map_err(LabError::io("close to others", path))?;
    }
    Ok(())
}

fn check_ownership(path: &Path, metadata: &Metadata) -> Result<(), LabError> {
    let fault = if metadata.uid() != geteuid().as_raw() {
        "another user owns it"
    } else if metadata.mode() & 0o022 != 0 {
        "others may write to it"
    } else {
        return Ok(());
    };
    let remedy = "choose another cache with $XDG_CACHE_HOME, or remove it";
    let path = path.display();
    Err(LabError::Request(format!("{path} cannot be trusted: {fault}; {remedy}")))
}

/// Opens a file of this user that no other can write to; none if it does not exist.
pub fn open_file(path: &Path) -> Result<Option<File>, LabError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(LabError::io("open", path))?,
    };
    let metadata = file.metadata().map_err(LabError::io("read", path))?;
    check_ownership(path, &metadata)?;
    match metadata.is_file() {
        true => Ok(Some(file)),
        false => Err(LabError::malformed(path, "it is not a regular file")),
    }
}

/// Opens a lock file that no other user can open.
pub(crate) fn lock_file(path: &Path) -> Result<File, LabError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let file = options.open(path).map_err(LabError::io("open", path))?;
    // Earlier versions created it readable for all, which is enough to hold it.
    let closed = file.set_permissions(Permissions::from_mode(0o600));
    closed.map_err(LabError::io("close to others", path))?;
    Ok(file)
}

/// Locks the file, if no other process holds it.
pub fn try_lock(path: &Path) -> Result<Option<File>, LabError> {
    let file = lock_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(why) => Err(LabError::io("lock", path)(why.into())),
    }
}

/// Removes set-user-ID and set-group-ID from everything below a directory: unpacked programs run
/// with the rights of their caller.
pub(crate) fn strip_set_id(below: &Path) -> Result<(), LabError> {
    let metadata = fs::symlink_metadata(below).map_err(LabError::io("read", below))?;
    let mode = metadata.mode();
    if !metadata.is_symlink() && mode & 0o6000 != 0 {
        let stripped = fs::set_permissions(below, Permissions::from_mode(mode & 0o1777));
        stripped.map_err(LabError::io("change the mode of", below))?;
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(below).map_err(LabError::io("list", below))? {
        strip_set_id(&entry.map_err(LabError::io("list", below))?.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn make(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_private_directory_is_made_private_or_refused_if_foreign() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        create_directory(&at("new/cache")).unwrap();
        assert_eq!(mode(&at("new/cache")), 0o700);
        make(&at("old"), 0o755);
        create_directory(&at("old")).unwrap();
        assert_eq!(mode(&at("old")), 0o700);
        make(&at("open"), 0o775);
        let refused = create_directory(&at("open")).unwrap_err().to_string();
        assert!(refused.contains("cannot be trusted: others may write to it"), "{refused}");
        make(&at("there"), 0o755);
        symlink(at("there"), at("link")).unwrap();
        assert!(create_directory(&at("link")).is_err());
        assert_eq!((mode(&at("there")), mode(&at("open"))), (0o755, 0o775));
        if !geteuid().is_root() {
            return println!("SKIPPED: lacks root: no directory of another user is tried");
        }
        make(&at("foreign"), 0o700);
        chown(at("foreign"), Some(65_534), None).unwrap();
        let refused = create_directory(&at("foreign")).unwrap_err().to_string();
        assert!(refused.contains("cannot be trusted: another user owns it"), "{refused}");
    }

    #[test]
    fn foreign_files_and_symbolic_links_are_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("own"), "x").unwrap();
        fs::write(at("open"), "x").unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o666)).unwrap();
        symlink(at("own"), at("link")).unwrap();
        assert!(
            open_file(&at("own")).unwrap().is_some() && open_file(&at("none")).unwrap().is_none()
        );
        for name in ["open", "link", "."] {
            assert!(open_file(&at(name)).is_err(), "{name}");
        }
        symlink(at("victim"), at("lock")).unwrap();
        assert!(lock_file(&at("lock")).is_err() && !at("victim").exists());
        let held = try_lock(&at("held")).unwrap();
        assert_eq!((held.is_some(), mode(&at("held"))), (true, 0o600));
        assert!(try_lock(&at("held")).unwrap().is_none());
    }

    #[test]
    fn nothing_unpacked_keeps_the_rights_of_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let modes = [
            ("su", 0o4755, 0o755),
            ("wall", 0o2755, 0o755),
            ("both", 0o6711, 0o711),
            ("x", 0o644, 0o644),
        ];
        make(&at("usr"), 0o2775);
        for (name, before, _) in modes {
            let path = at("usr").join(name);
            fs::write(&path, "x").unwrap();
            fs::set_permissions(path, Permissions::from_mode(before)).unwrap();
        }
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("su");
        fs::write(&victim, "x").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o4755)).unwrap();
        symlink(&victim, at("usr/link")).unwrap();
        symlink(outside.path(), at("usr/directory")).unwrap();
        strip_set_id(place.path()).unwrap();
        for (name, _, after) in modes {
            assert_eq!(mode(&at("usr").join(name)), after, "{name}");
        }
        assert_eq!((mode(&at("usr")), mode(&victim)), (0o775, 0o4755));
    }
}
