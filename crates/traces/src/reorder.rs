//! Sorts events that are nearly in order.

use punctual_core::event::Event;
use std::collections::VecDeque;

/// Holds the newest events back, so that a late one can be inserted in order.
#[derive(Debug, Default)]
pub(crate) struct Reorder {
    held: VecDeque<Event>,
    most: usize,
    last: Option<i64>,
    /// The number of events that came too late.
    pub(crate) dropped: u64,
}

impl Reorder {
    /// Holds `most` events back; 0 for events that are already in order.
    pub(crate) fn new(most: usize) -> Reorder {
        Reorder { most, ..Reorder::default() }
    }

    pub(crate) fn pass_events(&mut self, from: &mut VecDeque<Event>, out: &mut VecDeque<Event>) {
        for event in from.drain(..) {
            if self.most == 0 {
                self.emit_event(event, out);
                continue;
            }
            // Most come in order: the position is searched from the end.
            let later = self.held.iter().rev().take_while(|held| held.at > event.at).count();
            self.held.insert(self.held.len() - later, event);
            if self.held.len() > self.most
                && let Some(event) = self.held.pop_front()
            {
                self.emit_event(event, out);
            }
        }
    }

    pub(crate) fn flush(&mut self, out: &mut VecDeque<Event>) {
        for event in std::mem::take(&mut self.held) {
            self.emit_event(event, out);
        }
    }

    fn emit_event(&mut self, event: Event, out: &mut VecDeque<Event>) {
        if self.last.is_some_and(|last| event.at.0 < last) {
            self.dropped += 1;
            return;
        }
        self.last = Some(event.at.0);
        out.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::event::EventKind;
    use punctual_core::{MonotonicNs, Tid};

    fn event(at: i64, cpu: u16) -> Event {
        Event { at: MonotonicNs(at), cpu, tid: Tid(0), what: EventKind::IdleExit }
    }

    proptest! {
        #[test]
        fn reordered_events_are_sorted_and_complete(
            times in proptest::collection::vec(0i64..1_000, 0..200),
            most in 0usize..50,
        ) {
            let mut order = Reorder::new(most);
            let mut out = VecDeque::new();
            let mut from = times.iter().zip(0u16..).map(|(at, n)| event(*at, n)).collect();
            order.pass_events(&mut from, &mut out);
            order.flush(&mut out);
            prop_assert_eq!(out.len() + order.dropped as usize, times.len());
            // Events of one instant keep their order.
            let keys: Vec<(i64, u16)> = out.iter().map(|event| (event.at.0, event.cpu)).collect();
            prop_assert!(keys.windows(2).all(|pair| pair[0] <= pair[1] || most < times.len()));
            prop_assert!(keys.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }
    }
}
