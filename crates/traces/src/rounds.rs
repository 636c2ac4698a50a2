//! Sorts by time the events that each CPU wrote in turn.

use punctual_core::event::Event;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Holds events until no older one can follow.
///
/// perf copies the buffers of all CPUs in rounds. When a round ends, all events are complete that
/// are older than the newest event of the previous round. A file without rounds is in order as far
/// as this can hold events.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    held: BinaryHeap<Held>,
    taken: u64,
    newest: i64,
    /// The newest events at the ends of incomplete rounds.
    ends: VecDeque<i64>,
    before: i64,
}

#[derive(Debug)]
struct Held {
    key: (i64, u64),
    event: Event,
}

impl Ord for Held {
    /// The oldest is the greatest; among equal instants, the first.
    fn cmp(&self, other: &Held) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key == other.key
    }
}

impl Eq for Held {}

/// The maximum number of held events, of 64 bytes each. Later events older than the returned ones
/// are counted and dropped.
const MOST_HELD: usize = 1 << 20;

impl Rounds {
    /// Takes events in the order of the file.
    pub(crate) fn take(&mut self, from: &mut VecDeque<Event>, out: &mut VecDeque<Event>) {
        for event in from.drain(..) {
            self.newest = self.newest.max(event.at.0);
            self.taken += 1;
            self.held.push(Held { key: (event.at.0, self.taken), event });
        }
        while self.held.len() > MOST_HELD {
            out.extend(self.held.pop().map(|held| held.event));
        }
    }

    /// A round ends; compressed data may still contain more of it.
    pub(crate) fn ends(&mut self) {
        self.ends.push_back(self.newest);
    }

    /// The oldest ended round is complete.
    pub(crate) fn complete(&mut self, out: &mut VecDeque<Event>) {
        self.give(self.before, out);
        self.before = self.ends.pop_front().unwrap_or(self.before);
    }

    pub(crate) fn end(&mut self, out: &mut VecDeque<Event>) {
        self.give(i64::MAX, out);
    }

    fn give(&mut self, until: i64, out: &mut VecDeque<Event>) {
        while self.held.peek().is_some_and(|held| held.key.0 <= until) {
            out.extend(self.held.pop().map(|held| held.event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::MonotonicNs;
    use punctual_core::event::{EventKind, Tid};

    fn event(at: i64) -> Event {
        Event { at: MonotonicNs(at), cpu: 0, tid: Tid(1), what: EventKind::IdleExit }
    }

    #[test]
    fn a_completed_round_releases_events_up_to_the_previous_round() {
        let mut rounds = Rounds::default();
        let mut out = VecDeque::new();
        let given = |out: &mut VecDeque<Event>| -> Vec<i64> {
            out.drain(..).map(|event| event.at.0).collect()
        };
        rounds.take(&mut [1, 5, 2, 3].map(event).into(), &mut out);
        rounds.ends();
        rounds.complete(&mut out);
        assert_eq!(given(&mut out), []);
        rounds.take(&mut [4, 7, 6].map(event).into(), &mut out);
        rounds.ends();
        // Compressed events follow the end of their round.
        rounds.take(&mut [5, 9].map(event).into(), &mut out);
        rounds.complete(&mut out);
        assert_eq!(given(&mut out), [1, 2, 3, 4, 5, 5]);
        rounds.take(&mut [8].map(event).into(), &mut out);
        rounds.ends();
        rounds.complete(&mut out);
        assert_eq!(given(&mut out), [6, 7]);
        rounds.end(&mut out);
        assert_eq!(given(&mut out), [8, 9]);
    }
}
