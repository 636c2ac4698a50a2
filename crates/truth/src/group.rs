//! A control group for the measured program: to stop all of its processes, or to freeze it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The control group of the measured program.
pub const GROUP: &str = "punctual-truth";
const ROOT: &str = "/sys/fs/cgroup";

/// A control group (cgroup v2). Several processes share it: it stays until it is removed.
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    pub fn new(name: &str) -> io::Result<ControlGroup> {
        let path = Path::new(ROOT).join(name);
        match fs::create_dir(&path) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => Err(why),
            _ => Ok(ControlGroup(path)),
        }
    }

    /// Creates one with a CPU quota in each period, in µs.
    pub fn with_quota(name: &str, quota: i64, period: i64) -> io::Result<ControlGroup> {
        fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+cpu")?;
        let group = ControlGroup::new(name)?;
        fs::write(group.0.join("cpu.max"), format!("{quota} {period}"))?;
        Ok(group)
    }

    /// Moves this process into it.
    pub fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// A command that runs in it: a shell enters it and executes the program.
    pub fn command_in_group(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs")).arg(program);
        command
    }

    pub fn process_ids(&self) -> io::Result<Vec<i32>> {
        let text = fs::read_to_string(self.0.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Whether a thread of the group has this name.
    pub fn has_thread(&self, name: &str) -> io::Result<bool> {
        let text = fs::read_to_string(self.0.join("cgroup.threads"))?;
        // A thread that has ended meanwhile has no name.
        let comm = |tid: &str| fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        Ok(text.lines().any(|tid| comm(tid).trim_end() == name))
    }

    /// Removes the group. If it still has processes it stays, and the next run uses it.
    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.0);
    }

    /// Freezes or thaws it.
    pub fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        fs::write(self.0.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }
}
