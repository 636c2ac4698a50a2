//! The events of long intervals of a recording, and of its ordinary ones.

use crate::playback::OpenedRecording;
use punctual_bundle::Series;
use punctual_bundle::intervals::Coincidences;
use punctual_core::event::{Recorded, Tid};
use punctual_core::{Clock, MonotonicNs};
use punctual_explain::coincidence::{CoincidenceCounter, KeptIntervals};
use punctual_explain::gaps::Gaps;
use punctual_explain::pairs::{IntervalPair, Results};

/// Of pairs, scopes and functions; `None` without kernel events.
pub fn of_pairs(
    opened: &OpenedRecording<'_>,
    kept: KeptIntervals<IntervalPair>,
    results: &Results,
    gaps: &Gaps,
) -> Option<Vec<Coincidences>> {
    let (names, recorded) = (opened.names(), &opened.recorded);
    Some(count_coincidences(
        opened,
        CoincidenceCounter::of_pairs(kept, results, gaps, names, recorded)?,
    ))
}

/// Of the samples of these series within the recording; `None` without kernel events.
pub(crate) fn of_series<'s>(
    opened: &OpenedRecording<'_>,
    series: impl Iterator<Item = (&'s str, &'s Series)>,
) -> Option<Vec<Coincidences>> {
    let Recorded { began, ended, .. } = opened.recorded;
    let mut kept = KeptIntervals::default();
    for (phase, series) in series.filter(|(_, series)| series.meta.clock == Clock::Monotonic) {
        let tid = series.meta.tid.and_then(|tid| u32::try_from(tid).ok()).map_or(Tid::UNKNOWN, Tid);
        // Unreadable samples are reported where they are shown.
        let samples = series.load_log().map(|log| log.samples).unwrap_or_default();
        for sample in samples {
            let (due, woke) = (MonotonicNs(sample.due.0), MonotonicNs(sample.woke.0));
            if due >= began && woke <= ended {
                kept.add((phase, series.meta.name.as_str()), (due, woke), tid);
            }
        }
    }
    let gaps = if opened.recorded.lost_count() > 0 {
        Gaps::from_events(opened.events())
    } else {
        Gaps::default()
    };
    let name = |(phase, series): &(&str, &str)| Some(format!("{phase}/{series}"));
    let (names, recorded) = (opened.names(), &opened.recorded);
    Some(count_coincidences(opened, CoincidenceCounter::new(kept, name, &gaps, names, recorded)?))
}

fn count_coincidences(
    opened: &OpenedRecording<'_>,
    mut counter: CoincidenceCounter<'_>,
) -> Vec<Coincidences> {
    if counter.is_needed() {
        opened.events().for_each(|event| counter.push(&event));
    }
    counter.finish()
}
