//! What the numbers in events are called.

use super::{StackId, Tid, TracepointFormat, TracepointId};
use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A thread's process and name. Names come from strangers and hold any characters: presentation
/// escapes them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskName {
    /// The thread group: what users call the PID.
    pub process: u32,
    /// The thread's name (`comm`), at most 15 bytes.
    pub comm: String,
    /// Its scheduling as text, where the recorder saw it: `SCHED_FIFO 80`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<String>,
}

/// A function that `punctual probe` timed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FunctionName {
    pub name: String,
    /// The file that holds it.
    pub object: String,
    /// Its offset in that file.
    pub offset: u64,
    /// How the kernel executes the probed instruction: `nop5`, `push`, `emulated`, `out of line`,
    /// … empty where unknown.
    #[serde(default)]
    pub site: String,
}

/// A source line that `punctual probe` stamped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineName {
    /// The name of its point: `loop.c:42`.
    pub name: String,
    /// The program or library that holds its code.
    pub object: String,
    /// Where that begins, as offsets in that file.
    pub offsets: Vec<u64>,
    /// How the kernel executes the probed instructions: see [`FunctionName::site`].
    pub sites: Vec<String>,
}

/// What became of the calls of a probed function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallCounts {
    pub entered: u64,
    /// Calls that returned and were paired.
    pub returned: u64,
    /// Calls that were left by longjmp, an exception, or the end of the thread.
    pub left: u64,
    /// Returns of calls that had begun before the probes were there.
    pub unpaired: u64,
    /// Calls nested deeper than is followed: not timed.
    pub too_deep: u64,
    /// Calls of more threads than are followed: not timed.
    pub no_room: u64,
}

/// What a probe costs on this machine, measured on functions that do nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeCost {
    /// How the function begins, which decides the cost: see [`FunctionName::site`].
    pub site: String,
    pub calls: u64,
    /// What an empty function is measured as: what every measured interval has too much.
    pub measured_min: Nanos,
    /// The median of the same.
    pub measured_median: Nanos,
    /// The 99th percentile of the same.
    pub measured_p99: Nanos,
    /// What each call takes longer than without probes: what the program pays.
    pub added: Nanos,
}

/// What the numbers in events are called. What is not in here is shown as its number.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Names {
    /// Threads. A thread that changed its name is here with the last one.
    pub tasks: BTreeMap<Tid, TaskName>,
    /// The threads of punctual that are none of what was measured.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub observers: BTreeSet<Tid>,
    /// Test points; their place is a [`super::PointId`].
    pub points: Vec<String>,
    /// Probed functions; their place is a [`super::FunctionId`].
    pub functions: Vec<FunctionName>,
    /// Probed source lines, each of which is a test point of this name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineName>,
    /// What became of the calls of functions, in the same order; known when the recording has
    /// ended.
    pub calls: Vec<CallCounts>,
    /// What probes cost here, by kind of function.
    pub probe_costs: Vec<ProbeCost>,
    /// Interrupts: number to the names of their handlers, as in /proc/interrupts.
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
    /// The exit latency that each of them declares (cpuidle/stateN/latency).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub idle_latencies: BTreeMap<u32, Nanos>,
    /// Kernel functions by address, for those addresses that occur.
    pub symbols: BTreeMap<u64, String>,
    /// Kernel stacks, innermost first, as addresses; their place is a [`StackId`].
    pub stacks: Vec<Vec<u64>>,
    /// Tracepoints that were recorded by name; their place is a [`TracepointId`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tracepoints: Vec<TracepointFormat>,
}

impl Names {
    /// The thread's name, or `tid 123`, or `idle`.
    pub fn task(&self, tid: Tid) -> String {
        match self.tasks.get(&tid) {
            _ if tid == Tid::IDLE => "idle".to_owned(),
            Some(task) => task.comm.clone(),
            None => format!("tid {}", tid.0),
        }
    }
    /// The system call's name, or `system call 999`.
    pub fn syscall(&self, number: u32) -> String {
        self.syscalls.get(&number).cloned().unwrap_or_else(|| format!("system call {number}"))
    }
    /// The softirq's name, or `softirq 9`.
    pub fn softirq(&self, vector: u8) -> String {
        self.softirqs.get(&vector).cloned().unwrap_or_else(|| format!("softirq {vector}"))
    }
    /// The interrupt's handler, or `irq 9`.
    pub fn irq(&self, irq: u32) -> String {
        self.irqs.get(&irq).map_or_else(|| format!("irq {irq}"), |name| format!("irq {irq} {name}"))
    }
    /// The interrupt vector's name, or `vector 0xec`.
    pub fn vector(&self, vector: u8) -> String {
        self.vectors.get(&vector).cloned().unwrap_or_else(|| format!("vector {vector:#x}"))
    }
    /// The tracepoint's name, or `tracepoint 9`.
    pub fn tracepoint(&self, id: TracepointId) -> String {
        let format = self.tracepoints.get(id.0 as usize);
        format.map_or_else(|| format!("tracepoint {}", id.0), |format| format.name.clone())
    }
    /// A stack's functions, innermost first; unknown addresses in hexadecimal.
    pub fn stack(&self, stack: StackId) -> Vec<String> {
        let addresses = self.stacks.get(stack.0 as usize).map_or(&[][..], Vec::as_slice);
        addresses
            .iter()
            .map(|at| self.symbols.get(at).cloned().unwrap_or_else(|| format!("{at:#x}")))
            .collect()
    }
}
