//! The events for entries through tracefs, for kernels without BPF or BTF, and users without access
//! to it.
//!
//! Two recordings: switches, interrupts and the originating actions on all CPUs; system calls and
//! page faults on the chosen CPUs only.

use super::{OPTIONAL, RAW, kernel_functions, not_shown};
use crate::merge::Merged;
use crate::namespace::foreign_ids;
use crate::recorder::Recorder;
use crate::request::{Backend, Request};
use crate::start_error::StartError;
use crate::tracefs::Tracefs;
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{KernelFunctions, Vector};
use punctual_core::event::{Group, NamedTracepoint, TracepointFormat};
use punctual_core::{CpuSet, Event, Finding};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// The buffer of each CPU and recording: some 50,000 events between two drains.
const BUFFER: usize = 4 << 20;
const OF_ALL: [Group; 4] = [Group::Sched, Group::Irq, Group::Vectors, Group::Softirq];
const OF_CHOSEN: [Group; 2] = [Group::Syscall, Group::Fault];
/// Shows TLB flushes on kernels that do not show function calls.
const TLB: &str = "tlb:tlb_flush";
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The maximum number of threads for which it is kept whether they are kernel threads.
const THREADS: usize = 16_384;

/// The event recordings; dropping this ends them.
pub struct TracedEntries {
    machine: Recorder,
    /// The actions of the tasks themselves; none if the kernel does not show them.
    own: Option<Recorder>,
    merged: Merged,
    kernel: RefCell<HashMap<u32, bool>>,
    /// The tracepoints recorded by name.
    pub formats: Vec<TracepointFormat>,
    pub numbers: BTreeMap<u8, String>,
    /// The functions with a special meaning.
    pub functions: KernelFunctions,
    /// The information that the kernel does not provide, with reasons.
    pub findings: Vec<Finding>,
    pub vectors: Vec<Vector>,
    /// As of [`super::EntryRecorder`].
    pub sees_calls: bool,
}

impl TracedEntries {
    /// Starts for these CPUs among those online, with these tracepoints besides the groups.
    pub fn start(
        cpus: &CpuSet,
        online: &CpuSet,
        tracepoints: &[&str],
    ) -> Result<TracedEntries, StartError> {
        let refused = |why| StartError::Backend { backend: "tracefs", why, remedy: None };
        // tracefs only has the ids of the initial namespace.
        if let Some(why) = foreign_ids() {
            return Err(refused(why.to_owned()));
        }
        let tracefs = Tracefs::open().map_err(refused)?;
        let has =
            |named: &NamedTracepoint| tracefs.tracepoint_format(&named.group, &named.name).is_ok();
        let named_tracepoints =
            tracepoints.iter().filter_map(|name| name.parse::<NamedTracepoint>().ok());
        let (mut there, missing): (Vec<_>, Vec<_>) = named_tracepoints.partition(has);
        let sees_calls = there.iter().any(|named| named.name == RAW);
        there.retain(|named| !sees_calls || named.to_string() != TLB);
        let has_vector = |vector: &Vector| {
            tracefs
                .tracepoint_format("irq_vectors", &format!("{}_entry", vector.tracepoint_name()))
                .is_ok()
        };
        let machine = Recorder::start(Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            tracepoints: there,
            ..Request::new(&OF_ALL, online.clone())
        })?;
        let names = machine.known_names();
        // Without it only those actions are unknown.
        let task_recorder = Recorder::start(Request {
            buffer: BUFFER,
            backend: Backend::Tracefs,
            ..Request::new(&OF_CHOSEN, cpus.clone())
        });
        let vectors: Vec<Vector> = Vector::ALL
            .into_iter()
            .filter(|vector| names.vectors.values().any(|name| name == vector.tracepoint_name()))
            .filter(has_vector)
            .collect();
        let mut findings = unavailable_findings(&missing);
        findings.extend(machine.findings().iter().cloned());
        match &task_recorder {
            Ok(own) => findings.extend(own.findings().iter().cloned()),
            Err(_) => findings.push(not_shown("system calls and page faults", &["sys_enter"])),
        }
        Ok(TracedEntries {
            formats: names.tracepoints,
            numbers: names.vectors,
            machine,
            own: task_recorder.ok(),
            merged: Merged::default(),
            kernel: RefCell::default(),
            functions: kernel_functions(),
            findings,
            vectors,
            sees_calls,
        })
    }

    /// Returns the new events in order of time.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.merged.take_events([&mut self.machine].into_iter().chain(&mut self.own))
    }

    /// The name of a task; empty if unknown.
    pub fn task_name(&self, tid: u32) -> TaskComm {
        let mut name = TaskComm::default();
        let comm = self.machine.comm_of(tid).unwrap_or_default().as_bytes();
        let length = comm.len().min(name.0.len());
        name.0[..length].copy_from_slice(&comm[..length]);
        name
    }

    /// Whether it is a kernel thread; unknown for one that ended before it was queried.
    pub fn is_kernel(&self, tid: u32) -> bool {
        let mut known_threads = self.kernel.borrow_mut();
        if known_threads.len() >= THREADS {
            known_threads.clear();
        }
        *known_threads.entry(tid).or_insert_with(|| {
            let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
            // After the name, which may contain anything: state, 5 numbers, flags
            // (proc_pid_stat(5)).
            let flags = stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(6)?.parse::<u64>().ok());
            flags.is_some_and(|flags| flags & KERNEL_THREAD != 0)
        })
    }
}

/// The information that is unavailable without these tracepoints.
fn unavailable_findings(missing: &[NamedTracepoint]) -> Vec<Finding> {
    let mut by_use: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for named in missing {
        if let Some((_, _, what)) = OPTIONAL.iter().find(|(name, ..)| *name == named.name) {
            by_use.entry(what).or_default().push(&named.name);
        }
    }
    by_use.iter().map(|(what, names)| not_shown(what, names)).collect()
}
