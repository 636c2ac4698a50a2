//! bpf(2), as far as needed (include/uapi/linux/bpf.h, `union bpf_attr`).

use crate::perf;
use punctual_sys::check_result;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Commands of bpf(2).
#[derive(Clone, Copy)]
#[allow(missing_docs)]
#[repr(u32)]
pub(crate) enum BpfCommand {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    MapNextKey = 4,
    ProgramLoad = 5,
    ProgramRun = 10,
    TypesLoad = 18,
    InfoByFd = 15,
    RawTracepointOpen = 17,
    MapFreeze = 22,
    LinkCreate = 28,
    EnableStats = 32,
}

const PROGRAM_TRACEPOINT: u32 = 5;
const PROGRAM_PERF_EVENT: u32 = 7;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;
const PROGRAM_TRACING: u32 = 26;
const PROGRAM_SYSCALL: u32 = 31;
const SLEEPABLE: u32 = 1 << 4;
const ATTACH_RAW_TP: u32 = 23;
const ATTACH_EXIT: u32 = 25;

/// `union bpf_attr`, filled by offset; everything else is zero.
#[derive(Clone)]
pub(crate) struct BpfAttr([u64; 20]);

impl BpfAttr {
    pub(crate) fn new() -> BpfAttr {
        BpfAttr([0; 20])
    }
    pub(crate) fn with_u32(mut self, offset: usize, value: u32) -> BpfAttr {
        let shift = (offset % 8) * 8;
        let word = &mut self.0[offset / 8];
        *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
        self
    }
    pub(crate) fn with_u64(mut self, offset: usize, value: u64) -> BpfAttr {
        self.0[offset / 8] = value;
        self
    }
    pub(crate) fn with_pointer<T>(self, offset: usize, to: *const T) -> BpfAttr {
        self.with_u64(offset, to as usize as u64)
    }
    /// A name of at most 15 bytes in a field of 16; the kernel allows letters, digits, `_` and `.`.
    pub(crate) fn with_name(mut self, offset: usize, name: &str) -> BpfAttr {
        let plain =
            name.bytes().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').take(15);
        for (place, byte) in (offset..).zip(plain) {
            self.0[place / 8] |= u64::from(byte) << (place % 8 * 8);
        }
        self
    }
    /// # Safety
    /// Every pointer in it must be valid for the command's use of it.
    pub(crate) unsafe fn call_bpf(&mut self, command: BpfCommand) -> io::Result<libc::c_long> {
        let size = size_of_val(&self.0);
        // SAFETY: the attribute is ours and of the stated size; the caller answers for the pointers
        // in it. The kernel accepts a longer attribute than it knows if the unknown part is zero.
        check_result(unsafe {
            libc::syscall(libc::SYS_bpf, command as u32, self.0.as_mut_ptr(), size)
        })
    }
    /// The same, for commands that return a file descriptor.
    ///
    /// # Safety
    /// As [`BpfAttr::call_bpf`].
    pub(crate) unsafe fn call_for_fd(&mut self, command: BpfCommand) -> io::Result<OwnedFd> {
        // SAFETY: passed on to the caller.
        let fd = unsafe { self.call_bpf(command)? };
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct MapShape {
    pub(crate) kind: u32,
    pub(crate) key: u32,
    pub(crate) value: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
}

pub(crate) fn create_map(name: &str, shape: MapShape) -> io::Result<OwnedFd> {
    let attr = BpfAttr::new()
        .with_u32(0, shape.kind)
        .with_u32(4, shape.key)
        .with_u32(8, shape.value)
        .with_u32(12, shape.entries);
    let attr = attr.with_u32(16, shape.flags).with_name(28, name);
    // SAFETY: no pointers.
    let open = || unsafe { attr.clone().call_for_fd(BpfCommand::MapCreate) };
    match open() {
        // Before 5.11 maps were charged against RLIMIT_MEMLOCK.
        Err(why) if why.raw_os_error() == Some(libc::EPERM) && lift_memlock() => open(),
        result => result,
    }
}

fn lift_memlock() -> bool {
    let no_limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is valid and only read.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &no_limit) == 0 }
}

pub(crate) fn update_map(map: &OwnedFd, key: &[u8], value: &[u8]) -> io::Result<()> {
    let attr = BpfAttr::new()
        .with_u32(0, map.as_raw_fd() as u32)
        .with_pointer(8, key.as_ptr())
        .with_pointer(16, value.as_ptr());
    // SAFETY: key and value live through the call; callers give them the sizes that the map was
    // made with.
    unsafe { attr.clone().call_bpf(BpfCommand::MapUpdate) }.map(drop)
}

