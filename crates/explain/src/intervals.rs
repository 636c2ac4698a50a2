//! Intervals between two events, and the data kept for a pair or a function: the statistics as of
//! any series, and the worst intervals in full.

use punctual_core::series::WORST_KEPT;
use punctual_core::{ClockNs, Limit, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Tid};

/// The exact histogram of a pair: longer intervals are counted in the overall histogram.
const SHAPE: SeriesShape =
    SeriesShape { range: Nanos::MILLI, resolution: Nanos(100), period: None };

/// One recorded end of an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalEnd {
    pub at: MonotonicNs,
    /// The thread concerned.
    pub tid: Tid,
    /// The CPU, or [`punctual_core::Event::NO_CPU`].
    pub cpu: u16,
    /// Its value, if any.
    pub value: Option<i64>,
}

/// A matched pair.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MatchedPair {
    /// Its index among the matches, from 0.
    pub seq: u64,
    pub from: IntervalEnd,
    pub to: IntervalEnd,
}

impl MatchedPair {
    /// Its duration; negative if the clocks of the two ends disagree by more.
    pub fn duration(&self) -> Nanos {
        self.to.at - self.from.at
    }
    /// From A to B, in order of time.
    pub fn time_window(&self) -> (MonotonicNs, MonotonicNs) {
        (self.from.at.min(self.to.at), self.from.at.max(self.to.at))
    }
    /// The thread in which it ended.
    pub fn end_tid(&self) -> Tid {
        self.to.tid
    }
}

/// Matches across missing events, which may include the true partner. They are in no other figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uncertain {
    pub count: u64,
    pub max: Option<Nanos>,
    /// Those that would violate the limit.
    pub violations: u64,
}

/// The figures of a pair or a function.
#[derive(Clone, Debug)]
pub struct PairFigures {
    /// Statistics and histograms, as for every series; `due` is A's instant, `woke` B's.
    pub data: SeriesData,
    /// The worst, longest first; of equal ones the earliest first.
    pub worst: Vec<MatchedPair>,
    pub uncertain: Uncertain,
    pub violations: u64,
    pub limit: Option<Limit>,
}

impl PairFigures {
    pub fn new(limit: Option<Limit>) -> PairFigures {
        let (data, worst) = (SeriesData::new(SHAPE), Vec::new());
        PairFigures { data, worst, uncertain: Uncertain::default(), violations: 0, limit }
    }

    /// Adds an interval and returns it as kept.
    pub(crate) fn record_interval(
        &mut self,
        from: IntervalEnd,
        to: IntervalEnd,
        uncertain: bool,
    ) -> MatchedPair {
        let interval =
            MatchedPair { seq: self.data.sample_count() + self.uncertain.count, from, to };
        let span = interval.duration();
        let violates = self.limit.is_some_and(|limit| !limit.is_met_by(span));
        if uncertain {
            self.uncertain.count += 1;
            self.uncertain.max = self.uncertain.max.max(Some(span));
            self.uncertain.violations += u64::from(violates);
            return interval;
        }
        self.violations += u64::from(violates);
        let (due, woke) = (ClockNs(from.at.ns()), ClockNs(to.at.ns()));
        self.data.record_sample(&Sample { seq: interval.seq, due, woke, cpu: to.cpu.into() }, 0);
        self.keep_if_bad(interval);
        interval
    }

    fn keep_if_bad(&mut self, interval: MatchedPair) {
        let span = interval.duration();
        if self.worst.len() == WORST_KEPT
            && self.worst.last().is_some_and(|kept| kept.duration() >= span)
        {
            return;
        }
        let place = self.worst.partition_point(|kept| kept.duration() >= span);
        self.worst.insert(place, interval);
        self.worst.truncate(WORST_KEPT);
    }

    /// Matched pairs, including uncertain ones.
    pub(crate) fn matched_count(&self) -> u64 {
        self.data.sample_count() + self.uncertain.count
    }
}
