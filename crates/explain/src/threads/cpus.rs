//! The state of each CPU: the running task, the interrupts being served, the idle state.

use super::{CpuSpan, Interrupt, InterruptSpan, SpanSink};
use punctual_core::{Event, MonotonicNs, Nanos, Tid};

/// The maximum nesting of interrupts on one CPU; further entries are counted as stray.
const NESTED: usize = 32;

/// An entered interrupt.
#[derive(Clone, Copy)]
pub struct OpenInterrupt {
    what: Interrupt,
    from: MonotonicNs,
    /// The time in nested interrupts.
    inner: Nanos,
}

/// A CPU. Its lane has no gaps: from `since` on it ran `tid`, or an unknown task.
#[derive(Default)]
pub struct LaneCpu {
    pub number: u16,
    pub since: MonotonicNs,
    pub tid: Option<Tid>,
    /// The last event that shows that task here.
    pub seen: MonotonicNs,
    pub prio: Option<i16>,
    open: Vec<OpenInterrupt>,
    idle: Option<(u32, MonotonicNs)>,
}

impl LaneCpu {
    /// From `at` on it runs another task, or an unknown one; `known`: whether it ran `tid` until
    /// then.
    pub(crate) fn turn_to(
        &mut self,
        at: MonotonicNs,
        known: bool,
        next: Option<(Tid, Option<i16>)>,
        sink: &mut impl SpanSink,
    ) {
        let (cpu, from, to) = (self.number, self.since, at.max(self.since));
        if to > from {
            let (tid, prio) = if known { (self.tid, self.prio) } else { (None, None) };
            sink.on_cpu_span(&CpuSpan { cpu, from, to, tid, prio });
        }
        (self.since, self.seen) = (to, to);
        (self.tid, self.prio) = (next.map(|(tid, _)| tid), next.and_then(|(_, prio)| prio));
    }

    /// An interrupt is entered; false if too many are open.
    pub(crate) fn enter_interrupt(&mut self, what: Interrupt, at: MonotonicNs) -> bool {
        let room = self.open.len() < NESTED;
        if room {
            self.open.push(OpenInterrupt { what, from: at, inner: Nanos::ZERO });
        }
        room
    }

    /// Records the exit of a handler, and ends nested ones without an exit. Returns false if its
    /// entry is missing.
    pub(crate) fn exit_interrupt(
        &mut self,
        what: Interrupt,
        at: MonotonicNs,
        tid: Tid,
        sink: &mut impl SpanSink,
    ) -> bool {
        let Some(place) = self.open.iter().rposition(|open| open.what == what) else {
            return false;
        };
        while self.open.len() > place {
            let whole = self.open.len() == place + 1;
            self.close_innermost(at, tid, whole, sink);
        }
        true
    }

    fn close_innermost(
        &mut self,
        at: MonotonicNs,
        tid: Tid,
        whole: bool,
        sink: &mut impl SpanSink,
    ) {
        let Some(OpenInterrupt { what, from, inner }) = self.open.pop() else { return };
        let to = at.max(from);
        let span = to - from;
        if let Some(outer) = self.open.last_mut() {
            outer.inner += span;
        }
        let own_time = Nanos((span - inner).ns().max(0));
        sink.on_interrupt_span(&InterruptSpan {
            cpu: self.number,
            from,
            to,
            what,
            depth: self.open.len() as u8,
            own: own_time,
            tid,
            whole,
        });
    }

    /// Ends open interrupts, with unseen exits. Softirqs among them may continue when their thread
    /// runs again.
    pub(crate) fn interrupts_end(
        &mut self,
        at: MonotonicNs,
        tid: Tid,
        sink: &mut impl SpanSink,
    ) -> Vec<OpenInterrupt> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let softirqs = self
            .open
            .iter()
            .filter(|open| matches!(open.what, Interrupt::Soft(_)))
            .copied()
            .collect();
        while !self.open.is_empty() {
            self.close_innermost(at, tid, false, sink);
        }
        softirqs
    }

    /// The softirqs of a thread that runs again.
    pub(crate) fn resume_softirqs(&mut self, softirqs: &mut Vec<OpenInterrupt>, at: MonotonicNs) {
        self.open.extend(softirqs.drain(..).map(|open| OpenInterrupt {
            from: at,
            inner: Nanos::ZERO,
            ..open
        }));
        self.open.truncate(NESTED);
    }

    /// The interrupt that is being served.
    pub(crate) fn current_interrupt(&self) -> Option<Interrupt> {
        self.open.last().map(|open| open.what)
    }

    /// It enters this idle state, or leaves the current one.
    pub(crate) fn set_idle_state(
        &mut self,
        at: MonotonicNs,
        next: Option<u32>,
        sink: &mut impl SpanSink,
    ) {
        if let Some((state, from)) = self.idle.take() {
            sink.on_idle_span(self.number, from, at.max(from), state);
        }
        self.idle = next.map(|state| (state, at));
    }
}

/// All known CPUs.
pub struct Cpus {
    table: Vec<Option<LaneCpu>>,
    began: MonotonicNs,
}

impl Cpus {
    pub fn new(began: MonotonicNs) -> Cpus {
        Cpus { table: Vec::new(), began }
    }

    /// The CPU; without earlier events it has been unknown since the beginning. `None` for
    /// [`Event::NO_CPU`].
    pub fn get(&mut self, number: u16) -> Option<&mut LaneCpu> {
        if number == Event::NO_CPU {
            return None;
        }
        let place = usize::from(number);
        if place >= self.table.len() {
            self.table.resize_with(place + 1, || None);
        }
        let since = self.began;
        let new = || LaneCpu { number, since, seen: since, ..LaneCpu::default() };
        Some(self.table[place].get_or_insert_with(new))
    }

    /// Every known CPU.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut LaneCpu> {
        self.table.iter_mut().flatten()
    }
}
