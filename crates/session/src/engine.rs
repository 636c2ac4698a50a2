//! The one loop of everything that is measured: rounds in which a source hands over what came in,
//! checkpoints, views, and what ends it. It knows time and ends; where samples come from, and what
//! is kept of them, it does not know.
//!
//! The source is a phase of a run: threads of workloads, loads, programs and CPUs, also those that
//! are attached to. Time comes from a clock that is passed in: with a scripted source and a
//! simulated clock, every way to end takes microseconds.

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use punctual_bundle::Outcome;
use punctual_core::{MonotonicNs, Nanos};
use punctual_sys::{clock, pace};

/// How often statistics are saved: what kill -9 can cost.
pub const CHECKPOINT: Nanos = Nanos::from_millis(900);

/// The time of an engine.
pub trait EngineClock {
    fn now(&self) -> MonotonicNs;
    fn pause(&self, span: Nanos);
}

pub struct SystemClock;

impl EngineClock for SystemClock {
    fn now(&self) -> MonotonicNs {
        clock::monotonic()
    }

    fn pause(&self, span: Nanos) {
        pace::sleep_until((clock::monotonic() + span).ns());
    }
}

/// When what is done.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Since when it is measured.
    pub began: MonotonicNs,
    /// The distance of two rounds: within it a request to end is seen.
    pub tick: Nanos,
    /// The distance of two views; `None`: nobody watches.
    pub refresh: Option<Nanos>,
    /// It is measured for so long, even where the source has ended before.
    pub at_least: Option<Nanos>,
}

pub enum Begun {
    /// It is measured from now on.
    Measuring(Schedule),
    /// Something has ended it already.
    Ended(Outcome),
}

/// What a round showed.
#[derive(Debug, Default)]
pub struct Round {
    /// Something ends everything: a sample above its limit, a load that failed.
    pub outcome: Option<Outcome>,
    /// Nothing more will come. Whether that is so is looked at before what came in is taken: what
    /// was written before the end is then not missed.
    pub ended: bool,
}

pub trait Source {
    /// Why it fails while it is measured.
    type Error;
    /// Makes everything ready, and lets it begin.
    fn begin(&mut self) -> Result<Begun, Self::Error>;
    /// Takes what came in since the round before.
    fn round(&mut self) -> Result<Round, Self::Error>;
    fn checkpoint(&mut self);
    /// Shows what there is, `elapsed` after the begin.
    fn refresh(&mut self, now: MonotonicNs, elapsed: Nanos);
    /// Ends whatever was begun, whatever became of it, and saves it for good. What became of all
    /// of it.
    fn finish(&mut self, ended: Ended<Self::Error>) -> Ended<Self::Error>;
}

/// An end before the source's own, where there was one.
pub type Ended<Error> = Result<Option<Outcome>, Error>;

pub struct Engine<'a> {
    pub clock: &'a dyn EngineClock,
    /// Whether the user asked for the end.
    pub end_requested: &'a dyn Fn() -> bool,
}

impl Engine<'_> {
    /// From the begin of a source to its end; whatever happens, it is finished.
    pub fn run<S: Source>(&self, source: &mut S) -> Ended<S::Error> {
        let ended = source.begin().and_then(|begun| match begun {
            Begun::Measuring(schedule) => self.measure(source, schedule),
            Begun::Ended(outcome) => Ok(Some(outcome)),
        });
        source.finish(ended)
    }

    fn measure<S: Source>(&self, source: &mut S, schedule: Schedule) -> Ended<S::Error> {
        let mut checkpoints = Due::every(Some(CHECKPOINT), self.clock.now());
        let mut views = Due::every(schedule.refresh, self.clock.now());
        loop {
            self.clock.pause(schedule.tick);
            let round = source.round()?;
            let now = self.clock.now();
            let elapsed = now - schedule.began;
            if checkpoints.is_due(now) {
                source.checkpoint();
            }
            if views.is_due(now) {
                source.refresh(now, elapsed);
            }
            if round.outcome.is_some() {
                return Ok(round.outcome);
            }
            let is_long_enough = schedule.at_least.is_none_or(|span| elapsed >= span);
            if round.ended && is_long_enough {
                return Ok(None);
            }
            if (self.end_requested)() {
                return Ok(Some(Outcome::Interrupted));
            }
        }
    }
}

/// What is done again and again.
struct Due {
    every: Option<Nanos>,
    next: MonotonicNs,
}

impl Due {
    fn every(every: Option<Nanos>, now: MonotonicNs) -> Due {
        Due { every, next: now + every.unwrap_or_default() }
    }

    fn is_due(&mut self, now: MonotonicNs) -> bool {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return false };
        self.next = now + every;
        true
    }
}
