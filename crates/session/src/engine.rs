//! The loop of every measurement: rounds in which a source hands over its samples, checkpoints,
//! views, and the end. It handles time and termination, not where samples come from or how they are
//! stored.
//!
//! The source is a phase of a run: threads of workloads, loads, programs and CPUs, also attached
//! ones. The clock is passed in: with a scripted source and a simulated clock, every way to end
//! takes microseconds.

#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use punctual_bundle::Outcome;
use punctual_core::{MonotonicNs, Nanos};
use punctual_sys::{clock, pace};

/// Time between two saves of statistics: the maximum loss by kill -9.
pub(crate) const CHECKPOINT: Nanos = Nanos::from_millis(900);

/// The time of an engine.
pub trait EngineClock {
    fn now(&self) -> MonotonicNs;
    fn pause(&self, span: Nanos);
}

pub(crate) struct SystemClock;

impl EngineClock for SystemClock {
    fn now(&self) -> MonotonicNs {
        clock::monotonic_now()
    }

    fn pause(&self, span: Nanos) {
        pace::sleep_until((clock::monotonic_now() + span).ns());
    }
}

/// The times of recurring work.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The start of measuring.
    pub began: MonotonicNs,
    /// Time between two rounds: the maximum delay of a request to end.
    pub tick: Nanos,
    /// Time between two views; `None`: no view.
    pub refresh: Option<Nanos>,
    /// The minimum time to measure, even if the source ends before.
    pub at_least: Option<Nanos>,
}

pub enum Begun {
    /// Measuring begins now.
    Measuring(Schedule),
    /// Measuring has ended already.
    Ended(Outcome),
}

/// The result of a round.
#[derive(Debug, Default)]
pub struct EngineRound {
    /// The reason to end everything: a sample above its limit, a failed load.
    pub outcome: Option<Outcome>,
    /// No more will come. This is checked before taking the samples: those written before the end
    /// are not missed then.
    pub ended: bool,
}

pub trait EngineSource {
    /// Why measuring failed.
    type Error;
    /// Prepares everything, and begins.
    fn begin(&mut self) -> Result<Begun, Self::Error>;
    /// Takes the samples since the round before.
    fn run_round(&mut self) -> Result<EngineRound, Self::Error>;
    fn checkpoint(&mut self);
    /// Everything of a round is done: a pause begins.
    fn on_pause(&mut self) {}
    /// Updates the view, `elapsed` after the begin.
    fn refresh_view(&mut self, now: MonotonicNs, elapsed: Nanos);
    /// Stops and saves everything that was started. Returns the outcome.
    fn finish(&mut self, ended: EarlyEnd<Self::Error>) -> EarlyEnd<Self::Error>;
}

/// The outcome of an end before the source's own, if there was one.
pub type EarlyEnd<Error> = Result<Option<Outcome>, Error>;

pub struct Engine<'a> {
    pub clock: &'a dyn EngineClock,
    /// Whether the user asked for the end.
    pub end_requested: &'a dyn Fn() -> bool,
}

impl Engine<'_> {
    /// Runs a source from begin to end; it is finished in any case.
    pub fn run<S: EngineSource>(&self, source: &mut S) -> EarlyEnd<S::Error> {
        let ended = source.begin().and_then(|begun| match begun {
            Begun::Measuring(schedule) => self.run_rounds(source, schedule),
            Begun::Ended(outcome) => Ok(Some(outcome)),
        });
        source.finish(ended)
    }

    fn run_rounds<S: EngineSource>(
        &self,
        source: &mut S,
        schedule: Schedule,
    ) -> EarlyEnd<S::Error> {
        let mut checkpoints = Due::with_interval(Some(CHECKPOINT), self.clock.now());
        let mut views = Due::with_interval(schedule.refresh, self.clock.now());
        loop {
            source.on_pause();
            self.clock.pause(schedule.tick);
            let round = source.run_round()?;
            let now = self.clock.now();
            let elapsed = now - schedule.began;
            if checkpoints.is_due(now) {
                source.checkpoint();
            }
            if views.is_due(now) {
                source.refresh_view(now, elapsed);
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

/// Recurring work.
struct Due {
    every: Option<Nanos>,
    next: MonotonicNs,
}

impl Due {
    fn with_interval(every: Option<Nanos>, now: MonotonicNs) -> Due {
        Due { every, next: now + every.unwrap_or_default() }
    }

    fn is_due(&mut self, now: MonotonicNs) -> bool {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return false };
        self.next = now + every;
        true
    }
}
