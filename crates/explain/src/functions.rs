//! Probed functions: the time of their calls with and without the functions that they call, and
//! their frequency.
//!
//! A call is reported at its end, so inner calls come before outer ones. The entry of an outer call
//! determines which calls of the thread are within it; only the calls not yet claimed by an outer
//! one are needed.

use crate::gaps::{Gaps, LossScope};
use crate::intervals::{IntervalEnd, MatchedPair, PairFigures};
use punctual_core::event::FunctionId;
use punctual_core::{
    ClockNs, Event, EventKind, Limit, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Tid,
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The maximum number of functions with figures; calls of others are counted.
pub const FUNCTIONS: usize = 256;
/// The maximum number of a thread's unclaimed calls. Beyond it the oldest are joined: an outer call
/// that began among those has an unknown exclusive time.
const UNCLAIMED: usize = 1 << 10;
/// The number of a function's calls in a thread that are remembered, in case an outer call of the
/// same function claims them.
const RECURSION: usize = 64;
/// The maximum number of threads followed.
const THREADS: usize = 1 << 17;
/// Exclusive times and periods have no exact histogram, only the overall one.
const SHAPE: SeriesShape =
    SeriesShape { range: Nanos::ZERO, resolution: Nanos::MICRO, period: None };

/// One call, as recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordedCall {
    pub function: FunctionId,
    pub interval: MatchedPair,
    /// Its time without the probed functions that it called; `None` if some of those may be
    /// missing.
    pub exclusive: Option<Nanos>,
    /// Whether it was left by longjmp, an exception or the end of its thread instead of a return:
    /// only its count includes it then.
    pub left: bool,
}

/// The figures of one function.
#[derive(Clone, Debug)]
pub struct FunctionFigures {
    pub calls: PairFigures,
    /// The same without the probed functions that it called.
    pub exclusive: SeriesData,
    /// Calls whose exclusive time is unknown.
    pub exclusive_unknown: u64,
    /// From one call's entry to the next one's in the same thread, without inner calls of a
    /// recursion.
    pub period: SeriesData,
    /// Calls left without a return.
    pub left: u64,
    /// Whether any call may be missing.
    pub lossy: bool,
}

/// Reads calls and keeps figures of their functions.
#[derive(Debug, Default)]
pub struct Functions {
    figures: BTreeMap<FunctionId, FunctionFigures>,
    limits: HashMap<FunctionId, Limit>,
    unclaimed: HashMap<Tid, VecDeque<EndedCalls>>,
    recent: HashMap<(Tid, FunctionId), VecDeque<MonotonicNs>>,
    /// Calls beyond the limits on functions and threads.
    untracked: u64,
}

/// Ended calls of a thread not claimed by an outer call: one, or several joined.
#[derive(Clone, Copy, Debug)]
struct EndedCalls {
    first_entry: MonotonicNs,
    last_entry: MonotonicNs,
    total: Nanos,
}

impl Functions {
    /// With limits on the duration of calls.
    pub fn new(limits: impl IntoIterator<Item = (FunctionId, Limit)>) -> Functions {
        Functions { limits: limits.into_iter().collect(), ..Functions::default() }
    }

