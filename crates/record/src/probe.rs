//! Times functions of unmodified programs from entry to exit by probes that the kernel pairs, and
//! timestamps source lines as points.
//!
//! [`Probes::start`] places the probes, [`Probes::drain_calls`] returns the ended calls (raw
//! records, see [`crate::wire`]), and [`Probes::stop_probes`] removes the probes. The pairing is in
//! `bpf/probe.bpf.c`; [`cost`] measures the cost of a probe itself.

pub mod cost;
mod empty;

use crate::bpf::uprobe::{ProbePlace, ProbePosition, ProbeScope};
use crate::bpf::{
    Attach, BpfObject, BufferSizes, Buffers, LoadError, borrow_constants, slot_constants, sys,
};
use crate::namespace::check_ids;
use crate::start_error::StartError;
use crate::symbols::lines::SourceLine;
use crate::symbols::{Function, Site};
use aya_obj::btf::Btf;
use empty::Empty;
use punctual_core::CpuSet;
use punctual_core::event::{CallCounts, FunctionName, LineName, RecordedSource};
use punctual_sys::clock;
use std::os::fd::OwnedFd;

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o.z"));

/// The processes with timed calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbedProcesses {
    /// One process, with all its threads.
    Process(u32),
    /// One process and those that it starts from now on. Other processes that run the same
    /// functions hit the probes too and are slowed, but are not recorded.
    Family(u32),
    Everyone,
}

/// Options besides the functions.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRequest {
    pub whose: ProbedProcesses,
    /// The integer argument to keep, from 1 to 6.
    pub argument: Option<u8>,
    /// The buffer size per CPU in bytes, rounded to a power of two.
    pub buffer: usize,
}

/// Active probes; they are removed when this is dropped, or the process dies.
pub struct Probes {
    entries: Vec<OwnedFd>,
    returns: Vec<OwnedFd>,
    lines: Vec<OwnedFd>,
    _ends: Vec<Attach>,
    buffers: Buffers,
    object: BpfObject,
    cpus: CpuSet,
    functions: u32,
    bytes: Vec<u8>,
}

impl Probes {
    /// Places a probe on the entry and on the return of every function, and on every line. Their
    /// indices in `functions` and `lines` are their ids in the records: as functions, and as
    /// points.
    pub fn start(
        functions: &[Function],
        lines: &[SourceLine],
        cpus: &CpuSet,
        request: ProbeRequest,
    ) -> Result<Probes, StartError> {
        if request.whose != ProbedProcesses::Everyone {
            check_ids()?;
        }
        Probes::load_probes(functions, lines, cpus, request).map_err(|why| {
            let in_kernel = functions.iter().any(|function| function.site == Site::Kernel);
            let what = if in_kernel { "probes in the kernel" } else { "probes in programs" };
            StartError::from_load_error(what, &why)
        })
    }

