//! Every entry into the kernel on some CPUs, with the originator that sent, queued or armed it.
//!
//! ```no_run
//! use punctual_record::entries::EntryRecorder;
//! let mut recorder = EntryRecorder::start(&"3".parse()?)?;
//! // … later …
//! recorder.drain(&mut |entry| println!("{:?} for {}", entry.served, entry.own));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The programs run on all CPUs; nothing of this process runs on the chosen ones. It needs BPF and
//! BTF.

mod record;
mod traced;

use crate::bpf::{
    Attach, BpfObject, BufferSizes, Buffers, LoadError, borrow_constants, slot_constants, sys,
};
use crate::start_error::StartError;
use crate::wire::layout as wire;
use crate::wire::layout::{Own, OwnKey};
use aya_obj::btf::Btf;
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{Entry, EntryCounts, KernelFunctions, OwnCount, OwnEntry, Vector};
use punctual_core::{CpuSet, Finding, Severity};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
pub use traced::TracedEntries;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cpus.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";
/// The buffer of each CPU: some 30,000 entries.
const BUFFER: usize = 4 << 20;
const STACK: usize = wire::STACK_DEPTH as usize * 8;
/// The size of the programs' CPU masks.
const CPUS: usize = 1024;

/// Required tracepoints with programs; alternatives are separated by `|`. Ends come first: without
/// a seen start an end is ignored.
const NEEDED: [(&str, &str); 8] = [
    ("irq_handler_exit", "cpu_irq_exit"),
    ("irq_handler_entry", "cpu_irq_entry"),
    ("softirq_exit", "cpu_soft_exit"),
    ("softirq_entry", "cpu_soft_entry"),
    ("softirq_raise", "cpu_soft_raise"),
    ("sched_waking", "cpu_waking"),
    ("sched_wakeup_new", "cpu_wakeup_new"),
    ("sched_switch", "cpu_switched|cpu_switched_before_5_18"),
];

/// The information from each further tracepoint. If one is missing, it is unknown and a finding
/// says so.
const OPTIONAL: [(&str, &str, &str); 19] = [
    ("sched_migrate_task", "cpu_migrated", "who moved a task"),
    ("ipi_send_cpu", "cpu_ipi", "who sent an IPI"),
    ("ipi_send_cpumask", "cpu_ipi_mask", "who sent an IPI to several CPUs"),
    ("csd_queue_cpu", "cpu_call_queued", "who called a function on the CPU"),
    ("csd_function_exit", "cpu_call_exit", "which function was called"),
    ("csd_function_entry", "cpu_call_entry", "which function was called"),
    ("timer_start", "cpu_timer_start", "who armed a timer"),
    ("timer_expire_exit", "cpu_timer_exit", "which timer expired"),
    ("timer_expire_entry", "cpu_timer_entry", "which timer expired"),
    ("hrtimer_start", "cpu_hrtimer_start", "who armed a high-resolution timer"),
    ("hrtimer_expire_exit", "cpu_hrtimer_exit", "which high-resolution timer expired"),
    ("hrtimer_expire_entry", "cpu_hrtimer_entry", "which high-resolution timer expired"),
    ("tick_stop", "cpu_tick_stop", "what keeps the tick"),
    ("workqueue_queue_work", "cpu_work_queued", "who queued a work item"),
    ("workqueue_execute_end", "cpu_work_end", "which work item ran"),
    ("workqueue_execute_start", "cpu_work_start", "which work item ran"),
    ("nmi_handler", "cpu_nmi", "non-maskable interrupts"),
    ("page_fault_user", "cpu_fault_user", "page faults"),
    ("page_fault_kernel", "cpu_fault_kernel", "page faults"),
];
/// Its first argument is the address of a function, which BTF does not let a program read.
const RAW: &str = "csd_function_entry";
const CALLS: (&str, &str) = ("sys_enter", "cpu_syscall");

const FUNCTIONS: [&str; 4] = [
    "flush_tlb_func",
    "generic_smp_call_function_single_interrupt",
    "tick_nohz_handler",
    "tick_sched_timer",
];

fn kernel_functions() -> KernelFunctions {
    let [shootdown, call_function, tick, tick_before] = crate::names::kernel_functions(FUNCTIONS);
    KernelFunctions { shootdown, call_function, tick: if tick == 0 { tick_before } else { tick } }
}

