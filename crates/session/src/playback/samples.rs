//! The samples of a run as marks among the events.

use punctual_bundle::{Bundle, Series};
use punctual_core::event::{Event, EventKind, Tid};
use punctual_core::merge::Batches;
use punctual_core::{Clock, MonotonicNs};

/// A source for each series with samples on CLOCK_MONOTONIC, numbered as in the bundle.
pub fn sources<'b>(
    bundle: &'b Bundle,
    from: MonotonicNs,
    to: MonotonicNs,
) -> impl Iterator<Item = Box<dyn Batches + 'b>> {
    let numbered = bundle
        .series()
        .enumerate()
        .filter(|(_, (_, series))| series.meta.clock == Clock::Monotonic);
    numbered.map(move |(number, (_, series))| {
        Box::new(RecordedSamples { series: Some(series), number: number as u32, from, to })
            as Box<dyn Batches + 'b>
    })
}

struct RecordedSamples<'b> {
    series: Option<&'b Series>,
    number: u32,
    from: MonotonicNs,
    to: MonotonicNs,
}

impl Batches for RecordedSamples<'_> {
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
        // Unreadable samples are reported where they are shown.
        let Some((series, log)) =
            self.series.take().and_then(|series| Some((series, series.log().ok()?)))
        else {
            return false;
        };
        let tid = Tid(series.meta.tid.and_then(|tid| u32::try_from(tid).ok()).unwrap_or_default());
        let marks = log.samples.iter().map(|sample| Event {
            at: MonotonicNs(sample.woke.0),
            cpu: u16::try_from(sample.cpu).unwrap_or(Event::NO_CPU),
            tid,
            what: EventKind::Sample { series: self.number, due: MonotonicNs(sample.due.0) },
        });
        events.extend(marks.filter(|mark| (self.from..=self.to).contains(&mark.at)));
        false
    }
}