    fn load_probes(
        functions: &[Function],
        lines: &[SourceLine],
        cpus: &CpuSet,
        request: ProbeRequest,
    ) -> Result<Probes, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let shape = BufferSizes::with_capacity(request.buffer, false);
        let family = matches!(request.whose, ProbedProcesses::Family(_));
        let in_kernel = functions.iter().any(|function| function.site == Site::Kernel);
        if in_kernel && functions.iter().any(|function| function.site != Site::Kernel) {
            return Err(LoadError::NoKprobe(
                "kernel functions and program functions cannot be probed together".to_owned(),
            ));
        }
        let argument = u32::from(request.argument.unwrap_or(0));
        let mut constants = vec![
            ("mask", shape.index_mask().to_ne_bytes().to_vec()),
            ("by_pid", vec![u8::from(request.whose != ProbedProcesses::Everyone)]),
            ("follow", vec![u8::from(family)]),
            ("argument", argument.to_ne_bytes().to_vec()),
            ("in_kernel", vec![u8::from(in_kernel)]),
        ];
        constants.extend(slot_constants(cpus));
        let mut object = BpfObject::open(PROGRAMS, &borrow_constants(&constants))?;
        object.set_map_shape("buffers", shape.value_size(), cpus.len() as u32);
        // The kernel refuses empty maps.
        object.set_map_shape("counts", COUNT_BYTES as u32, functions.len().max(1) as u32);
        object.prepare_programs(Some(&kernel))?;
        let map = object.map_fd("buffers")?;
        let bytes = u64::from(shape.value_size()) * cpus.len() as u64;
        let buffers = Buffers::map_buffers(map, shape, cpus.len() as u32)
            .map_err(|why| LoadError::Map { bytes, why })?;
        if let ProbedProcesses::Process(pid) | ProbedProcesses::Family(pid) = request.whose {
            let refused = |why| LoadError::Map { bytes: 0, why };
            sys::update_map(object.map_fd("pids")?, &pid.to_ne_bytes(), &[1]).map_err(refused)?;
        }
        // Threads that end in a call, replaced programs, children: without these three, calls are
        // lost but not falsified.
        let mut ends =
            vec![object.attach_btf_tracepoint(&kernel, "ended", "sched_process_exit")?];
        // A program is replaced within kernel functions, which continue.
        if !in_kernel {
            ends.push(object.attach_btf_tracepoint(&kernel, "replaced", "sched_process_exec")?);
        }
        if family {
            ends.push(object.attach_btf_tracepoint(&kernel, "forked", "sched_process_fork")?);
        }
        // Returns first: an entered call then always has a probe on its return.
        let (returns, entries, lines) = if in_kernel {
            let names: Vec<&str> = functions.iter().map(|one| one.symbol.as_str()).collect();
            let returns = object.attach_kprobes("returned", ProbePosition::Return, &names)?;
            (returns, object.attach_kprobes("entered", ProbePosition::Entry, &names)?, Vec::new())
        } else {
            let scope = match request.whose {
                ProbedProcesses::Process(pid) => ProbeScope::Process(pid),
                ProbedProcesses::Family(_) | ProbedProcesses::Everyone => ProbeScope::All,
            };
            let calls: Vec<ProbePlace> = functions
                .iter()
                .zip(0u64..)
                .map(|(one, cookie)| ProbePlace { file: &one.object, offset: one.offset, cookie })
                .collect();
            let passes = lines.iter().zip(0u64..).flat_map(|(line, cookie)| {
                let place = move |offset| ProbePlace { file: &line.object, offset, cookie };
                line.places.iter().map(move |one| place(one.offset))
            });
            let passes: Vec<ProbePlace> = passes.collect();
            let returns =
                object.attach_uprobes("returned", ProbePosition::Return, &calls, scope)?;
            let entries = object.attach_uprobes("entered", ProbePosition::Entry, &calls, scope)?;
            (
                returns,
                entries,
                object.attach_uprobes("passed", ProbePosition::Entry, &passes, scope)?,
            )
        };
        let functions = functions.len() as u32;
        Ok(Probes {
            entries,
            returns,
            lines,
            _ends: ends,
            buffers,
            object,
            cpus: cpus.clone(),
            functions,
            bytes: Vec::new(),
        })
    }

    /// Returns the records of calls that ended since, by CPU. Never blocks.
    pub fn drain_calls(&mut self, sink: &mut dyn FnMut(u16, &[u8])) {
        for (slot, cpu) in self.cpus.iter().enumerate() {
            self.bytes.clear();
            self.buffers.take_records(slot as u32, &mut self.bytes);
            if !self.bytes.is_empty() {
                sink(cpu as u16, &self.bytes);
            }
        }
    }

    /// The fill level of the fullest buffer in percent.
    pub fn fill_percent(&self) -> u64 {
        self.buffers.fill_percent()
    }

    /// The sources of its records, one per CPU, with losses so far.
    pub fn record_sources(&self) -> Vec<RecordedSource> {
        let source = |(slot, cpu): (usize, usize)| RecordedSource {
            name: format!("probes on cpu {cpu}"),
            cpu: Some(cpu as u16),
            recorded: 0,
            lost: self.buffers.lost_records(slot as u32),
            torn: 0,
        };
        self.cpus.iter().enumerate().map(source).collect()
    }

    /// The counts of each function's calls so far.
    pub(crate) fn call_counts(&self) -> Vec<CallCounts> {
        let Ok(map) = self.object.map_fd("counts") else { return Vec::new() };
        let count = |function: u32| {
            let mut value = [0; COUNT_BYTES];
            sys::look_up(map, &function.to_ne_bytes(), &mut value).ok()?;
            let word = |at: usize| {
                value[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
            };
            Some(CallCounts {
                entered: word(0),
                returned: word(1),
                left: word(2),
                unpaired: word(3),
                too_deep: word(4),
                no_room: word(5),
            })
        };
        (0..self.functions).map(|function| count(function).unwrap_or_default()).collect()
    }

    /// Removes the probes, and returns the rest with counts and sources.
    pub fn stop_probes(
        mut self,
        sink: &mut dyn FnMut(u16, &[u8]),
    ) -> (Vec<CallCounts>, Vec<RecordedSource>) {
        // Entries first: without further entries no call can miss its return.
        self.entries.clear();
        self.returns.clear();
        self.lines.clear();
        self.drain_calls(sink);
        for (slot, cpu) in self.cpus.iter().enumerate() {
            self.bytes.clear();
            self.buffers.last_loss(
                slot as u32,
                cpu as u16,
                clock::monotonic_now(),
                &mut self.bytes,
            );
            if !self.bytes.is_empty() {
                sink(cpu as u16, &self.bytes);
            }
        }
        (self.call_counts(), self.record_sources())
    }
}

