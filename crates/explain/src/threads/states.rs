//! The state of each thread, from one transition to the next.

use super::cpus::OpenInterrupt;
use super::{ScopeSpan, SpanSink, SyscallSpan, ThreadSpan, ThreadState};
use crate::gaps::{Gaps, LossScope};
use punctual_core::event::PointId;
use punctual_core::{MonotonicNs, Tid};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The maximum number of threads followed; transitions of others are counted as `untracked`.
const THREADS: usize = 1 << 20;
/// The maximum number of open scopes of one thread; further begins are counted as `untracked`.
const SCOPES: usize = 1 << 10;

/// The implication of a transition for the time before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Was {
    Running,
    /// It was ready, or about to be.
    Ready,
    Asleep,
    /// Incompatible with any known state.
    Unseen,
}

impl Was {
    fn is_consistent_with(self, doing: ThreadState) -> bool {
        match doing {
            ThreadState::Running { .. } => self == Was::Running,
            ThreadState::Ready { .. } | ThreadState::Waking => self == Was::Ready,
            ThreadState::Unknown => true,
            _ => self == Was::Asleep,
        }
    }
}

pub struct ThreadStates {
    pub doing: ThreadState,
    pub since: MonotonicNs,
    /// It ended; later events with this number are of another thread, or a contradiction.
    pub dead: bool,
    pub syscall: Option<(u32, MonotonicNs)>,
    scopes: Vec<OpenScope>,
    /// Softirqs that it was serving when it was switched away from (PREEMPT_RT).
    pub suspended: Vec<OpenInterrupt>,
}

struct OpenScope {
    point: PointId,
    from: MonotonicNs,
    values: [i64; 2],
    count: u8,
}

impl ThreadStates {
    fn new(since: MonotonicNs) -> ThreadStates {
        let doing = ThreadState::Unknown;
        ThreadStates {
            doing,
            since,
            dead: false,
            syscall: None,
            scopes: Vec::new(),
            suspended: Vec::new(),
        }
    }

    /// Ends its state at `at`, given the implication of the transition; the caller sets the new
    /// state. Returns whether the two contradict each other without a gap to explain it.
    pub(crate) fn end_state(
        &mut self,
        tid: Tid,
        at: MonotonicNs,
        was: Was,
        gaps: &Gaps,
        sink: &mut impl SpanSink,
    ) -> bool {
        let (from, doing, agrees) = (self.since, self.doing, was.is_consistent_with(self.doing));
        let mut put = |from: MonotonicNs, to: MonotonicNs, doing: ThreadState| {
            if to > from {
                sink.on_thread_span(&ThreadSpan { tid, from, to, doing });
            }
        };
        self.since = at.max(from);
        // A running thread is only seen by its own CPU, whose gaps end its run: the others do not
        // matter.
        let concerned = !matches!(doing, ThreadState::Unknown | ThreadState::Running { .. });
        let gap = if concerned { gaps.gap_within(LossScope::AnyCpu, from, at) } else { None };
        match gap {
            Some((lost, found)) => {
                put(from, lost, doing);
                put(lost, if agrees { found } else { at }, ThreadState::Unknown);
                put(if agrees { found } else { at }, at, doing);
                false
            }
            None => {
                put(from, at, if agrees { doing } else { ThreadState::Unknown });
                !agrees && at > from
            }
        }
    }

    /// A scope begins; false if too many are open.
    pub(crate) fn begin_scope(
        &mut self,
        point: PointId,
        from: MonotonicNs,
        values: [i64; 2],
        count: u8,
    ) -> bool {
        let room = self.scopes.len() < SCOPES;
        if room {
            self.scopes.push(OpenScope { point, from, values, count });
        }
        room
    }

