//! The content of a window of time, lane by lane, for display.

use super::*;
use crate::gaps::Gaps;
use punctual_core::Event;
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

/// The lanes of one window. Reads the whole recording, as spans may begin or end far outside of it.
pub fn window(
    events: impl IntoIterator<Item = Event>,
    coverage: Coverage,
    gaps: Gaps,
    from: MonotonicNs,
    to: MonotonicNs,
) -> WindowLanes {
    let mut tracker = Tracker::new(coverage, gaps, LaneWindows::new([(from, to)]));
    events.into_iter().for_each(|event| tracker.push(&event));
    let (windows, _) = tracker.finish();
    windows.finish().into_iter().next().unwrap_or_default()
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
        let mut all: Vec<(usize, WindowLanes)> =
            windows.into_iter().map(lanes).enumerate().collect();
        all.sort_by_key(|(_, lanes)| lanes.from);
        let longest = all.iter().map(|(_, lanes)| lanes.to - lanes.from).max().unwrap_or_default();
        LaneWindows { all, longest }
    }

    /// The lanes, in the order of the requests.
    pub fn finish(mut self) -> Vec<WindowLanes> {
        self.all.sort_by_key(|(place, _)| *place);
        let mut lanes: Vec<WindowLanes> = self.all.into_iter().map(|(_, lanes)| lanes).collect();
        lanes.iter_mut().for_each(WindowLanes::order);
        lanes
    }

    /// The windows that share an instant with this span, with the shared part.
    fn sharing(
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
    fn room(&mut self) -> bool {
        let room = self.held < HELD;
        self.held += usize::from(room);
        self.left_out += u64::from(!room);
        room
    }

    /// Sorts the spans, which arrive at their ends.
    fn order(&mut self) {
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
    fn thread(&mut self, span: &ThreadSpan) {
        let passive = !matches!(
            span.doing,
            ThreadState::Running { .. } | ThreadState::Ready { .. } | ThreadState::Waking
        );
        for (lanes, from, to) in self.sharing(span.from, span.to) {
            let throughout = from == lanes.from && to == lanes.to;
            if to > from && !(passive && throughout) && lanes.room() {
                lanes.threads.entry(span.tid).or_default().spans.push(ThreadSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn cpu(&mut self, span: &CpuSpan) {
        for (lanes, from, to) in self.sharing(span.from, span.to).filter(|(_, from, to)| to > from)
        {
            if lanes.room() {
                lanes.cpus.entry(span.cpu).or_default().ran.push(CpuSpan { from, to, ..*span });
            }
        }
    }
    fn interrupt(&mut self, span: &InterruptSpan) {
        for (lanes, from, to) in self.sharing(span.from, span.to) {
            if lanes.room() {
                lanes.cpus.entry(span.cpu).or_default().interrupts.push(InterruptSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn idle(&mut self, cpu: u16, from: MonotonicNs, to: MonotonicNs, state: u32) {
        for (lanes, from, to) in self.sharing(from, to) {
            if lanes.room() {
                lanes.cpus.entry(cpu).or_default().idle.push(IdleSpan { from, to, state });
            }
        }
    }
    fn syscall(&mut self, span: &SyscallSpan) {
        for (lanes, from, to) in self.sharing(span.from, span.to) {
            if lanes.room() {
                lanes.threads.entry(span.tid).or_default().syscalls.push(SyscallSpan {
                    from,
                    to,
                    ..*span
                });
            }
        }
    }
    fn scope(&mut self, span: &ScopeSpan) {
        for (lanes, from, to) in self.sharing(span.from, span.to) {
            if lanes.room() {
                lanes.scopes.push(ScopeSpan { from, to, ..*span });
            }
        }
    }
    fn point(&mut self, mark: &PointMark) {
        for (lanes, ..) in self.sharing(mark.at, mark.at) {
            if lanes.room() {
                lanes.points.push(*mark);
            }
        }
    }
    fn call(&mut self, span: &CallSpan) {
        for (lanes, from, to) in self.sharing(span.from, span.to) {
            if lanes.room() {
                lanes.calls.push(CallSpan { from, to, ..*span });
            }
        }
    }
    fn wake(&mut self, mark: &WakeMark) {
        for (lanes, ..) in self.sharing(mark.at, mark.at) {
            if lanes.room() {
                lanes.wakes.push(*mark);
            }
        }
    }
    fn migration(&mut self, mark: &MigrationMark) {
        for (lanes, ..) in self.sharing(mark.at, mark.at) {
            if lanes.room() {
                lanes.migrations.push(*mark);
            }
        }
    }
    fn unseen(&mut self, tid: Tid, at: MonotonicNs) {
        for (lanes, ..) in self.sharing(at, at) {
            if lanes.room() {
                lanes.unseen.push((tid, at));
            }
        }
    }
    fn gap(&mut self, mark: &GapMark) {
        for (lanes, from, to) in self.sharing(mark.from, mark.to) {
            if lanes.room() {
                lanes.gaps.push(GapMark { from, to, ..*mark });
            }
        }
    }
}
