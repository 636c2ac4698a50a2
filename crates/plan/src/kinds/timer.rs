//! `timer`: from a programmed expiry to the first instruction after wake-up. How method and policy
//! go together is in `resolve/timer.rs`.

use super::{DefaultCpus, Kind, Parameter};
use crate::limits::{MAX_PERIOD, MIN_PERIOD};
use crate::notes::Notes;
use crate::table::{Table, text};
use crate::text::{At, Setting};
use crate::values;
use crate::words::{Placement, TimerMethod, Word};
use punctual_core::{Clock, Nanos};

/// A periodic timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerPlan {
    /// How the thread waits.
    pub method: TimerMethod,
    /// The clock that the expiry is on.
    pub clock: Clock,
    /// The distance between two expiries.
    pub period: Nanos,
    /// How much later each thread of the measure starts than the one before it.
    pub offset: Nanos,
}

/// The keys of a timer measure.
#[derive(Clone, Debug, Default)]
pub struct TimerSpec {
    /// `method`
    pub method: Setting<TimerMethod>,
    /// `clock`
    pub clock: Setting<Clock>,
    /// `period`
    pub period: Setting<Nanos>,
    /// `offset` between threads.
    pub offset: Setting<Nanos>,
}

impl Kind for TimerPlan {
    fn placement(&self) -> Placement {
        Placement::PerCpu
    }
    fn cpus(&self) -> DefaultCpus {
        DefaultCpus::All
    }
    fn period(&self) -> Option<Nanos> {
        Some(self.period)
    }
    fn spins(&self) -> bool {
        self.period < crate::limits::SPINNING_PERIOD
    }
}

impl TimerSpec {
    pub(crate) fn read(notes: &mut Notes, t: &mut Table) -> TimerSpec {
        TimerSpec {
            method: t
                .take(notes, "method", |v| values::word(text(v)?, "a way to wait for a timer")),
            clock: t.take(notes, "clock", |v| values::clock(text(v)?)),
            period: t.take(notes, "period", |v| values::duration(text(v)?, MIN_PERIOD, MAX_PERIOD)),
            offset: t
                .take(notes, "offset", |v| values::duration(text(v)?, Nanos::ZERO, MAX_PERIOD)),
        }
    }

    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let quoted = |word: &str| format!("\"{word}\"");
        let spans = [("period", &self.period), ("offset", &self.offset)];
        let words = [
            ("method", self.method.as_ref().map(|at| quoted(at.value.word()))),
            ("clock", self.clock.as_ref().map(|at| quoted(at.value.word()))),
        ];
        let spans = spans.map(|(key, span)| (key, span.as_ref().and_then(|at| at.value.toml())));
        words.into_iter().chain(spans).filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

impl TimerPlan {
    pub(crate) fn spec(&self) -> TimerSpec {
        fn set<T>(value: T) -> Setting<T> {
            Some(At::new(Default::default(), value))
        }
        TimerSpec {
            method: set(self.method),
            clock: set(self.clock),
            period: set(self.period),
            offset: set(self.offset),
        }
    }

    /// Every parameter by its key, for people.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("method", self.method.word().to_owned()),
            ("clock", self.clock.word().to_owned()),
            ("period", self.period.to_string()),
            ("offset", self.offset.to_string()),
        ]
    }
}
