//! The target of an attachment: running processes, their threads, or a command to start.

use super::Cycles;
use super::names::read_comm;
use crate::command::{self, Command};
use crate::exit::Failure;
use crate::programs::is_there;
use punctual_bundle::HowEnded;
use punctual_sys::gate::GatedProcess;
use punctual_sys::user::User;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

#[derive(Clone)]
pub enum CycleTarget {
    /// All threads of these processes.
    Processes(Vec<u32>),
    /// These threads, of these processes.
    Threads(Vec<u32>, Vec<u32>),
    Command {
        program: PathBuf,
        line: Vec<String>,
        /// The user that runs it; `None`: the current one.
        user: Option<User>,
    },
}

pub struct Started {
    processes: Vec<u32>,
    command: Option<Command>,
}

impl CycleTarget {
    /// Parses the command line; nothing is started.
    pub fn from_arguments(
        pids: &[u32],
        comms: &[String],
        threads: &[String],
        line: &[String],
    ) -> Result<CycleTarget, Failure> {
        if let Some(program) = command::find_command(line)? {
            return Ok(CycleTarget::Command { program, line: line.to_vec(), user: None });
        }
        let mut processes = pids.to_vec();
        for name in comms {
            processes.extend(processes_named(name)?);
        }
        let threads = &ids_of(threads, &processes)?;
        if processes.is_empty() && !threads.is_empty() {
            processes.extend(threads.iter().filter_map(|tid| process_of(*tid)));
        }
        if processes.is_empty() && threads.is_empty() {
            let how = "give the id of a process, --comm NAME, or a command after `--`";
            return Err(Failure::refused(format!("nothing to attach to: {how}")));
        }
        processes.iter().try_for_each(|pid| check_process(*pid))?;
        for tid in threads {
            match process_of(*tid) {
                None => return Err(Failure::refused(format!("there is no thread {tid}"))),
                Some(process) if !processes.contains(&process) => {
                    let message =
                        format!("thread {tid} belongs to process {process}, which is not attached");
                    return Err(Failure::refused(message));
                }
                Some(_) => {}
            }
        }
        processes.dedup();
        Ok(match threads.is_empty() {
            true => CycleTarget::Processes(processes),
            false => CycleTarget::Threads(threads.to_vec(), processes),
        })
    }

    /// Runs a command as this user.
    pub fn run_as(&mut self, of: Option<User>) {
        if let CycleTarget::Command { user, .. } = self {
            *user = of;
        }
    }

    /// The name of the bundle.
    pub fn bundle_name(&self) -> String {
        match self {
            CycleTarget::Command { line, .. } => command::bundle_name(line),
            CycleTarget::Processes(pids) | CycleTarget::Threads(_, pids) => {
                let first = pids.first().copied().unwrap_or_default();
                read_comm(first).unwrap_or_else(|| format!("process {first}"))
            }
        }
    }

    /// Watches the target. A command is watched from its first instruction on.
    pub(crate) fn start_watching(&self, cycles: &mut Cycles) -> Result<Started, Failure> {
        let attacher = cycles.cycle_recorder();
        match self {
            CycleTarget::Processes(pids) => {
                pids.iter()
                    .try_for_each(|pid| attacher.watch_process(*pid))
                    .map_err(Failure::refused)?;
                cycles.watch_rights(pids);
                Ok(Started { processes: pids.clone(), command: None })
            }
            CycleTarget::Threads(tids, pids) => {
                tids.iter()
                    .try_for_each(|tid| attacher.watch_thread(*tid))
                    .map_err(Failure::refused)?;
                cycles.watch_rights(pids);
                Ok(Started { processes: pids.clone(), command: None })
            }
            CycleTarget::Command { program, line, user } => {
                let cannot = |why| Failure::refused(format!("cannot run `{}`: {why}", line[0]));
                let command = command::prepare_command(program, line, false, user.as_ref());
                let gated = GatedProcess::start(command).map_err(cannot)?;
                attacher.watch_process(gated.pid).map_err(Failure::failed)?;
                cycles.watch_rights(&[gated.pid]);
                let child = gated.release_gate().map_err(cannot)?;
                Ok(Started {
                    processes: vec![child.id()],
                    command: Some(Command::from_child(child)),
                })
            }
        }
    }
}

