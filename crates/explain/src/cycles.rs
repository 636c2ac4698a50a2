//! The cycles of a thread of any program: their kind, the wait that ends them, and the releases
//! without a cycle.

mod delay;
mod follow;
mod infer;
pub mod lint;
mod sites;
pub mod stream;

pub use delay::{DelayingThread, MainDelay, find_delay};
pub use follow::{Begins, CycleFollower, MeasuredCycle, NotEnded};
pub use infer::{CandidateWait, Constraint, Inferred, find_rivals, infer_cycles};

use punctual_core::cycle::{Cycle, CycleKind, FILES_END, WaitingCall, WokenBy};
use std::collections::BTreeMap;

/// The minimum number of waits from which cycles are inferred.
pub const MIN_WAITS: usize = 10;

/// The names of system calls by number, as in [`punctual_core::Names::syscalls`].
pub type CallNames = BTreeMap<u32, String>;

/// The wait of a thread that begins a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WaitSite {
    /// The waiting system call, at its place.
    pub call: WaitingCall,
    /// Whether its first argument counts: a file descriptor, or the address that it waits for.
    pub by_argument: bool,
}

impl WaitSite {
    /// The site of a wait, by its call, place and, for a file, argument.
    pub(crate) fn from_call(call: WaitingCall, names: &CallNames) -> WaitSite {
        let recorded = call.number != WaitingCall::NOT_RECORDED;
        let by_argument = !recorded || waits_for_file(name_of(call, names));
        let argument = if by_argument { call.argument } else { 0 };
        WaitSite { call: WaitingCall { argument, ..call }, by_argument }
    }

    /// Whether the wait is one of these, or looks like one: of some waits the place is not known.
    pub(crate) fn has_wait(&self, call: WaitingCall) -> bool {
        let same = self.call.is_same_call(&call);
        let is_place = [call.place, 0].contains(&self.call.place) || call.place == 0;
        same && is_place && (!self.by_argument || self.call.has_object_of(&call))
    }

    /// The same call at any place, and for any address.
    pub fn without_place(&self) -> WaitSite {
        let by_argument = self.by_argument && self.call.argument < FILES_END;
        let argument = if by_argument { self.call.argument } else { 0 };
        WaitSite { call: WaitingCall { argument, place: 0, ..self.call }, by_argument }
    }

    /// Whether a thread waits there for a time that it asks for, or for a signal, which may be a
    /// timer's, rather than for others with a timeout.
    pub fn asks_for_timer(&self, names: &CallNames) -> bool {
        let name = name_of(self.call, names);
        self.is_of_file(names)
            || self.call.number == WaitingCall::NOT_RECORDED
            || name.contains("sleep")
            || name.contains("poll")
            || name.contains("select")
            || ["pause", "rt_sigsuspend", "rt_sigtimedwait", "sched_yield"].contains(&name)
    }

    /// `clock_nanosleep`, `read of file 5`.
    pub fn describe_site(&self, names: &CallNames) -> String {
        if self.call.number == WaitingCall::NOT_RECORDED {
            return "a wait of which the system call was not recorded".to_owned();
        }
        let name = names.get(&self.call.number).cloned();
        let name = name.unwrap_or_else(|| format!("system call {}", self.call.number));
        match self.is_of_file(names) {
            true => format!("{name}, file {}", self.call.argument),
            false => name,
        }
    }

    /// Whether it is a wait for a file, which its argument is.
    pub fn is_of_file(&self, names: &CallNames) -> bool {
        self.by_argument && waits_for_file(name_of(self.call, names))
    }
}

fn name_of(call: WaitingCall, names: &CallNames) -> &str {
    names.get(&call.number).map_or("", String::as_str)
}

fn waits_for_file(name: &str) -> bool {
    let files = [
        "read",
        "readv",
        "ioctl",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        "accept",
        "accept4",
        "io_uring_enter",
    ];
    files.contains(&name) || name.starts_with("epoll_")
}

/// The kind of a cycle's release, as far as the cycle alone shows.
fn kind_of(cycle: &Cycle, names: &CallNames) -> CycleKind {
    let name = name_of(cycle.call, names);
    match cycle.by {
        WokenBy::Sleep if name == "clock_nanosleep" && cycle.call.operation != 0 => {
            CycleKind::Absolute
        }
        WokenBy::Sleep => CycleKind::Relative,
        WokenBy::Period => CycleKind::Deadline,
        WokenBy::Timer
            if waits_for_file(name) || name.contains("poll") || name.contains("select") =>
        {
            CycleKind::Timerfd
        }
        WokenBy::Timer => CycleKind::PosixTimer,
        WokenBy::Task | WokenBy::Irq | WokenBy::Softirq | WokenBy::Unknown | WokenBy::Unseen => {
            CycleKind::Event
        }
    }
}

#[cfg(test)]
mod tests;
