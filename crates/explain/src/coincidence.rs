//! Coincidence: the kinds of events within the long intervals of a pair or series, against those
//! within its ordinary ones.
//!
//! An event within an interval is one on any CPU from its begin to its end. The intervals are
//! collected first, as only all of them say which ones are long; the events are read after that.

mod kinds;
#[cfg(test)]
mod tests;

use crate::gaps::{Gaps, LossScope};
use crate::pairs::{IntervalPair, PairMatch, Results};
use kinds::SeenKinds;
use punctual_bundle::intervals::Coincidences;
use punctual_core::event::{Recorded, Tid};
use punctual_core::{Event, EventKind, MonotonicNs, Names};
use punctual_stats::coincidence::{LongAndOrdinary, OccurredIn, rank_coincidences};
use std::collections::HashMap;
use std::hash::Hash;

/// The maximum number of intervals kept, of all subjects together.
const INTERVALS: usize = 1 << 20;
/// Those with the most intervals are counted.
const SUBJECTS: usize = 16;
/// Of fewer intervals it is not said which are long.
const FEWEST: usize = 40;
/// The long ones are 1 % of all, but at least so many.
const FEWEST_LATE: usize = 10;

#[derive(Clone, Copy, Debug)]
struct KeptInterval {
    from: MonotonicNs,
    to: MonotonicNs,
    tid: Tid,
}

impl KeptInterval {
    fn interval_length(&self) -> i64 {
        (self.to - self.from).ns()
    }
}

/// The intervals of all subjects.
#[derive(Clone, Debug)]
pub struct KeptIntervals<K> {
    of: HashMap<K, (Vec<KeptInterval>, u64)>,
    kept: usize,
}

impl<K> Default for KeptIntervals<K> {
    fn default() -> KeptIntervals<K> {
        KeptIntervals { of: HashMap::new(), kept: 0 }
    }
}

impl<K: Hash + Eq> KeptIntervals<K> {
    pub fn add(&mut self, subject: K, (from, to): (MonotonicNs, MonotonicNs), tid: Tid) {
        let (intervals, left_out) = self.of.entry(subject).or_default();
        if self.kept >= INTERVALS {
            *left_out += 1;
            return;
        }
        self.kept += 1;
        intervals.push(KeptInterval { from: from.min(to), to: to.max(from), tid });
    }

    /// The subjects to count events for, by name; those without a name are not asked for.
    fn into_subjects(self, gaps: &Gaps, name: impl Fn(&K) -> Option<String>) -> Vec<Subject> {
        let named = self.of.into_iter().filter_map(|(of, kept)| Some((name(&of)?, kept)));
        let mut subjects: Vec<Subject> =
            named.filter_map(|(name, kept)| Subject::from_intervals(name, kept, gaps)).collect();
        subjects.sort_by(|a, b| {
            b.intervals.len().cmp(&a.intervals.len()).then_with(|| a.name.cmp(&b.name))
        });
        subjects.truncate(SUBJECTS);
        subjects
    }
}

impl KeptIntervals<IntervalPair> {
    /// Keeps a match, unless it has no end of its own.
    pub fn record_match(&mut self, found: &PairMatch) {
        if !found.left {
            self.add(found.pair, found.interval.time_window(), found.interval.end_tid());
        }
    }
}

/// A pair, function or series.
struct Subject {
    name: String,
    /// In the order of their ends.
    intervals: Vec<KeptInterval>,
    next: usize,
    above: i64,
    left_out: u64,
    /// Of each kind, the long and the ordinary intervals that had it.
    counts: Vec<[u64; 2]>,
}

impl Subject {
    fn from_intervals(
        name: String,
        (mut intervals, mut left_out): (Vec<KeptInterval>, u64),
        gaps: &Gaps,
    ) -> Option<Subject> {
        let before = intervals.len();
        intervals.retain(|of| {
            let is_missing = |scope| gaps.gap_within(scope, of.from, of.to).is_some();
            !is_missing(LossScope::AnyCpu) && !is_missing(LossScope::Thread(of.tid))
        });
        left_out += (before - intervals.len()) as u64;
        if intervals.len() < FEWEST {
            return None;
        }
        let mut lengths: Vec<i64> = intervals.iter().map(KeptInterval::interval_length).collect();
        lengths.sort_unstable();
        let late = (lengths.len() / 100).max(FEWEST_LATE);
        let above = lengths[lengths.len() - 1 - late];
        intervals.sort_by_key(|of| of.to);
        // Equal ones may leave nothing that is longer.
        let has_late = lengths.last().is_some_and(|longest| *longest > above);
        has_late.then(|| Subject { name, intervals, next: 0, above, left_out, counts: Vec::new() })
    }