/// The programs in the kernel; dropping this ends them.
pub struct EntryRecorder {
    object: BpfObject,
    attached: Vec<Attach>,
    buffers: Buffers,
    cpus: CpuSet,
    scratch: Vec<u8>,
    /// The information that the kernel does not provide, with reasons.
    pub findings: Vec<Finding>,
    pub vectors: Vec<Vector>,
    /// Whether function calls from other CPUs are seen; otherwise only TLB shootdowns that flush
    /// something are.
    pub sees_calls: bool,
    counting: Option<OwnedFd>,
}

impl EntryRecorder {
    pub fn start(cpus: &CpuSet) -> Result<EntryRecorder, StartError> {
        if let Some(last) = cpus.iter().last().filter(|last| *last >= CPUS) {
            let message = format!("CPU {last}: only the first {CPUS} CPUs can be chosen");
            return Err(StartError::Request(message));
        }
        EntryRecorder::load_programs(cpus).map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(cpus: &CpuSet) -> Result<EntryRecorder, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let (shape, count) = (BufferSizes::with_capacity(BUFFER, false), cpus.len() as u32);
        let functions = kernel_functions();
        let mut chosen = [0u64; CPUS / 64];
        cpus.iter().for_each(|cpu| chosen[cpu / 64] |= 1 << (cpu % 64));
        let mut constants = vec![
            ("mask", shape.index_mask().to_ne_bytes().to_vec()),
            ("chosen", chosen.iter().flat_map(|word| word.to_ne_bytes()).collect()),
            ("shootdown", functions.shootdown.to_ne_bytes().to_vec()),
            ("tick", functions.tick.to_ne_bytes().to_vec()),
            ("call_function", functions.call_function.to_ne_bytes().to_vec()),
        ];
        constants.extend(slot_constants(cpus));
        let mut object = BpfObject::open(OBJECT, &borrow_constants(&constants))?;
        object.set_map_shape("buffers", shape.value_size(), count);
        object.set_map_entries("cpus", count);
        object.prepare_programs(Some(&kernel))?;
        let bytes = u64::from(shape.value_size()) * u64::from(count);
        let buffers = Buffers::map_buffers(object.map_fd("buffers")?, shape, count)
            .map_err(|why| LoadError::Map { bytes, why })?;
        let mut recorder = EntryRecorder {
            object,
            attached: Vec::new(),
            buffers,
            cpus: cpus.clone(),
            scratch: Vec::new(),
            findings: Vec::new(),
            vectors: Vec::new(),
            sees_calls: true,
            counting: sys::enable_run_time().ok(),
        };
        recorder.attach_programs(&kernel)?;
        Ok(recorder)
    }