    /// A scope ends; inner ones without an end end with it, as incomplete. False if it never began.
    pub(crate) fn end_scope(
        &mut self,
        tid: Tid,
        point: PointId,
        at: MonotonicNs,
        sink: &mut impl SpanSink,
    ) -> bool {
        let Some(place) = self.scopes.iter().rposition(|open| open.point == point) else {
            return false;
        };
        for depth in (place..self.scopes.len()).rev() {
            self.close_scope(tid, depth, at, depth == place, sink);
        }
        true
    }

    fn close_scope(
        &mut self,
        tid: Tid,
        depth: usize,
        at: MonotonicNs,
        whole: bool,
        sink: &mut impl SpanSink,
    ) {
        let Some(OpenScope { point, from, values, count }) = self.scopes.pop() else { return };
        let (to, depth) = (at.max(from), depth as u16);
        sink.on_scope_span(&ScopeSpan { tid, from, to, point, depth, values, count, whole });
    }

    fn finish_thread(
        &mut self,
        tid: Tid,
        at: MonotonicNs,
        states: bool,
        gaps: &Gaps,
        sink: &mut impl SpanSink,
    ) {
        if states && !self.dead {
            let was = match self.doing {
                ThreadState::Running { .. } => Was::Running,
                ThreadState::Ready { .. } | ThreadState::Waking => Was::Ready,
                _ => Was::Asleep,
            };
            self.end_state(tid, at, was, gaps, sink);
        }
        if let Some((number, from)) = self.syscall.take() {
            sink.on_syscall_span(&SyscallSpan {
                tid,
                from,
                to: at.max(from),
                number,
                result: None,
            });
        }
        for depth in (0..self.scopes.len()).rev() {
            self.close_scope(tid, depth, at, false, sink);
        }
    }
}

pub struct ThreadTable {
    table: HashMap<Tid, ThreadStates>,
    began: MonotonicNs,
    /// Transitions of threads beyond the limit.
    pub untracked: u64,
}

impl ThreadTable {
    pub fn new(began: MonotonicNs) -> ThreadTable {
        ThreadTable { table: HashMap::new(), began, untracked: 0 }
    }

    /// The thread whose state an event shows; without an earlier event it has been unknown since
    /// the beginning. For one that had ended, the state since its end is unknown.
    pub fn get(&mut self, tid: Tid) -> Option<&mut ThreadStates> {
        let thread = self.thread_without_state(tid)?;
        thread.dead = false;
        Some(thread)
    }

    /// The thread of an event without an implied state: a test point may arrive shortly after the
    /// end of its thread.
    pub(crate) fn thread_without_state(&mut self, tid: Tid) -> Option<&mut ThreadStates> {
        let full = self.table.len() >= THREADS;
        match self.table.entry(tid) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(_) if full => {
                self.untracked += 1;
                None
            }
            Entry::Vacant(new) => Some(new.insert(ThreadStates::new(self.began))),
        }
    }

    /// A new thread. If its number belonged to another one without a recorded end, that end is
    /// unknown.
    pub(crate) fn on_fork(
        &mut self,
        tid: Tid,
        at: MonotonicNs,
        gaps: &Gaps,
        sink: &mut impl SpanSink,
    ) {
        let is_known = self.table.get(&tid).is_some_and(|thread| !thread.dead);
        let Some(thread) = self.get(tid) else { return };
        if is_known {
            thread.end_state(tid, at, Was::Unseen, gaps, sink);
        }
        *thread =
            ThreadStates { doing: ThreadState::Other, ..ThreadStates::new(at.max(thread.since)) };
    }

    /// Ends all threads, in the order of their numbers.
    pub fn finish(&mut self, at: MonotonicNs, states: bool, gaps: &Gaps, sink: &mut impl SpanSink) {
        let mut all_threads: Vec<(Tid, ThreadStates)> = self.table.drain().collect();
        all_threads.sort_unstable_by_key(|(tid, _)| *tid);
        for (tid, mut thread) in all_threads {
            thread.finish_thread(tid, at, states, gaps, sink);
        }
    }
}
