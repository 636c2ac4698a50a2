//! The subjects of pictures: the worst samples, the longest intervals and calls; without these, the
//! longest waits for a CPU.

use super::super::picture::Focus;
use super::super::text::format_name;
use super::RecordingSource;
use crate::format::span_text;
use punctual_bundle::intervals::{OccupancyDocument, PairsDocument, WorstInterval};
use punctual_core::{Event, EventKind, MonotonicNs, Nanos, Tid};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of worst samples with a picture.
const SAMPLES: usize = 6;
/// The number of intervals, and of function calls, with a picture.
const INTERVALS: usize = 5;
/// The number of waits for a CPU with a picture, if there is no other subject.
const WAITS: usize = 4;
/// The length shown of the beginning of a recording without any subject.
const BEGINNING: Nanos = Nanos::from_millis(10);

/// A sample. The order is by latency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChosenSample {
    late: Nanos,
    due: MonotonicNs,
    woke: MonotonicNs,
    tid: Tid,
    series: u32,
}

#[derive(Default)]
pub(crate) struct LatestSamples(BinaryHeap<Reverse<ChosenSample>>);

impl LatestSamples {
    /// Takes the event if it is a sample.
    pub fn add(&mut self, event: &Event) {
        let EventKind::Sample { series, due } = event.what else { return };
        let late = event.at - due;
        self.0.push(Reverse(ChosenSample { late, due, woke: event.at, tid: event.tid, series }));
        if self.0.len() > SAMPLES {
            self.0.pop();
        }
    }

    fn to_foci(&self, series: &[String]) -> Vec<Focus> {
        let mut chosen_samples: Vec<ChosenSample> =
            self.0.iter().map(|Reverse(sample)| *sample).collect();
        chosen_samples.sort_by_key(|sample| Reverse(*sample));
        let focus = |ChosenSample { late, due, woke, tid, series: number }: ChosenSample| {
            let series_name = series
                .get(number as usize)
                .map_or_else(|| format!("series {number}"), |series| format_name(series));
            Focus {
                title: format!("latency {}: {series_name}", span_text(late)),
                tid: Some(tid).filter(|tid| *tid != Tid::IDLE),
                from: (due, "due"),
                to: (woke.max(due), "woke"),
            }
        };
        chosen_samples.into_iter().map(focus).collect()
    }
}

/// The subjects of a page's pictures.
pub(crate) fn choose_foci(
    late: &LatestSamples,
    intervals: &PairsDocument,
    occupancy: &OccupancyDocument,
    source: &RecordingSource<'_>,
) -> Vec<Focus> {
    let mut all_foci = late.to_foci(&source.series);
    let pairs = intervals
        .pairs
        .iter()
        .map(|pair| (&pair.name, &pair.worst, pair.limit.is_some(), ["begin", "end"]));
    all_foci.extend(foci_of_worst(pairs.collect()));
    let calls = intervals
        .functions
        .iter()
        .map(|f| (&f.name, &f.worst, f.limit.is_some(), ["entry", "exit"]));
    all_foci.extend(foci_of_worst(calls.collect()));
    if all_foci.is_empty() {
        all_foci = foci_of_waits(occupancy);
    }
    if all_foci.is_empty() {
        let began = source.recorded.began;
        let to = (began + BEGINNING).min(source.recorded.ended.max(began));
        let title = "the beginning of the recording".to_owned();
        all_foci.push(Focus { title, tid: None, from: (began, "begin"), to: (to, "end") });
    }
    all_foci
}

/// A name, its worst, whether it has a limit, and the labels of its ends.
type MomentCandidate<'a> = (&'a String, &'a Vec<WorstInterval>, bool, [&'static str; 2]);

/// The worst of each, first those with a limit.
fn foci_of_worst(mut of: Vec<MomentCandidate<'_>>) -> Vec<Focus> {
    of.sort_by_key(|(_, worst, limited, _)| {
        Reverse((*limited, worst.first().map(|one| one.latency)))
    });
    let focus = |(title, worst, _, labels): MomentCandidate<'_>| {
        let one = worst.first()?;
        let (from, to) = (one.from.min(one.to), one.from.max(one.to));
        Some(Focus {
            title: format!("{}: {}", span_text(Nanos(one.latency)), format_name(title)),
            tid: Some(Tid(one.tid)).filter(|tid| *tid != Tid::IDLE),
            from: (MonotonicNs(from), labels[0]),
            to: (MonotonicNs(to), labels[1]),
        })
    };
    of.into_iter().filter_map(focus).take(INTERVALS).collect()
}

fn foci_of_waits(occupancy: &OccupancyDocument) -> Vec<Focus> {
    let threads = occupancy.processes.iter().flat_map(|process| &process.threads);
    let mut waits: Vec<_> = threads
        .filter_map(|thread| {
            Some((thread.longest_ready?, thread.longest_ready_at?, thread.tid, &thread.name))
        })
        .collect();
    waits.sort_by_key(|(waited, ..)| Reverse(*waited));
    let focus = |(waited, at, tid, task): (i64, i64, u32, &String)| Focus {
        title: format!(
            "{} waiting for a CPU: {} ({tid})",
            span_text(Nanos(waited)),
            format_name(task)
        ),
        tid: Some(Tid(tid)),
        from: (MonotonicNs(at), "ready"),
        to: (MonotonicNs(at) + Nanos(waited), "runs"),
    };
    waits.into_iter().take(WAITS).map(focus).collect()
}
