//! What to record.

use crate::wire::layout as wire;
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
    pub groups: Vec<Group>,
    /// Tracepoints by name, beside those of the groups.
    pub tracepoints: Vec<NamedTracepoint>,
    pub cpus: CpuSet,
    /// Events of these processes or threads, or about them; empty: of all. Interrupts count as of
    /// the thread that they interrupt.
    pub pids: Vec<u32>,
    /// Children that these bear from now on are wanted too.
    pub follow_children: bool,
    /// Of `pids` those threads alone, without the other ones of their processes. With
    /// [`Backend::Tracefs`] alone.
    pub threads_alone: bool,
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
    pub backend: Backend,
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
            threads_alone: false,
            comms: Vec::new(),
            syscalls: Vec::new(),
            buffer: 8 << 20,
            stacks: false,
            backend: Backend::Auto,
            mode: Mode::Stream,
            timers_only: false,
        }
    }

    /// What makes no sense in it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = Err::<(), String>;
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
