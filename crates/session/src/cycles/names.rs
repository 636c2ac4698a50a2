//! What tasks of this machine are called now.

use std::fs;

/// The name of a process or thread.
pub fn comm(pid: u32) -> Option<String> {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(comm.trim_end_matches('\n').to_owned()).filter(|comm| !comm.is_empty())
}
