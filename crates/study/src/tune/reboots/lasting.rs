//! Checks that files survive a boot.

use punctual_host::check::mount_of;
use punctual_session::messages::shown;
use std::path::{Path, PathBuf};

/// File systems that are empty after a boot: in memory, or probably above one that is.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "rootfs", "overlay"];
/// Directories that are emptied at boot (tmpfiles.d(5)).
const EMPTIED: [&str; 3] = ["/tmp", "/run", "/dev"];

/// Checks that a file survives a boot, and can be named in a unit.
///
/// # Errors
/// The reason why not.
pub fn check(mounts: &str, path: &Path) -> Result<(), String> {
    let name = path.to_str().filter(|text| !text.contains(char::is_control));
    let name = name.ok_or_else(|| format!("a service cannot name {}", shown(path)))?;
    if let Some(emptied) = EMPTIED.iter().find(|emptied| path.starts_with(emptied)) {
        return Err(format!("{} is below {emptied}", shown(path)));
    }
    match mount_of(mounts, name) {
        None => Err(format!("the file system of {} is not known", shown(path))),
        Some(mount) if IN_MEMORY.contains(&mount.kind.as_str()) => {
            Err(format!("{} is on {}", shown(path), mount.kind))
        }
        Some(_) => Ok(()),
    }
}

/// A path without links, as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(path)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_do_not_survive_a_reboot_are_refused() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\n\
                      tmpfs /home/in\\040memory tmpfs rw 0 0\n\
                      overlay /live overlay rw 0 0\n";
        let why = |path: &str| check(mounts, Path::new(path)).err().unwrap_or_default();
        for path in ["/root/t", "/var/tmp/t", "/tmpfiles", "/home/in memory of"] {
            assert_eq!(why(path), "", "{path}");
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
            assert!(why(path).contains(reason), "{path}: {}", why(path));
        }
        assert!(check("", Path::new("/root")).is_err());
    }
}