    /// Counts the kinds of the intervals that ended before this instant.
    fn end_before(&mut self, at: MonotonicNs, seen: &mut SeenKinds) {
        while let Some(of) = self.intervals.get(self.next).filter(|of| of.to < at) {
            self.next += 1;
            seen.run_until(of.to);
            let sort = usize::from(of.interval_length() <= self.above);
            self.counts.resize(seen.len(), [0, 0]);
            for (count, kind) in self.counts.iter_mut().zip(seen.all_seen()) {
                count[sort] += u64::from(kind.is_within(of.from, of.tid));
            }
        }
    }

    fn into_coincidences(self, seen: &SeenKinds, names: &Names) -> Coincidences {
        let (late, ordinary): (Vec<i64>, Vec<i64>) =
            self.intervals.iter().map(KeptInterval::interval_length).partition(|l| *l > self.above);
        let time = |lengths: &[i64]| lengths.iter().map(|ns| *ns as f64).sum();
        let long_and_ordinary = LongAndOrdinary {
            late: late.len() as u64,
            ordinary: ordinary.len() as u64,
            late_time: time(&late),
            ordinary_time: time(&ordinary),
            above: self.above,
            left_out: self.left_out,
        };
        let kinds = self.counts.iter().enumerate().filter(|(_, counts)| **counts != [0, 0]);
        let kinds = kinds.map(|(place, [late, ordinary])| {
            let (kind, who) = seen.kind_name(place, names);
            OccurredIn { kind, who, late: *late, ordinary: *ordinary }
        });
        rank_coincidences(self.name, long_and_ordinary, kinds.collect())
    }
}

/// Reads the events of a recording in order of time.
pub struct CoincidenceCounter<'a> {
    subjects: Vec<Subject>,
    seen: SeenKinds,
    names: &'a Names,
}

impl<'a> CoincidenceCounter<'a> {
    /// `None` if the recording has no kernel events.
    pub fn new<K: Hash + Eq>(
        kept: KeptIntervals<K>,
        name: impl Fn(&K) -> Option<String>,
        gaps: &Gaps,
        names: &'a Names,
        recorded: &Recorded,
    ) -> Option<CoincidenceCounter<'a>> {
        let has_events = !recorded.groups.is_empty() || !recorded.tracepoints.is_empty();
        has_events.then(|| CoincidenceCounter {
            subjects: kept.into_subjects(gaps, name),
            seen: SeenKinds::default(),
            names,
        })
    }

    /// For the pairs, scopes and functions of these results.
    pub fn of_pairs(
        kept: KeptIntervals<IntervalPair>,
        results: &Results,
        gaps: &Gaps,
        names: &'a Names,
        recorded: &Recorded,
    ) -> Option<CoincidenceCounter<'a>> {
        let pairs = results.pairs.iter().map(|pair| (pair.pair, pair.name.clone()));
        let functions = results.functions.keys().map(|id| {
            let name = names.functions.get(id.0 as usize).map(|function| function.name.clone());
            let name = name.unwrap_or_else(|| format!("function {}", id.0));
            (IntervalPair::Function(*id), name)
        });
        let pair_names: HashMap<IntervalPair, String> = pairs.chain(functions).collect();
        CoincidenceCounter::new(kept, |pair| pair_names.get(pair).cloned(), gaps, names, recorded)
    }

    /// Whether there is anything to read events for.
    pub fn is_needed(&self) -> bool {
        !self.subjects.is_empty()
    }

    pub fn push(&mut self, event: &Event) {
        // A loss may be reported late; the intervals with one are left out.
        if !matches!(event.what, EventKind::Lost { .. }) {
            for subject in &mut self.subjects {
                subject.end_before(event.at, &mut self.seen);
            }
        }
        self.seen.push(event, self.names);
    }

    /// The tables, first of what has the most intervals.
    pub fn finish(mut self) -> Vec<Coincidences> {
        for subject in &mut self.subjects {
            subject.end_before(MonotonicNs(i64::MAX), &mut self.seen);
        }
        let (seen, names) = (self.seen, self.names);
        self.subjects.into_iter().map(|subject| subject.into_coincidences(&seen, names)).collect()
    }
}
