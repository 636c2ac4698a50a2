//! Counts events of tasks in the kernel without recording them: for workloads that prove their own
//! counts.
//!
//! ```no_run
//! use punctual_record::count::{CountKind, CountedTasks, RunningCounters};
//! let tasks = CountedTasks::Processes(vec![std::process::id()]);
//! let counters = RunningCounters::start(&tasks, &[CountKind::Syscalls, CountKind::Switches])?;
//! let before = counters.read()?;
//! // … the work …
//! let made = counters.read()?.since(&before);
//! println!("{} calls, {} voluntary switches", made.all_syscalls(), made.voluntary);
//! # Ok::<(), punctual_record::StartError>(())
//! ```
//!
//! An event costs an addition to a cache line of the CPU's own and, unless all tasks are counted, a
//! table lookup: 50 to 100 ns on the machine of docs/decisions/0001. Nothing is lost, and nothing
//! is left behind. It needs BPF with BTF; otherwise the error says so.

use crate::bpf::{Attach, BpfObject, LoadError, sys};
use crate::namespace::check_ids;
use crate::start_error::StartError;
use crate::wire::layout::{self as wire, Counts as Wire};
use aya_obj::btf::Btf;
use std::collections::BTreeMap;

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/count.bpf.o.z"));

/// The tasks with counted events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountedTasks {
    All,
    /// These processes (with all current and future threads) or threads, by the kernel's ids.
    Processes(Vec<u32>),
}

/// The kind of counted events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CountKind {
    /// System calls by number, from raw_syscalls:sys_enter.
    Syscalls,
    /// Context switches away from the tasks, as divided by the kernel (getrusage(2): `ru_nvcsw`,
    /// `ru_nivcsw`).
    Switches,
    /// Pages that the kernel allocated while the tasks ran, for any purpose (kmem:mm_page_alloc).
    Pages,
    /// Page faults (exceptions:page_fault_user, page_fault_kernel). Not the sum of minor and major
    /// faults: a repeated one counts twice here.
    Faults,
    /// Device interrupts and softirqs while the tasks ran.
    Irqs,
    /// Bytes of kmalloc (kmem:kmalloc, since 6.1).
    Kmalloc,
}

impl CountKind {
    /// Ordered pairs of tracepoint and programs; alternatives are separated by `|`.
    fn counting_programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            CountKind::Syscalls => &[("sys_enter", "count_syscall")],
            CountKind::Switches => &[("sched_switch", "count_switched|count_switched_before_5_18")],
            CountKind::Pages => &[("mm_page_alloc", "count_page_alloc")],
            CountKind::Faults => &[
                ("page_fault_user", "count_fault_user"),
                ("page_fault_kernel", "count_fault_kernel"),
            ],
            CountKind::Irqs => {
                &[("irq_handler_entry", "count_irq"), ("softirq_entry", "count_softirq")]
            }
            CountKind::Kmalloc => &[("kmalloc", "count_kmalloc")],
        }
    }
}

/// Running counters; dropping this ends them.
pub struct RunningCounters {
    object: BpfObject,
    attached: Vec<Attach>,
    cpus: u32,
}

/// A reading: totals since the start. Kinds that were not requested are 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CountTotals {
    /// System calls by number, without zero counts; see [`punctual_core::Names::syscalls`] for
    /// their names.
    pub syscalls: BTreeMap<u32, u64>,
    /// Switches to wait.
    pub voluntary: u64,
    /// Switches while runnable.
    pub preempted: u64,
    pub pages: u64,
    /// Page faults in user mode.
    pub faults_user: u64,
    /// Page faults in kernel mode.
    pub faults_kernel: u64,
    pub irqs: u64,
    pub softirqs: u64,
    pub kmalloc_bytes: u64,
    /// Events that were not counted, as the same program was already running on that CPU.
    pub missed: u64,
}

const BACKEND: &str = "BPF (BTF tracepoints)";

