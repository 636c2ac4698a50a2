//! The sections of the page about a recording.

use super::{RecordingDigest, tables};
use crate::html::ReportInput;
use crate::html::picture::Picture;
use crate::html::table::Table;
use crate::html::text::name;
use crate::tables::occupancy::{self, OccupancyRows};
use crate::tables::{coincidence, intervals, recording};
use punctual_bundle::intervals::{PairsDocument, ValueCurve};
use serde::Serialize;

/// The recordings of these bundles, each with its bundle's label.
pub(crate) fn recordings<'a>(
    inputs: &[ReportInput<'a>],
    labels: &'a [String],
) -> Vec<(&'a str, &'a RecordingDigest)> {
    let labelled = inputs.iter().zip(labels);
    labelled.filter_map(|(input, label)| Some((label.as_str(), input.recording?))).collect()
}

pub fn sections(recordings: &[(&str, &RecordingDigest)], rows: usize) -> Vec<RecordingSection> {
    let label = |label: &str| if recordings.len() > 1 { label.to_owned() } else { String::new() };
    recordings.iter().map(|(of, digest)| RecordingSection::of(digest, label(of), rows)).collect()
}

/// The input of the templates.
#[derive(Serialize)]
pub struct RecordingSection {
    /// The label of the bundle; empty if there is only one.
    label: String,
    about: Vec<(&'static str, String)>,
    kinds: Table,
    sources: Option<Table>,
    intervals: Option<Table>,
    scopes: Option<Table>,
    functions: Option<Table>,
    worst: Option<Table>,
    coincidences: Vec<Table>,
    cpus: Option<Table>,
    threads: Option<Table>,
    interrupts: Option<Table>,
}

impl RecordingSection {
    fn of(digest: &RecordingDigest, label: String, rows: usize) -> RecordingSection {
        RecordingSection {
            label,
            about: tables::about(&digest.recorded, &digest.counts),
            kinds: recording::kinds(&digest.recorded, &digest.counts).into(),
            sources: drawn(recording::sources(&digest.recorded)),
            intervals: drawn(intervals::pairs(&digest.intervals)),
            scopes: drawn(intervals::scopes(&digest.intervals)),
            functions: drawn(intervals::functions(&digest.intervals)),
            worst: tables::worst(&digest.intervals, rows),
            coincidences: coincidence::tables(digest.intervals.coincidences.as_deref())
                .map(Table::from)
                .collect(),
            cpus: drawn(occupancy::cpus(&digest.occupancy)),
            threads: drawn(occupancy::tasks(&digest.occupancy, OccupancyRows::Both).shown(0, rows)),
            interrupts: drawn(occupancy::interrupts(&digest.occupancy, true)),
        }
    }
}

fn drawn(table: crate::tables::Table) -> Option<Table> {
    table.unless_empty().map(Table::from)
}

/// The page's data about a recording, for its script.
#[derive(Serialize, Default)]
pub struct RecordingData {
    pictures: Vec<Picture>,
    /// Histograms of intervals and functions.
    intervals: Vec<Histogram>,
    values: Vec<CurveValues>,
}

/// `(largest value of a bucket, count)` of the non-empty buckets.
#[derive(Serialize)]
struct Histogram {
    name: String,
    buckets: Vec<(i64, u64)>,
    limit: Option<String>,
}

/// A curve: the beginning of each segment (ns since the recording began), its minimum, mean and
/// maximum.
#[derive(Serialize)]
struct CurveValues {
    name: String,
    width: i64,
    at: Vec<i64>,
    min: Vec<i64>,
    mean: Vec<f64>,
    max: Vec<i64>,
    n: Vec<u64>,
}

/// Curves and histograms beyond this number are only in the tables.
const MAX_CURVES: usize = 48;

impl RecordingData {
    /// The data of the pictures of explained samples, which come first, and of the recordings of a
    /// page, each with its bundle's label.
    pub fn of(
        explained: &[(&str, &Picture)],
        digests: &[(&str, &RecordingDigest)],
        pictures: usize,
        items: usize,
    ) -> RecordingData {
        let several = digests.len() > 1;
        let titled = |label: &str, title: &str| {
            if several { format!("{label} · {}", name(title)) } else { name(title) }
        };
        let mut data = RecordingData::default();
        data.pictures.extend(
            explained.iter().map(|(label, picture)| picture.thinned(items).labelled(label)),
        );
        for (label, digest) in digests {
            data.pictures.extend(
                digest.pictures.iter().take(pictures).map(|picture| picture.thinned(items)),
            );
            data.intervals.extend(histograms(&digest.intervals, |title| titled(label, title)));
            let curves = digest.intervals.values.iter().take(MAX_CURVES);
            data.values
                .extend(curves.map(|curve| values(curve, digest, |title| titled(label, title))));
        }
        data.intervals.truncate(MAX_CURVES);
        data.values.truncate(MAX_CURVES);
        data
    }

    /// The numbers of pictures, histograms and curves.
    pub fn plots(&self) -> (usize, usize, usize) {
        (self.pictures.len(), self.intervals.len(), self.values.len())
    }
}

fn histograms(intervals: &PairsDocument, titled: impl Fn(&str) -> String) -> Vec<Histogram> {
    let pairs = intervals.pairs.iter().map(|pair| (&pair.name, &pair.histogram, &pair.limit));
    let functions = intervals
        .functions
        .iter()
        .map(|function| (&function.name, &function.histogram, &function.limit));
    let all = pairs.chain(functions).filter(|(_, histogram, _)| !histogram.is_empty());
    let histogram = |(title, buckets, limit): (&String, &Vec<(i64, u64)>, &Option<_>)| Histogram {
        name: titled(title),
        buckets: buckets.clone(),
        limit: limit
            .as_ref()
            .map(|limit: &punctual_bundle::intervals::LimitSummary| limit.limit.clone()),
    };
    all.map(histogram).collect()
}

fn values(
    curve: &ValueCurve,
    digest: &RecordingDigest,
    titled: impl Fn(&str) -> String,
) -> CurveValues {
    let name = if curve.index == 0 {
        titled(&curve.point)
    } else {
        format!("{} (second value)", titled(&curve.point))
    };
    let began = digest.recorded.began.ns();
    CurveValues {
        name,
        width: curve.width,
        at: curve.buckets.iter().map(|bucket| bucket.start.saturating_sub(began)).collect(),
        min: curve.buckets.iter().map(|bucket| bucket.min).collect(),
        mean: curve.buckets.iter().map(|bucket| bucket.mean).collect(),
        max: curve.buckets.iter().map(|bucket| bucket.max).collect(),
        n: curve.buckets.iter().map(|bucket| bucket.count).collect(),
    }
}
