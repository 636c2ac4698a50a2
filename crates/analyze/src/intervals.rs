//! Intervals between two events, and what is kept of those of a pair or a function: the statistics
//! of any series, and the worst ones whole.

use punctual_core::series::WORST_KEPT;
use punctual_core::{ClockNs, Limit, MonotonicNs, Nanos, Sample, SeriesData, SeriesShape, Tid};

/// The exact histogram of a pair: what is longer is counted in the histogram of the whole.
const SHAPE: SeriesShape =
    SeriesShape { range: Nanos::MILLI, resolution: Nanos(100), period: None };

/// One end of an interval, as it was recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen {
    pub at: MonotonicNs,
    /// The thread that it concerns.
    pub tid: Tid,
    /// The CPU, or [`punctual_core::Event::NO_CPU`].
    pub cpu: u16,
    /// Its value, where it has one.
    pub value: Option<i64>,
}

/// One matched pair.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Its place among the matched ones, from 0.
    pub seq: u64,
    pub from: Seen,
    pub to: Seen,
}

impl Interval {
    /// How long it took; negative where the clocks of the two ends disagree by more.
    pub fn span(&self) -> Nanos {
        self.to.at - self.from.at
    }
    /// From A to B, in the order of time.
    pub fn window(&self) -> (MonotonicNs, MonotonicNs) {
        (self.from.at.min(self.to.at), self.from.at.max(self.to.at))
    }
    /// The thread in which it ended.
    pub fn tid(&self) -> Tid {
        self.to.tid
    }
}

/// Matches that reach over missing events: the true partner may be among those. They are in no
/// other figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uncertain {
    pub count: u64,
    pub max: Option<Nanos>,
    /// Those that would violate the limit.
    pub violations: u64,
}

/// The figures of a pair or a function.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Statistics and histograms, as of every series; `due` is A's instant, `woke` B's.
    pub data: SeriesData,
    /// The worst, the longest first; of equal ones the earliest.
    pub worst: Vec<Interval>,
    pub uncertain: Uncertain,
    pub violations: u64,
    limit: Option<Limit>,
}

impl Figures {
    pub fn new(limit: Option<Limit>) -> Figures {
        let (data, worst) = (SeriesData::new(SHAPE), Vec::new());
        Figures { data, worst, uncertain: Uncertain::default(), violations: 0, limit }
    }

    /// How long an interval may take, where that was said.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Takes an interval and returns it as it is kept.
    pub fn record(&mut self, from: Seen, to: Seen, uncertain: bool) -> Interval {
        let interval = Interval { seq: self.data.count() + self.uncertain.count, from, to };
        let span = interval.span();
        let violates = self.limit.is_some_and(|limit| !limit.allows(span));
        if uncertain {
            self.uncertain.count += 1;
            self.uncertain.max = self.uncertain.max.max(Some(span));
            self.uncertain.violations += u64::from(violates);
            return interval;
        }
        self.violations += u64::from(violates);
        let (due, woke) = (ClockNs(from.at.ns()), ClockNs(to.at.ns()));
        self.data.record(&Sample { seq: interval.seq, due, woke, cpu: to.cpu.into() }, 0);
        self.keep_if_bad(interval);
        interval
    }

    fn keep_if_bad(&mut self, interval: Interval) {
        let span = interval.span();
        if self.worst.len() == WORST_KEPT
            && self.worst.last().is_some_and(|kept| kept.span() >= span)
        {
            return;
        }
        let place = self.worst.partition_point(|kept| kept.span() >= span);
        self.worst.insert(place, interval);
        self.worst.truncate(WORST_KEPT);
    }

    /// Matched pairs, uncertain ones included.
    pub fn matched(&self) -> u64 {
        self.data.count() + self.uncertain.count
    }
}
