//! The events around a sample, indexed for queries by instant.

use super::thread_timeline::{FAULT, ThreadTimeline};
use super::{CpuMode, LatencyInterval};
use super::{find_covering, switched_to};
use crate::gaps::Gaps;
use crate::steal::{self, DelayedTimer, Hole};
use crate::threads::{Coverage, CpuLane, CpuSpan, Interrupt, LaneWindows, Tracker, WindowLanes};
use punctual_core::event::{StackId, Tid};
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum number of threads with a timeline: that of the sample, and those that it waited for.
const TIMELINES: usize = 32;
/// The number of events of its CPU that are searched for a page fault.
const FAULT_WITHIN: usize = 64;
/// The maximum time of a page fault that clears a huge page. With a larger limit, more throttled
/// time would count as unknown than faults would as throttled.
const LONG_FAULT: Nanos = Nanos(2_000_000);
/// The number of events of its CPU that are searched for the interrupted task.
const FOUND_WITHIN: usize = 512;
/// The maximum distance, in events of its CPU, of a stack from the interrupt that requested it.
const STACK_WITHIN: usize = 4;

/// One sample and the events around it.
pub struct TraceContext<'e> {
    pub interval: LatencyInterval,
    pub events: &'e [Event],
    pub contradictions: u64,
    /// Spans from the first event to `until`.
    pub lanes: WindowLanes,
    /// The end of the explained time.
    pub until: MonotonicNs,
    /// Intervals in which the hypervisor had taken the machine, or the CPU of the sample.
    pub holes: Vec<Hole>,
    /// Timers that were pending during silences of their CPUs.
    pub waits: Vec<DelayedTimer>,
    pub coverage: Coverage,
    /// The interrupt served at each instant by CPU, without overlaps.
    interrupts: BTreeMap<u16, Vec<(MonotonicNs, MonotonicNs, Interrupt)>>,
    places: Vec<Vec<u32>>,
    /// Nothing is known before the first event.
    pub began: MonotonicNs,
    /// For threads with a recorded system call: the call that they were in at the start of the
    /// record, with its end.
    calls: HashMap<Tid, Option<(MonotonicNs, u32)>>,
    /// The indices of signals that stop or continue.
    pub signals: Vec<usize>,
    timelines: RefCell<HashMap<Tid, Rc<ThreadTimeline>>>,
}

