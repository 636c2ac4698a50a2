//! Programs and processes of this system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds a program as execvp(3) does: a name with a slash is a path, any other is looked for in
/// $PATH.
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

/// Whether a process is there and no zombie.
pub fn is_there(pid: u32) -> bool {
    state(pid).is_some_and(|state| !['Z', 'X'].contains(&state))
}

/// The state of a process, as in proc_pid_stat(5).
pub fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
