//! The sections of the page about a recording.

use super::{RecordingDigest, tables};
use crate::html::ReportInput;
use crate::html::picture::Picture;
use crate::html::table::Table;
use crate::html::text::format_name;
use crate::tables::occupancy::{self, OccupancyRows};
use crate::tables::{coincidence, intervals, recording};
use punctual_bundle::intervals::{PairsDocument, ValueCurve};
use serde::Serialize;

/// The recordings of these bundles, each with its bundle's label.
pub(crate) fn labelled_recordings<'a>(
    inputs: &[ReportInput<'a>],
    labels: &'a [String],
) -> Vec<(&'a str, &'a RecordingDigest)> {
    let labelled = inputs.iter().zip(labels);
    labelled.filter_map(|(input, label)| Some((label.as_str(), input.recording?))).collect()
}

pub(crate) fn recording_sections(
    recordings: &[(&str, &RecordingDigest)],
    rows: usize,
) -> Vec<RecordingSection> {
    let label = |label: &str| if recordings.len() > 1 { label.to_owned() } else { String::new() };
    recordings
        .iter()
        .map(|(of, digest)| RecordingSection::from_digest(digest, label(of), rows))
        .collect()
}

/// The input of the templates.
#[derive(Serialize)]
pub(crate) struct RecordingSection {
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
    fn from_digest(digest: &RecordingDigest, label: String, rows: usize) -> RecordingSection {
        RecordingSection {
            label,
            about: tables::about_recording(&digest.recorded, &digest.counts),
            kinds: recording::kind_table(&digest.recorded, &digest.counts).into(),
            sources: to_page_table(recording::source_table(&digest.recorded)),
            intervals: to_page_table(intervals::pair_table(&digest.intervals)),
            scopes: to_page_table(intervals::scope_table(&digest.intervals)),
            functions: to_page_table(intervals::function_table(&digest.intervals)),
            worst: tables::worst_table(&digest.intervals, rows),
            coincidences: coincidence::coincidence_tables(digest.intervals.coincidences.as_deref())
                .map(Table::from)
                .collect(),
            cpus: to_page_table(occupancy::cpu_table(&digest.occupancy)),
            threads: to_page_table(
                occupancy::task_table(&digest.occupancy, OccupancyRows::Both)
                    .with_row_limit(0, rows),
            ),
            interrupts: to_page_table(occupancy::interrupt_table(&digest.occupancy, true)),
        }
    }
}

fn to_page_table(table: crate::tables::Table) -> Option<Table> {
    table.unless_empty().map(Table::from)
}

/// The page's data about a recording, for its script.
#[derive(Serialize, Default)]
pub(crate) struct RecordingData {
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
    pub(crate) fn from_digests(
        explained: &[(&str, &Picture)],
        digests: &[(&str, &RecordingDigest)],
        pictures: usize,
        items: usize,
    ) -> RecordingData {
        let several = digests.len() > 1;
        let titled = |label: &str, title: &str| {
            if several { format!("{label} · {}", format_name(title)) } else { format_name(title) }
        };
        let mut data = RecordingData::default();
        data.pictures.extend(
            explained.iter().map(|(label, picture)| picture.to_thinned(items).with_label(label)),
        );
        for (label, digest) in digests {
            data.pictures.extend(
                digest.pictures.iter().take(pictures).map(|picture| picture.to_thinned(items)),
            );
            data.intervals
                .extend(collect_histograms(&digest.intervals, |title| titled(label, title)));
            let curves = digest.intervals.values.iter().take(MAX_CURVES);
            data.values.extend(
                curves.map(|curve| curve_values(curve, digest, |title| titled(label, title))),
            );
        }
        data.intervals.truncate(MAX_CURVES);
        data.values.truncate(MAX_CURVES);
        data
    }

    /// The numbers of pictures, histograms and curves.
    pub(crate) fn plot_counts(&self) -> (usize, usize, usize) {
        (self.pictures.len(), self.intervals.len(), self.values.len())
    }
}

fn collect_histograms(
    intervals: &PairsDocument,
    titled: impl Fn(&str) -> String,
) -> Vec<Histogram> {
    let pairs = intervals.pairs.iter().map(|pair| (&pair.name, &pair.histogram, &pair.limit));
    let functions = intervals
        .functions
        .iter()
        .map(|function| (&function.name, &function.histogram, &function.limit));
    let shown_histograms = pairs.chain(functions).filter(|(_, histogram, _)| !histogram.is_empty());
    let histogram = |(title, buckets, limit): (&String, &Vec<(i64, u64)>, &Option<_>)| Histogram {
        name: titled(title),
        buckets: buckets.clone(),
        limit: limit
            .as_ref()
            .map(|limit: &punctual_bundle::intervals::LimitSummary| limit.limit.clone()),
    };
    shown_histograms.map(histogram).collect()
}

fn curve_values(
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
