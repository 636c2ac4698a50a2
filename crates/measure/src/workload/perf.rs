//! Counts of the kernel through perf_event_open(2), counting mode: for comparing a claim with somebody else's count.

use super::tracefs::Tracefs;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// `struct perf_event_attr` in its first version, PERF_ATTR_SIZE_VER0 (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
/// `_IOW('$', 6, char *)`: the size of a pointer is part of it.
const IOC_SET_FILTER: libc::c_ulong = 0x4000_2406 | (size_of::<usize>() as libc::c_ulong) << 16;

/// Whose events are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whom {
    /// The calling thread's.
    ThisThread,
    /// The calling thread's and those of all threads and processes that it starts from now on.
    ThisThreadAndChildren,
    /// Those of another thread.
    Thread(i32),
    /// Everybody's on a CPU.
    Cpu(u32),
}

/// An event of the kernel that is always counted in software (PERF_COUNT_SW_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Software {
    /// Page faults.
    PageFaults = 2,
    /// Context switches.
    ContextSwitches = 3,
    /// Migrations to another CPU.
    Migrations = 4,
}

/// A count, off at first.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// Of a tracepoint, `group` and `event` as under `events` in tracefs. The error says what is missing.
    pub fn tracepoint(group: &str, event: &str, whom: Whom) -> Result<Counter, String> {
        let id = tracepoint_id(&Tracefs::open()?, group, event)?;
        Counter::open(TYPE_TRACEPOINT, id, whom).map_err(|why| format!("perf_event_open of {group}:{event}: {why}"))
    }

    /// Of an event that is counted in software.
    pub fn software(event: Software, whom: Whom) -> Result<Counter, String> {
        Counter::open(TYPE_SOFTWARE, event as u64, whom).map_err(|why| format!("perf_event_open of {event:?}: {why}"))
    }

    /// The system calls that the calling thread makes in `what`; the one that ends the counting is
    /// counted by the kernel and taken off here. Slows every one of them.
    pub fn system_calls(mut what: impl FnMut()) -> Result<u64, String> {
        // Seen once in thousands: a tracepoint that others switch off and on at the same time stays off. The call that ends the counting
        // tells, because it is always counted.
        for _ in 0..3 {
            let counter = Counter::tracepoint("raw_syscalls", "sys_enter", Whom::ThisThread)?;
            counter.enable();
            what();
            counter.disable();
            match counter.read() {
                Ok(0) => {}
                Ok(counted) => return Ok(counted - 1),
                Err(why) => return Err(why.to_string()),
            }
        }
        Err("the tracepoint raw_syscalls:sys_enter stayed off".to_owned())
    }

    fn open(kind: u32, config: u64, whom: Whom) -> io::Result<Counter> {
        Counter::open_in(kind, config, whom, 0, -1)
    }

    fn open_in(kind: u32, config: u64, whom: Whom, read_format: u64, group: libc::c_int) -> io::Result<Counter> {
        let inherit = if whom == Whom::ThisThreadAndChildren { INHERIT } else { 0 };
        // Members of a group are on and off with their leader.
        let disabled = if group < 0 { DISABLED } else { 0 };
        let size = size_of::<Attr>() as u32;
        let attr = Attr { kind, size, config, read_format, flags: disabled | inherit, ..Attr::default() };
        let (pid, cpu) = match whom {
            Whom::ThisThread | Whom::ThisThreadAndChildren => (0, -1),
            Whom::Thread(tid) => (tid, -1),
            Whom::Cpu(cpu) => (-1, cpu as libc::c_int),
        };
        const CLOEXEC: libc::c_ulong = 8;
        // SAFETY: `attr` is a perf_event_attr of the size that it states; the kernel only reads it.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, pid, cpu, group, CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and belongs to nobody else.
        Ok(Counter(unsafe { File::from_raw_fd(fd as i32) }))
    }

    /// Counts only what this expression over the tracepoint's fields admits (Documentation/trace/events.rst, event filtering).
    fn filter(&self, expression: &CStr) -> io::Result<()> {
        // SAFETY: the kernel copies the string, which ends with a NUL and lives through the call.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_SET_FILTER as _, expression.as_ptr()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Counts from now on.
    pub fn enable(&self) {
        // SAFETY: the request takes no argument and touches no memory of ours; it cannot fail on an open event.
        unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_ENABLE as _, 0) };
    }

    /// Stops counting.
    pub fn disable(&self) {
        // SAFETY: as in `enable`.
        unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_DISABLE as _, 0) };
    }

    /// What was counted so far.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

fn tracepoint_id(tracefs: &Tracefs, group: &str, event: &str) -> Result<u64, String> {
    let path = format!("events/{group}/{event}/id");
    tracefs.read(&path)?.trim().parse().map_err(|_| format!("{path} in tracefs holds no number"))
}

/// Members that a group may have.
pub const GROUP_MAX: usize = 24;
const FORMAT_GROUP: u64 = 1 << 3;

/// Tracepoints that are counted together and read in one system call.
#[derive(Debug)]
pub struct Group {
    leader: Counter,
    /// In force while they live.
    _members: Vec<Counter>,
    size: usize,
}

impl Group {
    /// Those of the tracepoints (`group`, `event`) that this kernel has, with their places in the list; at most [`GROUP_MAX`].
    pub fn tracepoints(events: &[(&str, &str)], whom: Whom) -> Result<(Group, Vec<usize>), String> {
        Group::filtered(events, &[], whom)
    }

    /// The same, with what is counted of some of them: their places, and an expression over the tracepoint's fields. One that cannot be
    /// filtered here is left out.
    pub fn filtered(
        events: &[(&str, &str)],
        filters: &[(usize, &CStr)],
        whom: Whom,
    ) -> Result<(Group, Vec<usize>), String> {
        let tracefs = Tracefs::open()?;
        let (mut counters, mut places): (Vec<Counter>, Vec<usize>) = (Vec::new(), Vec::new());
        for (place, (group, event)) in events.iter().enumerate().take(GROUP_MAX) {
            // What another architecture or configuration has.
            let Ok(id) = tracepoint_id(&tracefs, group, event) else { continue };
            let leader = counters.first().map_or(-1, |leader: &Counter| leader.0.as_raw_fd());
            let counter = Counter::open_in(TYPE_TRACEPOINT, id, whom, FORMAT_GROUP, leader);
            let counter = counter.map_err(|why| format!("perf_event_open of {group}:{event}: {why}"))?;
            let mut of_it = filters.iter().filter(|(of, _)| *of == place);
            if !of_it.all(|(_, expression)| counter.filter(expression).is_ok()) {
                continue;
            }
            counters.push(counter);
            places.push(place);
        }
        let size = counters.len();
        if size == 0 {
            return Err("none of the tracepoints is there".to_owned());
        }
        let members = counters.split_off(1);
        let leader = counters.pop().ok_or("none of the tracepoints is there")?;
        Ok((Group { leader, _members: members, size }, places))
    }

    /// Counts from now on.
    pub fn enable(&self) {
        self.leader.enable();
    }

    /// Stops counting.
    pub fn disable(&self) {
        self.leader.disable();
    }

    /// The counts so far, in the order of the places. One system call, no allocation; zeros where it fails.
    #[inline]
    pub fn read(&self) -> [u64; GROUP_MAX] {
        // The number of members stands first.
        let mut words = [0u64; GROUP_MAX + 1];
        let bytes = (self.size + 1) * 8;
        // SAFETY: the array has room for the bytes asked for.
        unsafe { libc::read(self.leader.0.as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        let mut counts = [0; GROUP_MAX];
        counts.copy_from_slice(&words[1..]);
        counts
    }
}
