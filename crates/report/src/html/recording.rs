//! A recording on the page: what was recorded and lost, the CPU usage, intervals between points and
//! functions, values over time, and pictures of the events around the worst.
//!
//! A recording may be larger than memory: its events are read three times, in time order, and never
//! stored. The first pass finds gaps, the second computes all figures, the third collects the
//! events around the worst. Memory use does not grow with the number of events.

mod choice;
mod density;
mod marks;
pub(super) mod section;
mod tables;

pub(super) use marks::InWindows;

use super::picture::{Focus, Material, Picture};
use crate::format::count_text;
use punctual_bundle::intervals::{OccupancyDocument, PairsDocument};
use punctual_core::event::{Group, Recorded, RecordedSource};
use punctual_core::{Event, Finding, MonotonicNs, Names, Nanos, Severity};
use punctual_explain::EventCounts;
use punctual_explain::coincidence::{CoincidenceCounter, KeptIntervals};
use punctual_explain::gaps::Gaps;
use punctual_explain::occupancy::Occupancy;
use punctual_explain::pairs::{
    self, PairRequest, Pairing, PairingOptions, PreparedPairing, WorstDetail,
};
use punctual_explain::threads::{Coverage, LaneWindows, Tracker, WindowLanes};

/// The number of worst cases listed for each pair and function, and the number of those with
/// details.
const DETAIL: WorstDetail = WorstDetail { worst: 20, explained: 3 };
/// Items of the finest picture.
const MAX_ITEMS: usize = 6_000;

/// A recording to be shown.
#[derive(Clone, Debug)]
pub struct RecordingSource<'a> {
    /// The extent and the losses of the recording.
    pub recorded: &'a Recorded,
    /// The names of the numbers in its events.
    pub names: &'a Names,
    /// The names of the series of its samples, by number.
    pub series: Vec<String>,
    /// Requested pairs and functions with their limits; all others are shown too.
    pub requests: Vec<PairRequest>,
}

/// The content of a page about a recording.
#[derive(Clone, Debug)]
pub struct RecordingDigest {
    recorded: Recorded,
    counts: EventCounts,
    occupancy: OccupancyDocument,
    intervals: PairsDocument,
    pictures: Vec<Picture>,
}

impl RecordingDigest {
    /// The digest of a recording; each call of `events` must yield all its events from the
    /// beginning.
    pub fn from_events<E: IntoIterator<Item = Event>>(
        source: &RecordingSource<'_>,
        events: impl Fn() -> E,
    ) -> RecordingDigest {
        let RecordingSource { recorded, names, requests, .. } = source;
        let needed = PreparedPairing::is_needed(recorded, requests);
        let prepared = if needed {
            PreparedPairing::from_events(events(), requests)
        } else {
            PreparedPairing::default()
        };
        let gaps = prepared.gaps.clone();
        let coverage = Coverage::from_recording(recorded, names);

        let mut counts = EventCounts::default();
        let mut latest = choice::LatestSamples::default();
        let mut density = density::Density::new(recorded);
        let options = PairingOptions { requests: requests.clone(), everything: true };
        let mut pairing = Pairing::new(options, prepared, names, recorded);
        let mut kept = KeptIntervals::default();
        let mut tracker = Tracker::new(coverage.clone(), gaps.clone(), Occupancy::default());
        for event in events() {
            counts.add(&event);
            latest.add(&event);
            density.add(&event);
            pairing.push(&event, |found| kept.record_match(&found));
            tracker.push(&event);
        }
        let (occupancy, warnings) = tracker.finish();
        let occupancy = occupancy.to_document(warnings, names, recorded);
        let results = pairing.finish(names);

        let blind = pairs::build_document(&results, DETAIL, &[], names, recorded);
        let foci = choice::choose_foci(&latest, &blind, &occupancy, source);
        let explained = pairs::worst_windows(&results, DETAIL);
        let mut coincidences = CoincidenceCounter::of_pairs(kept, &results, &gaps, names, recorded);
        let counted = events().into_iter().inspect(|event| {
            if let Some(counter) = &mut coincidences {
                counter.push(event);
            }
        });
        let (mut lanes, pictures) =
            collect_windows(source, (&foci, &density), &explained, (coverage, gaps), counted);
        lanes.truncate(explained.len());
        let mut intervals = pairs::build_document(&results, DETAIL, &lanes, names, recorded);
        intervals.coincidences = coincidences.map(CoincidenceCounter::finish);
        RecordingDigest { recorded: (*recorded).clone(), counts, occupancy, intervals, pictures }
    }

    /// Warnings about its figures: those of its recorder, and losses.
    pub fn warnings(&self) -> Vec<Finding> {
        let mut findings = self.recorded.findings.clone();
        let lossy = self.recorded.sources.iter().filter(|source| source.lost > 0);
        let message = "events were lost: the time in between is marked as unknown";
        let finding = |source: &RecordedSource| {
            let evidence = format!(
                "{} of {}",
                count_text(source.lost),
                count_text(source.recorded.saturating_add(source.lost))
            );
            Finding::new("events-lost", Severity::Warning, &source.name, message)
                .with_evidence(evidence)
        };
        findings.extend(lossy.map(finding));
        findings
            .extend(self.occupancy.contradiction_finding(self.counts.group_count(Group::Sched)));
        findings
    }

    /// The number of events, the number of lost events, and the length.
    pub(crate) fn extent(&self) -> (u64, u64, Nanos) {
        (
            self.counts.total_count(),
            self.recorded.lost_count(),
            self.recorded.ended - self.recorded.began,
        )
    }

    /// Sentences about the stated limits that are exceeded.
    pub(crate) fn violated_limits(&self) -> Vec<String> {
        tables::violated_limits(&self.intervals)
    }
}

/// Collects the data of the windows `explained` and the pictures of the subjects, in one pass.
fn collect_windows<E: IntoIterator<Item = Event>>(
    source: &RecordingSource<'_>,
    (foci, density): (&[Focus], &density::Density),
    explained: &[(MonotonicNs, MonotonicNs)],
    (coverage, gaps): (Coverage, Gaps),
    events: E,
) -> (Vec<WindowLanes>, Vec<Picture>) {
    let shown_windows: Vec<(MonotonicNs, MonotonicNs)> =
        foci.iter().map(|of| density.narrow_window(of)).collect();
    let all_windows = explained.iter().chain(&shown_windows).copied();
    let mut tracker = Tracker::new(coverage, gaps, LaneWindows::new(all_windows));
    let mut marks = marks::InWindows::new(source.names, &shown_windows);
    for event in events {
        tracker.push(&event);
        marks.push(&event);
    }
    let mut lanes = tracker.finish().0.finish();
    let of_subjects = lanes.split_off(explained.len().min(lanes.len()));
    let material = foci.iter().zip(&of_subjects).zip(marks.finish());
    let picture = |((focus, lanes), (marks, left_out)): ((&Focus, &WindowLanes), (Vec<_>, u64))| {
        Picture::from_material(
            focus,
            &Material {
                lanes,
                marks: &marks,
                names: source.names,
                series: &source.series,
                left_out,
            },
            MAX_ITEMS,
        )
    };
    let pictures = material.map(picture).collect();
    (lanes, pictures)
}