/// The functions in the format of a recording.
pub fn function_names(functions: &[Function]) -> Vec<FunctionName> {
    let name = |function: &Function| FunctionName {
        name: function.name.clone(),
        object: function.object.display().to_string(),
        offset: function.offset,
        site: function.site.to_string(),
    };
    functions.iter().map(name).collect()
}

/// The source lines in the format of a recording.
pub fn line_names(lines: &[SourceLine]) -> Vec<LineName> {
    let name = |line: &SourceLine| LineName {
        name: line.name.clone(),
        object: line.object.display().to_string(),
        offsets: line.places.iter().map(|place| place.offset).collect(),
        sites: line.places.iter().map(|place| place.site.to_string()).collect(),
    };
    lines.iter().map(name).collect()
}

/// `struct count` of `bpf/probe.bpf.c`.
const COUNT_BYTES: usize = 48;

/// Active while it lives.
pub struct OwnProbe {
    probes: Probes,
    empty: Empty,
}

impl OwnProbe {
    /// Places a probe on entry and return of the function with the cheapest probe.
    pub fn start(cpus: &CpuSet) -> Result<OwnProbe, StartError> {
        let no_function =
            || StartError::Request("there is no function to probe on this architecture".into());
        let empty = *empty::empty_functions().first().ok_or_else(no_function)?;
        let request = ProbeRequest {
            whose: ProbedProcesses::Process(std::process::id()),
            argument: None,
            buffer: 1 << 20,
        };
        Ok(OwnProbe {
            probes: Probes::start(&[cost::locate_function(&empty)?], &[], cpus, request)?,
            empty,
        })
    }

    /// The first instruction of the function, which determines the cost: see
    /// [`crate::symbols::Site`].
    pub fn site_name(&self) -> String {
        self.empty.site.to_string()
    }

    /// Hits the probe.
    #[inline(always)]
    pub fn hit_probe(&self) {
        // SAFETY: the functions of `empty` take nothing, return nothing and keep all registers but
        // eax, as the C calling convention allows.
        unsafe { (self.empty.call)() };
    }

    /// Discards the records, to free space.
    pub fn discard_records(&mut self) {
        self.probes.drain_calls(&mut |_, _| {});
    }

    /// The number of calls counted by the kernel so far.
    pub fn counted_calls(&self) -> u64 {
        self.probes.call_counts().iter().map(|count| count.entered).sum()
    }
}

#[cfg(test)]
mod live;
