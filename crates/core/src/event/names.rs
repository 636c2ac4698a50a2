//! The names of the numbers in events.

use super::{StackId, Tid, TracepointFormat, TracepointId};
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A thread's process and name. Names are untrusted and may contain any characters: escape them for
/// output.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskName {
    /// The thread group: the PID in user space.
    pub process: u32,
    /// The thread's name (`comm`), at most 15 bytes.
    pub comm: String,
    /// Its scheduling as text, if the recorder saw it: `SCHED_FIFO 80`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<String>,
}

/// A function timed by `punctual probe`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FunctionName {
    pub name: String,
    /// The object file.
    pub object: String,
    /// Its offset in that file.
    pub offset: u64,
    /// The kernel's way of executing the probed instruction: `nop5`, `push`, `emulated`, `out of
    /// line`, … empty if unknown.
    #[serde(default)]
    pub site: String,
}

/// A source line timestamped by `punctual probe`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineName {
    /// The name of its point: `loop.c:42`.
    pub name: String,
    /// The program or library with its code.
    pub object: String,
    /// The starts of its code, as offsets in that file.
    pub offsets: Vec<u64>,
    /// The kernel's way of executing the probed instructions: see [`FunctionName::site`].
    pub sites: Vec<String>,
}

/// The counts of a probed function's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallCounts {
    pub entered: u64,
    /// Calls with a matching return.
    pub returned: u64,
    /// Calls left by longjmp, an exception, or the end of the thread.
    pub left: u64,
    /// Returns of calls that began before the probes existed.
    pub unpaired: u64,
    /// Calls beyond the maximum depth: not timed.
    pub too_deep: u64,
    /// Calls beyond the maximum number of threads: not timed.
    pub no_room: u64,
}

/// The cost of a probe on this machine, measured on empty functions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeCost {
    /// The first instruction of the function, which determines the cost: see
    /// [`FunctionName::site`].
    pub site: String,
    pub calls: u64,
    /// The measured time of an empty function, which every measured interval includes.
    pub measured_min: Nanos,
    /// The median of the same.
    pub measured_median: Nanos,
    /// The 99th percentile of the same.
    pub measured_p99: Nanos,
    /// The additional time of each call with probes: the overhead for the program.
    pub added: Nanos,
}

/// The names of the numbers in events. Numbers without a name are shown as such.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Names {
    /// Threads; a renamed thread has its last name.
    pub tasks: BTreeMap<Tid, TaskName>,
    /// The threads of punctual that were not part of the measurement.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub observers: BTreeSet<Tid>,
    /// Test points; their index is a [`super::PointId`].
    pub points: Vec<String>,
    /// Probed functions; their index is a [`super::FunctionId`].
    pub functions: Vec<FunctionName>,
    /// Probed source lines, each a test point of this name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineName>,
    /// The counts of the functions' calls, in the same order; known once the recording has ended.
    pub calls: Vec<CallCounts>,
    /// The cost of probes here, by kind of function.
    pub probe_costs: Vec<ProbeCost>,
    /// Interrupts: the names of handlers by number, as in /proc/interrupts.
    pub irqs: BTreeMap<u32, String>,
    /// Interrupt vectors (`local_timer`, `reschedule`, …).
    pub vectors: BTreeMap<u8, String>,
    /// Softirqs by vector: `TIMER`, `NET_RX`, ….
    pub softirqs: BTreeMap<u8, String>,
    /// System calls of the recorded architecture.
    pub syscalls: BTreeMap<u32, String>,
    /// Block devices by dev_t: `vda`.
    pub devices: BTreeMap<u32, String>,
    /// Idle states by number: `C1`.
    pub idle_states: BTreeMap<u32, String>,
    /// The declared exit latency of each (cpuidle/stateN/latency).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub idle_latencies: BTreeMap<u32, Nanos>,
    /// The kernel functions at the addresses that occur.
    pub symbols: BTreeMap<u64, String>,
    /// Kernel stacks as addresses, innermost first; their index is a [`StackId`].
    pub stacks: Vec<Vec<u64>>,
    /// Tracepoints recorded by name; their index is a [`TracepointId`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tracepoints: Vec<TracepointFormat>,
}

impl Names {
    /// The thread's name, or `tid 123`, or `idle`.
    pub fn task_name(&self, tid: Tid) -> String {
        match self.tasks.get(&tid) {
            _ if tid == Tid::IDLE => "idle".to_owned(),
            _ if tid == Tid::UNKNOWN => "unknown task".to_owned(),
            Some(task) => task.comm.clone(),
            None => format!("tid {}", tid.0),
        }
    }
    /// The system call's name, or `system call 999`.
    pub fn syscall_name(&self, number: u32) -> String {
        self.syscalls.get(&number).cloned().unwrap_or_else(|| format!("system call {number}"))
    }
    /// The softirq's name, or `softirq 9`.
    pub fn softirq_name(&self, vector: u8) -> String {
        self.softirqs.get(&vector).cloned().unwrap_or_else(|| format!("softirq {vector}"))
    }
    /// The interrupt's handler, or `irq 9`.
    pub fn irq_name(&self, irq: u32) -> String {
        self.irqs.get(&irq).map_or_else(|| format!("irq {irq}"), |name| format!("irq {irq} {name}"))
    }
    /// The interrupt vector's name, or `vector 0xec`.
    pub fn vector_name(&self, vector: u8) -> String {
        self.vectors.get(&vector).cloned().unwrap_or_else(|| format!("vector {vector:#x}"))
    }
    /// The tracepoint's name, or `tracepoint 9`.
    pub fn tracepoint_name(&self, id: TracepointId) -> String {
        let format = self.tracepoints.get(id.0 as usize);
        format.map_or_else(|| format!("tracepoint {}", id.0), |format| format.name.clone())
    }
    /// A stack's functions, innermost first; unknown addresses in hexadecimal.
    pub fn stack_functions(&self, stack: StackId) -> Vec<String> {
        let addresses = self.stacks.get(stack.0 as usize).map_or(&[][..], Vec::as_slice);
        addresses
            .iter()
            .map(|at| self.symbols.get(at).cloned().unwrap_or_else(|| format!("{at:#x}")))
            .collect()
    }
}
