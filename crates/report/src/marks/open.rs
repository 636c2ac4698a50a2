//! Spans that have begun: how they end, and the notes on spans without a regular end.

use super::{Detail, Details, Extent, Lane, Mark, Marks, SLOTS};
use punctual_core::MonotonicNs;
use std::borrow::Cow;

const END_MISSING: &str = "its end was not recorded";
const BEGINNING_MISSING: &str = "its beginning was not recorded";

/// A span that has begun.
pub struct OpenSpan<'a> {
    pub since: MonotonicNs,
    pub name: Cow<'a, str>,
    pub details: Details<'a>,
}

impl<'a> OpenSpan<'a> {
    fn into_ended_mark(self, lane: Lane, at: MonotonicNs) -> Mark<'a> {
        Mark::new(lane, self.name, Extent::Span(self.since, at.max(self.since)))
            .with_details(self.details)
    }

    fn into_cut_mark(self, lane: Lane, at: MonotonicNs) -> Mark<'a> {
        self.into_ended_mark(lane, at)
            .with_details(vec![("note", Detail::Text(END_MISSING.into()))])
    }

    pub(crate) fn into_open_mark(self, lane: Lane) -> Mark<'a> {
        Mark::new(lane, self.name, Extent::Begun(self.since)).with_details(self.details)
    }
}

impl<'a> Marks<'a> {
    /// Begins a span nested in the open spans of this lane.
    pub(super) fn begin_inside(&mut self, lane: Lane, open: OpenSpan<'a>) {
        self.open.entry(lane).or_default().push(open);
    }

    /// Begins a span in a lane without nesting: an open span there ended unseen.
    pub(super) fn begin_span(&mut self, lane: Lane, open: OpenSpan<'a>, out: &mut Vec<Mark<'a>>) {
        let spans = self.open.entry(lane).or_default();
        out.extend(spans.drain(..).rev().map(|old| old.into_cut_mark(lane, open.since)));
        spans.push(open);
    }

    /// Ends the innermost span of this lane.
    pub(super) fn end_span(
        &mut self,
        lane: Lane,
        at: MonotonicNs,
        name: impl FnOnce() -> Cow<'a, str>,
        details: Details<'a>,
        out: &mut Vec<Mark<'a>>,
    ) {
        out.push(match self.open.get_mut(&lane).and_then(Vec::pop) {
            Some(open) => open.into_ended_mark(lane, at).with_details(details),
            None => {
                let note = ("note", Detail::Text(BEGINNING_MISSING.into()));
                let ended = Mark::new(lane, format!("end of {}", name()), Extent::Instant(at));
                ended.with_details(details).with_details(vec![note])
            }
        });
    }

    /// Handles lost events from `since` on: open spans in the lanes selected by `concerned` may
    /// have ended there.
    pub(super) fn cut_spans(
        &mut self,
        concerned: impl Fn(Lane) -> bool,
        since: MonotonicNs,
        out: &mut Vec<Mark<'a>>,
    ) {
        for (lane, spans) in self.open.iter_mut().filter(|(lane, _)| concerned(**lane)) {
            out.extend(spans.drain(..).rev().map(|open| open.into_cut_mark(*lane, since)));
        }
    }

    /// The first of several lanes in which nothing ends after `from`.
    pub(super) fn reserve_slot(
        &mut self,
        lane: impl Fn(u8) -> Lane,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> Lane {
        let ends = self.last_end.entry(lane(0)).or_default();
        let free = ends.iter().position(|end| *end <= from);
        let slot = free.unwrap_or(ends.len()).min(usize::from(SLOTS) - 1);
        match ends.get_mut(slot) {
            Some(end) => *end = to.max(*end),
            None => ends.push(to),
        }
        lane(slot as u8)
    }

    pub(super) fn request_begins(&mut self, device: u32, sector: u64, open: OpenSpan<'a>) {
        self.requests.insert((device, sector), open);
    }

    /// Ends a request. Its lane is chosen now: only at its end it is known how long it occupied
    /// one.
    pub(super) fn request_ends(
        &mut self,
        (device, sector): (u32, u64),
        at: MonotonicNs,
        details: Details<'a>,
        out: &mut Vec<Mark<'a>>,
    ) {
        let Some(open) = self.requests.remove(&(device, sector)) else {
            let note = ("note", Detail::Text(BEGINNING_MISSING.into()));
            let ended = Mark::new(Lane::Requests(device, 0), "end of request", Extent::Instant(at));
            return out.push(ended.with_details(details).with_details(vec![note]));
        };
        let lane = self.reserve_slot(|slot| Lane::Requests(device, slot), open.since, at);
        out.push(open.into_ended_mark(lane, at).with_details(details));
    }
}