impl Started {
    /// Whether nothing is left to measure.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.command {
            Some(command) => command.has_ended(),
            None => !self.processes.iter().any(|pid| is_there(*pid)),
        }
    }

    /// How the target ended; `statuses`: the known ones of threads.
    pub(crate) fn own_end(&self, statuses: &BTreeMap<u32, u32>) -> Option<HowEnded> {
        match &self.command {
            Some(command) => command.own_end(),
            None => {
                let mut wait_statuses = self.processes.iter().filter_map(|pid| statuses.get(pid));
                let ends = wait_statuses.by_ref().map(|status| HowEnded::of_wait(*status));
                let ends: Vec<HowEnded> = ends.collect();
                ends.iter().copied().find(|end| !end.is_success()).or(ends.first().copied())
            }
        }
    }

    /// Ends the command if it still runs; a process that existed before continues.
    pub(crate) fn end_command(mut self) -> Option<Command> {
        if let Some(command) = &mut self.command
            && !command.has_ended()
        {
            command.terminate();
        }
        self.command
    }
}

/// Threads by their ids, or by their names in these processes.
fn ids_of(named: &[String], processes: &[u32]) -> Result<Vec<u32>, Failure> {
    let mut ids = Vec::new();
    for name in named {
        if let Ok(tid) = name.parse() {
            ids.push(tid);
            continue;
        }
        let named_threads: Vec<(u32, String)> = processes
            .iter()
            .flat_map(|pid| threads_of(*pid))
            .filter_map(|tid| Some((tid, read_comm(tid)?)))
            .collect();
        let of_name: Vec<u32> = named_threads
            .iter()
            .filter(|(_, own)| *own == truncate_comm(name))
            .map(|(tid, _)| *tid)
            .collect();
        if of_name.is_empty() {
            let escaped_name = name.escape_debug();
            let thread_names: BTreeSet<&str> =
                named_threads.iter().map(|(_, name)| name.as_str()).collect();
            let listed_names: Vec<String> = thread_names
                .iter()
                .take(KNOWN)
                .map(|name| name.escape_debug().to_string())
                .collect();
            return Err(Failure::refused(match listed_names.is_empty() {
                true => format!(
                    "no thread is called `{escaped_name}`: name its process, too (a process id, or \
                     --comm NAME)"
                ),
                false => format!(
                    "no thread is called `{escaped_name}`; there are {}",
                    listed_names.join(", ")
                ),
            }));
        }
        ids.extend(of_name);
    }
    Ok(ids)
}

/// The maximum number of thread names in a message.
const KNOWN: usize = 12;

fn threads_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn process_of(tid: u32) -> Option<u32> {
    status_field(tid, "Tgid:")?.parse().ok()
}

fn status_field(tid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

fn check_process(pid: u32) -> Result<(), Failure> {
    let Some(process) = process_of(pid).filter(|_| is_there(pid)) else {
        return Err(Failure::refused(format!("there is no process {pid}")));
    };
    if process != pid {
        let how = format!("attach to {process} --thread {pid}");
        return Err(Failure::refused(format!("{pid} is a thread of process {process}: {how}")));
    }
    if pid == std::process::id() {
        return Err(Failure::refused(format!("{pid} is punctual itself")));
    }
    // A kernel thread has no memory of its own.
    if status_field(pid, "VmSize:").is_none() {
        return Err(Failure::refused(format!(
            "process {pid} is a kernel thread: it makes no system calls"
        )));
    }
    Ok(())
}

/// The 15 bytes of a name that the kernel keeps.
pub(crate) fn truncate_comm(name: &str) -> String {
    String::from_utf8_lossy(&name.as_bytes()[..name.len().min(15)]).into_owned()
}

/// The processes of this name, without punctual's own.
///
/// # Errors
/// There is none, or /proc cannot be read.
pub fn processes_named(name: &str) -> Result<Vec<u32>, Failure> {
    let cannot = |why| Failure::failed(format!("cannot read /proc: {why}"));
    let entries = fs::read_dir("/proc").map_err(cannot)?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let kept = truncate_comm(name);
    let found: Vec<u32> = pids
        .filter(|pid| {
            *pid != std::process::id() && read_comm(*pid).is_some_and(|comm| comm == kept)
        })
        .collect();
    match found.is_empty() {
        true => Err(Failure::refused(format!(
            "no process has the name `{}` (ps -e shows them)",
            name.escape_debug()
        ))),
        false => Ok(found),
    }
}
