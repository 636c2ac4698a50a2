//! Programs at kernel functions (Documentation/trace/kprobes.rst): a perf event of the PMU `kprobe`
//! for each.

use super::object::{BpfObject, LoadError};
use super::sys::{self, ProgramShape};
use super::uprobe::{PROGRAM_KPROBE, ProbePosition, link_event};
use crate::perf;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

/// The kernel's description of kprobes as events.
const DEVICE: &str = "/sys/bus/event_source/devices/kprobe";

impl BpfObject {
    /// Loads the program and attaches it to all functions, with the index in the list as cookie,
    /// until the descriptors are closed.
    pub(crate) fn attach_kprobes(
        &self,
        program: &str,
        at: ProbePosition,
        functions: &[&str],
    ) -> Result<Vec<OwnedFd>, LoadError> {
        let (kind, bit) = read_device().map_err(LoadError::NoKprobe)?;
        let shape = ProgramShape {
            name: program,
            kind: PROGRAM_KPROBE,
            attach_type: 0,
            attach_btf_id: 0,
            flags: 0,
        };
        let loaded = sys::load_program(shape, &self.program_code(program)?);
        let program = loaded.map_err(|(why, log)| LoadError::Refused {
            tracepoint: program.to_owned(),
            why,
            log,
        })?;
        let mut links = Vec::new();
        for (function, cookie) in functions.iter().zip(0u64..) {
            let config = if at == ProbePosition::Return { 1 << bit } else { 0 };
            let event =
                open_kprobe(kind, config, function).map_err(|why| not_there(function, &why))?;
            let link =
                link_event(&program, &event, cookie).map_err(|why| not_there(function, &why))?;
            links.extend([link, event]);
        }
        Ok(links)
    }
}

/// The number of the PMU and the bit that selects the return; the error states what the kernel
/// lacks.
pub(crate) fn read_device() -> Result<(u32, u32), String> {
    let read = |name: &str| std::fs::read_to_string(format!("{DEVICE}/{name}"));
    let kind = read("type").ok().and_then(|kind| kind.trim().parse().ok());
    // `config:0`
    let bit = read("format/retprobe")
        .ok()
        .and_then(|bit| bit.trim().trim_start_matches("config:").parse().ok());
    match kind {
        Some(kind) => Ok((kind, bit.unwrap_or(0))),
        None => Err("this kernel has no kprobes (CONFIG_KPROBES, CONFIG_KPROBE_EVENTS): its \
                     functions cannot be timed"
            .to_owned()),
    }
}

fn open_kprobe(kind: u32, config: u64, function: &str) -> io::Result<OwnedFd> {
    let name = CString::new(function).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let attr = perf::PerfEventAttr {
        kind,
        config,
        sample_period: 1,
        config1: name.as_ptr() as usize as u64,
        ..perf::PerfEventAttr::default()
    };
    perf::open_event(attr, -1, 0, None)
}

fn not_there(function: &str, why: &io::Error) -> LoadError {
    let reason = match why.raw_os_error() {
        Some(libc::EINVAL) => {
            "the kernel does not allow a probe there (it is marked notrace or nokprobe, or part of \
             kprobes)"
        }
        Some(libc::ENOENT) => "there is no such function",
        Some(libc::EADDRNOTAVAIL) => "several functions have this name",
        Some(libc::EPERM | libc::EACCES) => {
            "the kernel refuses it: lockdown (/sys/kernel/security/lockdown), or a right that this \
             process lacks"
        }
        _ => "",
    };
    let reason = if reason.is_empty() { why.to_string() } else { format!("{reason} ({why})") };
    LoadError::NoKprobe(format!("kernel:{function}: {reason}"))
}