    /// Takes the event if it is a call.
    pub fn push(&mut self, event: &Event, gaps: &Gaps) -> Option<RecordedCall> {
        let EventKind::Call { function, began, left, argument, .. } = event.what else {
            return None;
        };
        let end_at = |at| IntervalEnd {
            at,
            tid: event.tid,
            cpu: event.cpu,
            value: argument.map(|argument| argument as i64),
        };
        let (from, to) = (end_at(began), end_at(event.at));
        let hidden = gaps.gap_within(LossScope::AnyCpu, began, event.at).is_some();
        let exclusive =
            self.claim_inner_calls(event.tid, began, to.at - from.at).filter(|_| !hidden);
        let full = self.figures.len() >= FUNCTIONS && !self.figures.contains_key(&function);
        if full {
            self.untracked += 1;
            return None;
        }
        let limit = self.limits.get(&function).copied();
        let figures = self.figures.entry(function).or_insert_with(|| FunctionFigures::new(limit));
        let interval = if left {
            figures.left += 1;
            MatchedPair { seq: figures.calls.matched_count(), from, to }
        } else {
            figures.calls.record_interval(from, to, false)
        };
        match exclusive.filter(|_| !left) {
            Some(exclusive) => record_interval(&mut figures.exclusive, began, began + exclusive),
            None => figures.exclusive_unknown += u64::from(!left),
        }
        self.record_entry(event.tid, function, began);
        Some(RecordedCall { function, interval, exclusive, left })
    }

    /// The exclusive time of a call that just ended, which claims the calls inside it.
    fn claim_inner_calls(&mut self, tid: Tid, began: MonotonicNs, span: Nanos) -> Option<Nanos> {
        if self.unclaimed.len() >= THREADS && !self.unclaimed.contains_key(&tid) {
            self.untracked += 1;
            return None;
        }
        let ended = self.unclaimed.entry(tid).or_default();
        let mut inner = Nanos::ZERO;
        while let Some(last) = ended.back().filter(|last| last.first_entry >= began) {
            inner += last.total;
            ended.pop_back();
        }
        // It began among joined calls, which can no longer be separated.
        let forgotten = ended.back().is_some_and(|last| last.last_entry >= began);
        ended.push_back(EndedCalls { first_entry: began, last_entry: began, total: span });
        if ended.len() > UNCLAIMED
            && let (Some(oldest), Some(next)) = (ended.pop_front(), ended.front_mut())
        {
            next.first_entry = oldest.first_entry;
            next.total += oldest.total;
        }
        (!forgotten).then(|| Nanos((span - inner).ns().max(0)))
    }

    /// Keeps the entry for the period, without those of inner calls of a recursion.
    fn record_entry(&mut self, tid: Tid, function: FunctionId, began: MonotonicNs) {
        if self.recent.len() >= THREADS && !self.recent.contains_key(&(tid, function)) {
            self.untracked += 1;
            return;
        }
        let recent = self.recent.entry((tid, function)).or_default();
        while recent.back().is_some_and(|inner| *inner >= began) {
            recent.pop_back();
        }
        recent.push_back(began);
        if recent.len() > RECURSION
            && let (Some(first), Some(second)) = (recent.pop_front(), recent.front())
            && let Some(figures) = self.figures.get_mut(&function)
        {
            record_interval(&mut figures.period, first, *second);
        }
    }

    /// The figures, and the number of calls beyond the limits.
    pub fn finish(mut self) -> (BTreeMap<FunctionId, FunctionFigures>, u64) {
        for ((_, function), recent) in &self.recent {
            let Some(figures) = self.figures.get_mut(function) else { continue };
            let pairs = recent.iter().zip(recent.iter().skip(1));
            pairs.for_each(|(first, second)| record_interval(&mut figures.period, *first, *second));
        }
        (self.figures, self.untracked)
    }
}

