//! The recorder of kernel events: from a request to bytes on the wire.
//!
//! [`Recorder::start_recording`] attaches to the requested events, [`Recorder::drain`] returns the
//! new raw records (see [`crate::wire`]), and [`Recorder::stop`] detaches, returns the rest, and
//! reports coverage and losses of the recording. If the process dies instead, the kernel removes
//! the programs; see `backend` for the leftovers of tracefs and their removal.

mod backend;
mod bpf;
mod findings;
mod flight;
mod tracefs;
mod values;

pub use flight::{BufferProgress, FlightWindow};

use crate::attached::AttachedPrograms;
use crate::names::{TaskNameCollector, kernel_symbols};
use crate::namespace::check_ids;
use crate::request::{RecordMode, Request};
use crate::start_error::StartError;
use crate::wire;
use backend::RunningBackend;
use punctual_core::event::{Group, Names, Recorded, RecordedSource, Tid};
use punctual_core::{Fact, Finding, MonotonicNs};
use punctual_sys::clock;
use values::SeenTracepoints;

/// The name in reports of a recorder of [`RecordMode::Flight`].
pub const FLIGHT: &str = "flight recorder";
/// The name in reports of a recorder of [`RecordMode::Stream`].
pub const STREAM: &str = "recording";

pub struct Recorder {
    running: RunningBackend,
    names: TaskNameCollector,
    request: Request,
    began: MonotonicNs,
    /// The number of returned records by CPU.
    counts: Vec<u64>,
    seen: SeenTracepoints,
    bytes: Vec<u8>,
}

/// The results of a stopped recorder besides its bytes.
#[derive(Debug)]
pub struct Stopped {
    /// The coverage and the losses of the recording.
    pub recorded: Recorded,
    /// The names of the numbers in it.
    pub names: Names,
}

impl Recorder {
    /// Attaches to the requested events, with the first backend that works here, or the requested
    /// one.
    pub fn start(request: Request) -> Result<Recorder, StartError> {
        request.check_consistency().map_err(StartError::Request)?;
        // The explained threads are our own, known by their ids.
        if !request.pids.is_empty() || request.mode == RecordMode::Flight {
            check_ids()?;
        }
        let names = TaskNameCollector::start();
        let running = RunningBackend::start(&request)?;
        let counts = vec![0; request.cpus.len()];
        Ok(Recorder {
            running,
            names,
            request,
            began: clock::monotonic_now(),
            counts,
            seen: SeenTracepoints::default(),
            bytes: Vec::new(),
        })
    }

    /// The requested events that could not be recorded, with reasons.
    pub fn findings(&self) -> &[Finding] {
        self.running.findings()
    }

    /// Returns all new whole records: for each CPU that has any, its number and the records, in the
    /// order of their start. Never blocks. In [`RecordMode::Flight`] it only learns new names, so
    /// it must be called occasionally.
    pub fn drain(&mut self, sink: &mut dyn FnMut(u16, &[u8])) {
        let streamed = if self.request.mode == RecordMode::Stream { usize::MAX } else { 0 };
        for (index, cpu) in self.request.cpus.iter().enumerate().take(streamed) {
            self.bytes.clear();
            self.running.take_records(index as u32, &mut self.bytes);
            if !self.bytes.is_empty() {
                self.counts[index] += wire::count_records(&self.bytes);
                if self.names_occur() {
                    self.seen.note_records(&self.bytes);
                }
                sink(cpu as u16, &self.bytes);
            }
        }
        self.bytes.clear();
        let whole = self.running.take_names(&mut self.bytes);
        self.names.take_names(&self.bytes);
        if !whole {
            self.names.scan_proc();
        }
    }

    /// Also records this thread, or the `whole` process: with [`Backend::Tracefs`], if it was
    /// limited to some.
    ///
    /// [`Backend::Tracefs`]: crate::Backend::Tracefs
    pub(crate) fn follow_task(&self, pid: u32, whole: bool) -> Result<(), StartError> {
        self.running.follow_task(pid, whole)
    }

    /// Its attached programs; none without BPF.
    pub fn attached_programs(&self) -> AttachedPrograms {
        let name = if self.request.mode == RecordMode::Flight { FLIGHT } else { STREAM };
        AttachedPrograms::from_programs(name, self.running.attached_programs())
    }

    /// The fill level of the fullest buffer in percent: drain more often when it grows. `None` if
    /// the backend does not know it.
    pub fn fill_percent(&self) -> Option<u64> {
        self.running.fill_percent()
    }

    /// The losses so far, by CPU.
    pub fn losses_by_cpu(&self) -> Vec<(u16, u64)> {
        let cpus = self.request.cpus.iter().enumerate();
        cpus.map(|(index, cpu)| (cpu as u16, self.running.lost_records(index as u32))).collect()
    }

    /// Detaches everything and returns the rest.
    pub fn stop(mut self, sink: &mut dyn FnMut(u16, &[u8])) -> Stopped {
        let ended = clock::monotonic_now();
        self.running.detach_all();
        self.drain(sink);
        for (index, cpu) in self.request.cpus.iter().enumerate() {
            self.bytes.clear();
            self.running.last_loss(index as u32, cpu as u16, ended, &mut self.bytes);
            if !self.bytes.is_empty() {
                sink(cpu as u16, &self.bytes);
            }
        }
        let mut recorded = self.describe_coverage(ended);
        let mut names = self.names.into_names();
        names.tracepoints = self.running.tracepoints().to_vec();
        names.stacks = self.seen.resolve_stacks(|stack| self.running.stack_addresses(stack));
        match kernel_symbols(&self.seen.functions) {
            Fact::Known(symbols) => names.symbols = symbols,
            Fact::Unavailable(why) => recorded.findings.push(findings::hidden_symbols_finding(why)),
            Fact::NotAsked => {}
        }
        Stopped { recorded, names }
    }

    /// Whether records may hold addresses or stacks.
    fn names_occur(&self) -> bool {
        let groups = &self.request.groups;
        self.request.stacks || groups.contains(&Group::Workqueue) || groups.contains(&Group::Timer)
    }

    /// The coverage and the losses of the recording so far.
    pub fn coverage_so_far(&self) -> Recorded {
        self.describe_coverage(clock::monotonic_now())
    }

    /// The known names so far, without those of kernel functions.
    pub fn known_names(&self) -> Names {
        Names { tracepoints: self.running.tracepoints().to_vec(), ..self.names.so_far() }
    }

    /// The name of a task, if known.
    pub(crate) fn comm_of(&self, tid: u32) -> Option<&str> {
        self.names.comm_of(Tid(tid))
    }

    fn describe_coverage(&self, ended: MonotonicNs) -> Recorded {
        let sources = self.request.cpus.iter().enumerate().map(|(index, cpu)| RecordedSource {
            name: format!("cpu {cpu}"),
            cpu: Some(cpu as u16),
            recorded: self.counts[index],
            lost: self.running.lost_records(index as u32),
            torn: 0,
        });
        Recorded {
            recorder: self.running.backend_name().to_owned(),
            began: self.began,
            ended,
            cpus: self.request.cpus.clone(),
            groups: self.running.groups().to_vec(),
            tracepoints: self
                .running
                .tracepoints()
                .iter()
                .map(|format| format.name.clone())
                .collect(),
            pids: self.request.pids.clone(),
            comms: self.request.comms.clone(),
            sources: sources.collect(),
            missing: Vec::new(),
            point_clock_error: None,
            moments: Vec::new(),
            findings: self.running.findings().to_vec(),
        }
    }
}
