//! Programs at instructions of user programs (Documentation/trace/uprobetracer.rst,
//! kernel/events/uprobes.c).
//!
//! Since Linux 6.10 one link probes any number of places (BPF_TRACE_UPROBE_MULTI; it exists since
//! 6.6, and before 6.10 watched one thread instead of a process). Before that each place is a
//! separate perf event.

use super::object::{BpfObject, LoadError};
use super::sys::{self, BpfAttr, BpfCommand, ProgramShape};
use crate::perf;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// BPF_PROG_TYPE_KPROBE: user probes are of this type too.
pub(super) const PROGRAM_KPROBE: u32 = 2;
const ATTACH_UPROBE_MULTI: u32 = 48;
const ATTACH_PERF_EVENT: u32 = 41;
const MULTI_RETURN: u32 = 1;

/// A place in a file, with the number for the program's cookie.
#[derive(Clone, Debug)]
pub(crate) struct ProbePlace<'a> {
    pub(crate) file: &'a Path,
    pub(crate) offset: u64,
    pub(crate) cookie: u64,
}

/// The processes affected by the probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeScope {
    All,
    Process(u32),
}

/// The position of a probe: a function's entry or its return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbePosition {
    Entry,
    Return,
}

impl BpfObject {
    /// Loads the program and attaches it at all places, until the descriptors are closed.
    pub(crate) fn attach_uprobes(
        &self,
        program: &str,
        at: ProbePosition,
        places: &[ProbePlace],
        scope: ProbeScope,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        let instructions = self.program_code(program)?;
        let load = |attach_type| {
            let shape = ProgramShape {
                name: program,
                kind: PROGRAM_KPROBE,
                attach_type,
                attach_btf_id: 0,
                flags: 0,
            };
            sys::load_program(shape, &instructions)
        };
        let refused = |what: &Path, why| LoadError::Refused {
            tracepoint: format!("probes in {}", what.display()),
            why,
            log: String::new(),
        };
        if let Some(program) = multi_is_sound().then(|| load(ATTACH_UPROBE_MULTI).ok()).flatten() {
            let mut links = Vec::new();
            for (file, places) in by_file(places) {
                links.push(
                    link_multi(&program, at, file, &places, scope)
                        .map_err(|why| refused(file, why))?,
                );
            }
            return Ok(links);
        }
        let program = load(0).map_err(|(why, log)| LoadError::Refused {
            tracepoint: program.to_owned(),
            why,
            log,
        })?;
        let mut links = Vec::new();
        for place in places {
            links.extend(
                link_perf(&program, at, place, scope).map_err(|why| refused(place.file, why))?,
            );
        }
        Ok(links)
    }
}

fn by_file<'p, 'a>(places: &'p [ProbePlace<'a>]) -> BTreeMap<&'a Path, Vec<&'p ProbePlace<'a>>> {
    let mut files: BTreeMap<&Path, Vec<&ProbePlace>> = BTreeMap::new();
    for place in places {
        files.entry(place.file).or_default().push(place);
    }
    files
}

#[cfg(test)]
thread_local! {
    /// Lets a test use the method of older kernels.
    pub(crate) static ONE_BY_ONE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether this kernel's uprobe.multi watches whole processes.
fn multi_is_sound() -> bool {
    #[cfg(test)]
    if ONE_BY_ONE.get() {
        return false;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|word| word.trim().parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 10)
}

fn path_of(file: &Path) -> io::Result<CString> {
    CString::new(file.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// BPF_LINK_CREATE with `union bpf_attr`'s `link_create.uprobe_multi`.
fn link_multi(
    program: &OwnedFd,
    at: ProbePosition,
    file: &Path,
    places: &[&ProbePlace],
    scope: ProbeScope,
) -> io::Result<OwnedFd> {
    let path = path_of(file)?;
    let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
    let cookies: Vec<u64> = places.iter().map(|place| place.cookie).collect();
    let attr =
        BpfAttr::new().with_u32(0, program.as_raw_fd() as u32).with_u32(8, ATTACH_UPROBE_MULTI);
    let attr = attr
        .with_pointer(16, path.as_ptr())
        .with_pointer(24, offsets.as_ptr())
        .with_pointer(40, cookies.as_ptr());
    let attr = attr
        .with_u32(48, places.len() as u32)
        .with_u32(52, if at == ProbePosition::Return { MULTI_RETURN } else { 0 });
    let pid = match scope {
        ProbeScope::All => 0,
        ProbeScope::Process(pid) => pid,
    };
    // SAFETY: path, offsets and cookies live through the call and have the stated lengths.
    unsafe { attr.with_u32(56, pid).call_for_fd(BpfCommand::LinkCreate) }
}

/// A perf event at the place, with the program attached; both descriptors keep it there.
fn link_perf(
    program: &OwnedFd,
    at: ProbePosition,
    place: &ProbePlace,
    scope: ProbeScope,
) -> io::Result<[OwnedFd; 2]> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/sys/bus/event_source/devices/uprobe/{name}"))
    };
    let kind: u32 =
        read("type")?.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    // `config:0`: the bit that selects the return.
    let bit: u32 =
        read("format/retprobe")?.trim().trim_start_matches("config:").parse().unwrap_or(0);
    let path = path_of(place.file)?;
    let attr = perf::PerfEventAttr {
        kind,
        config: if at == ProbePosition::Return { 1 << bit } else { 0 },
        sample_period: 1,
        config1: path.as_ptr() as usize as u64,
        config2: place.offset,
        ..perf::PerfEventAttr::default()
    };
    let (pid, cpu) = match scope {
        ProbeScope::All => (-1, 0),
        ProbeScope::Process(pid) => (pid as i32, -1),
    };
    let event = perf::open_event(attr, pid, cpu, None)?;
    let link = link_event(program, &event, place.cookie)?;
    Ok([link, event])
}

/// Attaches a program to a perf event, with its cookie (since 5.15).
pub(super) fn link_event(program: &OwnedFd, event: &OwnedFd, cookie: u64) -> io::Result<OwnedFd> {
    let attr = BpfAttr::new()
        .with_u32(0, program.as_raw_fd() as u32)
        .with_u32(4, event.as_raw_fd() as u32);
    let mut attr = attr.with_u32(8, ATTACH_PERF_EVENT).with_u64(16, cookie);
    // SAFETY: no pointers.
    unsafe { attr.call_for_fd(BpfCommand::LinkCreate) }
}
