//! Matches the open A's of a pair with B's.

use super::{IntervalEnd, MatchRule, PairKey};
use punctual_core::{Event, Limit, MonotonicNs};
use std::collections::{HashMap, VecDeque};

/// The maximum number of open A's per pair; further ones are unmatched. A queue of this length
/// means a pair without B's.
pub const OPEN: usize = 1 << 16;

/// The number of threads remembered without an open A: allocating for each A anew takes time.
const KEYS: usize = 1 << 12;

/// The open A's of one pair.
#[derive(Debug)]
pub struct Matcher {
    pub by: PairKey,
    rule: MatchRule,
    open: HashMap<u64, VecDeque<IntervalEnd>>,
    count: usize,
    /// A's without a B so far.
    pub unmatched_from: u64,
    /// B's without an A.
    pub unmatched_to: u64,
    /// Those of `unmatched_from` beyond the limit.
    pub crowded: u64,
}

impl Matcher {
    pub fn new(by: PairKey, rule: MatchRule) -> Matcher {
        Matcher {
            by,
            rule,
            open: HashMap::new(),
            count: 0,
            unmatched_from: 0,
            unmatched_to: 0,
            crowded: 0,
        }
    }

    pub fn from(&mut self, seen: IntervalEnd) {
        let Some(key) = key_value(self.by, seen) else {
            self.unmatched_from += 1;
            return;
        };
        let last_open = self.open.get_mut(&key).and_then(|open| open.back_mut());
        if let Some(last) = last_open.filter(|_| self.rule == MatchRule::Next) {
            *last = seen;
            self.unmatched_from += 1;
        } else if self.count >= OPEN {
            self.unmatched_from += 1;
            self.crowded += 1;
        } else {
            self.open.entry(key).or_default().push_back(seen);
            self.count += 1;
        }
    }

    /// Returns the A that this B is matched with.
    pub fn match_end(&mut self, seen: IntervalEnd) -> Option<IntervalEnd> {
        // Values seldom recur; threads and CPUs do.
        let forget = self.by == PairKey::Value || self.open.len() > KEYS;
        let found = key_value(self.by, seen).and_then(|key| {
            let open = self.open.get_mut(&key)?;
            let found =
                if self.rule == MatchRule::Async { open.pop_front() } else { open.pop_back() };
            if open.is_empty() && forget {
                self.open.remove(&key);
            }
            found
        });
        match found {
            Some(_) => self.count -= 1,
            None => self.unmatched_to += 1,
        }
        found
    }

    /// The number of A's open for longer than the limit allows, at this instant.
    pub(crate) fn overdue_count(&self, limit: Limit, at: MonotonicNs) -> u64 {
        self.open.values().flatten().filter(|from| !limit.is_met_by(at - from.at)).count() as u64
    }

    /// Ends the input: open A's are unmatched.
    pub fn finish(&mut self) {
        self.unmatched_from += self.count as u64;
        self.count = 0;
        self.open.clear();
    }
}

/// The value of an end for this key; `None` without one.
fn key_value(by: PairKey, seen: IntervalEnd) -> Option<u64> {
    match by {
        PairKey::Thread => Some(seen.tid.0.into()),
        PairKey::Value => seen.value.map(|value| value as u64),
        PairKey::Cpu => (seen.cpu != Event::NO_CPU).then_some(seen.cpu.into()),
        PairKey::Global => Some(0),
    }
}
