//! The density of events over time: it limits the window of a picture.

use super::super::picture::Focus;
use punctual_core::event::Recorded;
use punctual_core::{Event, MonotonicNs, Nanos};

const BUCKETS: usize = 1 << 15;
/// Events in a window. A window shows about twice as many spans.
const MAX_EVENTS: u64 = 8_000;
/// At least this much time before the end of the interval is shown.
const MIN_SHOWN_TIME: Nanos = Nanos(100_000);

/// Counts of events over time.
pub struct Density {
    began: MonotonicNs,
    width: Nanos,
    counts: Vec<u32>,
}

impl Density {
    /// Counts over the length of a recording.
    pub fn new(recorded: &Recorded) -> Density {
        let length = (recorded.ended - recorded.began).ns().max(0);
        Density {
            began: recorded.began,
            width: Nanos(length / BUCKETS as i64 + 1),
            counts: vec![0; BUCKETS],
        }
    }

    pub fn add(&mut self, event: &Event) {
        let place = self.bucket_at(event.at);
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    fn bucket_at(&self, at: MonotonicNs) -> usize {
        let place = (at - self.began).ns().max(0) / self.width.ns();
        usize::try_from(place).unwrap_or(usize::MAX).min(BUCKETS - 1)
    }

    /// The window of a subject; it begins later if it holds too many events, and has no margins if
    /// these hold too many.
    pub(crate) fn narrow_window(&self, focus: &Focus) -> (MonotonicNs, MonotonicNs) {
        let (from, to) = focus.window();
        if self.count_between(from, to) <= MAX_EVENTS {
            return (from, to);
        }
        let end = focus.to.0 + MIN_SHOWN_TIME;
        let mut begin = self.bucket_at(end);
        let mut room = MAX_EVENTS;
        while begin > self.bucket_at(from) && u64::from(self.counts[begin]) <= room {
            room -= u64::from(self.counts[begin]);
            begin -= 1;
        }
        let begin = self.began + self.width * (begin as i64 + 1);
        (begin.min(focus.to.0 + -MIN_SHOWN_TIME).max(from), end.min(to))
    }

    fn count_between(&self, from: MonotonicNs, to: MonotonicNs) -> u64 {
        self.counts[self.bucket_at(from)..=self.bucket_at(to)]
            .iter()
            .map(|count| u64::from(*count))
            .sum()
    }
}
