//! Everything that happened between `due` and `woke`, ready to be asked by instant.

use super::{Kind, Late};
use crate::gaps::Gaps;
use crate::threads::{
    Coverage, CpuLane, CpuSpan, Doing, IdleSpan, Interrupt, Lanes, SyscallSpan, ThreadSpan, Tracker, WakeMark, Windows,
};
use punctual_core::event::{Futex, Tid};
use punctual_core::{Event, MonotonicNs, What};
use std::collections::BTreeMap;

/// So many waits upon waits are followed.
const CHAIN: usize = 8;

/// One late sample and its surroundings.
pub struct Scene<'e> {
    pub late: Late,
    pub events: &'e [Event],
    pub contradictions: u64,
    lanes: Lanes,
    /// By CPU: what was served at each instant, without overlaps.
    interrupts: BTreeMap<u16, Vec<(MonotonicNs, MonotonicNs, Interrupt)>>,
    /// The thread's waits for locks: futexes, and locks inside the kernel.
    locks: Vec<LockWait>,
    /// The thread's own reclaims of memory.
    reclaims: Vec<(MonotonicNs, MonotonicNs)>,
    /// What of the record lies before the first event is not known.
    began: MonotonicNs,
    /// Who woke the thread, in the order of time.
    wakes: Vec<WakeMark>,
    /// Who moved it to another CPU, when, and where that one ran.
    moves: Vec<(Tid, MonotonicNs, u16)>,
    /// The thread's priority from an instant on.
    prios: Vec<(MonotonicNs, i16)>,
    /// The system calls of others that were entered before the record, by their exits: thread, exit, number.
    calls_left: Vec<(Tid, MonotonicNs, u32)>,
}

/// The thread was inside an operation on a lock that may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockWait {
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    pub kernel: bool,
}

