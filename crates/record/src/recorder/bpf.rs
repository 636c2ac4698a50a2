//! Recording with BPF programs: on tracepoints with BTF if the kernel describes its types, else on
//! tracepoints with records described by tracefs.

mod programs;
mod untranslated;

use super::findings::{self, MissingTracepoints};
use crate::bpf::{Attach, BufferSizes, Buffers, LoadError, sys};
use crate::request::{Backend, RecordMode, Request};
use crate::start_error::StartError;
use crate::tracepoints::{self, NAMING, TracepointTable};
use crate::wire::layout as wire;
use programs::RecorderPrograms;
use punctual_core::event::{Group, StackId, TracepointFormat};
use punctual_core::{Finding, MonotonicNs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use untranslated::Untranslated;

pub(super) struct BpfRecorder {
    name: &'static str,
    /// With the names of their tracepoints.
    attached: Vec<(String, Attach)>,
    naming: Vec<Attach>,
    buffers: Arc<Buffers>,
    /// The buffer after those of the CPUs.
    names_slot: u32,
    names_lost: u64,
    groups: Vec<Group>,
    findings: Vec<Finding>,
    /// Translates records of tracepoints without BTF.
    untranslated: Option<Untranslated>,
    stacks: Option<Stacks>,
}

pub(super) const BTF: &str = "BPF (BTF tracepoints)";
pub(super) const TRACEPOINT: &str = "BPF (tracepoint formats)";

impl BpfRecorder {
    /// `backend` is one of the two with BPF.
    pub(super) fn start(request: &Request, backend: Backend) -> Result<BpfRecorder, StartError> {
        let name = if backend == Backend::Btf { BTF } else { TRACEPOINT };
        BpfRecorder::load_programs(request, backend, name)
            .map_err(|why| StartError::from_load_error(name, &why))
    }

    fn load_programs(
        request: &Request,
        backend: Backend,
        name: &'static str,
    ) -> Result<BpfRecorder, LoadError> {
        let mut request = request.clone();
        // Without types no program can find the mode of an interrupted task: system calls are then
        // recorded one by one.
        if request.timers_only
            && backend != Backend::Btf
            && !request.groups.contains(&Group::Syscall)
        {
            request.groups.push(Group::Syscall);
        }
        let request = &request;
        let shape = BufferSizes::with_capacity(request.buffer, request.mode == RecordMode::Flight);
        let names_slot = request.cpus.len() as u32;
        let mut programs = RecorderPrograms::prepare_programs(request, shape, names_slot, backend)?;
        let buffers = programs.map_buffers(shape, names_slot + 1)?;
        // Names first: no task may occur before they are watched. A task without a name is shown by
        // number.
        let naming = NAMING
            .iter()
            .filter_map(|tracepoint| programs.attach_tracepoint(tracepoint).ok())
            .collect();
        let mut recorder = BpfRecorder {
            name,
            naming,
            attached: Vec::new(),
            buffers: Arc::new(buffers),
            names_slot,
            names_lost: 0,
            groups: Vec::new(),
            findings: Vec::new(),
            untranslated: None,
            stacks: None,
        };
        recorder.attach_groups(&mut programs, request, backend)?;
        recorder.stacks = programs.open_stacks();
        recorder.untranslated = programs.into_untranslated();
        Ok(recorder)
    }

    /// Attaches to the tracepoints of the groups. A missing tracepoint is reported; if all are
    /// missing, that is an error.
    fn attach_groups(
        &mut self,
        programs: &mut RecorderPrograms<'_>,
        request: &Request,
        backend: Backend,
    ) -> Result<(), LoadError> {
        let (mut first, mut missing) = (None, MissingTracepoints::default());
        let is_wanted = |tracepoint: &&TracepointTable| {
            request.mode != RecordMode::Flight
                || tracepoints::explains_latency(tracepoint, request, backend)
        };
        for group in Group::ALL.iter().filter(|group| request.groups.contains(group)) {
            let (mut any, mut switches) = (false, *group != Group::Sched);
            for tracepoint in tracepoints::of_groups(&[*group]).filter(is_wanted) {
                if self.attached.iter().any(|(other, _)| *other == tracepoint.full_name()) {
                    any = true; // Shared: system calls and futexes.
                    continue;
                }
                match programs.attach_tracepoint(tracepoint) {
                    Ok(attach) => {
                        self.attached.push((tracepoint.full_name(), attach));
                        any = true;
                        switches |= u64::from(tracepoint.kind) == crate::wire::layout::SWITCH;
                    }
                    Err(why) => {
                        missing.add(tracepoint, why.to_string());
                        first.get_or_insert(why);
                    }
                }
            }
            // Without switches the running tasks are unknown, and results would be misleading.
            any &= switches;
            if any {
                self.groups.push(*group);
            }
            self.findings.extend(missing.take_finding(*group, any));
        }
        // A tracepoint requested by name is required.
        for named in &request.tracepoints {
            self.attached.push((named.to_string(), programs.attach_named(named)?));
        }
        match first {
            Some(why) if self.attached.is_empty() => Err(why),
            _ => Ok(()),
        }
    }

    pub(super) fn backend_name(&self) -> &'static str {
        self.name
    }
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
    pub(super) fn tracepoints(&self) -> &[TracepointFormat] {
        self.untranslated.as_ref().map_or(&[], Untranslated::formats)
    }
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }
    pub(super) fn add_findings(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
    }
    pub(super) fn attached_programs(&self) -> impl Iterator<Item = &Attach> {
        self.attached.iter().map(|(_, attach)| attach).chain(&self.naming)
    }
    pub(super) fn fill_percent(&self) -> u64 {
        self.buffers.fill_percent()
    }
    /// The buffers of the CPUs, followed by that of names.
    pub(super) fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }
    pub(super) fn lost_records(&self, slot: u32) -> u64 {
        self.buffers.lost_records(slot)
    }

    pub(super) fn take_records(&mut self, slot: u32, to: &mut Vec<u8>) {
        match &mut self.untranslated {
            None => self.buffers.take_records(slot, to),
            Some(untranslated) => untranslated.take_records(&self.buffers, slot, to),
        };
    }
    pub(super) fn copy_newest(
        &mut self,
        slot: u32,
        from: MonotonicNs,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        match &mut self.untranslated {
            None => self.buffers.copy_newest(slot, from, to),
            Some(untranslated) => untranslated.copy_newest(&self.buffers, slot, from, to),
        }
    }
    /// Returns `false` if names were lost.
    pub(super) fn take_names(&mut self, to: &mut Vec<u8>) -> bool {
        let whole = match &mut self.untranslated {
            None => self.buffers.take_records(self.names_slot, to),
            Some(untranslated) => untranslated.take_names(&self.buffers, self.names_slot, to),
        };
        let before =
            std::mem::replace(&mut self.names_lost, self.buffers.lost_records(self.names_slot));
        whole && before == self.names_lost
    }

    pub(super) fn stack_addresses(&self, stack: StackId) -> Vec<u64> {
        self.stacks.as_ref().map(|stacks| stacks.stack_addresses(stack)).unwrap_or_default()
    }

    /// Detaches, and waits for running programs to end.
    pub(super) fn detach_all(&mut self) {
        for (name, attach) in self.attached.drain(..) {
            if let Some(count) = attach.recursion_misses().filter(|count| *count > 0) {
                self.findings.push(findings::missed_events_finding(&name, count));
            }
        }
        self.naming.clear();
        std::thread::sleep(Duration::from_millis(2));
    }

    /// A record of the losses that no later record reported, for the end of a CPU's stream.
    pub(super) fn last_loss(&self, slot: u32, cpu: u16, at: MonotonicNs, to: &mut Vec<u8>) {
        self.buffers.last_loss(slot, cpu, at, to);
    }
}

/// The map of a recorder.
struct Stacks(OwnedFd);

impl Stacks {
    /// `None` if no descriptors are left.
    fn from_map(map: &OwnedFd) -> Option<Stacks> {
        map.try_clone().ok().map(Stacks)
    }

    /// The addresses of a stack, innermost first; empty for an unknown number.
    fn stack_addresses(&self, stack: StackId) -> Vec<u64> {
        let mut bytes = [0; wire::STACK_DEPTH as usize * 8];
        if sys::look_up(&self.0, &stack.0.to_ne_bytes(), &mut bytes).is_err() {
            return Vec::new();
        }
        let addresses =
            bytes.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_ne_bytes);
        addresses.take_while(|address| *address != 0).collect()
    }
}
