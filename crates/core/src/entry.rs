//! Entries into the kernel on a CPU, each with its originator.
//!
//! docs/reference/attach-cpus.md has a table that is generated from [`EntryKind`].

mod kind;

pub use kind::EntryKind;

use crate::cycle::TaskComm;
use crate::{MonotonicNs, Nanos};

/// The work that the CPU served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Served {
    /// An interrupt of a device, by number.
    Irq(u32),
    /// One of the CPU's own interrupt vectors.
    Vector(Vector),
    Softirq(u32),
    Task {
        name: TaskComm,
        /// Whether it is a kernel thread.
        kernel: bool,
    },
    /// A function call from another CPU that arrived without an interrupt, as the CPU was idle.
    Call,
    /// A non-maskable interrupt, by the address of its handler.
    Nmi(u64),
}

/// The series measured of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntrySeries {
    /// A task of the CPU was interrupted.
    Interruption,
    /// An entry into the kernel.
    Entry,
}

impl EntrySeries {
    pub const ALL: [EntrySeries; 2] = [EntrySeries::Interruption, EntrySeries::Entry];

    /// The last part of the name of its series.
    pub fn as_str(self) -> &'static str {
        match self {
            EntrySeries::Interruption => "interruption",
            EntrySeries::Entry => "entry",
        }
    }

    pub fn from_word(word: &str) -> Option<EntrySeries> {
        EntrySeries::ALL.into_iter().find(|series| series.as_str() == word)
    }
}

/// A vector of x86 that does not belong to a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)] // The names of the tracepoints irq_vectors:*.
pub enum Vector {
    LocalTimer,
    Reschedule,
    CallFunction,
    CallFunctionSingle,
    IrqWork,
    PlatformIpi,
    Error,
    Spurious,
    Thermal,
    Threshold,
    DeferredError,
}

impl Vector {
    /// All vectors, in the order of the wire format.
    pub const ALL: [Vector; 11] = [
        Vector::LocalTimer,
        Vector::Reschedule,
        Vector::CallFunction,
        Vector::CallFunctionSingle,
        Vector::IrqWork,
        Vector::PlatformIpi,
        Vector::Error,
        Vector::Spurious,
        Vector::Thermal,
        Vector::Threshold,
        Vector::DeferredError,
    ];

    /// The tracepoints of the group irq_vectors, without `_entry` and `_exit`.
    pub fn tracepoint_name(self) -> &'static str {
        match self {
            Vector::LocalTimer => "local_timer",
            Vector::Reschedule => "reschedule",
            Vector::CallFunction => "call_function",
            Vector::CallFunctionSingle => "call_function_single",
            Vector::IrqWork => "irq_work",
            Vector::PlatformIpi => "x86_platform_ipi",
            Vector::Error => "error_apic",
            Vector::Spurious => "spurious_apic",
            Vector::Thermal => "thermal_apic",
            Vector::Threshold => "threshold_apic",
            Vector::DeferredError => "deferred_error_apic",
        }
    }
}

/// The thread that sent, queued or armed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Originator {
    pub at: MonotonicNs,
    /// The thread; 0: the idle task.
    pub tid: u32,
    pub name: TaskComm,
    pub cpu: u32,
    /// The number of its kernel stack.
    pub stack: Option<u32>,
}

/// The context that caused an entry, on the CPU of its originator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Via {
    /// The interrupt of a device.
    Irq(u32),
    /// A vector: the address of the function it ran, if in the kernel, or else its number.
    Vector(u64),
    Softirq(u32),
    /// A function call to an idle CPU.
    Call,
}

/// An entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub cpu: u16,
    pub begin: MonotonicNs,
    pub end: MonotonicNs,
    /// Its time without nested entries.
    pub own: Nanos,
    pub served: Served,
    /// The thread that ran; 0: none.
    pub task: u32,
    /// Whether punctual itself caused it: the thread or its originator is one of its own.
    pub observer: bool,
    /// The address of the function executed for an originator; 0: none or unknown.
    pub function: u64,
    /// The interrupted thread; 0: the idle task.
    pub over: u32,
    pub nested: bool,
    /// Whether a preempted thread waited meanwhile.
    pub away: bool,
    /// Whether it is only a further function of an entry with its own record.
    pub further: bool,
    /// The reason for keeping the tick: TICK_DEP_MASK_… of the kernel.
    pub tick_dependency: u32,
    /// The originator; `None`: unknown.
    pub originator: Option<Originator>,
    /// The context that caused it; `None`: a task.
    pub via: Option<Via>,
}

/// The counts of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryCounts {
    /// Interrupts, in the order of [`Vector::ALL`].
    pub vectors: [u64; 16],
    pub irqs: u64,
    /// Flushes of the TLB for other CPUs.
    pub shootdowns: u64,
    /// Actions of tasks beyond the limit.
    pub own_lost: u64,
}

impl EntryCounts {
    pub fn vector_count(&self, vectors: &[Vector]) -> u64 {
        vectors.iter().map(|vector| self.vectors[*vector as usize]).sum()
    }
}

/// The addresses of kernel functions with a special meaning; 0: unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelFunctions {
    pub shootdown: u64,
    pub call_function: u64,
    /// tick_nohz_handler(); before Linux 6.9 tick_sched_timer().
    pub tick: u64,
}

/// An action of a task itself on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OwnEntry {
    /// A system call by number; `None`: beyond the known ones.
    SystemCall(Option<u32>),
    /// A page fault in user mode.
    UserFault,
    /// A page fault in the kernel.
    KernelFault,
}

/// The number of a task's actions of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnCount {
    pub cpu: u32,
    pub tid: u32,
    pub name: TaskComm,
    pub what: OwnEntry,
    pub count: u64,
}

pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

pub const TICK_DEPENDENCIES: [&str; 6] =
    ["POSIX_TIMER", "PERF_EVENTS", "SCHED", "CLOCK_UNSTABLE", "RCU", "RCU_EXP"];