impl FunctionFigures {
    fn new(limit: Option<Limit>) -> FunctionFigures {
        let nothing = || SeriesData::new(SHAPE);
        let calls = PairFigures::new(limit);
        FunctionFigures {
            calls,
            exclusive: nothing(),
            exclusive_unknown: 0,
            period: nothing(),
            left: 0,
            lossy: false,
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_testing::events;

    fn call(function: u32, began: i64, ended: i64) -> Event {
        events!("{ended} cpu0 7 call {function} began={began}")[0]
    }

    #[test]
    fn nested_calls_are_excluded_from_exclusive_time() {
        let mut functions = Functions::default();
        let events = [call(1, 10, 20), call(2, 30, 40), call(1, 25, 50), call(0, 5, 100)];
        let exclusive = events
            .map(|event| functions.push(&event, &Gaps::default()).unwrap().exclusive.unwrap().ns());
        assert_eq!(exclusive, [10, 10, 15, 60]);
        let (figures, _) = functions.finish();
        assert_eq!(figures[&FunctionId(1)].period.max, Some(Nanos(15)), "from 10 to 25");
    }

    #[test]
    fn periods_are_measured_between_outermost_calls() {
        let mut functions = Functions::default();
        let recursion = |start: i64| {
            [(3, 4), (5, 6), (2, 7), (8, 9), (1, 10)].map(|(a, b)| call(0, start + a, start + b))
        };
        recursion(0).iter().chain(&recursion(100)).chain(&recursion(250)).for_each(|event| {
            functions.push(event, &Gaps::default());
        });
        let (figures, _) = functions.finish();
        let period = &figures[&FunctionId(0)].period;
        assert_eq!(
            (period.sample_count(), period.min, period.max),
            (2, Some(Nanos(100)), Some(Nanos(150)))
        );
    }

    #[test]
    fn a_call_left_without_return_is_counted_but_not_timed() {
        let mut functions = Functions::default();
        functions.push(&events!("1us cpu0 7 call 0 began=0 left")[0], &Gaps::default());
        let (figures, _) = functions.finish();
        assert_eq!(
            (figures[&FunctionId(0)].left, figures[&FunctionId(0)].calls.matched_count()),
            (1, 0)
        );
    }

    /// A tree of calls as events ordered by their ends, with the exclusive time of each.
    fn tree() -> impl Strategy<Value = Vec<(Event, i64)>> {
        proptest::collection::vec((0usize..4, 0i64..50, 0u32..3), 1..300).prop_map(|steps| {
            let (mut now, mut open, mut out) =
                (0i64, Vec::<(i64, u32, i64)>::new(), Vec::<(Event, i64)>::new());
            let end = |now: i64, open: &mut Vec<(i64, u32, i64)>, out: &mut Vec<(Event, i64)>| {
                if let Some((began, function, inner)) = open.pop() {
                    out.push((call(function, began, now), now - began - inner));
                    if let Some(outer) = open.last_mut() {
                        outer.2 += now - began;
                    }
                }
            };
            for (ends, step, function) in steps {
                (0..ends).for_each(|_| {
                    now += 1;
                    end(now, &mut open, &mut out);
                });
                now += step + 1;
                open.push((now, function, 0));
            }
            while !open.is_empty() {
                now += 1;
                end(now, &mut open, &mut out);
            }
            out
        })
    }

    proptest! {
        #[test]
        fn exclusive_times_of_any_call_tree_are_exact(tree in tree()) {
            let mut functions = Functions::default();
            for (event, exclusive) in &tree {
                let call = functions.push(event, &Gaps::default()).unwrap();
                prop_assert_eq!(call.exclusive, Some(Nanos(*exclusive)));
            }
        }
        #[test]
        fn exclusive_times_of_any_calls_are_never_negative(
            calls in proptest::collection::vec((0u32..4, 0i64..100, 0i64..100), 0..200),
        ) {
            let mut functions = Functions::default();
            let calls: Vec<Event> = calls.iter().map(|(f, a, b)| call(*f, *a, *b)).collect();
            calls.iter().for_each(|event| {
                functions.push(event, &Gaps::default());
            });
            let (figures, untracked) = functions.finish();
            let counted: u64 = figures.values().map(|f| f.calls.matched_count() + f.left).sum();
            prop_assert_eq!(counted + untracked, calls.len() as u64);
            for figures in figures.values() {
                prop_assert!(figures.exclusive.min.is_none_or(|min| min.ns() >= 0));
                prop_assert_eq!(
                    figures.exclusive.sample_count() + figures.exclusive_unknown,
                    figures.calls.matched_count()
                );
            }
        }
    }
}