impl<'e> TraceContext<'e> {
    pub fn from_events(
        interval: LatencyInterval,
        events: &'e [Event],
        coverage: &Coverage,
        gaps: &Gaps,
    ) -> TraceContext<'e> {
        let began = events.iter().map(|event| event.at).min().unwrap_or(interval.due);
        let until = interval.woke.max(interval.due);
        let from = began.min(interval.due);
        let coverage = Coverage { began: from, ended: until, ..coverage.clone() };
        let mut tracker =
            Tracker::new(coverage.clone(), gaps.clone(), LaneWindows::new([(from, until)]));
        events.iter().filter(|event| event.at <= until).for_each(|event| tracker.push(event));
        let (windows, warnings) = tracker.finish();
        let lanes = windows.finish().into_iter().next().unwrap_or_default();
        let waits = if interval.woke - interval.due < steal::SHORTEST {
            Vec::new()
        } else {
            steal::delayed_timers(events)
        };
        let interrupts =
            lanes.cpus.iter().map(|(cpu, lane)| (*cpu, flatten_interrupts(lane))).collect();
        TraceContext {
            interval,
            events,
            contradictions: warnings.contradictions,
            lanes,
            until,
            holes: find_holes(interval, events, &waits),
            waits,
            coverage,
            interrupts,
            places: places_by_cpu(events),
            began,
            calls: first_calls(events),
            signals: signal_places(events),
            timelines: RefCell::default(),
        }
    }

    /// The timeline of a thread; `None` beyond the limit.
    pub(crate) fn thread_timeline(&self, tid: Tid) -> Option<Rc<ThreadTimeline>> {
        if let Some(known) = self.timelines.borrow().get(&tid) {
            return Some(known.clone());
        }
        if self.timelines.borrow().len() >= TIMELINES {
            return None;
        }
        let timeline =
            Rc::new(ThreadTimeline::from_events(tid, &self.lanes, self.events, self.until));
        self.timelines.borrow_mut().insert(tid, timeline.clone());
        Some(timeline)
    }

    /// The indices of a CPU's events, ascending.
    pub(crate) fn places_on_cpu(&self, cpu: u16) -> &[u32] {
        self.places.get(usize::from(cpu)).map_or(&[], Vec::as_slice)
    }

    /// The task on a CPU at this instant.
    pub fn on_cpu(&self, cpu: u16, at: MonotonicNs) -> Option<&CpuSpan> {
        find_covering(&self.lanes.cpus.get(&cpu)?.ran, at, |span| (span.from, span.to))
    }

    /// The innermost interrupt served on a CPU at each instant.
    pub(crate) fn served_interrupts(&self, cpu: u16) -> &[(MonotonicNs, MonotonicNs, Interrupt)] {
        self.interrupts.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// The interrupt being served there.
    pub(crate) fn interrupt_at(&self, cpu: u16, at: MonotonicNs) -> Option<Interrupt> {
        find_covering(self.served_interrupts(cpu), at, |(from, to, _)| (*from, *to))
            .map(|(_, _, what)| *what)
    }

    /// The idle state that the CPU was in.
    pub fn idle_state(&self, cpu: u16, at: MonotonicNs) -> Option<u32> {
        find_covering(&self.lanes.cpus.get(&cpu)?.idle, at, |span| (span.from, span.to))
            .map(|span| span.state)
    }

    /// The mode of a task that ran on this CPU with interrupts disabled: without recorded system
    /// calls, the interrupt at its end shows it.
    pub(crate) fn mode_until_interrupt(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> CpuMode {
        match self.mode_at(tid, cpu, at) {
            known if self.calls.contains_key(&tid) => known,
            known => {
                self.found_after(tid, cpu, at).map_or(known, |found| self.mode_of(found, tid, cpu))
            }
        }
    }

    /// The mode of the thread itself when it ran on this CPU: later interrupts may meet its next
    /// call.
    pub(crate) fn own_mode(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> CpuMode {
        if self.calls.contains_key(&tid) {
            return self.mode_at(tid, cpu, at);
        }
        let found = self.found_before(tid, cpu, at);
        found.map_or_else(
            || self.mode_without_calls(tid, cpu, at),
            |found| self.mode_of(found, tid, cpu),
        )
    }

    /// The mode of a task that ran on this CPU.
    pub(crate) fn mode_at(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> CpuMode {
        let first = self.calls.get(&tid);
        let lane = self.lanes.threads.get(&tid);
        let current_call =
            lane.and_then(|lane| find_covering(&lane.syscalls, at, |span| (span.from, span.to)));
        let left = || first.copied().flatten().filter(|(to, _)| at < *to).map(|(_, number)| number);
        match current_call.map(|span| span.number).or_else(left) {
            Some(number) => CpuMode::Syscall(number),
            None if first.is_none() => {
                let found =
                    self.found_before(tid, cpu, at).or_else(|| self.found_after(tid, cpu, at));
                found.map_or_else(
                    || self.mode_without_calls(tid, cpu, at),
                    |found| self.mode_of(found, tid, cpu),
                )
            }
            None if self.is_in_fault(tid, cpu, at) => CpuMode::Fault,
            None => CpuMode::User,
        }
    }

    fn mode_without_calls(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> CpuMode {
        if self.is_in_fault(tid, cpu, at) { CpuMode::Fault } else { CpuMode::Unknown }
    }

    /// The mode shown by an interrupt that met the task: outside of a call it is user mode, or a
    /// page fault that has just begun.
    fn mode_of(&self, (when, call): (MonotonicNs, Option<u32>), tid: Tid, cpu: u16) -> CpuMode {
        match (call, self.fault_before(tid, cpu, when).map(|began| when - began)) {
            (Some(number), _) => CpuMode::Syscall(number),
            (None, Some(since)) if since <= FAULT => CpuMode::Fault,
            (None, Some(since)) if since <= LONG_FAULT => CpuMode::Unknown,
            (None, _) => CpuMode::User,
        }
    }

    /// The state of the task at the last interrupt before this instant since it got the CPU, and
    /// when.
    fn found_before(
        &self,
        tid: Tid,
        cpu: u16,
        at: MonotonicNs,
    ) -> Option<(MonotonicNs, Option<u32>)> {
        let places = self.places_on_cpu(cpu);
        let end = places.partition_point(|place| self.events[*place as usize].at <= at);
        interrupted_mode(places[..end].iter().rev().map(|place| &self.events[*place as usize]), tid)
    }

    /// The state of the task at the next interrupt, if it has the CPU until then.
    fn found_after(
        &self,
        tid: Tid,
        cpu: u16,
        at: MonotonicNs,
    ) -> Option<(MonotonicNs, Option<u32>)> {
        let places = self.places_on_cpu(cpu);
        let first = places.partition_point(|place| self.events[*place as usize].at <= at);
        interrupted_mode(places[first..].iter().map(|place| &self.events[*place as usize]), tid)
    }

    /// Whether the last event of a task on its CPU, except interrupts, belongs to a page fault.
    fn is_in_fault(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> bool {
        self.fault_before(tid, cpu, at).is_some()
    }

    fn fault_before(&self, tid: Tid, cpu: u16, at: MonotonicNs) -> Option<MonotonicNs> {
        let places = self.places_on_cpu(cpu);
        let end = places.partition_point(|place| self.events[*place as usize].at <= at);
        let before = places[..end]
            .iter()
            .rev()
            .take(FAULT_WITHIN)
            .map(|place| &self.events[*place as usize]);
        for event in before.take_while(|event| event.tid == tid) {
            match event.what {
                EventKind::PageFault { .. } => return Some(event.at),
                EventKind::SyscallEnter { .. }
                | EventKind::SyscallExit { .. }
                | EventKind::Switch { .. } => {
                    return None;
                }
                _ => {}
            }
        }
        None
    }

    /// Whether events of this CPU are missing at this instant.
    pub(crate) fn is_lost(&self, cpu: u16, at: MonotonicNs) -> bool {
        self.lanes.gaps.iter().any(|gap| gap.cpu == Some(cpu) && gap.from <= at && at < gap.to)
    }

    /// The hole at this instant: the hypervisor had taken the machine, or this CPU.
    pub(crate) fn hole_at(&self, cpu: Option<u16>, at: MonotonicNs) -> Option<&Hole> {
        find_covering(&self.holes, at, |hole| (hole.from, hole.to))
            .filter(|hole| hole.cpu.is_none() || hole.cpu == cpu)
    }

    /// Whether this task moved the thread to another CPU during its run at this instant.
    pub(crate) fn is_moved_by(
        &self,
        timeline: &ThreadTimeline,
        running: Tid,
        at: MonotonicNs,
    ) -> bool {
        let mut moves =
            timeline.moves.iter().rev().take(TIMELINES).filter(|(by, ..)| *by == running);
        moves.any(|(_, when, cpu)| {
            self.on_cpu(*cpu, *when).is_some_and(|span| span.from <= at && at < span.to)
        })
    }

    /// The kernel stack of a task, taken by an interrupt during a piece or at its end.
    pub fn kernel_stack(
        &self,
        cpu: u16,
        tid: Tid,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> Option<StackId> {
        let places = self.places_on_cpu(cpu);
        let event = |place: &u32| &self.events[*place as usize];
        let first = places.partition_point(|place| event(place).at <= from);
        let end = places.partition_point(|place| event(place).at <= to);
        let near = places.get(first..(end + STACK_WITHIN).min(places.len()))?;
        near.iter().rev().take(TIMELINES).map(event).filter(|event| event.tid == tid).find_map(
            |event| match event.what {
                EventKind::Stack { stack } => Some(stack),
                _ => None,
            },
        )
    }

    /// The number of events missing within the interval.
    pub fn lost_count(&self) -> u64 {
        let interval_gaps = self.lanes.gaps.iter().filter(|gap| gap.to >= self.interval.due);
        interval_gaps.fold(self.lanes.left_out, |sum, gap| sum.saturating_add(gap.count))
    }

    /// Whether the thread got a CPU within the interval without a switch that shows it.
    pub(crate) fn is_switch_unseen(&self) -> bool {
        let LatencyInterval { tid, due, woke, .. } = self.interval;
        let is = |(of, at): &(Tid, MonotonicNs)| *of == tid && *at > due && *at <= woke;
        self.lanes.unseen.iter().any(is)
    }

    /// Whether the record begins after `due`.
    pub(crate) fn begins_after_due(&self) -> bool {
        self.began > self.interval.due || self.events.is_empty()
    }
}

/// When the machine or the sample's CPU was taken within the sample; without overlaps.
fn find_holes(interval: LatencyInterval, events: &[Event], waits: &[DelayedTimer]) -> Vec<Hole> {
    // Shorter ones are ignored.
    if interval.woke - interval.due < steal::SHORTEST {
        return Vec::new();
    }
    let mut holes: Vec<Hole> = steal::find_holes(events);
    let is_apart = |hole: &Hole, holes: &[Hole]| {
        holes.iter().all(|other| hole.to <= other.from || other.to <= hole.from)
    };
    let alone: Vec<Hole> = steal::holes_of(interval.cpu, waits)
        .into_iter()
        .filter(|hole| is_apart(hole, &holes))
        .collect();
    holes.extend(alone);
    holes.sort_by_key(|hole| hole.from);
    holes.retain(|hole| hole.to > interval.due && hole.from < interval.woke && hole.from < hole.to);
    holes.dedup_by(|next, last| next.from < last.to);
    holes
}

/// The first of these events of one CPU that shows the mode of the interrupted task, up to a
/// switch.
fn interrupted_mode<'e>(
    events: impl Iterator<Item = &'e Event>,
    tid: Tid,
) -> Option<(MonotonicNs, Option<u32>)> {
    let same = events.take(FOUND_WITHIN).take_while(|event| switched_to(event).is_none());
    same.filter(|event| event.tid == tid).find_map(|event| match event.what {
        EventKind::Interrupted { call } => Some((event.at, call)),
        _ => None,
    })
}

fn signal_places(events: &[Event]) -> Vec<usize> {
    let is = |event: &Event| matches!(event.what, EventKind::Signal { .. });
    (0..events.len()).filter(|place| is(&events[*place])).collect()
}

fn places_by_cpu(events: &[Event]) -> Vec<Vec<u32>> {
    let mut places: Vec<Vec<u32>> = Vec::new();
    for (place, event) in events.iter().enumerate().filter(|(_, event)| event.cpu != Event::NO_CPU)
    {
        let cpu = usize::from(event.cpu);
        if cpu >= places.len() {
            places.resize_with(cpu + 1, Vec::new);
        }
        places[cpu].push(place as u32);
    }
    places
}

/// Nested interrupts as segments with the innermost one served.
fn flatten_interrupts(lane: &CpuLane) -> Vec<(MonotonicNs, MonotonicNs, Interrupt)> {
    let mut out: Vec<(MonotonicNs, MonotonicNs, Interrupt)> = Vec::new();
    let mut open: Vec<(MonotonicNs, Interrupt)> = Vec::new();
    let mut now = MonotonicNs(i64::MIN);
    let mut serve =
        |open: &mut Vec<(MonotonicNs, Interrupt)>, until: MonotonicNs, now: &mut MonotonicNs| {
            while let Some((end, what)) = open.last().copied() {
                let to = end.min(until);
                if to > *now {
                    out.push((*now, to, what));
                    *now = to;
                }
                if end > until {
                    break;
                }
                open.pop();
            }
            *now = until.max(*now);
        };
    for span in &lane.interrupts {
        serve(&mut open, span.from, &mut now);
        open.push((span.to, span.what));
    }
    serve(&mut open, MonotonicNs(i64::MAX), &mut now);
    out
}

/// Threads with recorded system calls. If the first event is an exit, the thread was in that call
/// before.
fn first_calls(events: &[Event]) -> HashMap<Tid, Option<(MonotonicNs, u32)>> {
    let mut calls = HashMap::new();
    for event in events {
        match event.what {
            EventKind::SyscallEnter { .. } => {
                calls.entry(event.tid).or_insert(None);
            }
            EventKind::SyscallExit { number, .. } => {
                calls.entry(event.tid).or_insert(Some((event.at, number)));
            }
            _ => {}
        }
    }
    calls
}