/// The addresses of a stack in a map whose values have `SIZE` bytes, innermost first.
pub(crate) fn read_stack<const SIZE: usize>(map: &OwnedFd, number: u32) -> Vec<u64> {
    let mut bytes = [0; SIZE];
    if look_up(map, &number.to_ne_bytes(), &mut bytes).is_err() {
        return Vec::new();
    }
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).take_while(|address| *address != 0).collect()
}

/// Copies the value of a key; `value` is as long as the map's values.
pub(crate) fn look_up(map: &OwnedFd, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    let attr = BpfAttr::new()
        .with_u32(0, map.as_raw_fd() as u32)
        .with_pointer(8, key.as_ptr())
        .with_pointer(16, value.as_mut_ptr());
    // SAFETY: key and value live through the call; callers give them the sizes that the map was
    // made with.
    unsafe { attr.clone().call_bpf(BpfCommand::MapLookup) }.map(drop)
}

pub(crate) fn delete_key(map: &OwnedFd, key: &[u8]) -> io::Result<()> {
    let attr = BpfAttr::new().with_u32(0, map.as_raw_fd() as u32).with_pointer(8, key.as_ptr());
    // SAFETY: the key lives through the call; callers give it the size of the map's keys.
    unsafe { attr.clone().call_bpf(BpfCommand::MapDelete) }.map(drop)
}

/// The key after this one, or the first; an error if there is none.
pub(crate) fn next_key(map: &OwnedFd, key: Option<&[u8]>, next: &mut [u8]) -> io::Result<()> {
    let key = key.map_or(std::ptr::null(), <[u8]>::as_ptr);
    let attr = BpfAttr::new().with_u32(0, map.as_raw_fd() as u32).with_pointer(8, key);
    let attr = attr.with_pointer(16, next.as_mut_ptr());
    // SAFETY: key, if any, and next live through the call; callers give them the size of the map's
    // keys.
    unsafe { attr.clone().call_bpf(BpfCommand::MapNextKey) }.map(drop)
}

pub(crate) fn freeze_map(map: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    unsafe { BpfAttr::new().with_u32(0, map.as_raw_fd() as u32).call_bpf(BpfCommand::MapFreeze) }
        .map(drop)
}

/// The properties of a program besides its instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramShape<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) attach_type: u32,
    pub(crate) attach_btf_id: u32,
    pub(crate) flags: u32,
}

