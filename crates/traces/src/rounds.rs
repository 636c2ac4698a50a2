//! Sorts by time the events that each CPU wrote in turn.

use punctual_core::event::Event;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Holds events until no older one can follow.
///
/// perf copies the buffers of all CPUs in rounds. When a round ends, all events are complete that
/// are older than the newest event of the previous round. A file without rounds is in order as far
/// as this can hold events.
///
/// The buffer of a CPU is in order of time: its events form a lane, and lanes are merged.
#[derive(Debug, Default)]
pub(crate) struct PerfRounds {
    /// The events of each CPU, oldest first.
    lanes: Vec<VecDeque<HeldEvent>>,
    /// The oldest event of each lane that has one.
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    /// Events that are older than one before them in their lane.
    strays: BinaryHeap<Reverse<HeldEvent>>,
    held: usize,
    taken: u64,
    newest: i64,
    /// The newest events at the ends of incomplete rounds.
    ends: VecDeque<i64>,
    before: i64,
    /// Up to which instant the events are complete.
    complete: Option<i64>,
}

/// The instant; among equal ones, the order of the file.
type Key = (i64, u64);

#[derive(Debug)]
struct HeldEvent {
    taken: u64,
    event: Event,
}

impl HeldEvent {
    fn sort_key(&self) -> Key {
        (self.event.at.0, self.taken)
    }
}

impl Ord for HeldEvent {
    fn cmp(&self, other: &HeldEvent) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialOrd for HeldEvent {
    fn partial_cmp(&self, other: &HeldEvent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldEvent {
    fn eq(&self, other: &HeldEvent) -> bool {
        self.sort_key() == other.sort_key()
    }
}

impl Eq for HeldEvent {}

/// The maximum number of held events, of 56 bytes each. Later events older than the returned ones
/// are counted and dropped.
const MOST_HELD: usize = 1 << 20;
/// Later than every event.
const NEVER: Key = (i64::MAX, u64::MAX);

impl PerfRounds {
    /// Takes events in the order of the file.
    pub(crate) fn add_events(&mut self, from: &mut VecDeque<Event>) {
        for event in from.drain(..) {
            self.newest = self.newest.max(event.at.0);
            self.taken += 1;
            self.hold_event(HeldEvent { taken: self.taken, event });
        }
    }

    fn hold_event(&mut self, held: HeldEvent) {
        self.held += 1;
        let cpu = usize::from(held.event.cpu);
        if cpu >= self.lanes.len() {
            self.lanes.resize_with(cpu + 1, VecDeque::new);
        }
        match self.lanes[cpu].back() {
            Some(last) if last.event.at > held.event.at => {
                return self.strays.push(Reverse(held));
            }
            Some(_) => {}
            None => self.heads.push(Reverse((held.sort_key(), cpu))),
        }
        self.lanes[cpu].push_back(held);
    }

    /// A round ends; compressed data may still contain more of it.
    pub(crate) fn on_round_end(&mut self) {
        self.ends.push_back(self.newest);
    }

    /// The oldest ended round is complete.
    pub(crate) fn on_round_complete(&mut self) {
        self.complete = Some(self.before);
        self.before = self.ends.pop_front().unwrap_or(self.before);
    }

    pub(crate) fn complete_all(&mut self) {
        self.complete = Some(i64::MAX);
    }

    /// Appends complete events; `false` if there were less than `most`.
    pub(crate) fn emit_complete(&mut self, most: usize, out: &mut VecDeque<Event>) -> bool {
        let end = out.len() + most;
        while out.len() < end {
            let (until, keep) = match self.complete {
                _ if self.held > MOST_HELD => (i64::MAX, MOST_HELD),
                Some(until) => (until, 0),
                None => return false,
            };
            let stray = self.strays.peek().map_or(NEVER, |Reverse(held)| held.sort_key());
            let head = self.heads.peek().map_or(NEVER, |Reverse((key, _))| *key);
            if stray.min(head) > (until, u64::MAX - 1) {
                self.complete = None;
                return false;
            }
            if stray < head {
                self.held -= 1;
                out.extend(self.strays.pop().map(|Reverse(held)| held.event));
            } else if let Some(Reverse((_, lane))) = self.heads.pop() {
                let next = self.heads.peek().map_or(NEVER, |Reverse((key, _))| *key);
                let until = next.min(stray).min((until, u64::MAX));
                let max_count = (self.held - keep).min(end - out.len());
                self.give_of(lane, until, max_count, out);
            }
        }
        true
    }

    /// Appends events of a lane up to the first of another.
    fn give_of(&mut self, lane: usize, until: Key, most: usize, out: &mut VecDeque<Event>) {
        let events = &mut self.lanes[lane];
        for _ in 0..most {
            if events.front().is_none_or(|first| first.sort_key() > until) {
                break;
            }
            self.held -= 1;
            out.extend(events.pop_front().map(|held| held.event));
        }
        self.heads.extend(events.front().map(|first| Reverse((first.sort_key(), lane))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::MonotonicNs;
    use punctual_core::event::{EventKind, Tid};

    fn event(at: i64) -> Event {
        Event { at: MonotonicNs(at), cpu: 0, tid: Tid(1), what: EventKind::IdleExit }
    }

    #[test]
    fn a_completed_round_releases_events_up_to_the_previous_round() {
        let mut rounds = PerfRounds::default();
        let given = |rounds: &mut PerfRounds| -> Vec<i64> {
            let mut out = VecDeque::new();
            while rounds.emit_complete(2, &mut out) {}
            out.iter().map(|event| event.at.0).collect()
        };
        rounds.add_events(&mut [1, 5, 2, 3].map(event).into());
        rounds.on_round_end();
        rounds.on_round_complete();
        assert!(given(&mut rounds).is_empty());
        rounds.add_events(&mut [4, 7, 6].map(event).into());
        rounds.on_round_end();
        // Compressed events follow the end of their round.
        rounds.add_events(&mut [5, 9].map(event).into());
        rounds.on_round_complete();
        assert_eq!(given(&mut rounds), [1, 2, 3, 4, 5, 5]);
        rounds.add_events(&mut [8].map(event).into());
        rounds.on_round_end();
        rounds.on_round_complete();
        assert_eq!(given(&mut rounds), [6, 7]);
        rounds.complete_all();
        assert_eq!(given(&mut rounds), [8, 9]);
    }

    proptest! {
        #[test]
        fn rounds_return_all_events_by_time_and_equal_ones_as_the_file_has_them(
            taken in proptest::collection::vec((0i64..100, 0u16..4), 0..300),
        ) {
            let (mut rounds, mut out) = (PerfRounds::default(), VecDeque::new());
            let mut sorted = Vec::new();
            for (number, (at, cpu)) in taken.into_iter().enumerate() {
                let event = Event { tid: Tid(number as u32), cpu, ..event(at) };
                sorted.push(event);
                rounds.add_events(&mut [event].into());
            }
            rounds.complete_all();
            while rounds.emit_complete(7, &mut out) {}
            sorted.sort_by_key(|event| event.at);
            prop_assert_eq!(Vec::from(out), sorted);
        }
    }
}
