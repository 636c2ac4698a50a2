//! The content of a window of time, lane by lane, for display.

use super::*;
use std::collections::BTreeMap;

/// The maximum number of spans and marks in a window; others are counted.
pub const HELD: usize = 200_000;

/// The content of a window, each lane in order of time. Spans are cut at the window's ends.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WindowLanes {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The CPUs with their tasks and interrupts.
    pub cpus: BTreeMap<u16, CpuLane>,
    /// The threads with activity in the window; those that waited, or were unknown, throughout are
    /// omitted.
    pub threads: BTreeMap<Tid, ThreadLane>,
    /// Test points of every kind.
    pub points: Vec<PointMark>,
    pub scopes: Vec<ScopeSpan>,
    pub calls: Vec<CallSpan>,
    pub wakes: Vec<WakeMark>,
    /// In order of time.
    pub migrations: Vec<MigrationMark>,
    pub gaps: Vec<GapMark>,
    /// The first instants at which threads were seen on a CPU without a switch to them.
    pub unseen: Vec<(Tid, MonotonicNs)>,
    /// Spans and marks beyond what a window holds ([`HELD`]).
    pub left_out: u64,
    held: usize,
}

/// A CPU in a window.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CpuLane {
    /// The running tasks, without gaps.
    pub ran: Vec<CpuSpan>,
    /// Interrupts; nested ones follow the one they interrupt.
    pub interrupts: Vec<InterruptSpan>,
    pub idle: Vec<IdleSpan>,
}

/// An idle state in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleSpan {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    pub state: u32,
}

/// A thread in a window.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ThreadLane {
    /// Its states, without gaps.
    pub spans: Vec<ThreadSpan>,
    pub syscalls: Vec<SyscallSpan>,
}

/// Several windows in one pass: a sink.
pub struct LaneWindows {
    /// By their beginnings, each with its index among the requested ones.
    all: Vec<(usize, WindowLanes)>,
    /// The length of the longest window.
    longest: Nanos,
}

impl LaneWindows {
    /// The windows `from..=to`; they may overlap.
    pub fn new(windows: impl IntoIterator<Item = (MonotonicNs, MonotonicNs)>) -> LaneWindows {
        let lanes = |(from, to): (MonotonicNs, MonotonicNs)| WindowLanes {
            from,
            to: to.max(from),
            ..WindowLanes::default()
        };
        let mut all_windows: Vec<(usize, WindowLanes)> =
            windows.into_iter().map(lanes).enumerate().collect();
        all_windows.sort_by_key(|(_, lanes)| lanes.from);
        let longest =
            all_windows.iter().map(|(_, lanes)| lanes.to - lanes.from).max().unwrap_or_default();
        LaneWindows { all: all_windows, longest }
    }

    /// The lanes, in the order of the requests.
    pub fn finish(mut self) -> Vec<WindowLanes> {
        self.all.sort_by_key(|(place, _)| *place);
        let mut lanes: Vec<WindowLanes> = self.all.into_iter().map(|(_, lanes)| lanes).collect();
        lanes.iter_mut().for_each(WindowLanes::sort_spans);
        lanes
    }

    /// The windows that share an instant with this span, with the shared part.
    fn shared_windows(
        &mut self,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> impl Iterator<Item = (&mut WindowLanes, MonotonicNs, MonotonicNs)> {
        let earliest = from + -self.longest;
        let first = self.all.partition_point(|(_, lanes)| lanes.from < earliest);
        let end = self.all.partition_point(|(_, lanes)| lanes.from <= to);
        let candidates = self.all.get_mut(first..end.max(first)).unwrap_or_default();
        candidates.iter_mut().filter(move |(_, lanes)| lanes.to >= from).map(move |(_, lanes)| {
            let (from, to) = (from.max(lanes.from), to.min(lanes.to));
            (lanes, from, to)
        })
    }
}

impl WindowLanes {
    /// Whether one more fits; otherwise counts it.
    fn reserve_room(&mut self) -> bool {
        let room = self.held < HELD;
        self.held += usize::from(room);
        self.left_out += u64::from(!room);
        room
    }

