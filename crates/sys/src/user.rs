//! Another user, for programs that need no more than his rights.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What an entry of the user database takes at most.
const ENTRY_MAX: usize = 1 << 20;
/// No user is in more groups (NGROUPS_MAX).
const GROUPS_MAX: usize = 65_536;

/// A user of this system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
    name: OsString,
    home: OsString,
}

impl User {
    /// The user of this name or number; a number needs no entry in the database.
    ///
    /// # Errors
    /// There is none, or the database cannot be read.
    pub fn find(text: &str) -> io::Result<User> {
        let name = CString::new(text)?;
        // SAFETY: the name ends with NUL; `entry` hands over memory that is valid for the call.
        let by_name = entry(|found, buffer, size, result| unsafe {
            libc::getpwnam_r(name.as_ptr(), found, buffer, size, result)
        })?;
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no user `{text}`"));
        let number = || text.parse::<u32>().ok().filter(|uid| *uid != u32::MAX);
        match (by_name, number()) {
            (Some(user), _) => Ok(user),
            (None, None) => Err(unknown()),
            (None, Some(uid)) => {
                // SAFETY: as above.
                let by_number = entry(|found, buffer, size, result| unsafe {
                    libc::getpwuid_r(uid, found, buffer, size, result)
                })?;
                let groups = vec![uid];
                let (name, home) = (text.into(), "/".into());
                Ok(by_number.unwrap_or(User { uid, gid: uid, groups, name, home }))
            }
        }
    }

    /// Has the command run as this user, in his groups, with no right of this process, and with his
    /// name, home and runtime directory in its environment.
    pub fn owns(&self, command: &mut Command) {
        let runtime = format!("/run/user/{}", self.uid);
        command.env("HOME", &self.home).env("USER", &self.name).env("LOGNAME", &self.name);
        match Path::new(&runtime).is_dir() {
            true => command.env("XDG_RUNTIME_DIR", runtime),
            false => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let User { uid, gid, groups, .. } = self.clone();
        let become_user = move || {
            // SAFETY: between fork and exec only async-signal-safe calls are made
            // (signal-safety(7)); the list was made before. In this order, as each takes the right
            // to the one before.
            let refused = unsafe {
                libc::setgroups(groups.len(), groups.as_ptr()) != 0
                    || libc::setresgid(gid, gid, gid) != 0
                    || libc::setresuid(uid, uid, uid) != 0
            };
            if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: see above.
        unsafe { command.pre_exec(become_user) };
    }
}

/// An entry of the user database, with the groups of that user.
fn entry(
    ask: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32,
) -> io::Result<Option<User>> {
    let mut buffer = vec![0; 4 << 10];
    loop {
        // SAFETY: passwd is pointers and integers; all zeroes is a value of it.
        let mut found: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result = std::ptr::null_mut();
        match ask(&mut found, buffer.as_mut_ptr(), buffer.len(), &mut result) {
            libc::ERANGE if buffer.len() < ENTRY_MAX => buffer.resize(buffer.len() * 2, 0),
            // Where there is no database there is no user of that name either.
            0 | libc::ENOENT if result.is_null() => return Ok(None),
            0 => {
                // SAFETY: the call filled both with texts in `buffer`, each ended by NUL.
                let (name, home) =
                    unsafe { (CStr::from_ptr(found.pw_name), CStr::from_ptr(found.pw_dir)) };
                let owned = |text: &CStr| OsString::from_vec(text.to_bytes().to_vec());
                return Ok(Some(User {
                    uid: found.pw_uid,
                    gid: found.pw_gid,
                    groups: groups(name, found.pw_gid),
                    name: owned(name),
                    home: owned(home),
                }));
            }
            why => return Err(io::Error::from_raw_os_error(why)),
        }
    }
}

fn groups(name: &CStr, gid: u32) -> Vec<libc::gid_t> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends with NUL, and the list has room for as many as `count` says.
        let got =
            unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
        if got >= 0 {
            groups.truncate(count.max(0) as usize);
            return groups;
        }
        if groups.len() >= GROUPS_MAX {
            return vec![gid];
        }
        groups.resize(groups.len() * 4, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.gid, root.home.to_str()), (0, 0, Some("/root")));
        assert_eq!(User::find("0").unwrap(), root);
        let nobody = User::find("4000000000").unwrap();
        assert_eq!((nobody.uid, nobody.groups.as_slice()), (4_000_000_000, &[4_000_000_000][..]));
        for unknown in ["", "no such user", "-1", "4294967295", "a\0b"] {
            assert!(User::find(unknown).is_err(), "{unknown:?}");
        }
    }

    #[test]
    fn a_command_of_his_has_no_right_of_ours() {
        // SAFETY: geteuid has no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return println!("SKIPPED: lacks root: nothing can be started as another user");
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "id -u; id -G; grep CapEff /proc/self/status; echo $HOME $USER"]);
        User::find("65534").unwrap().owns(&mut command);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines[1]), ("65534", "65534"), "{said}");
        assert!(lines[2].ends_with("\t0000000000000000"), "{said}");
        assert!(!lines[3].contains("root"), "{said}");
    }
}
