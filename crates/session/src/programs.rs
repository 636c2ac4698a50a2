//! Programs and processes of this system.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs whose arguments may be commands.
const RUNNERS: [&str; 11] = [
    "sh", "bash", "dash", "env", "nice", "timeout", "taskset", "chrt", "setsid", "ionice",
    "cpulimit",
];

/// Finds a program as execvp(3) does: a name with a slash is a path, others are searched in $PATH.
pub fn find_program(name: &str) -> Result<PathBuf, String> {
    let runnable = |path: &Path| -> Result<(), String> {
        let meta = path.metadata().map_err(|why| why.to_string())?;
        match meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            true => Ok(()),
            false => Err("it is not an executable file".to_owned()),
        }
    };
    if name.contains('/') {
        return runnable(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|path| runnable(path).is_ok());
    found.ok_or_else(|| "there is no such program in $PATH".to_owned())
}

/// A program, and those that a shell or the like starts for it, as far as its arguments show.
pub fn programs_of(program: &Path, arguments: &[String]) -> BTreeSet<PathBuf> {
    let mut programs = BTreeSet::from([program.to_owned()]);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if RUNNERS.contains(&name.as_ref()) {
        let separators = |c: char| " \t\n;|&()".contains(c);
        let words = arguments.iter().flat_map(|argument| argument.split(separators));
        let plain = |word: &&str| !word.is_empty() && !word.starts_with('-');
        programs.extend(words.filter(plain).filter_map(|word| find_program(word).ok()));
    }
    programs
}

/// Whether a process exists and is not a zombie.
pub fn is_there(pid: u32) -> bool {
    process_state(pid).is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The state of a process, as in proc_pid_stat(5).
pub(crate) fn process_state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
