//! Entries into the kernel on a CPU, each with who caused it.
//!
//! docs/reference/attach-cpus.md has a table that is generated from [`EntryKind`].

mod kind;

pub use kind::EntryKind;

use crate::cycle::TaskName;
use crate::{MonotonicNs, Nanos};

/// What the CPU served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Served {
    /// An interrupt of a device, by number.
    Irq(u32),
    /// One of the CPU's own interrupt vectors.
    Vector(Vector),
    Softirq(u32),
    Task {
        name: TaskName,
        /// Whether it is a kernel thread.
        kernel: bool,
    },
    /// A function call of another CPU that came without an interrupt: the CPU was idle.
    Call,
    /// A non-maskable interrupt, by the address of its handler.
    Nmi(u64),
}

/// What is measured of a CPU: the series that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntrySeries {
    /// A task of the CPU was interrupted.
    Interruption,
    /// An entry into the kernel.
    Entry,
}

impl EntrySeries {
    pub const ALL: [EntrySeries; 2] = [EntrySeries::Interruption, EntrySeries::Entry];

    /// The last part of its series' name.
    pub fn word(self) -> &'static str {
        match self {
            EntrySeries::Interruption => "interruption",
            EntrySeries::Entry => "entry",
        }
    }

    pub fn from_word(word: &str) -> Option<EntrySeries> {
        EntrySeries::ALL.into_iter().find(|series| series.word() == word)
    }
}

/// A vector of x86 that is none of a device.
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
    /// All, in the order of the wire.
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
    pub fn tracepoint(self) -> &'static str {
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

/// Who sent, queued or armed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Originator {
    pub at: MonotonicNs,
    /// The thread that did; 0: the idle one.
    pub tid: u32,
    pub name: TaskName,
    pub cpu: u32,
    /// Its kernel stack, by number.
    pub stack: Option<u32>,
}

/// What an entry came out of, on the CPU of its originator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Via {
    /// The interrupt of a device.
    Irq(u32),
    /// A vector; the function that it ran, if an address of the kernel, or else its number.
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
    /// Its time without what came in between.
    pub own: Nanos,
    pub served: Served,
    /// The thread that ran; 0: none did.
    pub task: u32,
    /// Whether punctual itself caused it: the thread is one of its own, or who caused it.
    pub observer: bool,
    /// The address of the function that it ran for somebody; 0: none, or not known.
    pub function: u64,
    /// The thread that was interrupted; 0: the idle one.
    pub over: u32,
    pub nested: bool,
    /// While a preempted thread waited.
    pub away: bool,
    /// A further function of an entry that has a record of its own: no entry.
    pub further: bool,
    /// What keeps the tick: TICK_DEP_MASK_… of the kernel.
    pub tick_dependency: u32,
    /// Who caused it; `None`: not known.
    pub originator: Option<Originator>,
    /// What it came out of; `None`: a task.
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
    /// Entries of tasks that found no room.
    pub own_lost: u64,
}

impl EntryCounts {
    pub fn of(&self, vectors: &[Vector]) -> u64 {
        vectors.iter().map(|vector| self.vectors[*vector as usize]).sum()
    }
}

/// Addresses of functions of the kernel that have a meaning of their own; 0: not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelFunctions {
    pub shootdown: u64,
    pub call_function: u64,
    /// tick_nohz_handler(), before Linux 6.9 tick_sched_timer().
    pub tick: u64,
}

/// What a task did itself on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OwnEntry {
    /// A system call by number; `None`: beyond the known ones.
    SystemCall(Option<u32>),
    /// A page fault in user mode.
    UserFault,
    /// A page fault in the kernel.
    KernelFault,
}

/// How often a task did so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnCount {
    pub cpu: u32,
    pub tid: u32,
    pub name: TaskName,
    pub what: OwnEntry,
    pub count: u64,
}

pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

pub const TICK_DEPENDENCIES: [&str; 6] =
    ["POSIX_TIMER", "PERF_EVENTS", "SCHED", "CLOCK_UNSTABLE", "RCU", "RCU_EXP"];