impl<'a> ProgramShape<'a> {
    /// For a tracepoint with BTF arguments: `id` is that of the typedef `btf_trace_…` in the
    /// kernel's own BTF.
    pub(crate) fn btf_tracepoint(name: &'a str, id: u32) -> ProgramShape<'a> {
        ProgramShape {
            name,
            kind: PROGRAM_TRACING,
            attach_type: ATTACH_RAW_TP,
            attach_btf_id: id,
            flags: 0,
        }
    }
    /// For the return of a function of the kernel: `id` is that of the function in the kernel's own
    /// BTF.
    pub(crate) fn function_exit(name: &'a str, id: u32) -> ProgramShape<'a> {
        ProgramShape { attach_type: ATTACH_EXIT, ..ProgramShape::btf_tracepoint(name, id) }
    }
    /// For a tracepoint whose record it reads.
    pub(crate) fn for_tracepoint(name: &'a str) -> ProgramShape<'a> {
        ProgramShape { name, kind: PROGRAM_TRACEPOINT, attach_type: 0, attach_btf_id: 0, flags: 0 }
    }
    pub(crate) fn perf_event(name: &'a str) -> ProgramShape<'a> {
        ProgramShape { kind: PROGRAM_PERF_EVENT, ..ProgramShape::for_tracepoint(name) }
    }
    /// For a tracepoint whose raw arguments it takes.
    pub(crate) fn raw_tracepoint(name: &'a str) -> ProgramShape<'a> {
        ProgramShape {
            name,
            kind: PROGRAM_RAW_TRACEPOINT,
            attach_type: 0,
            attach_btf_id: 0,
            flags: 0,
        }
    }
    /// For [`run_program`], since 5.14.
    pub(crate) fn to_be_run(name: &'a str) -> ProgramShape<'a> {
        ProgramShape {
            name,
            kind: PROGRAM_SYSCALL,
            attach_type: 0,
            attach_btf_id: 0,
            flags: SLEEPABLE,
        }
    }
}

/// Runs a program of that shape once, in the calling thread; returns its result.
pub(crate) fn run_program(program: &OwnedFd) -> io::Result<u32> {
    let mut attr = BpfAttr::new().with_u32(0, program.as_raw_fd() as u32);
    // SAFETY: no pointers.
    unsafe { attr.call_bpf(BpfCommand::ProgramRun)? };
    Ok((attr.0[0] >> 32) as u32)
}

/// The maximum number of attempts to load a program while signals interrupt its verification.
const LOADS: usize = 32;

/// Repeats a load after EAGAIN: the verifier gives up while a signal is pending
/// (kernel/bpf/verifier.c, do_check), or while the process is to be stopped or frozen, which no
/// mask prevents.
fn retry_load<T>(mut load: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..LOADS {
        match load() {
            Err(why) if why.raw_os_error() == Some(libc::EAGAIN) => {}
            result => return result,
        }
    }
    load()
}

/// A program's code.
pub(crate) struct ProgramCode<'a> {
    /// Instructions of the kernel, 8 bytes each.
    pub(crate) instructions: Vec<u64>,
    /// The types of its functions (struct bpf_func_info, in words), and what those are defined in:
    /// with these the verifier checks each function that is not static once, for any arguments, and
    /// not at each call.
    pub(crate) functions: Option<(&'a OwnedFd, Vec<[u32; 2]>)>,
}

/// Passes types to the kernel (BPF_BTF_LOAD), for [`ProgramCode::functions`].
pub(crate) fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let attr = BpfAttr::new().with_pointer(0, types.as_ptr()).with_u32(16, types.len() as u32);
    // SAFETY: the types live through the call, and are as long as is said.
    unsafe { attr.clone().call_for_fd(BpfCommand::TypesLoad) }
}

/// Loads a program. The verifier's log is asked for when it refuses.
pub(crate) fn load_program(
    shape: ProgramShape,
    code: &ProgramCode<'_>,
) -> Result<OwnedFd, (io::Error, String)> {
    let instructions = &code.instructions;
    let attr = BpfAttr::new()
        .with_u32(0, shape.kind)
        .with_u32(4, instructions.len() as u32)
        .with_pointer(8, instructions.as_ptr());
    let attr = attr.with_pointer(16, c"GPL".as_ptr()).with_name(48, shape.name);
    let attr = attr
        .with_u32(44, shape.flags)
        .with_u32(68, shape.attach_type)
        .with_u32(108, shape.attach_btf_id);
    if let Some((types, records)) = &code.functions {
        let with = attr.clone().with_u32(72, types.as_raw_fd() as u32).with_u32(76, 8);
        let with = with.with_pointer(80, records.as_ptr()).with_u32(88, records.len() as u32);
        let load = || {
            // SAFETY: instructions, license and records live through the call.
            unsafe { with.clone().call_for_fd(BpfCommand::ProgramLoad) }
        };
        if let Ok(program) = retry_load(load) {
            return Ok(program);
        }
        // Without them all functions are checked as static ones.
    }
    // SAFETY: instructions and license live through the call.
    match retry_load(|| unsafe { attr.clone().call_for_fd(BpfCommand::ProgramLoad) }) {
        Ok(program) => return Ok(program),
        Err(why)
            if matches!(why.raw_os_error(), Some(libc::EINVAL | libc::EACCES | libc::E2BIG)) => {}
        Err(why) => return Err((why, String::new())),
    }
    let mut log = vec![0u8; 1 << 20];
    let attr =
        attr.with_u32(24, 1).with_u32(28, log.len() as u32).with_pointer(32, log.as_mut_ptr());
    // SAFETY: as above, and the log has the stated length.
    match retry_load(|| unsafe { attr.clone().call_for_fd(BpfCommand::ProgramLoad) }) {
        Ok(program) => Ok(program),
        Err(why) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            Err((why, String::from_utf8_lossy(&log[..end]).into_owned()))
        }
    }
}

/// Attaches a program to the tracepoint with this number, on all CPUs, until the descriptor is
/// closed (perf_event_open(2)).
pub(crate) fn attach_tracepoint(program: &OwnedFd, id: u16) -> io::Result<OwnedFd> {
    let (kind, config) = (perf::PerfType::Tracepoint as u32, id.into());
    attach_perf_event(
        program,
        perf::PerfEventAttr { kind, config, ..perf::PerfEventAttr::default() },
        0,
    )
}

/// Runs a program at each count of a software event on this CPU, until the descriptor is closed.
pub(crate) fn attach_software_event(
    program: &OwnedFd,
    event: u64,
    cpu: usize,
) -> io::Result<OwnedFd> {
    let attr = perf::PerfEventAttr {
        kind: perf::PerfType::Software as u32,
        config: event,
        sample_period: 1,
        ..perf::PerfEventAttr::default()
    };
    attach_perf_event(program, attr, cpu as i32)
}

fn attach_perf_event(
    program: &OwnedFd,
    attr: perf::PerfEventAttr,
    cpu: i32,
) -> io::Result<OwnedFd> {
    const SET_BPF: libc::c_ulong = 0x4004_2408;
    let event = perf::open_event(attr, -1, cpu, None)?;
    // The type of the request differs between C libraries.
    // SAFETY: both requests take a number, and the descriptors live through the calls.
    let set = |request: libc::c_ulong, to: libc::c_int| unsafe {
        check_result(libc::ioctl(event.as_raw_fd(), request as _, to))
    };
    set(SET_BPF, program.as_raw_fd())?;
    set(perf::ENABLED, 0)?;
    Ok(event)
}

/// Attaches a program to the tracepoint that it was loaded for, until the descriptor is closed.
pub(crate) fn attach_btf_tracepoint(program: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    unsafe {
        BpfAttr::new()
            .with_u32(8, program.as_raw_fd() as u32)
            .call_for_fd(BpfCommand::RawTracepointOpen)
    }
}

/// The same for a program of [`ProgramShape::raw_tracepoint`]: ENOENT if the kernel itself has no
/// tracepoint of that name (since 4.17).
pub(crate) fn attach_raw_tracepoint(program: &OwnedFd, tracepoint: &CStr) -> io::Result<OwnedFd> {
    let attr =
        BpfAttr::new().with_pointer(0, tracepoint.as_ptr()).with_u32(8, program.as_raw_fd() as u32);
    // SAFETY: the name lives through the call, and ends with NUL.
    unsafe { attr.clone().call_for_fd(BpfCommand::RawTracepointOpen) }
}

/// The number of times the program was not run as it was already running on that CPU
/// (`bpf_prog_info::recursion_misses`, since 5.12).
pub(crate) fn recursion_misses(program: &OwnedFd) -> io::Result<u64> {
    Ok(program_info(program)?[MISSES])
}

/// `bpf_prog_info::recursion_misses`, in words.
const MISSES: usize = 208 / 8;
/// `bpf_prog_info::run_time_ns`, with `run_cnt` behind it.
const RUN_TIME: usize = 192 / 8;

fn program_info(program: &OwnedFd) -> io::Result<[u64; MISSES + 2]> {
    let mut info = [0u64; MISSES + 2];
    let attr = BpfAttr::new()
        .with_u32(0, program.as_raw_fd() as u32)
        .with_u32(4, size_of_val(&info) as u32);
    // SAFETY: the information is ours and has the stated length.
    unsafe { attr.with_pointer(8, info.as_mut_ptr()).call_bpf(BpfCommand::InfoByFd)? };
    Ok(info)
}

/// The run time of a program in ns and its number of runs, as far as counted: see
/// [`enable_run_time`].
pub(crate) fn run_time(program: &OwnedFd) -> io::Result<(u64, u64)> {
    let info = program_info(program)?;
    Ok((info[RUN_TIME], info[RUN_TIME + 1]))
}

/// Makes the kernel count the run times of programs while the descriptor lives (BPF_STATS_RUN_TIME,
/// since 5.8).
pub(crate) fn enable_run_time() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    unsafe { BpfAttr::new().with_u32(0, 0).call_for_fd(BpfCommand::EnableStats) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_is_retried_after_eagain_only() {
        let loads = |fail: i32, times: usize| {
            let mut asked = 0;
            let result = retry_load(|| {
                asked += 1;
                if asked > times { Ok(asked) } else { Err(io::Error::from_raw_os_error(fail)) }
            });
            (result.map_err(|why| why.raw_os_error()), asked)
        };
        assert_eq!(loads(libc::EAGAIN, 3), (Ok(4), 4));
        assert_eq!(loads(libc::EPERM, 3), (Err(Some(libc::EPERM)), 1));
        assert_eq!(loads(libc::EAGAIN, usize::MAX), (Err(Some(libc::EAGAIN)), LOADS));
    }
}
