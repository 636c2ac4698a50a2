//! The kinds of events that a recording has, and when each was last seen.

use crate::occupancy::interrupt_name;
use crate::threads::Interrupt;
use punctual_core::event::{Tid, TracepointId};
use punctual_core::{Event, EventKind, MonotonicNs, Names};
use std::collections::HashMap;

/// The maximum number of kinds; events of further ones are ignored.
const KINDS: usize = 4_096;

/// A kind of event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum KindKey {
    /// By the name of its tracepoint.
    Tracepoint(&'static str),
    Named(TracepointId),
    Interrupt(Interrupt),
    /// A task that ran, by its name.
    Task(String),
    /// A system call of another thread.
    Syscall(u32),
}

impl KindKey {
    /// Whether only other threads than that of an interval matter.
    fn is_of_others(&self) -> bool {
        matches!(self, KindKey::Task(_) | KindKey::Syscall(_))
    }
}

/// When a kind of event was last seen: by its last thread, and by any other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSeen {
    tid: Tid,
    at: MonotonicNs,
    at_by_other: Option<MonotonicNs>,
    of_others: bool,
}

impl LastSeen {
    fn note_activity(&mut self, tid: Tid, at: MonotonicNs) {
        if tid != self.tid {
            self.at_by_other = Some(self.at);
            self.tid = tid;
        }
        self.at = at;
    }

    /// Whether it was seen since the begin of an interval of this thread, which ends now.
    pub(super) fn is_within(&self, from: MonotonicNs, tid: Tid) -> bool {
        match self.of_others && self.tid == tid {
            true => self.at_by_other.is_some_and(|at| at >= from),
            false => self.at >= from,
        }
    }
}

/// All kinds, in the order of their first event.
#[derive(Default)]
pub(super) struct SeenKinds {
    place: HashMap<KindKey, usize>,
    of_task: HashMap<Tid, Option<usize>>,
    all: Vec<LastSeen>,
    /// The task of each CPU.
    running: HashMap<u16, Tid>,
}

impl SeenKinds {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn all_seen(&self) -> &[LastSeen] {
        &self.all
    }

    pub(super) fn push(&mut self, event: &Event, names: &Names) {
        let interrupt = |what| Some(KindKey::Interrupt(what));
        let key = match event.what {
            EventKind::Switch { next, .. } => {
                self.note_task(event.tid, event.at, names);
                self.note_task(next, event.at, names);
                self.running.insert(event.cpu, next);
                None
            }
            EventKind::IrqEntry { irq } | EventKind::IrqExit { irq, .. } => {
                interrupt(Interrupt::Hard(irq))
            }
            EventKind::VectorEntry { vector } | EventKind::VectorExit { vector } => {
                interrupt(Interrupt::Vector(vector))
            }
            EventKind::SoftirqEntry { vector } | EventKind::SoftirqExit { vector } => {
                interrupt(Interrupt::Soft(vector))
            }
            EventKind::SyscallEnter { number, .. } => Some(KindKey::Syscall(number)),
            EventKind::Tracepoint { tracepoint, .. } => Some(KindKey::Named(tracepoint)),
            // Who runs is not known after a loss.
            EventKind::Lost { .. } => {
                self.running.remove(&event.cpu);
                None
            }
            // The end of a call that began before tells nothing new.
            EventKind::SyscallExit { .. } => None,
            ref what => what.group().map(|_| KindKey::Tracepoint(what.event_name())),
        };
        if let Some(key) = key {
            self.note_kind(key, event.tid, event.at);
        }
    }

    fn note_task(&mut self, tid: Tid, at: MonotonicNs, names: &Names) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        match self.of_task.get(&tid) {
            Some(Some(place)) => self.all[*place].note_activity(tid, at),
            Some(None) => {}
            None => {
                let place = self.note_kind(KindKey::Task(names.task_name(tid)), tid, at);
                self.of_task.insert(tid, place);
            }
        }
    }

    /// The tasks that run now ran until this instant, which no event precedes.
    pub(super) fn run_until(&mut self, at: MonotonicNs) {
        for tid in self.running.values() {
            if let Some(Some(place)) = self.of_task.get(tid) {
                self.all[*place].note_activity(*tid, at);
            }
        }
    }

    fn note_kind(&mut self, key: KindKey, tid: Tid, at: MonotonicNs) -> Option<usize> {
        if let Some(place) = self.place.get(&key) {
            self.all[*place].note_activity(tid, at);
            return Some(*place);
        }
        if self.all.len() == KINDS {
            return None;
        }
        let of_others = key.is_of_others();
        self.place.insert(key, self.all.len());
        self.all.push(LastSeen { tid, at, at_by_other: None, of_others });
        Some(self.all.len() - 1)
    }

    /// The sort of a kind, and its name.
    pub(super) fn kind_name(&self, place: usize, names: &Names) -> (&'static str, String) {
        let key = self.place.iter().find(|(_, of)| **of == place).map(|(key, _)| key);
        match key {
            Some(KindKey::Tracepoint(name)) => ("tracepoint", (*name).to_owned()),
            Some(KindKey::Named(id)) => ("tracepoint", names.tracepoint_name(*id)),
            Some(KindKey::Interrupt(what)) => interrupt_name(*what, names),
            Some(KindKey::Task(name)) => ("task", name.clone()),
            Some(KindKey::Syscall(number)) => ("syscall", names.syscall_name(*number)),
            None => ("tracepoint", String::new()),
        }
    }
}
