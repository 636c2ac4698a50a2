//! The programs of a request: configured, loaded and attached one by one.

use super::Stacks;
use super::untranslated::Untranslated;
use crate::bpf::sys::{self, MapShape};
use crate::bpf::{
    Attach, BpfObject, BufferSizes, Buffers, LoadError, borrow_constants, slot_constants,
};
use crate::request::{Backend, RecordMode, Request};
use crate::tracefs::Tracefs;
use crate::tracepoints::TracepointTable;
use crate::translate::{NR_FUTEX, Translator};
use crate::wire::layout as wire;
use aya_obj::btf::Btf;
use punctual_core::event::Group;
use punctual_core::event::NamedTracepoint;
use punctual_traces::format::RecordFormat;
use std::os::fd::OwnedFd;

static EVENTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events.bpf.o.z"));
static EVENTS_FLIGHT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events_flight.bpf.o.z"));
static RAW_FLIGHT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/raw_flight.bpf.o.z"));
static RAW: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/raw.bpf.o.z"));

pub(super) struct RecorderPrograms<'a> {
    request: &'a Request,
    shared: SharedMaps,
    constants: Vec<(&'static str, Vec<u8>)>,
    /// Programs with BTF, if they are to be used.
    events: Option<(Btf, BpfObject)>,
    /// tracefs, for programs without BTF; opened when first needed.
    tracefs: Option<Result<Tracefs, String>>,
    translator: Translator,
    translated: bool,
}

/// The task of the program of `bpf/raw.bpf.c` for the records of a tracepoint; offsets of 0 mean
/// none.
#[derive(Default)]
struct Copied {
    /// Its number in the translator.
    number: usize,
    /// The number of bytes copied after the common fields.
    bytes: usize,
    /// The positions in the record of another task, a new one, a system call.
    other: u32,
    child: u32,
    syscall: u32,
    to_names: bool,
}

/// Maps shared by all programs of a recorder.
struct SharedMaps {
    maps: Vec<(&'static str, OwnedFd)>,
}

impl<'a> RecorderPrograms<'a> {
    pub(super) fn prepare_programs(
        request: &'a Request,
        shape: BufferSizes,
        names_slot: u32,
        backend: Backend,
    ) -> Result<RecorderPrograms<'a>, LoadError> {
        let shared = SharedMaps::create_maps(shape, names_slot + 1)?;
        shared.fill_maps(request)?;
        let mut programs = RecorderPrograms {
            request,
            shared,
            constants: program_constants(request, shape, names_slot),
            events: None,
            tracefs: None,
            translator: Translator::new(request),
            translated: false,
        };
        if backend == Backend::Btf {
            let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
            let flag = |is: bool| vec![u8::from(is)];
            let mut constants = programs.constants.clone();
            constants.push(("want_syscall", flag(request.groups.contains(&Group::Syscall))));
            constants.push(("want_futex", flag(request.groups.contains(&Group::Futex))));
            constants.push(("syscalls", syscall_bitmap(&request.syscalls)));
            constants.push(("want_stacks", flag(request.stacks)));
            let one_by_one = request.groups.contains(&Group::Syscall);
            constants.push(("want_interrupted", flag(request.timers_only && !one_by_one)));
            let mut object = BpfObject::open(
                of_mode(request, EVENTS, EVENTS_FLIGHT),
                &borrow_constants(&constants),
            )?;
            if request.stacks {
                object.set_map_shape("stacks", wire::STACK_DEPTH as u32 * 8, STACKS);
            }
            programs.shared.share_with(&mut object)?;
            object.prepare_programs(Some(&kernel))?;
            programs.events = Some((kernel, object));
        }
        Ok(programs)
    }

    pub(super) fn map_buffers(&self, shape: BufferSizes, count: u32) -> Result<Buffers, LoadError> {
        let bytes = u64::from(shape.value_size()) * u64::from(count);
        Buffers::map_buffers(self.shared.map_fd(BUFFERS)?, shape, count)
            .map_err(|why| LoadError::Map { bytes, why })
    }

