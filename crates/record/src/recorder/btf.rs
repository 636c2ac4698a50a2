//! Recording with BPF programs on tracepoints that have BTF.

use super::{Mode, Request, StartError};
use crate::bpf::{Attach, Buffers, LoadError, Object, Shape};
use crate::tracepoints::{self, Tracepoint};
use crate::wire::layout as wire;
use aya_obj::btf::Btf;
use punctual_core::event::Group;
use punctual_core::{Finding, MonotonicNs, Severity};
use std::time::Duration;

static EVENTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events.bpf.o.z"));

pub(super) struct BtfRecorder {
    attached: Vec<(&'static Tracepoint, Attach)>,
    naming: Vec<Attach>,
    buffers: Buffers,
    /// The buffer after those of the CPUs.
    names_slot: u32,
    groups: Vec<Group>,
    findings: Vec<Finding>,
    misses: Vec<Finding>,
    /// Keeps the maps.
    _object: Object,
}

pub(super) const NAME: &str = "BPF (BTF tracepoints)";

impl BtfRecorder {
    pub(super) fn start(request: &Request) -> Result<BtfRecorder, StartError> {
        BtfRecorder::load(request).map_err(|why| StartError::of(NAME, &why))
    }

    fn load(request: &Request) -> Result<BtfRecorder, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let shape = Shape::of(request.buffer, request.mode == Mode::Flight);
        let names_slot = request.cpus.len() as u32;
        let mut object = configured(request, shape, names_slot)?;
        object.shape("buffers", shape.value_size(), names_slot + 1);
        object.prepare(&kernel)?;
        fill_filters(&object, request)?;
        let map = object.map("buffers")?;
        let buffers = Buffers::map(map, shape, names_slot + 1);
        let bytes = u64::from(shape.value_size()) * u64::from(names_slot + 1);
        let buffers = buffers.map_err(|why| LoadError::Map { bytes, why })?;

        // Names first: no task may turn up before they are watched.
        let naming = [("new_task", "task_newtask"), ("renamed", "task_rename")];
        let naming =
            naming.into_iter().filter_map(|(program, at)| object.attach_btf_tracepoint(&kernel, program, at).ok());
        let mut recorder = BtfRecorder {
            naming: naming.collect(),
            attached: Vec::new(),
            buffers,
            names_slot,
            groups: Vec::new(),
            findings: Vec::new(),
            misses: Vec::new(),
            _object: object,
        };
        recorder.attach(&kernel, &request.groups)?;
        Ok(recorder)
    }

    /// Attaches what the groups want. One tracepoint that is missing is told; that all are missing is an error.
    fn attach(&mut self, kernel: &Btf, groups: &[Group]) -> Result<(), LoadError> {
        let mut first = None;
        for group in Group::ALL.iter().filter(|group| groups.contains(group)) {
            let mut missing = Vec::new();
            let mut any = false;
            for tracepoint in tracepoints::of_groups(&[*group]) {
                if self.attached.iter().any(|(other, _)| other.full_name() == tracepoint.full_name()) {
                    any = true; // Shared: system calls and futexes.
                    continue;
                }
                match attach_one(&self._object, kernel, tracepoint) {
                    Ok(attach) => {
                        self.attached.push((tracepoint, attach));
                        any = true;
                    }
                    Err(why) => missing.push((tracepoint, why)),
                }
            }
            if any {
                self.groups.push(*group);
            }
            self.findings.extend(missing_finding(*group, any, &missing));
            first = first.or(missing.into_iter().next().map(|(_, why)| why));
        }
        match first {
            Some(why) if self.attached.is_empty() => Err(why),
            _ => Ok(()),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        NAME
    }
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }
    pub(super) fn take(&self, slot: u32, to: &mut Vec<u8>) {
        self.buffers.take(slot, to);
    }
    pub(super) fn take_names(&self, to: &mut Vec<u8>) {
        self.buffers.take(self.names_slot, to);
    }
    pub(super) fn fill(&self) -> u64 {
        self.buffers.fill()
    }
    pub(super) fn lost(&self, slot: u32) -> u64 {
        self.buffers.lost(slot)
    }

