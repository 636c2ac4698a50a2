//! A counter of one event.

use super::attr::{self, PerfEventAttr, PerfType};
use super::{refusal, vendor};
use crate::tracefs::Tracefs;
use punctual_core::perf_event::CountedEvent;
use punctual_core::{Nanos, PerfEvent};
use punctual_sys::check_result;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

/// The tasks with counted events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whom {
    ThisThread,
    /// The calling thread, and all threads and processes that it starts from now on.
    ThisThreadAndChildren,
    /// Programs that the calling thread executes in new processes, each from its first instruction,
    /// and all that they start.
    Programs,
    Thread(i32),
    /// Another thread, and all threads and processes that it starts from now on.
    ThreadAndChildren(i32),
    Cpu(u32),
}

/// A counter, initially disabled.
#[derive(Debug)]
pub struct PerfCounter {
    file: File,
    user_only: bool,
}

/// The state of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CounterReading {
    pub value: u64,
    /// The time it was enabled, summed over tasks.
    pub enabled: Nanos,
    /// The time it counted: less if a PMU has fewer counters than requested and they take turns.
    pub running: Nanos,
}

/// The final state of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Total {
    pub reading: CounterReading,
    /// Whether it covers only user mode.
    pub user_only: bool,
}

impl CounterReading {
    /// The count extrapolated to the whole time, as by perf-stat(1). `None` if it never counted.
    pub fn scaled_count(self) -> Option<u64> {
        match (self.enabled.0, self.running.0) {
            (_, running) if running <= 0 => None,
            (enabled, running) if running >= enabled => Some(self.value),
            (enabled, running) => {
                let scaled = u128::from(self.value) * enabled as u128 / running as u128;
                Some(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}

impl PerfCounter {
    /// Opens a counter of an event. The error states the reason and a remedy.
    pub fn open_event(event: &PerfEvent, whom: Whom) -> Result<PerfCounter, String> {
        let attr = match event {
            PerfEvent::Tracepoint { group, name } => {
                return PerfCounter::open_tracepoint(group, name, whom);
            }
            PerfEvent::OfPmu(text) => vendor::parse_attribute(text, Path::new(vendor::DEVICES))?,
            PerfEvent::Named(named) => {
                let kind = match named.counted {
                    CountedEvent::Hardware => PerfType::Hardware,
                    CountedEvent::Cache => PerfType::Cache,
                    CountedEvent::Software => PerfType::Software,
                } as u32;
                PerfEventAttr { kind, config: named.config, ..PerfEventAttr::default() }
            }
        };
        match PerfCounter::open_with(attr, whom, 0, None) {
            // Without access to kernel mode, a user may count the CPU's events in user mode, and
            // CPU time.
            Err(why) if refusal::is_of_rights(&why) && (event.is_hardware() || event.is_time()) => {
                let counter = PerfCounter::open_with(attr, whom, USER_ONLY, None);
                counter.map(|counter| PerfCounter { user_only: event.is_hardware(), ..counter })
            }
            result => result,
        }
        .map_err(|why| refusal::describe_refusal(event, &why))
    }

    /// Opens a counter of a tracepoint, `group` and `event` as under `events` in tracefs. The error
    /// states the reason.
    pub fn open_tracepoint(group: &str, event: &str, whom: Whom) -> Result<PerfCounter, String> {
        let id = Tracefs::open()?.tracepoint_id(group, event)?;
        PerfCounter::open_config(PerfType::Tracepoint, id, whom).map_err(|why| {
            refusal::describe_refusal(&PerfEvent::from_tracepoint(group, event), &why)
        })
    }

    /// Counts the system calls of the calling thread in `what`, without the one that ends the
    /// count. Slows each of them.
    pub fn system_calls(mut what: impl FnMut()) -> Result<u64, String> {
        // Seen once in thousands: a tracepoint that others disable and enable at the same time
        // stays disabled. The call that ends the count shows it, as it is always counted.
        for _ in 0..3 {
            let counter =
                PerfCounter::open_tracepoint("raw_syscalls", "sys_enter", Whom::ThisThread)?;
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

    fn open_config(kind: PerfType, config: u64, whom: Whom) -> io::Result<PerfCounter> {
        PerfCounter::open_in(kind, config, whom, 0, None)
    }

    /// `flags` in addition to those of `whom`.
    pub(super) fn open_in(
        kind: PerfType,
        config: u64,
        whom: Whom,
        flags: u64,
        leader: Option<&PerfCounter>,
    ) -> io::Result<PerfCounter> {
        let attr = PerfEventAttr { kind: kind as u32, config, ..PerfEventAttr::default() };
        PerfCounter::open_with(attr, whom, flags, leader)
    }

    fn open_with(
        attr: PerfEventAttr,
        whom: Whom,
        flags: u64,
        leader: Option<&PerfCounter>,
    ) -> io::Result<PerfCounter> {
        let inherit_flags = match whom {
            Whom::ThisThreadAndChildren | Whom::ThreadAndChildren(_) => attr::INHERIT,
            Whom::Programs => attr::INHERIT | attr::ENABLE_ON_EXEC,
            _ => 0,
        };
        // Members of a group are enabled and disabled with their leader.
        let disabled = if leader.is_none() { attr::DISABLED } else { 0 };
        let (flags, read_format) = match flags & IN_GROUP {
            0 => (flags, attr::FORMAT_ENABLED | attr::FORMAT_RUNNING),
            _ => (flags & !IN_GROUP, attr::FORMAT_GROUP),
        };
        let attr = PerfEventAttr { read_format, flags: flags | disabled | inherit_flags, ..attr };
        let (pid, cpu) = match whom {
            Whom::ThisThread | Whom::ThisThreadAndChildren | Whom::Programs => (0, -1),
            Whom::Thread(tid) | Whom::ThreadAndChildren(tid) => (tid, -1),
            Whom::Cpu(cpu) => (-1, cpu as libc::c_int),
        };
        let fd = attr::open_event(attr, pid, cpu, leader.map(PerfCounter::fd))?;
        Ok(PerfCounter { file: File::from(fd), user_only: false })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its final state. The error states the reason.
    pub fn final_total(&self) -> Result<Total, String> {
        let reading =
            self.read_with_times().map_err(|why| format!("reading its counter failed: {why}"))?;
        Ok(Total { reading, user_only: self.user_only })
    }

    /// Counts only events matching this expression over the tracepoint's fields
    /// (Documentation/trace/events.rst, event filtering).
    pub(super) fn set_filter(&self, expression: &CStr) -> io::Result<()> {
        // SAFETY: the kernel copies the string, which ends with a NUL and lives through the call.
        check_result(unsafe {
            libc::ioctl(self.file.as_raw_fd(), attr::SET_FILTER as _, expression.as_ptr())
        })
        .map(drop)
    }

    pub fn enable(&self) {
        // SAFETY: the request takes no argument and touches no memory of ours; it cannot fail on an
        // open event.
        unsafe { libc::ioctl(self.file.as_raw_fd(), attr::ENABLED as _, 0) };
    }

    pub fn disable(&self) {
        // SAFETY: as in `enable`.
        unsafe { libc::ioctl(self.file.as_raw_fd(), attr::NOT_ENABLED as _, 0) };
    }

    /// The count so far.
    pub fn read(&self) -> io::Result<u64> {
        self.read_with_times().map(|reading| reading.value)
    }

    /// The same with its times.
    pub(crate) fn read_with_times(&self) -> io::Result<CounterReading> {
        let mut bytes = [0; 24];
        (&self.file).read_exact(&mut bytes)?;
        let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let nanos = |at: usize| Nanos(i64::try_from(word(at)).unwrap_or(i64::MAX));
        Ok(CounterReading { value: word(0), enabled: nanos(8), running: nanos(16) })
    }
}

/// A flag that no attribute has: the counter is read with its group.
pub(super) const IN_GROUP: u64 = 1 << 63;
const USER_ONLY: u64 = attr::EXCLUDE_KERNEL | attr::EXCLUDE_HYPERVISOR;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplexed_counts_are_scaled_to_the_enabled_time() {
        let reading = |value, enabled, running| CounterReading {
            value,
            enabled: Nanos(enabled),
            running: Nanos(running),
        };
        assert_eq!(reading(7, 100, 100).scaled_count(), Some(7));
        assert_eq!(reading(7, 100, 25).scaled_count(), Some(28));
        assert_eq!(reading(u64::MAX, 100, 1).scaled_count(), Some(u64::MAX));
        assert_eq!(reading(0, 100, 0).scaled_count(), None);
        assert_eq!(reading(0, 0, 0).scaled_count(), None);
    }
}