    /// Sorts the spans, which arrive at their ends.
    fn sort_spans(&mut self) {
        for lane in self.cpus.values_mut() {
            lane.interrupts.sort_by_key(|span| (span.from, span.depth));
        }
        for lane in self.threads.values_mut() {
            lane.syscalls.sort_by_key(|span| span.from);
        }
        self.scopes.sort_by_key(|span| (span.from, span.depth));
        self.calls.sort_by_key(|span| (span.from, std::cmp::Reverse(span.to)));
        self.gaps.sort_by_key(|gap| gap.from);
    }
}

impl SpanSink for LaneWindows {
    fn on_thread_span(&mut self, span: &ThreadSpan) {
        let passive = !matches!(
            span.doing,
            ThreadState::Running { .. } | ThreadState::Ready { .. } | ThreadState::Waking
        );
        for (lanes, from, to) in self.shared_windows(span.from, span.to) {
            let throughout = from == lanes.from && to == lanes.to;
            if to > from && !(passive && throughout) && lanes.reserve_room() {
                lanes.threads.entry(span.tid).or_default().spans.push(ThreadSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn on_cpu_span(&mut self, span: &CpuSpan) {
        for (lanes, from, to) in
            self.shared_windows(span.from, span.to).filter(|(_, from, to)| to > from)
        {
            if lanes.reserve_room() {
                lanes.cpus.entry(span.cpu).or_default().ran.push(CpuSpan { from, to, ..*span });
            }
        }
    }
    fn on_interrupt_span(&mut self, span: &InterruptSpan) {
        for (lanes, from, to) in self.shared_windows(span.from, span.to) {
            if lanes.reserve_room() {
                lanes.cpus.entry(span.cpu).or_default().interrupts.push(InterruptSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn on_idle_span(&mut self, cpu: u16, from: MonotonicNs, to: MonotonicNs, state: u32) {
        for (lanes, from, to) in self.shared_windows(from, to) {
            if lanes.reserve_room() {
                lanes.cpus.entry(cpu).or_default().idle.push(IdleSpan { from, to, state });
            }
        }
    }
    fn on_syscall_span(&mut self, span: &SyscallSpan) {
        for (lanes, from, to) in self.shared_windows(span.from, span.to) {
            if lanes.reserve_room() {
                lanes.threads.entry(span.tid).or_default().syscalls.push(SyscallSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn on_scope_span(&mut self, span: &ScopeSpan) {
        for (lanes, from, to) in self.shared_windows(span.from, span.to) {
            if lanes.reserve_room() {
                lanes.scopes.push(ScopeSpan { from, to, ..*span });
            }
        }
    }
    fn on_point(&mut self, mark: &PointMark) {
        for (lanes, ..) in self.shared_windows(mark.at, mark.at) {
            if lanes.reserve_room() {
                lanes.points.push(*mark);
            }
        }
    }
    fn on_call_span(&mut self, span: &CallSpan) {
        for (lanes, from, to) in self.shared_windows(span.from, span.to) {
            if lanes.reserve_room() {
                lanes.calls.push(CallSpan { from, to, ..*span });
            }
        }
    }
    fn on_wake(&mut self, mark: &WakeMark) {
        for (lanes, ..) in self.shared_windows(mark.at, mark.at) {
            if lanes.reserve_room() {
                lanes.wakes.push(*mark);
            }
        }
    }
    fn on_migration(&mut self, mark: &MigrationMark) {
        for (lanes, ..) in self.shared_windows(mark.at, mark.at) {
            if lanes.reserve_room() {
                lanes.migrations.push(*mark);
            }
        }
    }
    fn on_unseen_switch(&mut self, tid: Tid, at: MonotonicNs) {
        for (lanes, ..) in self.shared_windows(at, at) {
            if lanes.reserve_room() {
                lanes.unseen.push((tid, at));
            }
        }
    }
    fn on_gap(&mut self, mark: &GapMark) {
        for (lanes, from, to) in self.shared_windows(mark.from, mark.to) {
            if lanes.reserve_room() {
                lanes.gaps.push(GapMark { from, to, ..*mark });
            }
        }
    }
}
