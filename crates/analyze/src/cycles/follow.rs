//! The cycles of a thread one after the other, once it is known which wait they begin with.

use super::{Inferred, Site};
use punctual_core::cycle::{Cycle, CycleKind, OpenCycle, SeriesKind};
use punctual_core::{ClockNs, MonotonicNs, Nanos, Unfinished};
use std::collections::VecDeque;

/// A cycle, and what came before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// From its release to its end.
    pub cycle: Cycle,
    /// When it was due, if that is known, or if its return is its beginning anyhow: where others
    /// release the cycles.
    pub begins: Begins,
    /// From the release before to its own; `None` for the first, and where one of the two is not
    /// known.
    pub period: Option<Nanos>,
    /// Releases between the two that had no cycle of their own.
    pub skipped: u64,
    /// Its release is the first that passed while some cycle before it ran.
    pub overrun: bool,
}

/// A cycle that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEnded {
    pub release: MonotonicNs,
    /// When its waiting call returned; `None`: it has not.
    pub returned: Option<MonotonicNs>,
    /// Until when it was seen.
    pub now: MonotonicNs,
    /// Releases that passed since its own, where they come at equal distances.
    pub passed: u64,
}

impl NotEnded {
    /// Its lower bound in a series. How much of it is execution is not known, nor when the next one
    /// begins.
    pub fn of_series(&self, kind: SeriesKind) -> Unfinished {
        let (due, passed) = (ClockNs(self.release.ns()), self.passed);
        let lasted = Nanos((self.now - self.release).ns().max(0));
        let open = Unfinished { due, at_least: lasted, lasted, passed, ended: false };
        match (kind, self.returned) {
            (SeriesKind::Wakeup, Some(returned)) => {
                let took = Nanos((returned - self.release).ns().max(0));
                Unfinished { at_least: took, lasted: took, ended: true, ..open }
            }
            (SeriesKind::Wakeup | SeriesKind::Response, _) => open,
            (SeriesKind::Execution | SeriesKind::Period | SeriesKind::Gap, _) => {
                Unfinished { at_least: Nanos::ZERO, ..open }
            }
        }
    }
}

/// What is known of the beginning of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    Released,
    /// Nobody saw who woke it: it had begun when its wait returned.
    Returned,
    /// A timer released it, and nobody saw when.
    Unknown,
}

/// Makes cycles of the records of one thread.
#[derive(Clone, Debug)]
pub struct Follower {
    site: Site,
    timed: bool,
    period: Option<Nanos>,
    pending: Option<Cycle>,
    last: Option<MonotonicNs>,
    /// Cycles since then whose releases are not known.
    unknown: u64,
    runs: Runs,
}

impl Follower {
    /// Of cycles that are what was inferred.
    pub fn new(inferred: &Inferred) -> Follower {
        Follower {
            site: inferred.site,
            timed: inferred.kind != CycleKind::Event,
            period: inferred.period.filter(|_| inferred.kind.is_periodic()),
            pending: None,
            last: None,
            unknown: 0,
            runs: Runs::default(),
        }
    }

    /// Takes the next record; a cycle, once the next one begins. Waits that are none of the cycle's
    /// become part of it.
    pub fn push(&mut self, record: Cycle) -> Option<Measured> {
        if !self.site.has(record.call) {
            self.pending = self.pending.map(|pending| pending.followed_by(&record));
            return None;
        }
        let ended = self.pending.replace(record)?;
        Some(self.follow(ended))
    }

    /// The last cycle before records are missing: of the next one it is not known how many
    /// releases were before it.
    pub fn break_off(&mut self) -> Option<Measured> {
        let last = self.finish();
        self.last = None;
        last
    }

