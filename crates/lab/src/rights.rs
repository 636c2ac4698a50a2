//! The rights of QEMU: a guest may escape from it, and then has them.

use std::ffi::OsString;
use std::fs;

/// The user and group without any rights.
const NOBODY: u32 = 65_534;
/// System calls denied to QEMU, besides those that no QEMU needs: to start programs, and to set
/// priorities (qemu(1), -sandbox).
const SANDBOX: &str = "on,obsolete=deny,spawn=deny,resourcecontrol=deny";
/// A replacement for the parent-death signal, which the kernel clears when QEMU becomes another
/// user (prctl(2), PR_SET_PDEATHSIG): a second process of its group waits for the end of a pipe,
/// which closes with the process that runs the guest.
const WITH_ITS_PARENT: &str =
    "(read -r nothing <\"$0\"; kill -KILL 0) >/dev/null 2>&1 & exec \"$@\"";

/// How QEMU drops rights that it does not need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QemuRights {
    /// QEMU becomes the user nobody once all its files are open.
    nobody: bool,
}

impl QemuRights {
    /// The rights of a QEMU started by this process. One that shares this system's files reads them
    /// with this process's rights.
    pub(crate) fn detect(share_host: bool) -> QemuRights {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let maps =
            ["uid_map", "gid_map"].map(|map| fs::read_to_string(format!("/proc/self/{map}")));
        let has_nobody = maps.iter().all(|map| map.as_ref().is_ok_and(|map| maps_nobody(map)));
        QemuRights { nobody: !share_host && can_change_user(&status) && has_nobody }
    }

    /// QEMU's own arguments that drop rights.
    pub(crate) fn to_args(self) -> Vec<OsString> {
        let words = match self.nobody {
            true => {
                let user = format!("user={NOBODY}:{NOBODY}");
                vec!["-sandbox".to_owned(), SANDBOX.to_owned(), "-run-with".to_owned(), user]
            }
            false => vec!["-sandbox".to_owned(), format!("{SANDBOX},elevateprivileges=deny")],
        };
        words.into_iter().map(OsString::from).collect()
    }

    /// The command before QEMU that ends it with this process, which holds the pipe of this name.
    pub(crate) fn wrapper_command(self, pipe: &str) -> Vec<OsString> {
        match self.nobody {
            true => ["/bin/sh", "-c", WITH_ITS_PARENT, pipe].map(OsString::from).into(),
            false => Vec::new(),
        }
    }
}

/// Whether a process with this status is root with the capabilities to change its user.
fn can_change_user(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let is_root = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)) == Some("0");
    let capabilities = field("CapEff:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // CAP_SETGID and CAP_SETUID (include/uapi/linux/capability.h).
    is_root && capabilities.is_some_and(|set| set & 0xc0 == 0xc0)
}

/// Whether a user namespace has that number (user_namespaces(7)).
fn maps_nobody(map: &str) -> bool {
    map.lines().any(|line| {
        let mut words = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (first, _, count) = (words.next(), words.next(), words.next());
        let nobody = u64::from(NOBODY);
        first.zip(count).is_some_and(|(first, count)| first <= nobody && nobody - first < count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_are_dropped_only_by_root_with_both_capabilities() {
        let status =
            |uid: u32, set: &str| format!("Name:\tx\nUid:\t0\t{uid}\t0\t0\nCapEff:\t{set}\n");
        assert!(can_change_user(&status(0, "000001ffffffffff")));
        for (uid, set) in [(1000, "000001ffffffffff"), (0, "0000000000000080"), (0, "")] {
            assert!(!can_change_user(&status(uid, set)), "{uid} {set}");
        }
        assert!(!can_change_user(""));
        assert!(maps_nobody("         0          0 4294967295\n"));
        assert!(maps_nobody("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_nobody("0 1000 1\n1 100000 1000\n") && !maps_nobody("x"));
    }

    #[test]
    fn qemu_can_neither_spawn_programs_nor_regain_privileges() {
        let words = |nobody| format!("{:?}", QemuRights { nobody }.to_args());
        assert!(words(true).contains("spawn=deny") && words(true).contains("user=65534:65534"));
        assert!(words(false).contains("spawn=deny") && words(false).contains("elevateprivileges"));
        assert!(QemuRights { nobody: false }.wrapper_command("alive").is_empty());
    }
}
