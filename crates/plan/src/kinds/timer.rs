//! `timer`: from a programmed expiry to the first instruction after wake-up. `resolve/timer.rs` has
//! the valid combinations of method and policy.

use crate::form::{clock_form, duration_form, word_form};
use crate::kind::{DefaultCpus, Kind, KindFacts, ParameterProblems};
use crate::limits::{MAX_PERIOD, MIN_PERIOD};
use crate::section::section;
use crate::text::{At, Setting};
use crate::words::{Placement, TimerMethod, Word};
use punctual_core::{Clock, Nanos};

/// A periodic timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerPlan {
    /// The method of waiting.
    pub method: TimerMethod,
    /// The clock of the expiry.
    pub clock: Clock,
    /// The distance between two expiries.
    pub period: Nanos,
    /// The delay of each thread's start after the previous one.
    pub offset: Nanos,
}

section! {
    /// The keys of a timer measure.
    TimerSpec {
        /// How the thread waits:
        ///
        /// - `"nanosleep-absolute"`: clock_nanosleep(2) until the expiry.
        /// - `"nanosleep-relative"`: clock_nanosleep(2) for one period from now. Waking late shifts
        ///   what follows, so no period is ever missed: `overruns` are always 0, and nothing is
        ///   corrected.
        /// - `"timerfd"`: read(2) from a timerfd_create(2) descriptor.
        /// - `"posix-timer"`: timer_create(2) and a signal.
        /// - `"deadline"`: the period of SCHED_DEADLINE, waited for with sched_yield(2). It needs
        ///   the policy `deadline`. The release is the kernel's own, also where it begins a period
        ///   at another phase: from sched_getattr(2) on Linux 7.1 and newer, else from the thread's
        ///   timer, which needs root and a kernel that describes its types. Where neither is
        ///   available it is estimated from the earliest wake-ups, anew after each miss, and the
        ///   finding *deadline-release-estimated* says how well.
        key method: TimerMethod,
            word_form("a way to wait for a timer"),
            ["`\"nanosleep-absolute\"`; with the policy `deadline` the method `\"deadline\"`"];
        /// The clock that the expiry is on, see clock_gettime(2). `timerfd` knows no `tai`;
        /// `deadline` knows `monotonic` only.
        key clock: Clock, clock_form(), [= Clock::Monotonic];
        /// The distance between two expiries.
        key period: Nanos, duration_form(MIN_PERIOD, MAX_PERIOD), [= Nanos::MILLI];
        /// How much later each thread of this measure starts than the one before it, less than a
        /// period: the first expiry of thread *k* is *k* × `offset` after that of thread 0. With
        /// none all start at the same time.
        key offset: Nanos, duration_form(Nanos::ZERO, MAX_PERIOD), [= Nanos::ZERO];
    }
}

impl TimerPlan {
    pub(crate) const FACTS: KindFacts =
        KindFacts::new("timer", "from the expiry of a timer to the thread that waits for it");
}

impl Kind for TimerPlan {
    fn default_placement(&self) -> Placement {
        Placement::PerCpu
    }
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::All
    }
    fn sample_period(&self) -> Option<Nanos> {
        Some(self.period)
    }
    fn is_spinning(&self) -> bool {
        self.period < crate::limits::SPINNING_PERIOD
    }
}

impl TimerSpec {
    /// With the policy `deadline` the method has another default.
    pub(crate) fn to_plan(&self) -> TimerPlan {
        TimerPlan {
            method: self.method.as_ref().map_or(TimerMethod::NanosleepAbsolute, |at| at.value),
            clock: self.clock(),
            period: self.period(),
            offset: self.offset(),
        }
    }
    pub(crate) fn beside_defaults(&self) -> &TimerSpec {
        self
    }
    /// The resolver checks it with its policy.
    pub(crate) fn check_conflicts(&self, _: &TimerPlan, _: &mut ParameterProblems) {}
}

impl TimerPlan {
    pub(crate) fn to_spec(self) -> TimerSpec {
        fn to_setting<T>(value: T) -> Setting<T> {
            Some(At::new(Default::default(), value))
        }
        TimerSpec {
            span: Default::default(),
            method: to_setting(self.method),
            clock: to_setting(self.clock),
            period: to_setting(self.period),
            offset: to_setting(self.offset),
        }
    }

    /// Every parameter by its key, for display.
    pub(crate) fn display_entries(&self) -> Vec<(&'static str, String)> {
        vec![
            ("method", self.method.word().to_owned()),
            ("clock", self.clock.as_str().to_owned()),
            ("period", self.period.to_string()),
            ("offset", self.offset.to_string()),
        ]
    }
}