impl<'e> Scene<'e> {
    pub fn of(late: Late, events: &'e [Event], coverage: &Coverage, gaps: &Gaps) -> Scene<'e> {
        let began = events.iter().map(|event| event.at).min().unwrap_or(late.due);
        let until = late.woke.max(late.due);
        let coverage = Coverage { began: began.min(late.due), ended: until, ..coverage.clone() };
        let window = Windows::new([(late.due, until)]);
        let mut tracker = Tracker::new(coverage, gaps.clone(), window);
        let within = events.iter().filter(|event| event.at <= until);
        within.for_each(|event| tracker.push(event));
        let (windows, doubts) = tracker.finish();
        let lanes = windows.finish().into_iter().next().unwrap_or_default();
        let interrupts = lanes.cpus.iter().map(|(cpu, lane)| (*cpu, flattened(lane))).collect();
        let (locks, reclaims) = waits(late.tid, events, until);
        let (prios, calls_left) = (priorities(late.tid, events), calls_left(events));
        let wakes = lanes.wakes.iter().filter(|wake| wake.task == late.tid).copied().collect();
        let moves = moves(late.tid, events);
        let contradictions = doubts.contradictions;
        Scene {
            late,
            events,
            contradictions,
            lanes,
            interrupts,
            locks,
            reclaims,
            began,
            wakes,
            moves,
            prios,
            calls_left,
        }
    }

    /// The pieces between `due` and `woke` in which nothing changes, without holes.
    pub fn pieces(&self) -> Vec<(MonotonicNs, MonotonicNs)> {
        let (due, woke) = (self.late.due, self.late.woke);
        if woke <= due {
            return Vec::new();
        }
        let mut cuts = vec![due, woke];
        let mut cut = |from: MonotonicNs, to: MonotonicNs| cuts.extend([from, to]);
        let threads = self.lanes.threads.get(&self.late.tid);
        threads.into_iter().flat_map(|lane| &lane.spans).for_each(|span| cut(span.from, span.to));
        threads.into_iter().flat_map(|lane| &lane.syscalls).for_each(|span| cut(span.from, span.to));
        for lane in self.lanes.cpus.values() {
            lane.ran.iter().for_each(|span| cut(span.from, span.to));
            lane.idle.iter().for_each(|span| cut(span.from, span.to));
        }
        self.interrupts.values().flatten().for_each(|(from, to, _)| cut(*from, *to));
        self.locks.iter().for_each(|wait| cut(wait.from, wait.to));
        self.reclaims.iter().for_each(|(from, to)| cut(*from, *to));
        self.lanes.gaps.iter().for_each(|gap| cut(gap.from, gap.to));
        self.prios.iter().for_each(|(at, _)| cut(*at, *at));
        cuts.retain(|at| (due..=woke).contains(at));
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// What the thread did at this instant. One of which nothing is known until it is woken was asleep.
    pub fn doing(&self, at: MonotonicNs) -> Doing {
        let Some(lane) = self.lanes.threads.get(&self.late.tid) else {
            return Doing::Unknown;
        };
        match covering(&lane.spans, at, |span| (span.from, span.to)) {
            Some(ThreadSpan { doing: Doing::Unknown, .. }) | None if self.is_woken_later(at) => Doing::Sleeping,
            Some(span) => span.doing,
            None => Doing::Unknown,
        }
    }

    /// Whether the next thing that is heard of the thread is that it is woken, and no event is missing until then.
    fn is_woken_later(&self, at: MonotonicNs) -> bool {
        let Some(next) = self.wake_after(at).map(|wake| wake.at) else { return false };
        let first = self.events.partition_point(|event| event.at < at);
        let until = self.events[first..].iter().take_while(|event| event.at < next);
        let seen = until.into_iter().any(|event| {
            event.tid == self.late.tid && event.cpu != Event::NO_CPU || switched_to(event) == Some(self.late.tid)
        });
        !seen && !self.lanes.gaps.iter().any(|gap| gap.to >= at && gap.from <= next)
    }

    /// Who had a CPU at this instant.
    pub fn on_cpu(&self, cpu: u16, at: MonotonicNs) -> Option<&CpuSpan> {
        covering(&self.lanes.cpus.get(&cpu)?.ran, at, |span| (span.from, span.to))
    }

    /// What interrupt was being served there.
    pub fn interrupt(&self, cpu: u16, at: MonotonicNs) -> Option<Interrupt> {
        let spans = self.interrupts.get(&cpu)?;
        covering(spans, at, |(from, to, _)| (*from, *to)).map(|(_, _, what)| *what)
    }

    /// The idle state that the CPU was in.
    pub fn idle_state(&self, cpu: u16, at: MonotonicNs) -> Option<u32> {
        covering(&self.lanes.cpus.get(&cpu)?.idle, at, |span: &IdleSpan| (span.from, span.to)).map(|span| span.state)
    }

    /// The system call that a thread was in.
    pub fn syscall(&self, tid: Tid, at: MonotonicNs) -> Option<u32> {
        let lane = self.lanes.threads.get(&tid);
        let within = |span: &SyscallSpan| (span.from, span.to);
        let known = lane.and_then(|lane| covering(&lane.syscalls, at, within)).map(|span| span.number);
        let left =
            || self.calls_left.iter().find(|(left, to, _)| *left == tid && *to > at).map(|(_, _, number)| *number);
        known.or_else(left)
    }

    /// The wait for a lock that the thread was in.
    pub fn lock(&self, at: MonotonicNs) -> Option<LockWait> {
        self.locks.iter().rev().find(|wait| wait.from <= at && at < wait.to).copied()
    }

    /// Whether the thread was reclaiming memory.
    pub fn reclaims(&self, at: MonotonicNs) -> bool {
        self.reclaims.iter().any(|(from, to)| *from <= at && at < *to)
    }

    /// Whether events of this CPU are missing at this instant.
    pub fn is_lost(&self, cpu: u16, at: MonotonicNs) -> bool {
        self.lanes.gaps.iter().any(|gap| gap.cpu == Some(cpu) && gap.from <= at && at < gap.to)
    }

    /// The wake-up that ends a wait which goes on at this instant.
    pub fn wake_after(&self, at: MonotonicNs) -> Option<&WakeMark> {
        self.wakes.get(self.wakes.partition_point(|wake| wake.at < at))
    }

    /// Whether the thread was taken to another CPU by this task while that ran as it does at this instant.
    pub fn is_moved_by(&self, running: Tid, at: MonotonicNs) -> bool {
        let mut moves = self.moves.iter().filter(|(by, ..)| *by == running);
        moves.any(|(_, when, cpu)| self.on_cpu(*cpu, *when).is_some_and(|span| span.from <= at && at < span.to))
    }

    /// The CPU whose timer, or whoever else, woke the thread; where nobody did, where it was seen.
    pub fn waking_cpu(&self, at: MonotonicNs) -> u16 {
        match self.wake_after(at) {
            Some(wake) if self.late.kind == Kind::Timer => wake.cpu,
            _ => self.late.cpu,
        }
    }

    /// The thread's priority, where an event told.
    pub fn prio(&self, at: MonotonicNs) -> Option<i16> {
        let known = self.prios.partition_point(|(since, _)| *since <= at);
        // It had the one that is told next all the time, unless it was changed: then that event is missing as well.
        self.prios.get(known.saturating_sub(1)).map(|(_, prio)| *prio)
    }

    /// When the thread became ready, for an instant at which it is.
    pub fn ready_since(&self, at: MonotonicNs) -> Option<MonotonicNs> {
        let spans = &self.lanes.threads.get(&self.late.tid)?.spans;
        let place = spans.partition_point(|span| span.to <= at);
        let before = spans.get(..=place)?;
        let ready = before.iter().rev().take_while(|span| matches!(span.doing, Doing::Ready { .. }));
        ready.last().map(|span| span.from)
    }

    /// Events that are missing within the interval.
    pub fn lost(&self) -> u64 {
        self.lanes.gaps.iter().fold(self.lanes.left_out, |sum, gap| sum.saturating_add(gap.count))
    }

    /// Whether the record begins after `due`.
    pub fn begins_late(&self) -> bool {
        self.began > self.late.due || self.events.is_empty()
    }

    /// Who let the thread go on that waited for a lock; who let that one go on while it waited; and so on.
    pub fn chain(&self) -> Vec<Tid> {
        let lock = self.locks.iter().find(|wait| wait.from < self.late.woke && wait.to > self.late.due);
        let Some(lock) = lock else { return Vec::new() };
        let (mut chain, mut of, mut until) = (Vec::new(), self.late.tid, self.late.woke);
        while chain.len() < CHAIN {
            let woken = |wake: &&WakeMark| wake.task == of && wake.at <= until && wake.at >= lock.from;
            let Some(wake) = self.lanes.wakes.iter().rev().find(woken) else { break };
            // Somebody who was interrupted is not somebody who let go.
            if wake.interrupt.is_some()
                || wake.waker == Tid::IDLE
                || chain.contains(&wake.waker)
                || wake.waker == self.late.tid
            {
                break;
            }
            chain.push(wake.waker);
            (of, until) = (wake.waker, wake.at);
        }
        chain
    }
}

/// The span that holds this instant, of spans that do not overlap and come in the order of time.
fn covering<T>(spans: &[T], at: MonotonicNs, ends: impl Fn(&T) -> (MonotonicNs, MonotonicNs)) -> Option<&T> {
    let place = spans.partition_point(|span| ends(span).1 <= at);
    spans.get(place).filter(|span| ends(span).0 <= at)
}

pub fn switched_to(event: &Event) -> Option<Tid> {
    match event.what {
        What::Switch { next, .. } => Some(next),
        _ => None,
    }
}

/// Nested interrupts as stretches in each of which the innermost one is served.
fn flattened(lane: &CpuLane) -> Vec<(MonotonicNs, MonotonicNs, Interrupt)> {
    let mut out: Vec<(MonotonicNs, MonotonicNs, Interrupt)> = Vec::new();
    let mut open: Vec<(MonotonicNs, Interrupt)> = Vec::new();
    let mut now = MonotonicNs(i64::MIN);
    let mut serve = |open: &mut Vec<(MonotonicNs, Interrupt)>, until: MonotonicNs, now: &mut MonotonicNs| {
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

/// The thread's operations on locks, and its reclaims of memory.
fn waits(tid: Tid, events: &[Event], until: MonotonicNs) -> (Vec<LockWait>, Vec<(MonotonicNs, MonotonicNs)>) {
    let (mut locks, mut reclaims) = (Vec::new(), Vec::new());
    let (mut futex, mut kernel, mut reclaim) = (None, None, None);
    for event in events.iter().filter(|event| event.tid == tid && event.at <= until) {
        match event.what {
            What::FutexEnter { op: Futex::Wait | Futex::LockPi, .. } => futex = Some(event.at),
            What::FutexExit { .. } => {
                locks.extend(futex.take().map(|from| LockWait { from, to: event.at, kernel: false }));
            }
            What::ContentionBegin { .. } => kernel = Some(event.at),
            What::ContentionEnd { .. } => {
                locks.extend(kernel.take().map(|from| LockWait { from, to: event.at, kernel: true }));
            }
            What::ReclaimBegin { .. } => reclaim = Some(event.at),
            What::ReclaimEnd { .. } => reclaims.extend(reclaim.take().map(|from| (from, event.at))),
            _ => {}
        }
    }
    locks.extend(futex.map(|from| LockWait { from, to: until, kernel: false }));
    locks.extend(kernel.map(|from| LockWait { from, to: until, kernel: true }));
    reclaims.extend(reclaim.map(|from| (from, until)));
    locks.sort_by_key(|wait| wait.from);
    (locks, reclaims)
}

fn moves(tid: Tid, events: &[Event]) -> Vec<(Tid, MonotonicNs, u16)> {
    let of = |event: &Event| match event.what {
        What::Migrate { task, .. } if task == tid => Some((event.tid, event.at, event.cpu)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The thread's priority as events tell it.
fn priorities(tid: Tid, events: &[Event]) -> Vec<(MonotonicNs, i16)> {
    let mut prios: Vec<(MonotonicNs, i16)> = Vec::new();
    for event in events {
        let prio = match event.what {
            What::Waking { task, prio, .. } | What::Wakeup { task, prio, .. } if task == tid => prio,
            What::Switch { next, next_prio, .. } if next == tid => next_prio,
            What::Switch { prev_prio, .. } if event.tid == tid => prev_prio,
            What::PiSetPrio { task, new, .. } if task == tid => new,
            _ => continue,
        };
        if prios.last().is_none_or(|(_, last)| *last != prio) {
            prios.push((event.at, prio));
        }
    }
    prios.sort_by_key(|(at, _)| *at);
    prios
}

/// System calls whose entry lies before the record: their exit tells which they were.
fn calls_left(events: &[Event]) -> Vec<(Tid, MonotonicNs, u32)> {
    let mut heard: std::collections::HashSet<Tid> = Default::default();
    let mut left = Vec::new();
    for event in events {
        match event.what {
            What::SyscallEnter { .. } => drop(heard.insert(event.tid)),
            What::SyscallExit { number, .. } if heard.insert(event.tid) => left.push((event.tid, event.at, number)),
            _ => {}
        }
    }
    left
}
