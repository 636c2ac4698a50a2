//! The system calls that a stream of events is searched for.

use crate::cycles::CallNames;
use punctual_core::CauseKind;
use punctual_core::cycle::{
    CallClass, FILE_CALLS, MARKED, POLLS, WAITING_CALLS, WaitingCall, WokenBy, has_timed_out,
    is_interrupted,
};
use punctual_core::event::TaskState;
use std::collections::{BTreeMap, BTreeSet};

/// FUTEX_WAIT, FUTEX_LOCK_PI and FUTEX_LOCK_PI2 of futex(2).
const LOCKS: [u16; 3] = [0, 6, 13];
const WAIT_BITSET: u16 = 9;

/// System calls by number, on the recorded machine.
#[derive(Clone, Debug)]
pub struct SyscallNumbers {
    waits: BTreeSet<u32>,
    files: BTreeSet<u32>,
    polls: BTreeSet<u32>,
    futexes: BTreeSet<u32>,
    futex_waits: BTreeSet<u32>,
    clock_nanosleep: BTreeSet<u32>,
    sleeps: BTreeSet<u32>,
    restarts: BTreeSet<u32>,
    /// Calls that wait for a signal.
    signals: BTreeSet<u32>,
    marks: BTreeMap<u32, (usize, CallClass)>,
}

impl SyscallNumbers {
    pub fn from_names(names: &CallNames) -> SyscallNumbers {
        let set = |wanted: &[&str]| -> BTreeSet<u32> {
            let has = |(_, name): &(&u32, &String)| wanted.contains(&base_name(name));
            names.iter().filter(has).map(|(number, _)| *number).collect()
        };
        let mark = |(number, name): (&u32, &String)| {
            let place = MARKED.iter().position(|(marked, _)| *marked == base_name(name))?;
            Some((*number, (place, MARKED[place].1)))
        };
        SyscallNumbers {
            waits: set(&WAITING_CALLS),
            files: set(&FILE_CALLS),
            polls: set(&POLLS),
            futexes: set(&["futex"]),
            futex_waits: set(&["futex_wait", "futex_waitv"]),
            clock_nanosleep: set(&["clock_nanosleep"]),
            sleeps: set(&["nanosleep", "clock_nanosleep", "restart_syscall"]),
            restarts: set(&["restart_syscall"]),
            signals: set(&["pause", "rt_sigsuspend"]),
            marks: names.iter().filter_map(mark).collect(),
        }
    }

    /// A call, reduced to what distinguishes cycles.
    pub(super) fn reduce_call(&self, number: u32, args: [u64; 2]) -> WaitingCall {
        let operation = match number {
            _ if self.futexes.contains(&number) => args[1] as u16 & 0x7f,
            _ if self.futex_waits.contains(&number) => WAIT_BITSET,
            _ if self.clock_nanosleep.contains(&number) => args[1] as u16 & 1,
            _ => 0,
        };
        WaitingCall { number, operation, argument: args[0], place: 0 }
    }

    /// Whether a cycle may begin with it.
    pub(super) fn may_begin(&self, call: WaitingCall) -> bool {
        self.waits.contains(&call.number)
    }

    pub(super) fn is_sleep(&self, call: WaitingCall) -> bool {
        self.clock_nanosleep.contains(&call.number)
    }

    /// Whether the kernel continues an interrupted sleep by this call.
    pub(super) fn is_restart(&self, number: u32) -> bool {
        self.restarts.contains(&number)
    }

    /// Whether a wait in this call that ends so was interrupted by a signal rather than released;
    /// one ended by a timer may have been a wait for it.
    pub(super) fn is_interrupted_wait(&self, call: WaitingCall, result: i64, by: WokenBy) -> bool {
        is_interrupted(result)
            && !self.signals.contains(&call.number)
            && (by != WokenBy::Timer || self.sleeps.contains(&call.number))
    }

    /// Whether a sleeping call returns this value on timeout.
    pub(super) fn timed_out(&self, call: WaitingCall, result: i64) -> bool {
        has_timed_out(result, self.polls.contains(&call.number))
    }

    pub(super) fn mark_of_call(&self, number: u32) -> Option<(usize, CallClass)> {
        self.marks.get(&number).copied()
    }

    /// The part for a sleep in this call that is not the cycle's wait.
    pub(super) fn part_of_sleep(&self, call: WaitingCall, state: TaskState) -> CauseKind {
        let is_futex =
            self.futexes.contains(&call.number) || self.futex_waits.contains(&call.number);
        match call.number {
            _ if is_futex && LOCKS.contains(&call.operation) => CauseKind::Lock,
            _ if is_futex => CauseKind::Waiting,
            number if state == TaskState::Blocked && self.files.contains(&number) => CauseKind::Io,
            _ => CauseKind::Waiting,
        }
    }
}

/// The name without the suffixes of 32-bit machines for calls that take a time.
fn base_name(name: &str) -> &str {
    name.strip_suffix("_time64").or_else(|| name.strip_suffix("_time32")).unwrap_or(name)
}
