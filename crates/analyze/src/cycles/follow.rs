//! The cycles of a thread one after the other, once it is known which wait they begin with.

use super::{Inferred, Site};
use punctual_core::cycle::Cycle;
use punctual_core::{MonotonicNs, Nanos};

/// A cycle, and what came before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// From its release to its end.
    pub cycle: Cycle,
    /// From the release before to its own; `None` for the first.
    pub period: Option<Nanos>,
    /// Releases between the two that had no cycle of their own.
    pub skipped: u64,
    /// Its release came while the cycle before it still went on.
    pub overrun: bool,
}

/// Makes cycles of the records of one thread.
#[derive(Clone, Debug)]
pub struct Follower {
    site: Site,
    period: Option<Nanos>,
    pending: Option<Cycle>,
    last: Option<MonotonicNs>,
}

impl Follower {
    /// Of cycles that are what was inferred.
    pub fn new(inferred: &Inferred) -> Follower {
        let period = inferred.period.filter(|_| inferred.kind.is_periodic());
        Follower { site: inferred.site, period, pending: None, last: None }
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

    /// The last cycle: nothing comes after it.
    pub fn finish(&mut self) -> Option<Measured> {
        let last = self.pending.take()?;
        Some(self.follow(last))
    }

    fn follow(&mut self, cycle: Cycle) -> Measured {
        let period = self.last.map(|last| cycle.release - last);
        self.last = Some(cycle.release);
        let skipped = match (period, self.period) {
            (Some(distance), Some(period)) => skipped(distance, period),
            _ => 0,
        };
        Measured { cycle, period, skipped, overrun: cycle.entered > cycle.release }
    }
}

/// Releases at equal distances that passed within this one: none where it is no multiple, because
/// the thread began anew.
fn skipped(distance: Nanos, period: Nanos) -> u64 {
    if period.ns() <= 0 {
        return 0;
    }
    let times = (distance.ns() + period.ns() / 2) / period.ns();
    let off = (distance.ns() - times * period.ns()).abs();
    if times > 1 && off <= period.ns() / 10 { times as u64 - 1 } else { 0 }
}
