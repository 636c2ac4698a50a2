//! The recording of a bundle as events: its extent, its names, and all events in the order of time.
//!
//! The samples of a run are among its events as marks ([`EventKind::Sample`]), so that a late one
//! is shown with the activity at that time.

mod blocks;

use crate::exit::Failure;
use crate::steps::StepNames;
use punctual_bundle::intervals::OccupancyDocument;
use punctual_bundle::summary::RecordingSummary;
use punctual_bundle::{Bundle, RecordingReader, Series};
use punctual_core::event::{Event, EventKind, Group, Names, Recorded, Tid};
use punctual_core::merge::{Batches, Merge};
use punctual_core::{Clock, MonotonicNs};
use punctual_explain::EventCounts;
use punctual_explain::gaps::Gaps;
use punctual_explain::occupancy::Occupancy;
use punctual_explain::threads::{Coverage, Tracker};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The recording of a bundle, which can be read repeatedly.
pub struct OpenedRecording<'b> {
    /// The recorded extent and the losses.
    pub recorded: Recorded,
    bundle: &'b Bundle,
    recording: &'b RecordingReader,
    /// The names of steps and functions that the compiler put points at.
    pub steps: Option<Arc<StepNames>>,
}

/// Events in the order of time; memory does not grow with their number.
pub type EventStream<'b> = Merge<Box<dyn Batches + 'b>>;

/// Opens the recording of a bundle; `None` if it has none.
pub fn open_recording(bundle: &Bundle) -> Option<OpenedRecording<'_>> {
    let recording = bundle.recording.as_ref()?;
    let mut recorded = recording.count_recorded();
    recorded.findings.extend(blocks::unknown_encoding_finding(recording));
    let mut opened = OpenedRecording { recorded, bundle, recording, steps: None };
    opened.steps = StepNames::from_events(recording.names(), opened.events()).map(Arc::new);
    Some(opened)
}

/// The recording of a bundle; without one the request is wrong.
pub fn require_recording(bundle: &Bundle) -> Result<OpenedRecording<'_>, Failure> {
    let no_recording = || {
        let path = bundle.directory.display();
        Failure::refused(format!("{path} has no recording of events; `punctual trace` makes one"))
    };
    check_readable(bundle)?;
    open_recording(bundle).ok_or_else(no_recording)
}

/// Checks that the recording of a bundle, if any, is readable: an unreadable one is not absent.
pub fn check_readable(bundle: &Bundle) -> Result<(), Failure> {
    let read_error = bundle.recording.as_ref().and_then(|recording| recording.unreadable.as_ref());
    let path = bundle.directory.display();
    let failed = |why| Failure::failed(format!("the recording of {path} cannot be read: {why}"));
    read_error.map_or(Ok(()), |why| Err(failed(why)))
}

impl<'b> OpenedRecording<'b> {
    /// The names of the numbers in events.
    pub fn names(&self) -> &Names {
        self.steps.as_ref().map_or_else(|| self.recording.names(), |steps| &steps.names)
    }

    /// Counts its events, and adds up CPU usage, in one pass.
    pub fn count_events(&self) -> (EventCounts, OccupancyDocument) {
        let gaps = if self.recorded.lost_count() > 0 {
            Gaps::from_events(self.events())
        } else {
            Gaps::default()
        };
        let coverage = Coverage::from_recording(&self.recorded, self.names());
        let mut tracker = Tracker::new(coverage, gaps, Occupancy::default());
        let mut counts = EventCounts::default();
        self.events().for_each(|event| {
            counts.add(&event);
            tracker.push(&event);
        });
        let (occupancy, warnings) = tracker.finish();
        (counts, occupancy.to_document(warnings, self.names(), &self.recorded))
    }

    /// The summary for `--json`.
    pub fn to_summary(&self) -> RecordingSummary {
        let (counts, occupancy) = self.count_events();
        let switches = self.recorded.has_group(Group::Sched);
        let contradiction =
            occupancy.contradiction_finding(counts.group_count(Group::Sched)).filter(|_| switches);
        let findings = self.recorded.findings.iter().cloned().chain(contradiction).collect();
        let kinds = |kinds: &BTreeMap<&str, u64>| {
            kinds.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let group = |group: &Group| {
            let counted = counts.kernel.get(group).map(kinds).unwrap_or_default();
            (group.word().to_owned(), counted)
        };
        let named: BTreeMap<String, u64> = counts
            .counts_by_name(&self.recorded)
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect();
        let named = (!named.is_empty()).then(|| ("tracepoints".to_owned(), named));
        RecordingSummary {
            events: self
                .recorded
                .groups
                .iter()
                .chain(counts.kernel.keys())
                .map(group)
                .chain(named)
                .collect(),
            points: counts.points,
            calls: counts.calls,
            lost: self.recorded.lost_count(),
            contradictions: switches.then_some(occupancy.contradictions),
            recorded: Recorded { findings, ..self.recorded.clone() },
        }
    }

    pub fn events(&self) -> EventStream<'b> {
        self.events_between(MonotonicNs(i64::MIN), MonotonicNs(i64::MAX))
    }

    /// The events from `from` to `to`, both included; blocks without any of them are not read.
    pub(crate) fn events_between(&self, from: MonotonicNs, to: MonotonicNs) -> EventStream<'b> {
        let named = |batches: Box<dyn Batches + 'b>| -> Box<dyn Batches + 'b> {
            match &self.steps {
                Some(steps) => Box::new(NamedSteps { batches, steps: steps.clone() }),
                None => batches,
            }
        };
        let kernel = blocks::block_sources(self.recording, from, to).map(named);
        Merge::new(kernel.chain(sample_sources(self.bundle, from, to)))
    }
}

/// A source whose steps get the names of their places.
struct NamedSteps<'b> {
    batches: Box<dyn Batches + 'b>,
    steps: Arc<StepNames>,
}

impl Batches for NamedSteps<'_> {
    fn next_batch(&mut self, events: &mut Vec<Event>) -> bool {
        let before = events.len();
        let has_more = self.batches.next_batch(events);
        events[before..].iter_mut().for_each(|event| self.steps.name_event(event));
        has_more
    }
}

/// A source for each series with samples on CLOCK_MONOTONIC, numbered as in the bundle.
pub(crate) fn sample_sources<'b>(
    bundle: &'b Bundle,
    from: MonotonicNs,
    to: MonotonicNs,
) -> impl Iterator<Item = Box<dyn Batches + 'b>> {
    let numbered = bundle
        .all_series()
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
            self.series.take().and_then(|series| Some((series, series.load_log().ok()?)))
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
