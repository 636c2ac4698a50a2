//! The current names of this machine's tasks.

use punctual_core::cycle::TaskComm;
use std::fs;

/// The name of a process or thread.
pub(crate) fn read_comm(pid: u32) -> Option<String> {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(comm.trim_end_matches('\n').to_owned()).filter(|comm| !comm.is_empty())
}

/// The name of a task in the kernel's form.
pub(crate) fn task_name(tid: u32) -> Option<TaskComm> {
    let comm = fs::read(format!("/proc/{tid}/comm")).ok()?;
    let mut name = TaskComm::default();
    name.0.iter_mut().zip(comm.trim_ascii_end()).for_each(|(to, from)| *to = *from);
    Some(name)
}
