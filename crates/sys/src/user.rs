//! Another user, for programs that need only that user's permissions. The user database is read by
//! programs and from files, never by the C library in this process: a static program that loads the
//! modules of nsswitch.conf(5) crashes.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit status of getent(1) if the database has no such entry.
const NO_ENTRY: i32 = 2;
/// The maximum length of a name: no longer ones exist (LOGIN_NAME_MAX).
const NAME_MAX: usize = 256;

/// A user of this system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub uid: u32,
    gid: u32,
    groups: Vec<libc::gid_t>,
    name: String,
    home: String,
}

impl User {
    /// The user of this name or number; a number needs no entry in the database.
    ///
    /// # Errors
    /// There is none, or the database cannot be read.
    pub fn find_user(text: &str) -> io::Result<User> {
        User::find_in(text, Path::new("/etc"), true)
    }

    /// The same, from the files in this directory if programs find nothing or must not be run.
    fn find_in(text: &str, etc: &Path, programs: bool) -> io::Result<User> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no user `{text}`"));
        if !may_be_name(text) {
            return Err(unknown());
        }
        let passwd_answer = programs.then(|| query_database("getent", &["passwd", text])).flatten();
        let entry = match passwd_answer {
            Some(answer) => answer,
            None => in_file(&etc.join("passwd"), text)?,
        };
        let Some(entry) = entry.lines().next().filter(|line| !line.is_empty()) else {
            let uid = text.parse().ok().filter(|uid| *uid != u32::MAX).ok_or_else(unknown)?;
            let (name, home) = (text.into(), "/".into());
            return Ok(User { uid, gid: uid, groups: vec![uid], name, home });
        };
        let mut user = User::of_entry(entry).ok_or_else(|| {
            let reason =
                format!("the entry of `{text}` in the user database is malformed: {entry}");
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        let groups_answer =
            programs.then(|| query_database("id", &["-G", "--", &user.name])).flatten();
        user.groups = match groups_answer.filter(|answer| !answer.trim().is_empty()) {
            Some(answer) => answer.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
            None => groups_in(&etc.join("group"), &user.name, user.gid),
        };
        Ok(user)
    }

    /// `name:password:UID:GID:comment:home:shell` (passwd(5)); the groups are in another file.
    fn of_entry(line: &str) -> Option<User> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, _] = fields[..] else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        Some(User { uid, gid, groups: vec![gid], name: name.into(), home: home.into() })
    }

    /// Makes the command run as this user, with the user's groups, without permissions of this
    /// process, and with the user's name, home and runtime directory in its environment.
    pub fn set_command_user(&self, command: &mut Command) {
        let runtime = format!("/run/user/{}", self.uid);
        command.env("HOME", &self.home).env("USER", &self.name).env("LOGNAME", &self.name);
        match Path::new(&runtime).is_dir() {
            true => command.env("XDG_RUNTIME_DIR", runtime),
            false => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let User { uid, gid, groups, .. } = self.clone();
        let become_user = move || {
            // SAFETY: between fork and exec only async-signal-safe calls are made
            // (signal-safety(7)); the list was made before. In this order, as each call drops the
            // permission for the previous one.
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

/// Whether such a user can exist in the database.
fn may_be_name(text: &str) -> bool {
    let is_part = |byte: u8| !byte.is_ascii_control() && byte != b':';
    (1..=NAME_MAX).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_part)
}

/// The output of a program that reads the user database: empty if it has no such entry, and `None`
/// if the program is missing or fails.
fn query_database(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let done = command.output().ok()?;
    match done.status.code() {
        Some(0) => String::from_utf8(done.stdout).ok(),
        Some(NO_ENTRY) => Some(String::new()),
        _ => None,
    }
}

/// The line of a user by name or number in a file like /etc/passwd; empty without one.
fn in_file(path: &Path, user: &str) -> io::Result<String> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        // Without a database there is no user of that name either.
        Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
        Err(why) => return Err(io::Error::new(why.kind(), format!("{}: {why}", path.display()))),
    };
    let field_is = |place| text.lines().find(|line| line.split(':').nth(place) == Some(user));
    Ok(field_is(0).or_else(|| field_is(2)).unwrap_or_default().to_owned())
}

/// The groups of a user from group(5), the primary one first.
fn groups_in(path: &Path, name: &str, gid: u32) -> Vec<libc::gid_t> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut groups = vec![gid];
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, members] = fields[..] else { continue };
        if members.split(',').any(|member| member == name)
            && let Ok(id) = id.parse()
            && !groups.contains(&id)
        {
            groups.push(id);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let root = User::find_user("root").unwrap();
        assert_eq!((root.uid, root.gid, root.home.as_str()), (0, 0, "/root"));
        assert_eq!(User::find_user("0").unwrap(), root);
        let nobody = User::find_user("4000000000").unwrap();
        assert_eq!((nobody.uid, nobody.groups.as_slice()), (4_000_000_000, &[4_000_000_000][..]));
        for unknown in ["", "no-such-user", "no such user", "-1", "4294967295", "a\0b", "root:x"] {
            let why = User::find_user(unknown).unwrap_err().to_string();
            assert_eq!(why, format!("no user `{unknown}`"));
        }
    }

    /// Without getent(1) and id(1).
    #[test]
    fn without_programs_the_files_are_read() {
        let etc = std::env::temp_dir().join(format!("punctual-users-{}", std::process::id()));
        std::fs::create_dir_all(&etc).unwrap();
        let find = |text: &str| User::find_in(text, &etc, false);
        assert!(find("robot").unwrap_err().to_string().contains("no user `robot`"));
        assert_eq!(find("1001").unwrap().gid, 1001);
        let passwd = "root:x:0:0::/root:/bin/sh\nrobot:x:1001:50:Robot,,:/home/robot:/bin/sh\n\
                      broken:x:one:1\n";
        std::fs::write(etc.join("passwd"), passwd).unwrap();
        std::fs::write(etc.join("group"), "staff:x:50:\nrt:x:7:you,robot\nbad\nno:x:8:robots\n")
            .unwrap();
        let robot = find("robot").unwrap();
        assert_eq!((robot.uid, robot.gid, robot.groups.as_slice()), (1001, 50, &[50, 7][..]));
        assert_eq!((robot.name.as_str(), robot.home.as_str()), ("robot", "/home/robot"));
        assert_eq!(find("1001").unwrap(), robot);
        assert!(find("broken").unwrap_err().to_string().contains("malformed"));
        assert!(find("robo").is_err());
        std::fs::remove_dir_all(etc).unwrap();
    }

    #[test]
    fn a_command_of_his_has_no_right_of_ours() {
        // SAFETY: geteuid has no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return println!("SKIPPED: lacks root: nothing can be started as another user");
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "id -u; id -G; grep CapEff /proc/self/status; echo $HOME $USER"]);
        User::find_user("65534").unwrap().set_command_user(&mut command);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines[1]), ("65534", "65534"), "{said}");
        assert!(lines[2].ends_with("\t0000000000000000"), "{said}");
        assert!(!lines[3].contains("root"), "{said}");
    }
}
