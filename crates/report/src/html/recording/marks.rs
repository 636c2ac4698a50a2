//! The marks within windows.

use crate::marks::{Extent, Mark, Marks};
use punctual_core::{Event, MonotonicNs, Names};

/// Marks kept for one window; further ones are counted.
const MAX_MARKS: usize = 50_000;

/// Reads events and keeps the marks of windows.
pub struct InWindows<'a> {
    marks: Marks<'a>,
    fresh: Vec<Mark<'a>>,
    windows: Vec<MarksWindow<'a>>,
}

struct MarksWindow<'a> {
    from: MonotonicNs,
    to: MonotonicNs,
    marks: Vec<Mark<'a>>,
    left_out: u64,
}

impl<'a> InWindows<'a> {
    pub fn new(names: &'a Names, windows: &[(MonotonicNs, MonotonicNs)]) -> InWindows<'a> {
        let window = |(from, to): &(MonotonicNs, MonotonicNs)| MarksWindow {
            from: *from,
            to: *to,
            marks: Vec::new(),
            left_out: 0,
        };
        InWindows {
            marks: Marks::new(names),
            fresh: Vec::new(),
            windows: windows.iter().map(window).collect(),
        }
    }

    /// Takes the next event, in time order.
    pub fn push(&mut self, event: &Event) {
        if !self.windows.is_empty() {
            self.marks.describe_event(event, &mut self.fresh);
            sort_in(&mut self.windows, &mut self.fresh);
        }
    }

    /// The marks of each window, and the number of dropped ones.
    pub fn finish(self) -> Vec<(Vec<Mark<'a>>, u64)> {
        let InWindows { marks, mut fresh, mut windows } = self;
        marks.finish(&mut fresh);
        sort_in(&mut windows, &mut fresh);
        windows.into_iter().map(|window| (window.marks, window.left_out)).collect()
    }
}

fn sort_in<'a>(windows: &mut [MarksWindow<'a>], fresh: &mut Vec<Mark<'a>>) {
    for mark in fresh.drain(..) {
        let (from, to) = match mark.shape {
            Extent::Span(from, to) => (from, to),
            Extent::Begun(from) => (from, MonotonicNs(i64::MAX)),
            Extent::Instant(at) | Extent::Value(at, _) => (at, at),
        };
        for window in windows.iter_mut().filter(|window| from <= window.to && to >= window.from) {
            if window.marks.len() < MAX_MARKS {
                window.marks.push(mark.clone());
            } else {
                window.left_out += 1;
            }
        }
    }
}