    /// Attaches the program for a tracepoint. Those of modules are not in the kernel's own BTF, but
    /// tracefs describes them.
    pub(super) fn attach_tracepoint(
        &mut self,
        tracepoint: &TracepointTable,
    ) -> Result<Attach, LoadError> {
        let Some((kernel, object)) = &self.events else { return self.attach_raw(tracepoint) };
        let mut result = Err(LoadError::NoTracepoint(tracepoint.full_name()));
        for program in tracepoint.programs {
            result = object.attach_btf_tracepoint(kernel, program, tracepoint.name);
            if result.is_ok() {
                return result;
            }
        }
        match result {
            Err(LoadError::NoTracepoint(_)) => self.attach_raw(tracepoint),
            result => result,
        }
    }

    pub(super) fn attach_named(&mut self, named: &NamedTracepoint) -> Result<Attach, LoadError> {
        let format = self.tracepoint_format(&named.group, &named.name)?;
        let number = self.translator.add_named(named, &format);
        let copied = Copied { number, bytes: format.shown_bytes(), ..Copied::default() };
        self.attach_copying(&named.full_name(), &format, copied)
    }

    fn tracepoint_format(&mut self, system: &str, name: &str) -> Result<RecordFormat, LoadError> {
        let tracefs = self.tracefs.get_or_insert_with(Tracefs::open).as_ref();
        let tracefs = tracefs.map_err(|why| LoadError::NoTracefs(why.clone()))?;
        tracefs.tracepoint_format(system, name).map_err(LoadError::NoTracefs)
    }

    fn attach_raw(&mut self, tracepoint: &TracepointTable) -> Result<Attach, LoadError> {
        let format = self.tracepoint_format(tracepoint.system, tracepoint.name)?;
        let number = self.translator.add(tracepoint, &format);
        // Programs cannot read the first 8 bytes.
        let bytes = self.translator.needed_size(number).saturating_sub(8);
        let offset = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| format.find_field(name))
                .map_or(0, |field| field.offset as u32)
        };
        let other_task_offset = match u64::from(tracepoint.kind) {
            wire::SWITCH..=wire::PI_SETPRIO | wire::SIGNAL => {
                offset(&["next_pid", "child_pid", "pid"])
            }
            _ => 0,
        };
        let copied = Copied {
            number,
            bytes,
            other: other_task_offset,
            child: if u64::from(tracepoint.kind) == wire::FORK {
                offset(&["child_pid"])
            } else {
                0
            },
            syscall: if tracepoint.system == "raw_syscalls" { offset(&["id"]) } else { 0 },
            to_names: u64::from(tracepoint.kind) == wire::NAME,
        };
        self.attach_copying(&tracepoint.full_name(), &format, copied)
    }

    fn attach_copying(
        &mut self,
        name: &str,
        format: &RecordFormat,
        copied: Copied,
    ) -> Result<Attach, LoadError> {
        let bytes = copied.bytes.next_multiple_of(8);
        if bytes > RECORD {
            return Err(LoadError::Unfit(format!("the record of {name} has {bytes} bytes")));
        }
        let number32 = |number: u32| number.to_ne_bytes().to_vec();
        let mut constants = self.constants.clone();
        constants.extend([
            ("which", number32(copied.number as u32)),
            ("bytes", number32(bytes as u32)),
            ("other_offset", number32(copied.other)),
            ("child_offset", number32(copied.child)),
            ("syscall_offset", number32(copied.syscall)),
            ("syscalls", syscall_bitmap(&wanted_calls(self.request))),
            ("to_names", vec![u8::from(copied.to_names)]),
        ]);
        let mut object =
            BpfObject::open(of_mode(self.request, RAW, RAW_FLIGHT), &borrow_constants(&constants))?;
        self.shared.share_with(&mut object)?;
        object.prepare_programs(None)?;
        self.translated = true;
        object.attach_tracepoint("record", name, format.id)
    }

    /// The storage of kernel stacks, if used.
    pub(super) fn open_stacks(&self) -> Option<Stacks> {
        let (_, object) = self.events.as_ref().filter(|_| self.request.stacks)?;
        Stacks::from_map(object.map_fd("stacks").ok()?)
    }

    /// The translator, if any program needs it.
    pub(super) fn into_untranslated(self) -> Option<Untranslated> {
        self.translated.then(|| Untranslated::new(self.translator))
    }
}

