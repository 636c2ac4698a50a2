//! The target of probes: a command, a process or all processes, and the files with their functions.

use crate::exit::Failure;
use punctual_lab::Libraries;
use punctual_record::probe::ProbedProcesses;
use punctual_session::command::{self, Command};
use punctual_session::programs::{find_program, is_there};
use punctual_sys::gate::GatedProcess;
use punctual_sys::user::User;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The target of probes.
pub enum ProbeTarget {
    /// A command to start.
    Command { program: PathBuf, line: Vec<String>, user: Option<User> },
    /// A running process.
    Process(u32),
    /// All processes.
    Everyone,
}

/// The probed process; a command waits before its first instruction.
pub enum ProbedProcess {
    Gated { gated: GatedProcess, name: String },
    Running(u32),
    Everyone,
}

impl ProbeTarget {
    /// Parses the command line.
    pub fn from_arguments(
        pid: Option<u32>,
        everyone: bool,
        line: &[String],
        user: Option<&str>,
    ) -> Result<ProbeTarget, Failure> {
        match (pid, command::find_command(line)?) {
            (Some(pid), _) if is_there(pid) => Ok(ProbeTarget::Process(pid)),
            (Some(pid), _) => Err(Failure::refused(format!("there is no process {pid}"))),
            (None, Some(program)) => Ok(ProbeTarget::Command {
                program,
                line: line.to_vec(),
                user: command::find_user(user)?,
            }),
            (None, None) if everyone => Ok(ProbeTarget::Everyone),
            (None, None) => Err(Failure::refused(
                "no target: give a command after `--`, a process with -p, or --everyone",
            )),
        }
    }

    /// The name of the bundle.
    pub fn bundle_name(&self) -> String {
        match self {
            ProbeTarget::Command { line, .. } => command::bundle_name(line),
            ProbeTarget::Process(pid) => {
                let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                if comm.trim().is_empty() {
                    format!("process {pid}")
                } else {
                    comm.trim().to_owned()
                }
            }
            ProbeTarget::Everyone => "probe".to_owned(),
        }
    }

    /// The files in which functions without a path are searched: the program, then its libraries.
    pub fn searched_files(&self) -> Result<Vec<PathBuf>, Failure> {
        match self {
            ProbeTarget::Command { program, .. } => of_program(program),
            ProbeTarget::Process(pid) => of_process(*pid),
            ProbeTarget::Everyone => Ok(Vec::new()),
        }
    }

    /// Creates the process of a command.
    pub fn start_process(&self, output_to_stderr: bool) -> Result<ProbedProcess, Failure> {
        match self {
            ProbeTarget::Command { program, line, user } => {
                let command =
                    command::prepare_command(program, line, output_to_stderr, user.as_ref());
                let name = line[0].clone();
                let gated = GatedProcess::start(command)
                    .map_err(|why| Failure::refused(format!("cannot run `{name}`: {why}")))?;
                Ok(ProbedProcess::Gated { gated, name })
            }
            ProbeTarget::Process(pid) => Ok(ProbedProcess::Running(*pid)),
            ProbeTarget::Everyone => Ok(ProbedProcess::Everyone),
        }
    }
}

impl ProbedProcess {
    /// The processes whose calls are timed.
    pub fn probed_processes(&self, children: bool) -> ProbedProcesses {
        match self {
            ProbedProcess::Gated { gated: GatedProcess { pid, .. }, .. }
            | ProbedProcess::Running(pid)
                if children =>
            {
                ProbedProcesses::Family(*pid)
            }
            ProbedProcess::Gated { gated: GatedProcess { pid, .. }, .. }
            | ProbedProcess::Running(pid) => ProbedProcesses::Process(*pid),
            ProbedProcess::Everyone => ProbedProcesses::Everyone,
        }
    }

    /// The process whose calls are timed, if it is a single one.
    pub fn pid(&self) -> Option<u32> {
        match self {
            ProbedProcess::Gated { gated, .. } => Some(gated.pid),
            ProbedProcess::Running(pid) => Some(*pid),
            ProbedProcess::Everyone => None,
        }
    }

    /// Releases the command; `None` without one.
    pub fn release_command(self) -> Result<Option<Command>, Failure> {
        match self {
            ProbedProcess::Gated { gated, name } => {
                let child = gated.release_gate();
                let child =
                    child.map_err(|why| Failure::refused(format!("cannot run `{name}`: {why}")))?;
                Ok(Some(Command::from_child(child)))
            }
            ProbedProcess::Running(_) | ProbedProcess::Everyone => Ok(None),
        }
    }
}

/// A program, its interpreters, and the libraries of all.
fn of_program(program: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut programs = vec![program.to_owned()];
    programs.extend(script_interpreters(program));
    let mut files: Vec<PathBuf> = Vec::new();
    for program in &programs {
        let program = fs::canonicalize(program)
            .map_err(|why| Failure::refused(format!("{}: {why}", program.display())))?;
        // A script has no functions.
        if !is_script(&program) {
            files.push(program.clone());
        }
        let libraries =
            Libraries::of_the_environment().library_closure(&program).map_err(Failure::refused)?;
        files.extend(libraries.into_iter().filter_map(|library| fs::canonicalize(library).ok()));
    }
    let mut known_files = BTreeSet::new();
    files.retain(|file| known_files.insert(file.clone()));
    Ok(files)
}

fn first_line(path: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(fs::File::open(path).ok()?.take(256)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn is_script(path: &Path) -> bool {
    first_line(path).is_some_and(|line| line.starts_with("#!"))
}

/// The interpreters of a script (execve(2), "Interpreter scripts"): the program after `#!`, and the
/// one that env(1) starts.
fn script_interpreters(script: &Path) -> Vec<PathBuf> {
    let Some(line) = first_line(script).and_then(|line| line.strip_prefix("#!").map(str::to_owned))
    else {
        return Vec::new();
    };
    let mut words = line.split_whitespace();
    let Some(first) = words.next().map(PathBuf::from) else { return Vec::new() };
    let of_env = first
        .ends_with("env")
        .then(|| words.find(|word| !word.starts_with('-') && !word.contains('=')))
        .flatten();
    let of_env = of_env.and_then(|name| find_program(name).ok());
    [Some(first), of_env].into_iter().flatten().collect()
}

/// The files whose code a process has mapped. A replaced file is accessed through the mapping
/// itself.
fn of_process(pid: u32) -> Result<Vec<PathBuf>, Failure> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    let maps = maps.map_err(|why| {
        Failure::refused(format!("cannot read the memory map of process {pid}: {why}"))
    })?;
    let mut files: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        // address perms offset dev inode path (proc_pid_maps(5))
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, permissions, _, _, inode, ..] = words[..] else { continue };
        let (Some(slash), Ok(inode)) = (line.find('/'), inode.parse::<u64>()) else { continue };
        if !permissions.contains('x') {
            continue;
        }
        let named = PathBuf::from(&line[slash..]);
        let same = named.metadata().is_ok_and(|meta| meta.ino() == inode);
        let file =
            if same { named } else { PathBuf::from(format!("/proc/{pid}/map_files/{range}")) };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    // The program itself comes first.
    if let Ok(exe) = fs::read_link(format!("/proc/{pid}/exe"))
        && let Some(place) = files.iter().position(|file| *file == exe)
    {
        files[..=place].rotate_right(1);
    }
    Ok(files)
}