    /// Detaches, and gives programs that are running the time to end.
    pub(super) fn detach(&mut self) {
        for (tracepoint, attach) in self.attached.drain(..) {
            if let Some(count) = attach.misses().filter(|count| *count > 0) {
                self.misses.push(misses_finding(tracepoint, count));
            }
        }
        self.naming.clear();
        std::thread::sleep(Duration::from_millis(2));
    }

    /// A record of the losses that no later record told, for the end of a CPU's stream.
    pub(super) fn last_loss(&self, slot: u32, cpu: u16, at: MonotonicNs, to: &mut Vec<u8>) {
        self.buffers.last_loss(slot, cpu, at, to);
    }

    pub(super) fn last_findings(&self) -> Vec<Finding> {
        self.misses.clone()
    }
}

fn configured(request: &Request, shape: Shape, names_slot: u32) -> Result<Object, LoadError> {
    let mut slots = vec![0xff; wire::MAX_CPUS as usize * 2];
    for (slot, cpu) in request.cpus.iter().enumerate() {
        slots[cpu * 2..cpu * 2 + 2].copy_from_slice(&(slot as u16).to_ne_bytes());
    }
    let mut syscalls = vec![0u8; wire::MAX_SYSCALLS as usize / 8];
    for (index, byte) in syscalls.iter_mut().enumerate() {
        let wanted =
            |bit: &usize| request.syscalls.is_empty() || request.syscalls.contains(&((index * 8 + bit) as u32));
        *byte = (0..8).filter(wanted).fold(0, |byte, bit| byte | 1 << bit);
    }
    let flag = |is: bool| [u8::from(is)];
    Object::open(
        EVENTS,
        &[
            ("slots", &slots),
            ("names_slot", &names_slot.to_ne_bytes()),
            ("mask", &shape.mask().to_ne_bytes()),
            ("flight", &flag(request.mode == Mode::Flight)),
            ("by_pid", &flag(!request.pids.is_empty())),
            ("by_comm", &flag(!request.comms.is_empty())),
            ("follow", &flag(request.follow_children)),
            ("syscalls", &syscalls),
            ("want_syscall", &flag(request.groups.contains(&Group::Syscall))),
            ("want_futex", &flag(request.groups.contains(&Group::Futex))),
        ],
    )
}

fn fill_filters(object: &Object, request: &Request) -> Result<(), LoadError> {
    use crate::bpf::sys::update_map;
    let refused = |why| LoadError::Map { bytes: 0, why };
    for pid in &request.pids {
        update_map(object.map("pids")?, &pid.to_ne_bytes(), &[1]).map_err(refused)?;
    }
    for comm in &request.comms {
        let mut key = [0; 16];
        key[..comm.len()].copy_from_slice(comm.as_bytes());
        update_map(object.map("comms")?, &key, &[1]).map_err(refused)?;
    }
    Ok(())
}

fn attach_one(object: &Object, kernel: &Btf, tracepoint: &Tracepoint) -> Result<Attach, LoadError> {
    let mut result = Err(LoadError::NoTracepoint(tracepoint.full_name()));
    for program in tracepoint.programs {
        result = object.attach_btf_tracepoint(kernel, program, tracepoint.name);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn missing_finding(group: Group, any: bool, missing: &[(&Tracepoint, LoadError)]) -> Option<Finding> {
    // Vectors come in many kinds, and every kernel lacks some.
    if missing.is_empty() || any && group == Group::Vectors {
        return None;
    }
    let names: Vec<String> = missing.iter().map(|(tracepoint, _)| tracepoint.full_name()).collect();
    let message = match any {
        true => format!("some events of group {} are not recorded: {}", group.word(), names.join(", ")),
        false => format!("the group {} is not recorded", group.word()),
    };
    let severity = if any { Severity::Advice } else { Severity::Warning };
    let why: Vec<String> = missing.iter().map(|(_, why)| why.to_string()).collect();
    Some(Finding::new("events-unavailable", severity, "recorder", message).evidence(why.join("; ")))
}

fn misses_finding(tracepoint: &Tracepoint, count: u64) -> Finding {
    let message = format!(
        "{count} events of {} are missing: they happened while the same program was running on that CPU",
        tracepoint.full_name()
    );
    Finding::new("events-missed", Severity::Warning, "recorder", message).evidence("bpf_prog_info.recursion_misses")
}