impl RunningCounters {
    /// Starts counting. Fails unless all requested kinds can be counted.
    pub fn start(tasks: &CountedTasks, kinds: &[CountKind]) -> Result<RunningCounters, StartError> {
        if *tasks != CountedTasks::All {
            check_ids()?;
        }
        RunningCounters::load_programs(tasks, kinds)
            .map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(
        tasks: &CountedTasks,
        kinds: &[CountKind],
    ) -> Result<RunningCounters, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let by_pid = [u8::from(*tasks != CountedTasks::All)];
        let mut object = BpfObject::open(PROGRAMS, &[("by_pid", &by_pid)])?;
        let cpus = possible_cpus();
        object.set_map_shape("counts", Wire::SIZE as u32, cpus);
        object.prepare_programs(Some(&kernel))?;
        if let CountedTasks::Processes(pids) = tasks {
            for pid in pids {
                let refused = |why| LoadError::Map { bytes: 0, why };
                sys::update_map(object.map_fd("pids")?, &pid.to_ne_bytes(), &[1])
                    .map_err(refused)?;
            }
        }
        let mut attached = Vec::new();
        for (tracepoint, programs) in kinds.iter().flat_map(|kind| kind.counting_programs()) {
            attached.push(Attach::first_of(programs, |program| {
                object.attach_btf_tracepoint(&kernel, program, tracepoint)
            })?);
        }
        Ok(RunningCounters { object, attached, cpus })
    }

    /// The counts so far. Concurrent events are in this or in the next reading, never in both.
    pub fn read(&self) -> Result<CountTotals, StartError> {
        let failed = |why| {
            StartError::from_load_error(BACKEND, &LoadError::Map { bytes: Wire::SIZE as u64, why })
        };
        let map = self
            .object
            .map_fd("counts")
            .map_err(|why| StartError::from_load_error(BACKEND, &why))?;
        let mut counts = CountTotals::default();
        for cpu in 0..self.cpus {
            let mut bytes = [0; Wire::SIZE];
            sys::look_up(map, &cpu.to_ne_bytes(), &mut bytes).map_err(failed)?;
            counts.add(&Wire::read(&bytes));
        }
        counts.missed = self.attached.iter().filter_map(Attach::recursion_misses).sum();
        Ok(counts)
    }
}

impl CountTotals {
    fn add(&mut self, cpu: &Wire) {
        for (number, count) in (0..).zip(cpu.syscalls).filter(|(_, count)| *count > 0) {
            *self.syscalls.entry(number).or_default() += count;
        }
        self.voluntary += cpu.voluntary;
        self.preempted += cpu.preempted;
        self.pages += cpu.pages;
        self.faults_user += cpu.faults_user;
        self.faults_kernel += cpu.faults_kernel;
        self.irqs += cpu.irqs;
        self.softirqs += cpu.softirqs;
        self.kmalloc_bytes += cpu.kmalloc_bytes;
    }

    /// The increase since an earlier reading of the same counters.
    pub fn totals_since(&self, earlier: &CountTotals) -> CountTotals {
        let count_since = |number: &u32, count: u64| {
            count.saturating_sub(earlier.syscalls.get(number).copied().unwrap_or(0))
        };
        let syscalls =
            self.syscalls.iter().map(|(number, count)| (*number, count_since(number, *count)));
        CountTotals {
            syscalls: syscalls.filter(|(_, count)| *count > 0).collect(),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            preempted: self.preempted.saturating_sub(earlier.preempted),
            pages: self.pages.saturating_sub(earlier.pages),
            faults_user: self.faults_user.saturating_sub(earlier.faults_user),
            faults_kernel: self.faults_kernel.saturating_sub(earlier.faults_kernel),
            irqs: self.irqs.saturating_sub(earlier.irqs),
            softirqs: self.softirqs.saturating_sub(earlier.softirqs),
            kmalloc_bytes: self.kmalloc_bytes.saturating_sub(earlier.kmalloc_bytes),
            missed: self.missed.saturating_sub(earlier.missed),
        }
    }

    pub fn all_syscalls(&self) -> u64 {
        self.syscalls.values().sum()
    }
}

/// The upper bound of CPU numbers.
pub(crate) fn possible_cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let cpus: punctual_core::CpuSet = text.trim().parse().unwrap_or_default();
    cpus.iter().last().map_or(wire::MAX_CPUS as u32, |last| last as u32 + 1)
}
