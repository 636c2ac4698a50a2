//! Scopes of test points as a function report: their time with and without the scopes within them,
//! thread by thread.
//!
//! At every instant a thread's time belongs to one scope: the open one that began last. So no
//! instant is counted twice, even if scopes overlap without nesting or call themselves, and the sum
//! of exclusive times is the time in which any scope was open.

use crate::gaps::{Gaps, LossScope};
use punctual_core::event::{PointId, PointKind};
use punctual_core::{
    ClockNs, Event, EventKind, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Tid,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The maximum number of scopes with figures, such as all functions of a large program; uses of
/// others are counted.
const SCOPES: usize = 4_096;
/// The maximum number of threads followed.
const THREADS: usize = 1 << 17;
/// The maximum number of open scopes per thread; beyond it the oldest is dropped, which most likely
/// has no end.
const DEPTH: usize = 256;
/// These times have no exact histogram, only the overall one.
const SHAPE: SeriesShape =
    SeriesShape { range: Nanos::ZERO, resolution: Nanos::MICRO, period: None };

/// The figures of the scopes with one name. Those across missing points count only in `uncertain`.
#[derive(Clone, Debug)]
pub struct ScopeFigures {
    pub inclusive: SeriesData,
    /// The same without the scopes that began later in the same thread.
    pub exclusive: SeriesData,
    /// The sum of inclusive times; of a recursion only the outermost.
    pub total: Nanos,
    pub exclusive_total: Nanos,
    /// Scopes within another of the same name.
    pub recursive: u64,
    /// Scopes that ended while one that began later was open: they overlap, or that one's end is
    /// missing.
    pub overlapping: u64,
    /// Scopes without an end.
    pub open: u64,
    /// Scopes across missing points.
    pub uncertain: u64,
    /// The threads in which such scopes ended.
    pub threads: HashSet<Tid>,
}

/// The figures of all scopes.
#[derive(Clone, Debug, Default)]
pub struct ScopeReport {
    /// The scopes by the point that represents the name.
    pub scopes: BTreeMap<PointId, ScopeFigures>,
    /// The sum of exclusive times of all scopes, which shares refer to.
    pub total: Nanos,
    /// Begins and ends in no figure, as a limit on scopes or threads was reached.
    pub untracked: u64,
}

/// Reads begins and ends in order of time.
#[derive(Debug, Default)]
pub struct ScopeReader {
    figures: BTreeMap<PointId, ScopeFigures>,
    open: HashMap<Tid, Vec<UnfinishedScope>>,
    untracked: u64,
}

/// An unfinished scope. Only the last one of a thread accumulates time.
#[derive(Clone, Copy, Debug)]
struct UnfinishedScope {
    point: PointId,
    began: MonotonicNs,
    /// Its exclusive time until `resumed`.
    exclusive: Nanos,
    resumed: MonotonicNs,
    /// The inclusive times of scopes of the same name directly within it, which are already
    /// counted.
    counted: Nanos,
}

impl ScopeReader {
    /// Takes the event if it begins or ends a scope; `point` represents its name. Returns the
    /// exclusive time of an ended scope, unless points within are missing.
    pub fn push(&mut self, event: &Event, point: PointId, gaps: &Gaps) -> Option<Nanos> {
        let EventKind::Point { kind, .. } = event.what else { return None };
        if kind == PointKind::Point {
            return None;
        }
        let no_room = self.figures.len() >= SCOPES && !self.figures.contains_key(&point)
            || self.open.len() >= THREADS && !self.open.contains_key(&event.tid);
        if no_room {
            self.untracked += 1;
            return None;
        }
        match kind {
            PointKind::Begin => {
                self.begin_scope(event.tid, point, event.at);
                None
            }
            _ => self.end_scope(event.tid, point, event.at, gaps),
        }
    }

    fn begin_scope(&mut self, tid: Tid, point: PointId, at: MonotonicNs) {
        self.figures.entry(point).or_insert_with(ScopeFigures::new);
        let open = self.open.entry(tid).or_default();
        if let Some(last) = open.last_mut() {
            last.exclusive += at - last.resumed;
        }
        if open.len() >= DEPTH {
            let forgotten = open.remove(0);
            if let Some(figures) = self.figures.get_mut(&forgotten.point) {
                figures.open += 1;
            }
        }
        open.push(UnfinishedScope {
            point,
            began: at,
            exclusive: Nanos::ZERO,
            resumed: at,
            counted: Nanos::ZERO,
        });
    }

    fn end_scope(
        &mut self,
        tid: Tid,
        point: PointId,
        at: MonotonicNs,
        gaps: &Gaps,
    ) -> Option<Nanos> {
        let open = self.open.get_mut(&tid)?;
        let place = open.iter().rposition(|one| one.point == point)?;
        let is_last = place + 1 == open.len();
        let mut ended = open.remove(place);
        if is_last {
            ended.exclusive += at - ended.resumed;
            if let Some(last) = open.last_mut() {
                last.resumed = at;
            }
        }
        let span = at - ended.began;
        let outer = open[..place].iter_mut().rfind(|one| one.point == point);
        let recursive = outer.is_some();
        if let Some(outer) = outer {
            outer.counted += span;
        }
        let figures = self.figures.get_mut(&point)?;
        figures.threads.insert(tid);
        if gaps.gap_within(LossScope::Thread(tid), ended.began, at).is_some() {
            figures.uncertain += 1;
            return None;
        }
        figures.overlapping += u64::from(!is_last);
        figures.recursive += u64::from(recursive);
        figures.total += span - ended.counted;
        figures.exclusive_total += ended.exclusive;
        record_interval(&mut figures.inclusive, ended.began, at);
        record_interval(&mut figures.exclusive, ended.began, ended.began + ended.exclusive);
        Some(ended.exclusive)
    }

    /// Ends the input: open scopes have no end.
    pub fn finish(mut self) -> ScopeReport {
        for open in self.open.values().flatten() {
            if let Some(figures) = self.figures.get_mut(&open.point) {
                figures.open += 1;
            }
        }
        let total =
            self.figures.values().fold(Nanos::ZERO, |sum, figures| sum + figures.exclusive_total);
        ScopeReport { scopes: self.figures, total, untracked: self.untracked }
    }
}

impl ScopeReport {
    /// The share of these scopes in the time of all; `None` if that is zero.
    pub(crate) fn share_of_time(&self, figures: &ScopeFigures) -> Option<f64> {
        (self.total > Nanos::ZERO)
            .then(|| figures.exclusive_total.ns() as f64 / self.total.ns() as f64)
    }
}

impl ScopeFigures {
    fn new() -> ScopeFigures {
        ScopeFigures {
            inclusive: SeriesData::new(SHAPE),
            exclusive: SeriesData::new(SHAPE),
            total: Nanos::ZERO,
            exclusive_total: Nanos::ZERO,
            recursive: 0,
            overlapping: 0,
            open: 0,
            uncertain: 0,
            threads: HashSet::new(),
        }
    }
}

fn record_interval(data: &mut SeriesData, from: MonotonicNs, to: MonotonicNs) {
    let sample = Sample {
        seq: data.sample_count(),
        due: ClockNs(from.ns()),
        woke: ClockNs(to.ns()),
        cpu: 0,
    };
    data.record_sample(&sample, 0);
}

#[cfg(test)]
mod tests;
