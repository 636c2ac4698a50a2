//! Merges events of many sources in order of time.
//!
//! Within a source, events are nearly in order: a recorder interrupted between reading the clock
//! and reserving its space in the ring writes after the recorders that interrupted it. So each
//! source is read [`HOLD`] events ahead and sorted within that.

use crate::event::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The maximum number of positions an event may be late in its source: more than any interrupt with
/// its softirqs records.
pub const HOLD: usize = 512;

/// A source: batches of events in the order of recording.
pub trait Batches {
    /// Appends the next events to `events`; `false` if there are no more. A batch may be empty.
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool;
}

impl<B: Batches + ?Sized> Batches for Box<B> {
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
        (**self).next_batch(events)
    }
}

/// All events of all sources in order of time; equal instants are in the order of the sources.
#[derive(Debug)]
pub struct Merge<B> {
    sources: Vec<MergeSource<B>>,
    /// The next instant of each source that has one, with its index in `sources`, except the source
    /// being read.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    /// The source being read until another one is next.
    current: Option<usize>,
    until: (i64, usize),
}

#[derive(Debug)]
struct MergeSource<B> {
    batches: B,
    more: bool,
    events: Vec<Event>,
    at: usize,
}

impl<B: Batches> MergeSource<B> {
    /// The next event, with enough lookahead that no later one precedes it.
    fn peek_event(&mut self) -> Option<&Event> {
        if self.more && self.events.len() - self.at <= HOLD {
            self.refill_events();
        }
        self.events.get(self.at)
    }

    fn refill_events(&mut self) {
        self.events.drain(..self.at);
        self.at = 0;
        while self.more && self.events.len() <= HOLD {
            self.more = self.batches.next_batch(&mut self.events);
        }
        // A stable sort that is fast on nearly sorted input.
        if !self.events.is_sorted_by_key(|event| event.at) {
            self.events.sort_by_key(|event| event.at);
        }
    }
}

impl<B: Batches> Merge<B> {
    pub fn new(sources: impl IntoIterator<Item = B>) -> Merge<B> {
        let source = |batches| MergeSource { batches, more: true, events: Vec::new(), at: 0 };
        let mut merge = Merge {
            sources: sources.into_iter().map(source).collect(),
            waiting: BinaryHeap::new(),
            current: None,
            until: (0, 0),
        };
        for place in 0..merge.sources.len() {
            merge.enqueue_source(place);
        }
        merge
    }

    fn enqueue_source(&mut self, place: usize) {
        if let Some(next) = self.sources[place].peek_event() {
            self.waiting.push(Reverse((next.at.0, place)));
        }
    }

    fn select_source(&mut self) -> Option<usize> {
        let Reverse((_, place)) = self.waiting.pop()?;
        self.until = self.waiting.peek().map_or((i64::MAX, usize::MAX), |Reverse(next)| *next);
        self.current = Some(place);
        self.current
    }
}

impl<B: Batches> Iterator for Merge<B> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let place = match self.current {
                Some(place) => place,
                None => self.select_source()?,
            };
            let (until, source) = (self.until, &mut self.sources[place]);
            match source.peek_event().copied() {
                Some(event) if (event.at.0, place) <= until => {
                    source.at += 1;
                    return Some(event);
                }
                Some(event) => self.waiting.push(Reverse((event.at.0, place))),
                None => {}
            }
            self.current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MonotonicNs;
    use crate::event::{EventKind, Tid};
    use proptest::prelude::*;

    /// Batches of this many events.
    struct Given(Vec<Event>, usize);

    impl Batches for Given {
        fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
            let count = self.1.min(self.0.len());
            events.extend(self.0.drain(..count));
            !self.0.is_empty()
        }
    }

    fn event(at: i64, cpu: u16) -> Event {
        Event { at: MonotonicNs(at), cpu, tid: Tid(0), what: EventKind::IdleExit }
    }

    proptest! {
        #[test]
        fn merged_events_are_complete_and_sorted(
            sources in
                proptest::collection::vec(proptest::collection::vec(0i64..1_000, 0..300), 0..5),
            batch in 1usize..50,
        ) {
            let mut expected: Vec<(i64, u16)> = Vec::new();
            let given: Vec<Given> = sources
                .iter()
                .enumerate()
                .map(|(cpu, times)| {
                    expected.extend(times.iter().map(|at| (*at, cpu as u16)));
                    Given(times.iter().map(|at| event(*at, cpu as u16)).collect(), batch)
                })
                .collect();
            expected.sort();
            let merged: Vec<(i64, u16)> =
                Merge::new(given).map(|event| (event.at.0, event.cpu)).collect();
            prop_assert_eq!(merged, expected);
        }
    }

    #[test]
    fn events_too_late_by_less_than_the_hold_are_put_in_their_place() {
        let mut times: Vec<i64> = (0..10_000).collect();
        times.chunks_mut(HOLD / 2).for_each(|chunk| chunk.rotate_left(1));
        let source = Given(times.iter().map(|at| event(*at, 0)).collect(), 7);
        assert!(Merge::new([source]).map(|event| event.at.0).eq(0..10_000));
    }
}
