//! A request for a recording.

use crate::wire::layout as wire;
use punctual_core::CpuSet;
use punctual_core::event::{Group, NamedTracepoint};

/// The source of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// The first of the others that works here.
    #[default]
    Auto,
    /// BPF programs on tracepoints with BTF: the cheapest, with all filters in the kernel.
    Btf,
    /// BPF programs on tracepoints with fields described by tracefs: for kernels without BTF.
    Tracepoint,
    /// The kernel's own trace buffers: for kernels without BPF, and users without access to it.
    Tracefs,
}

/// The handling of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecordMode {
    /// They are drained; events without space are lost and counted.
    #[default]
    Stream,
    /// They stay in the kernel, the newest overwriting the oldest, until a window is requested.
    Flight,
}

/// A request for a recording.
#[derive(Clone, Debug)]
pub struct Request {
    pub groups: Vec<Group>,
    /// Tracepoints by name, besides those of the groups.
    pub tracepoints: Vec<NamedTracepoint>,
    pub cpus: CpuSet,
    /// Events of or about these processes or threads; empty: all. Interrupts count for the thread
    /// that they interrupt.
    pub pids: Vec<u32>,
    /// Whether future children of these are included.
    pub follow_children: bool,
    /// Whether `pids` are single threads, without the other threads of their processes. Only with
    /// [`Backend::Tracefs`].
    pub threads_alone: bool,
    /// Events of or about tasks with one of these names (exactly, at most 15 bytes); empty: all.
    /// With `pids`, both must match.
    pub comms: Vec<String>,
    /// The system calls recorded by [`Group::Syscall`]; empty: all.
    pub syscalls: Vec<u32>,
    /// The buffer size per CPU in bytes, rounded to a power of two.
    pub buffer: usize,
    /// Whether kernel stacks are recorded: at interrupts, and of tasks that block uninterruptibly.
    /// About a microsecond each; only with [`Backend::Btf`].
    pub stacks: bool,
    pub backend: Backend,
    pub mode: RecordMode,
    /// With [`RecordMode::Flight`]: whether only threads woken by timers are to be explained. Their
    /// interrupts wake them on their own CPU, so sched_wakeup suffices and sched_waking is omitted;
    /// of system calls, if their group is not requested, only those met by interrupts are recorded
    /// ([`EventKind::Interrupted`]).
    ///
    /// [`EventKind::Interrupted`]: punctual_core::EventKind::Interrupted
    pub timers_only: bool,
}

impl Request {
    /// A request for these groups on these CPUs, without filters, streamed through buffers of 8
    /// MiB: 0.1 s of a million events per second.
    pub fn new(groups: &[Group], cpus: CpuSet) -> Request {
        Request {
            groups: groups.to_vec(),
            tracepoints: Vec::new(),
            cpus,
            pids: Vec::new(),
            follow_children: false,
            threads_alone: false,
            comms: Vec::new(),
            syscalls: Vec::new(),
            buffer: 8 << 20,
            stacks: false,
            backend: Backend::Auto,
            mode: RecordMode::Stream,
            timers_only: false,
        }
    }

    /// Checks for inconsistencies.
    pub(crate) fn check_consistency(&self) -> Result<(), String> {
        let wrong = Err::<(), String>;
        match self {
            Request { cpus, .. } if cpus.is_empty() => wrong("no CPU to record on".to_owned()),
            Request { tracepoints, .. } if tracepoints.len() > NamedTracepoint::MAX => {
                wrong(format!("at most {} tracepoints are recorded by name", NamedTracepoint::MAX))
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
            // Its programs do not check tasks.
            Request { mode: RecordMode::Flight, pids, comms, .. }
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

/// The number of entries in the map `comms` of `bpf/filter.h`.
const MAX_COMMS: usize = 64;
/// Half of the entries in the map `pids` of `bpf/filter.h`: children may be added.
const MAX_PIDS: usize = 32768;
