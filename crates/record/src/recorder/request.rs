//! What to record, and why that may not be possible.

use crate::bpf::LoadError;
use crate::rights::lacking;
use punctual_core::CpuSet;
use punctual_core::event::{Group, NamedTracepoint};

/// Where events come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// The first of the others that works here.
    #[default]
    Auto,
    /// BPF programs on tracepoints with BTF: the cheapest, and all filters run in the kernel.
    Btf,
    /// BPF programs on tracepoints whose fields tracefs describes: for kernels without BTF.
    Tracepoint,
    /// The kernel's own trace buffers: for kernels without BPF, and for who may not use it.
    Tracefs,
}

/// What becomes of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// They are drained; what finds no room is lost and counted.
    #[default]
    Stream,
    /// They stay in the kernel, the newest overwriting the oldest, until a window is asked for.
    Flight,
}

/// What to record.
#[derive(Clone, Debug)]
pub struct Request {
    /// Groups of events.
    pub groups: Vec<Group>,
    /// Tracepoints by name, beside those of the groups.
    pub tracepoints: Vec<NamedTracepoint>,
    /// Events on these CPUs.
    pub cpus: CpuSet,
    /// Events of these processes or threads, or about them; empty: of all. Interrupts count as of
    /// the thread that they interrupt.
    pub pids: Vec<u32>,
    /// Children that these bear from now on are wanted too.
    pub follow_children: bool,
    /// Events of tasks with one of these names (exactly, at most 15 bytes), or about them; empty:
    /// of all. With `pids`, both must hold.
    pub comms: Vec<String>,
    /// The system calls that [`Group::Syscall`] means; empty: all.
    pub syscalls: Vec<u32>,
    /// Bytes for each CPU, made a power of two.
    pub buffer: usize,
    /// Kernel stacks too: of what an interrupt interrupted, and of tasks that block
    /// uninterruptibly. About a microsecond each; with [`Backend::Btf`] alone.
    pub stacks: bool,
    /// Where from.
    pub backend: Backend,
    /// Streamed or kept.
    pub mode: Mode,
    /// With [`Mode::Flight`]: what is to be explained are threads that timers wake. Their
    /// interrupts wake them on their own CPU, so that sched_wakeup suffices and sched_waking is
    /// left out; of system calls, if their group is not requested, those are recorded that
    /// interrupts meet ([`EventKind::Interrupted`]).
    ///
    /// [`EventKind::Interrupted`]: punctual_core::EventKind::Interrupted
    pub timers_only: bool,
}

impl Request {
    /// These groups on these CPUs, without filters, streamed through buffers of 8 MiB: 0.1 s of a
    /// million events a second.
    pub fn new(groups: &[Group], cpus: CpuSet) -> Request {
        Request {
            groups: groups.to_vec(),
            tracepoints: Vec::new(),
            cpus,
            pids: Vec::new(),
            follow_children: false,
            comms: Vec::new(),
            syscalls: Vec::new(),
            buffer: 8 << 20,
            stacks: false,
            backend: Backend::Auto,
            mode: Mode::Stream,
            timers_only: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), StartError> {
        use crate::wire::layout as wire;
        let wrong = |what: String| Err(StartError::Request(what));
        match self {
            Request { cpus, .. } if cpus.is_empty() => wrong("no CPU to record on".to_owned()),
            Request { tracepoints, .. } if tracepoints.len() > NamedTracepoint::MOST => {
                wrong(format!("at most {} tracepoints are recorded by name", NamedTracepoint::MOST))
            }
            Request { groups, tracepoints, .. } if groups.is_empty() && tracepoints.is_empty() => {
                wrong("no group of events to record".to_owned())
            }
            Request { comms, .. } if comms.len() > MAX_COMMS => {
                wrong(format!("more than {MAX_COMMS} task names"))
            }
            Request { pids, .. } if pids.len() > MAX_PIDS => {
                wrong(format!("more than {MAX_PIDS} processes"))
            }
            // Its programs do not look at tasks.
            Request { mode: Mode::Flight, pids, comms, .. }
                if !pids.is_empty() || !comms.is_empty() =>
            {
                wrong("a flight recorder cannot be limited to some tasks".to_owned())
            }
            Request { comms, syscalls, .. } => {
                if let Some(comm) = comms.iter().find(|comm| comm.is_empty() || comm.len() > 15) {
                    return wrong(format!(
                        "a task name has 1 to 15 bytes, `{}` has {}",
                        comm.escape_debug(),
                        comm.len()
                    ));
                }
                match syscalls.iter().find(|number| u64::from(**number) >= wire::MAX_SYSCALLS) {
                    Some(number) => wrong(format!("there is no system call {number}")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// As many as the map `comms` of `bpf/filter.h` holds.
const MAX_COMMS: usize = 64;
/// Half of what the map `pids` of `bpf/filter.h` holds: children may join.
const MAX_PIDS: usize = 32768;

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The request makes no sense.
    #[error("{0}")]
    Request(String),
    /// The backend does not work here: which, why, and what would help.
    #[error(
        "recording through {backend} is not possible: {why}{}",
        remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default()
    )]
    Backend {
        /// Its name.
        backend: &'static str,
        /// The reason.
        why: String,
        /// The plan.
        remedy: Option<String>,
    },
    /// No backend works here.
    #[error("kernel events cannot be recorded here: {}", each_once(.0))]
    None(Vec<StartError>),
}

impl StartError {
    /// Why programs could not be put into the kernel, with what would help.
    pub(crate) fn of(backend: &'static str, why: &LoadError) -> StartError {
        use std::io::ErrorKind::PermissionDenied;
        let (why, remedy) = match why {
            LoadError::NoBtf(_) => {
                (why.to_string(), Some("use a kernel with CONFIG_DEBUG_INFO_BTF=y".to_owned()))
            }
            // The verifier says the same (EACCES) of programs, with its reasons.
            LoadError::Refused { log, .. } if !log.is_empty() => (why.to_string(), None),
            LoadError::Map { why, .. } | LoadError::Refused { why, .. }
                if why.kind() == PermissionDenied =>
            {
                lacking()
            }
            _ => (why.to_string(), None),
        };
        StartError::Backend { backend, why, remedy }
    }
}

/// What several backends have in common is said once.
fn each_once(reasons: &[StartError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut remedies: Vec<String> = Vec::new();
    let add = |texts: &mut Vec<String>, text: String| {
        if !texts.contains(&text) {
            texts.push(text);
        }
    };
    for reason in reasons {
        match reason {
            StartError::Backend { why, remedy, .. } => {
                add(&mut texts, why.clone());
                remedy.iter().for_each(|remedy| add(&mut remedies, remedy.clone()));
            }
            other => add(&mut texts, other.to_string()),
        }
    }
    texts.append(&mut remedies);
    texts.join("; ")
}
