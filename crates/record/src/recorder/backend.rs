//! The running backend.

use super::bpf::BpfRecorder;
use super::tracefs::{self, TracefsRecorder};
use crate::bpf::{Attach, Buffers};
use crate::request::{Backend, RecordMode, Request};
use crate::start_error::StartError;
use punctual_core::event::{Group, StackId, TracepointFormat};
use punctual_core::{Finding, MonotonicNs};
use std::sync::Arc;

pub(super) enum RunningBackend {
    Bpf(BpfRecorder),
    Tracefs(TracefsRecorder),
}

macro_rules! each {
    ($self:expr, $running:ident => $what:expr) => {
        match $self {
            RunningBackend::Bpf($running) => $what,
            RunningBackend::Tracefs($running) => $what,
        }
    };
}

impl RunningBackend {
    pub(super) fn start(request: &Request) -> Result<RunningBackend, StartError> {
        match request.backend {
            Backend::Auto => RunningBackend::start_first_working(request),
            backend => RunningBackend::start_one(request, backend),
        }
    }

    fn start_one(request: &Request, backend: Backend) -> Result<RunningBackend, StartError> {
        match backend {
            Backend::Tracefs if request.mode == RecordMode::Flight => Err(StartError::Backend {
                backend: tracefs::NAME,
                why: "the flight recorder needs BPF".to_owned(),
                remedy: None,
            }),
            Backend::Tracefs => TracefsRecorder::start(request).map(RunningBackend::Tracefs),
            // Programs of a tracepoint run before its filter (kernel/trace/trace_event_perf.c).
            _ if request.tracepoints.iter().any(|named| !named.filter.is_empty()) => {
                Err(StartError::Backend {
                    backend: "BPF",
                    why: "only the kernel's trace buffers filter by fields".to_owned(),
                    remedy: None,
                })
            }
            _ => BpfRecorder::start(request, backend).map(RunningBackend::Bpf),
        }
    }

    /// The first one that works; failures of earlier ones are in its findings. If none works, all
    /// reasons are reported.
    fn start_first_working(request: &Request) -> Result<RunningBackend, StartError> {
        let mut reasons: Vec<StartError> = Vec::new();
        for backend in [Backend::Btf, Backend::Tracepoint, Backend::Tracefs] {
            match RunningBackend::start_one(request, backend) {
                Ok(mut running) => {
                    let before = reasons.iter().map(super::findings::fallback_finding);
                    each!(&mut running, running => running.add_findings(before.collect()));
                    return Ok(running);
                }
                Err(why) => reasons.push(why),
            }
        }
        Err(StartError::None(reasons))
    }

    pub(super) fn backend_name(&self) -> &'static str {
        match self {
            RunningBackend::Bpf(running) => running.backend_name(),
            RunningBackend::Tracefs(_) => tracefs::NAME,
        }
    }
    pub(super) fn groups(&self) -> &[Group] {
        each!(self, running => running.groups())
    }
    /// The tracepoints recorded by name.
    pub(super) fn tracepoints(&self) -> &[TracepointFormat] {
        each!(self, running => running.tracepoints())
    }
    pub(super) fn follow_task(&self, pid: u32, whole: bool) -> Result<(), StartError> {
        match self {
            RunningBackend::Bpf(_) => {
                Err(StartError::Request("its processes are fixed".to_owned()))
            }
            RunningBackend::Tracefs(running) => running.follow_task(pid, whole),
        }
    }
    pub(super) fn findings(&self) -> &[Finding] {
        each!(self, running => running.findings())
    }
    pub(super) fn take_records(&mut self, slot: u32, to: &mut Vec<u8>) {
        each!(self, running => running.take_records(slot, to));
    }
    pub(super) fn copy_newest(
        &mut self,
        slot: u32,
        from: MonotonicNs,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        match self {
            RunningBackend::Bpf(running) => running.copy_newest(slot, from, to),
            RunningBackend::Tracefs(_) => None,
        }
    }
    /// Returns `false` if names were lost.
    pub(super) fn take_names(&mut self, to: &mut Vec<u8>) -> bool {
        each!(self, running => running.take_names(to))
    }
    /// The addresses of a kernel stack, innermost first.
    pub(super) fn stack_addresses(&self, stack: StackId) -> Vec<u64> {
        match self {
            RunningBackend::Bpf(running) => running.stack_addresses(stack),
            RunningBackend::Tracefs(_) => Vec::new(),
        }
    }
    pub(super) fn lost_records(&self, slot: u32) -> u64 {
        each!(self, running => running.lost_records(slot))
    }
    pub(super) fn detach_all(&mut self) {
        each!(self, running => running.detach_all());
    }
    pub(super) fn attached_programs(&self) -> Box<dyn Iterator<Item = &Attach> + '_> {
        match self {
            RunningBackend::Bpf(running) => Box::new(running.attached_programs()),
            RunningBackend::Tracefs(_) => Box::new(std::iter::empty()),
        }
    }
    /// `None` if the backend does not know.
    pub(super) fn fill_percent(&self) -> Option<u64> {
        match self {
            RunningBackend::Bpf(running) => Some(running.fill_percent()),
            RunningBackend::Tracefs(_) => None,
        }
    }
    /// `None` if the kernel's own are used.
    pub(super) fn buffers(&self) -> Option<&Arc<Buffers>> {
        match self {
            RunningBackend::Bpf(running) => Some(running.buffers()),
            RunningBackend::Tracefs(_) => None,
        }
    }
    pub(super) fn last_loss(&self, slot: u32, cpu: u16, at: MonotonicNs, to: &mut Vec<u8>) {
        if let RunningBackend::Bpf(running) = self {
            running.last_loss(slot, cpu, at, to);
        }
    }
}