    /// Originators first, then entries, so that no entry is seen without its originator.
    fn attach_programs(&mut self, kernel: &Btf) -> Result<(), LoadError> {
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tracepoint, program, what) in OPTIONAL {
            let attached = match tracepoint == RAW {
                true => self.object.attach_raw_tracepoint(program, tracepoint),
                false => self.object.attach_btf_tracepoint(kernel, program, tracepoint),
            };
            match attached {
                Ok(attached) => self.attached.push(attached),
                Err(LoadError::NoTracepoint(_)) => {
                    missing.entry(what).or_default().push(tracepoint);
                }
                Err(why) => return Err(why),
            }
        }
        self.sees_calls = !missing.values().flatten().any(|name| *name == RAW);
        if !self.sees_calls {
            let tlb = self.object.attach_btf_tracepoint(kernel, "cpu_tlb", "tlb_flush");
            self.attached.extend(tlb.ok());
        }
        self.findings.extend(missing.iter().map(|(what, names)| not_shown(what, names)));
        for vector in Vector::ALL {
            let name = vector.tracepoint_name();
            let one = |program: &str, end: &str| {
                self.object.attach_btf_tracepoint(kernel, program, &format!("{name}_{end}"))
            };
            let attach_pair = one("cpu_vector_exit", "exit")
                .and_then(|exit| Ok([exit, one(&format!("cpu_{name}"), "entry")?]));
            match attach_pair {
                Ok(both) => {
                    self.attached.extend(both);
                    self.vectors.push(vector);
                }
                Err(LoadError::NoTracepoint(_)) => {}
                Err(why) => return Err(why),
            }
        }
        if self.vectors.is_empty() {
            self.findings.push(not_shown("the CPU's own vectors", &["irq_vectors:*"]));
        }
        for (tracepoint, programs) in NEEDED.into_iter().chain([CALLS]) {
            self.attached.push(Attach::first_of(programs, |program| {
                self.object.attach_btf_tracepoint(kernel, program, tracepoint)
            })?);
        }
        Ok(())
    }

    /// Returns the ended entries of each CPU, in the order of their ends.
    pub fn drain_entries(&mut self, take: &mut dyn FnMut(Entry)) {
        for slot in 0..self.cpus.len() as u32 {
            self.scratch.clear();
            self.buffers.take_records(slot, &mut self.scratch);
            record::read(&self.scratch, take);
        }
    }

    /// The number of entries of a CPU lost for lack of space.
    pub fn lost_entries(&self, cpu: usize) -> u64 {
        self.slot_of(cpu).map_or(0, |slot| self.buffers.lost_records(slot))
    }

    fn slot_of(&self, cpu: usize) -> Option<u32> {
        self.cpus.iter().position(|one| one == cpu).map(|slot| slot as u32)
    }

    /// The number of events that the kernel did not pass on, as the same program was already
    /// running on that CPU.
    pub fn missed_events(&self) -> u64 {
        self.attached.iter().filter_map(Attach::recursion_misses).sum()
    }

    /// ns and runs of all programs since the start, on all CPUs; `None` if the kernel does not
    /// count them, or on a second call: counting takes two clock readings per run, so it ends here.
    pub fn take_run_time(&mut self) -> Option<(u64, u64)> {
        self.counting.take()?;
        Attach::run_time_of(&self.attached)
    }

    /// The addresses of a kernel stack, innermost first.
    pub fn stack_addresses(&self, number: u32) -> Vec<u64> {
        let (map, place) = match number.checked_sub(wire::STACKS as u32) {
            None => ("stacks", number),
            Some(place) => ("more_stacks", place),
        };
        let map = self.object.map_fd(map);
        map.map_or_else(|_| Vec::new(), |map| sys::read_stack::<STACK>(map, place))
    }

    /// The counts of a CPU, which are never lost.
    pub fn cpu_counts(&self, cpu: usize) -> Option<EntryCounts> {
        let mut bytes = vec![0; self.object.value_size("cpus")];
        let slot = self.slot_of(cpu)?;
        sys::look_up(self.object.map_fd("cpus").ok()?, &slot.to_ne_bytes(), &mut bytes).ok()?;
        read(&bytes)
    }

    /// The actions of tasks themselves on the chosen CPUs.
    pub fn own_counts(&self) -> Vec<OwnCount> {
        self.object.map_fd("own").map(read_own_counts).unwrap_or_default()
    }
}

fn not_shown(what: &str, names: &[&str]) -> Finding {
    let message = format!("this kernel does not show {what}: it has no {}", names.join(", "));
    Finding::new("originator-not-shown", Severity::Note, "cpus", message)
        .with_remedy("Linux 6.5 and later have all events of IPIs")
}

/// Reads the last part of `struct cpu`.
fn read(cpu: &[u8]) -> Option<EntryCounts> {
    let counts = wire::EntryCounts::read(cpu.last_chunk::<{ wire::EntryCounts::SIZE }>()?);
    Some(EntryCounts {
        vectors: counts.vectors,
        irqs: counts.irqs,
        shootdowns: counts.shootdowns,
        own_lost: counts.own_lost,
    })
}

fn read_own_counts(map: &OwnedFd) -> Vec<OwnCount> {
    let (mut all, mut key) = (Vec::new(), None::<[u8; OwnKey::SIZE]>);
    loop {
        let mut next = [0; OwnKey::SIZE];
        let before = key.as_ref().map(|key| key.as_slice());
        if sys::next_key(map, before, &mut next).is_err() {
            return all;
        }
        let mut value = [0; Own::SIZE];
        if sys::look_up(map, &next, &mut value).is_ok() {
            all.push(decode_own_count(OwnKey::read(&next), Own::read(&value)));
        }
        key = Some(next);
    }
}

fn decode_own_count(key: OwnKey, own: Own) -> OwnCount {
    let what = match u64::from(key.what) {
        wire::OWN_FAULT_USER => OwnEntry::UserFault,
        wire::OWN_FAULT_KERNEL => OwnEntry::KernelFault,
        number => OwnEntry::SystemCall((number < wire::MAX_SYSCALLS).then_some(key.what)),
    };
    OwnCount { cpu: key.cpu, tid: key.tid, name: TaskComm(own.comm), what, count: own.count }
}
