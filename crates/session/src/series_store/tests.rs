//! Tests the storage of samples that are passed on one by one.

use super::{KeptSeries, SeriesFiles, shape_within};
use crate::engine::scripted::timer_series_meta;
use crate::saver::Saver;
use punctual_bundle::{Bundle, BundleWriter, PhaseMeta, SeriesWriter};
use punctual_core::{MonotonicNs, Nanos};
use std::path::Path;

const PERIOD: i64 = 1_000_000;

fn kept(directory: &Path) -> KeptSeries {
    kept_with(directory, |_| ())
}

fn kept_with(directory: &Path, change: impl FnOnce(&mut SeriesWriter)) -> KeptSeries {
    let writer = BundleWriter::create(directory, "kept", "run").expect("a bundle");
    let phase = PhaseMeta::new("phase", jiff::Timestamp::UNIX_EPOCH);
    writer.write_phase(0, &phase).expect("a phase");
    let meta = timer_series_meta();
    let mut writer = writer.begin_series(0, 0, &meta, 100_000).expect("a series");
    change(&mut writer);
    let files = SeriesFiles::new(writer, &Saver::on_caller());
    KeptSeries::new(shape_within(Nanos::MILLI, Some(Nanos(PERIOD))), meta, files)
}

/// A sample of 1 µs each period.
fn push(series: &mut KeptSeries, seq: u64, missed: u64) {
    let due = MonotonicNs(1_000 + seq as i64 * PERIOD);
    series.push(seq, (due, due + Nanos::MICRO), 0, missed);
}

#[test]
fn every_sample_is_in_the_log_and_in_a_window_also_the_last_one() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("bundle");
    let mut series = kept(&directory);
    // Two seconds and a half: the last window has not ended.
    (0..2_500).for_each(|seq| push(&mut series, seq, 0));
    series.finish();
    assert!(series.write_error().is_none());
    let bundle = Bundle::open(&directory).expect("it opens");
    let (_, read) = bundle.all_series().next().expect("a series");
    let log = read.load_log().expect("a log");
    assert_eq!((log.samples.len(), log.torn_bytes), (2_500, 0));
    assert_eq!(read.state.samples_kept, 2_500);
    let counts: Vec<u64> = log.windows.iter().map(|window| window.count).collect();
    assert_eq!(counts, [1_000, 1_000, 500]);
}

#[test]
fn missed_periods_are_in_the_losses_and_in_the_corrected_figures() {
    let place = tempfile::tempdir().expect("a directory");
    let mut series = kept(&place.path().join("bundle"));
    (0..10).for_each(|seq| push(&mut series, seq, seq % 2));
    let losses = series.state.data.losses;
    assert_eq!((losses.recorded, losses.skipped, losses.expected_count()), (10, 5, 15));
}

/// Rotating the log fails: its directory is gone.
#[test]
fn what_cannot_be_added_to_the_log_is_trouble() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("bundle");
    let mut series = kept_with(&directory, |writer| writer.begin_rotation(0).expect("a long plot"));
    push(&mut series, 0, 0);
    series.checkpoint();
    std::fs::remove_dir_all(directory.join("phases")).expect("removed");
    push(&mut series, 1, 0);
    let pending = std::mem::take(&mut series.pending);
    assert!(!series.append_samples(&pending));
    assert!(series.write_error().is_some());
    assert_eq!(series.state.data.sample_count(), 2, "statistics go on");
}