/// The maximum number of distinct kernel stacks: 8 MiB.
const STACKS: u32 = 1 << 14;

/// The maximum size of a record in `struct wire_raw`.
const RECORD: usize = wire::Raw::SIZE - 8;

const BUFFERS: &str = "buffers";

impl SharedMaps {
    fn create_maps(shape: BufferSizes, count: u32) -> Result<SharedMaps, LoadError> {
        const HASH: u32 = 1;
        const ARRAY: u32 = 2;
        const NO_PREALLOC: u32 = 1;
        const MMAPABLE: u32 = 1 << 10;
        let map = |name, kind, key, value, entries, flags| {
            let shape = MapShape { kind, key, value, entries, flags };
            let refused =
                |why| LoadError::Map { bytes: u64::from(value) * u64::from(entries), why };
            sys::create_map(name, shape).map(|fd| (name, fd)).map_err(refused)
        };
        let maps = vec![
            map(BUFFERS, ARRAY, 4, shape.value_size(), count, MMAPABLE)?,
            map("pids", HASH, 4, 1, 65536, NO_PREALLOC)?,
            map("comms", HASH, 16, 1, 64, 0)?,
        ];
        Ok(SharedMaps { maps })
    }

    fn map_fd(&self, name: &str) -> Result<&OwnedFd, LoadError> {
        let map = self.maps.iter().find(|(other, _)| *other == name);
        map.map(|(_, fd)| fd).ok_or_else(|| LoadError::Unfit(format!("there is no map {name}")))
    }

    fn fill_maps(&self, request: &Request) -> Result<(), LoadError> {
        let refused = |why| LoadError::Map { bytes: 0, why };
        for pid in &request.pids {
            sys::update_map(self.map_fd("pids")?, &pid.to_ne_bytes(), &[1]).map_err(refused)?;
        }
        for comm in &request.comms {
            let mut key = [0; 16];
            key[..comm.len()].copy_from_slice(comm.as_bytes());
            sys::update_map(self.map_fd("comms")?, &key, &[1]).map_err(refused)?;
        }
        Ok(())
    }

    fn share_with(&self, object: &mut BpfObject) -> Result<(), LoadError> {
        for (name, fd) in &self.maps {
            object.adopt_map(name, fd.try_clone().map_err(|why| LoadError::Map { bytes: 0, why })?);
        }
        Ok(())
    }
}

/// The programs as compiled for the mode of this request.
fn of_mode(request: &Request, usual: &'static [u8], flight: &'static [u8]) -> &'static [u8] {
    if request.mode == RecordMode::Flight { flight } else { usual }
}

fn program_constants(
    request: &Request,
    shape: BufferSizes,
    names_slot: u32,
) -> Vec<(&'static str, Vec<u8>)> {
    let flag = |is: bool| vec![u8::from(is)];
    let mut constants = vec![
        ("names_slot", names_slot.to_ne_bytes().to_vec()),
        ("mask", shape.index_mask().to_ne_bytes().to_vec()),
        ("by_pid", flag(!request.pids.is_empty())),
        ("by_comm", flag(!request.comms.is_empty())),
        ("follow", flag(request.follow_children)),
    ];
    constants.extend(slot_constants(&request.cpus));
    constants
}

/// One bit per requested system call; all bits if none is named.
fn syscall_bitmap(numbers: &[u32]) -> Vec<u8> {
    let mut bits = vec![if numbers.is_empty() { 0xff } else { 0 }; wire::MAX_SYSCALLS as usize / 8];
    for number in numbers {
        if let Some(byte) = bits.get_mut(*number as usize / 8) {
            *byte |= 1 << (number % 8);
        }
    }
    bits
}

/// The system calls that a program must pass for both groups.
fn wanted_calls(request: &Request) -> Vec<u32> {
    let (syscall, futex) =
        (request.groups.contains(&Group::Syscall), request.groups.contains(&Group::Futex));
    match (syscall, futex) {
        (true, _) if request.syscalls.is_empty() => Vec::new(),
        (true, false) => request.syscalls.clone(),
        (true, true) => request.syscalls.iter().copied().chain([NR_FUTEX]).collect(),
        (false, _) => vec![NR_FUTEX],
    }
}