    /// The cycle that has not ended, by what the thread is in at `now`. A wait that is none of the
    /// cycle's belongs to the one before it, if that is the last that was seen.
    pub fn not_ended(&self, open: &OpenCycle, now: MonotonicNs) -> Option<NotEnded> {
        let (release, returned) = match self.site.has(open.call) {
            true => (open.release?, open.returned),
            false => {
                let last = self.pending.filter(|last| last.again == open.entered)?;
                (last.release, Some(last.returned))
            }
        };
        let now = open.until.map_or(now, |until| until.min(now));
        Some(self.until(NotEnded { release, returned, now, passed: 0 }, now))
    }

    /// The same cycle, seen until `now`.
    pub fn until(&self, cycle: NotEnded, now: MonotonicNs) -> NotEnded {
        let period = self.period.filter(|period| period.ns() > 0);
        let passed = period.map_or(0, |period| (now - cycle.release).ns().max(0) / period.ns());
        NotEnded { now, passed: passed as u64, ..cycle }
    }

    /// The cycle that was due next, where the period shows when, and more than that has passed.
    pub fn due(&self, now: MonotonicNs) -> Option<NotEnded> {
        let release = self.pending?.release + self.period?;
        let due = self.until(NotEnded { release, returned: None, now, passed: 0 }, now);
        (due.passed > 0).then_some(due)
    }

    /// The last cycle: nothing comes after it.
    pub fn finish(&mut self) -> Option<Measured> {
        let last = self.pending.take()?;
        Some(self.follow(last))
    }

    fn follow(&mut self, cycle: Cycle) -> Measured {
        let begins = match (cycle.is_release_known(), self.timed) {
            (true, _) => Begins::Released,
            (false, false) => Begins::Returned,
            (false, true) => Begins::Unknown,
        };
        let overrun = self.runs.passed_in(&cycle, begins != Begins::Unknown);
        if begins == Begins::Unknown {
            self.unknown += 1;
            return Measured { cycle, begins, period: None, skipped: 0, overrun: false };
        }
        let distance = self.last.map(|last| cycle.release - last);
        let between = std::mem::take(&mut self.unknown);
        self.last = Some(cycle.release);
        let skipped = match (distance, self.period) {
            // Those between had cycles.
            (Some(distance), Some(period)) => skipped(distance, period).saturating_sub(between),
            _ => 0,
        };
        let period = distance.filter(|_| between == 0);
        Measured { cycle, begins, period, skipped, overrun }
    }
}

/// Cycles that ran while a release passed which is still to come, at most: a thread that is
/// overloaded all the time falls behind by more and more.
const BEHIND: usize = 4_096;

/// When cycles ran, in the order of time: those within which a later release may lie.
#[derive(Clone, Default, Debug)]
struct Runs {
    all: VecDeque<Run>,
    any: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    from: MonotonicNs,
    to: MonotonicNs,
    /// It is known to have gone on too long.
    overran: bool,
}

impl Runs {
    /// Whether the release of this cycle passed while one before ran, as the first of those that
    /// did. What passed while that one was not there yet was late already. From now on it is one of
    /// those before.
    fn passed_in(&mut self, cycle: &Cycle, is_release_known: bool) -> bool {
        let first = !std::mem::replace(&mut self.any, true);
        let passed = is_release_known && cycle.entered > cycle.release;
        if is_release_known {
            while self.all.front().is_some_and(|run| run.to < cycle.release) {
                self.all.pop_front();
            }
        }
        let within = self.all.front_mut().filter(|run| passed && run.from <= cycle.release);
        let overrun = within.is_some_and(|run| !std::mem::replace(&mut run.overran, true));
        if self.all.len() >= BEHIND {
            self.all.pop_front();
        }
        self.all.push_back(Run { from: cycle.returned, to: cycle.again, overran: false });
        overrun || first && passed
    }
}

/// Releases at equal distances that passed within this one: none where it is no multiple, because
/// the thread began anew.
pub fn skipped(distance: Nanos, period: Nanos) -> u64 {
    if period.ns() <= 0 {
        return 0;
    }
    let times = (distance.ns() + period.ns() / 2) / period.ns();
    let off = (distance.ns() - times * period.ns()).abs();
    if times > 1 && off <= period.ns() / 10 { times as u64 - 1 } else { 0 }
}
