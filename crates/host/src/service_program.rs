//! The program of a service that root runs at each boot: it must survive a boot, and nobody else
//! may replace it or empty its directory.

use crate::check::mount_of;
use crate::files::Files;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File systems that are empty after a boot: in memory, or probably above one that is.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "rootfs", "overlay"];
/// Directories that are emptied at boot (tmpfiles.d(5)).
const EMPTIED: [&str; 3] = ["/tmp", "/run", "/dev"];

/// The owner and the mode of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ownership {
    uid: u32,
    gid: u32,
    mode: u32,
}

/// Checks that a service may run this program as root.
///
/// # Errors
/// The reason why not.
pub fn check_service_program(files: &dyn Files, program: &Path) -> Result<(), String> {
    let mounts = files.read("/proc/self/mounts").map_err(|why| why.to_string())?;
    let program = resolve_links(program);
    check_survives_boot(&mounts, &program)?;
    check_writers(&program, read_ownership)
}

/// Checks that a file survives a boot, and can be named in a unit.
///
/// # Errors
/// The reason why not.
fn check_survives_boot(mounts: &str, path: &Path) -> Result<(), String> {
    let shown_path = path.display();
    let name = path.to_str().filter(|text| !text.contains(char::is_control));
    let name = name.ok_or_else(|| format!("a service cannot name {path:?}"))?;
    if let Some(emptied) = EMPTIED.iter().find(|emptied| path.starts_with(emptied)) {
        return Err(format!("{shown_path} is below {emptied}"));
    }
    match mount_of(mounts, name) {
        None => Err(format!("the file system of {shown_path} is not known")),
        Some(mount) if IN_MEMORY.contains(&mount.kind.as_str()) => {
            Err(format!("{shown_path} is on {}", mount.kind))
        }
        Some(_) => Ok(()),
    }
}

/// A path without links, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(path)),
        None => path.to_owned(),
    }
}

/// Checks that root alone may write the program and every directory above it: whoever writes a
/// directory can rename what is in it.
fn check_writers(
    program: &Path,
    read_ownership: impl Fn(&Path) -> io::Result<Ownership>,
) -> Result<(), String> {
    for path in program.ancestors() {
        let shown_path = path.display();
        let Ownership { uid, gid, mode } = read_ownership(path)
            .map_err(|why| format!("cannot read the owner of {shown_path}: {why}"))?;
        if uid != 0 {
            return Err(format!("{shown_path} belongs to user {uid}, who may replace the program"));
        }
        if mode & 0o002 != 0 {
            return Err(format!("everybody may write to {shown_path}"));
        }
        if mode & 0o020 != 0 && gid != 0 {
            return Err(format!("group {gid} may write to {shown_path}"));
        }
    }
    Ok(())
}

fn read_ownership(path: &Path) -> io::Result<Ownership> {
    let status = path.symlink_metadata()?;
    Ok(Ownership { uid: status.uid(), gid: status.gid(), mode: status.mode() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_survive_a_boot_are_refused() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\n\
                      tmpfs /home/in\\040memory tmpfs rw 0 0\n\
                      overlay /live overlay rw 0 0\n";
        let refusal =
            |path: &str| check_survives_boot(mounts, Path::new(path)).err().unwrap_or_default();
        for path in ["/root/t", "/usr/bin/punctual", "/tmpfiles", "/home/in memory of"] {
            assert_eq!(refusal(path), "", "{path}");
        }
        let cases = [
            ("/tmp/t", "is below /tmp"),
            ("/run/user/0/t", "is below /run"),
            ("/dev/shm/t", "is below /dev"),
            ("/home/in memory/t", "is on tmpfs"),
            ("/live/usr/bin/punctual", "is on overlay"),
            ("/root/t\nExecStart=other", "cannot name"),
        ];
        for (path, reason) in cases {
            assert!(refusal(path).contains(reason), "{path}: {}", refusal(path));
        }
        assert!(check_survives_boot("", Path::new("/root")).is_err());
    }

    #[test]
    fn a_program_that_others_may_replace_is_refused() {
        let refusal = |odd: &str, ownership: Ownership| {
            let read_ownership = |path: &Path| match path == Path::new(odd) {
                true => Ok(ownership),
                false => Ok(Ownership { uid: 0, gid: 0, mode: 0o755 }),
            };
            check_writers(Path::new("/opt/rt/punctual"), read_ownership).err().unwrap_or_default()
        };
        let root = Ownership { uid: 0, gid: 0, mode: 0o755 };
        for ownership in [root, Ownership { mode: 0o775, ..root }, Ownership { gid: 5, ..root }] {
            assert_eq!(refusal("/opt/rt", ownership), "", "{ownership:?}");
        }
        let cases = [
            ("/opt/rt/punctual", Ownership { uid: 1000, ..root }, "belongs to user 1000"),
            ("/opt/rt", Ownership { uid: 1000, ..root }, "/opt/rt belongs to user 1000"),
            ("/opt", Ownership { mode: 0o1777, ..root }, "everybody may write to /opt"),
            ("/opt", Ownership { gid: 50, mode: 0o2775, ..root }, "group 50 may write to /opt"),
        ];
        for (odd, ownership, reason) in cases {
            assert!(refusal(odd, ownership).contains(reason), "{odd} {ownership:?}");
        }
        let unreadable = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        assert!(check_writers(Path::new("/opt/punctual"), unreadable).is_err());
    }
}
