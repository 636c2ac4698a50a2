use super::*;
use crate::meta::TIMER_WORKLOAD;
use crate::state::SeriesState;
use crate::{Bundle, BundleWriter, PhaseMeta, SeriesMeta, SeriesWriter};
use proptest::prelude::*;
use punctual_core::series::record_hdr;
use punctual_core::{Clock, CpuSet, Fact, Sample, SeriesShape};
use std::path::Path;

const SHAPE: SeriesShape =
    SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };

fn writer(directory: &Path) -> BundleWriter {
    let writer = BundleWriter::create(directory, "month", "run").unwrap();
    let phase = PhaseMeta::new("main", jiff::Timestamp::UNIX_EPOCH);
    writer.write_phase(0, &phase).unwrap();
    writer
}

fn series(writer: &BundleWriter, number: usize, limit: u64) -> SeriesWriter {
    let meta = SeriesMeta {
        name: format!("timer/cpu{number}"),
        measure: "timer".into(),
        workload: TIMER_WORKLOAD.into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(number),
        scheduling: "SCHED_FIFO 80".into(),
        real_time: true,
        period: Some(Nanos::MILLI),
        tid: Some(1),
        requirements: Vec::new(),
        details: Default::default(),
    };
    let mut series = writer.begin_series(0, number, &meta, u64::MAX).unwrap();
    series.begin_rotation(limit).unwrap();
    series
}

fn state(data: &SeriesData, writer: &SeriesWriter) -> SeriesState {
    let (samples_kept, log_bytes) = (writer.kept_count(), writer.log_bytes());
    SeriesState { data: data.clone(), usage: Fact::NotAsked, digest: None, samples_kept, log_bytes }
}

/// All bytes below a directory.
fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size_of(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// Five minutes at 1 kHz on a simulated clock: a thousand samples each of 300 latencies, the
/// shorter ones close together, the longer ones over three powers of ten.
fn five_minutes(data: &mut SeriesData, number: u64) -> Nanos {
    let mut max = Nanos::ZERO;
    for k in 0..300u64 {
        let noise = (k * 7_919 + number * 104_729) % 1_009;
        let latency = Nanos(match k {
            0..250 => 1_500 + k * 40 + noise,
            _ => 12_000 + (noise * noise) * (k - 249) / 10,
        } as i64);
        record_hdr(&mut data.whole, latency, 1_000);
        data.losses.recorded += 1_000;
        data.sum += i128::from(latency.ns()) * 1_000;
        max = max.max(latency);
    }
    // Only the overall histogram shows the distribution.
    data.exact.above = data.losses.recorded;
    data.max = data.max.max(Some(max));
    data.min = Some(Nanos(1_500));
    max
}

/// The limit stated in docs/weeks.md.
const MONTH: u64 = 500_000_000;
/// The maximum size of the worst samples' windows that `[explain]` keeps.
const WINDOWS: u64 = 256 << 20;

#[test]
fn lines_of_a_month_on_eight_cpus_stay_within_the_stated_size() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("month");
    let writer = writer(&directory);
    let lines = 31 * 24 * 12;
    let mut longest = Nanos::ZERO;
    // One of eight CPUs of the same size.
    let mut series = series(&writer, 0, log_limit(8));
    let mut data = SeriesData::new(SHAPE);
    let mut keeper = LineKeeper::new(0, ClockNs(0));
    for line in 1..=lines {
        let max = five_minutes(&mut data, line as u64);
        keeper.extend(max);
        longest = longest.max(max);
        let now = line as i64 * LENGTH.ns();
        assert!(keeper.is_due(ClockNs(now)) && !keeper.is_due(ClockNs(now - 1)));
        series.append_line(&keeper.end_line(&data, now, ClockNs(now))).unwrap();
    }
    series.save_checkpoint(&state(&data, &series)).unwrap();
    let taken = size_of(&directory);
    assert!(8 * taken + DETAIL + WINDOWS <= MONTH, "{taken} B of a CPU");
    let bundle = Bundle::open(&directory).unwrap();
    assert_eq!(bundle.damage, Vec::<String>::new());
    assert_eq!(bundle.all_series().count(), 1);
    let mut found = Nanos::ZERO;
    for (_, series) in bundle.all_series() {
        let read = series.load_lines().unwrap();
        assert_eq!(read.len(), lines);
        assert!(read.iter().all(|line| line.losses.recorded == 300_000 && line.length == LENGTH));
        assert!(read.windows(2).all(|two| two[0].start + LENGTH.ns() == two[1].start));
        found = found.max(read.iter().filter_map(|line| line.max).max().unwrap());
        // Without detail, the plot over time is that of the lines.
        assert_eq!(series.load_log().unwrap().windows.len(), lines);
    }
    assert_eq!(found, longest);
}

#[test]
fn a_full_log_drops_the_oldest_samples_first() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("b");
    let (limit, total) = (64 << 10, 200_000u64);
    let writer = writer(&directory);
    let mut series = series(&writer, 0, limit);
    let mut data = SeriesData::new(SHAPE);
    for first in (0..total).step_by(100) {
        let sample = |seq: u64| {
            let due = seq as i64 * 1_000_000;
            Sample { seq, due: ClockNs(due), woke: ClockNs(due + 5_000), cpu: 0 }
        };
        let samples: Vec<Sample> = (first..first + 100).map(sample).collect();
        samples.iter().for_each(|sample| data.record_sample(sample, 0));
        series.append_samples(&samples).unwrap();
        let window = SampleWindow {
            start: samples[0].due,
            count: 100,
            min: Nanos(5_000),
            max: Nanos(5_000),
            sum: Nanos(500_000),
        };
        series.append_window(&window).unwrap();
        // Two logs, each above the limit by at most one block of samples.
        assert!(size_of(&directory.join("phases")) < 2 * (limit + 1_000) + 100_000);
    }
    let state = state(&data, &series);
    series.save_checkpoint(&state).unwrap();
    let bundle = Bundle::open(&directory).unwrap();
    let (_, series) = bundle.all_series().next().unwrap();
    let log = series.load_log().unwrap();
    assert_eq!(log.samples.len() as u64, state.samples_kept);
    assert!(state.samples_kept < total && log.samples.len() > 1_000);
    assert_eq!(log.samples.last().unwrap().seq, total - 1);
    assert!(log.samples.windows(2).all(|two| two[0].seq + 1 == two[1].seq));
    assert!(!log.windows.is_empty());
    // Killed in the middle of a rotation.
    let at = |name: &str| directory.join("phases/000").join(name);
    std::fs::rename(at("0000.log"), at("0000.old.log")).unwrap();
    let bundle = Bundle::open(&directory).unwrap();
    let log = bundle.all_series().next().unwrap().1.load_log().unwrap();
    assert_eq!(log.samples.last().unwrap().seq, total - 1);
    assert_eq!(bundle.damage, Vec::<String>::new());
}

#[test]
fn lines_cover_the_time_before_the_detail() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("b");
    let writer = writer(&directory);
    let mut series = series(&writer, 0, 1 << 20);
    let (mut data, mut keeper) = (SeriesData::new(SHAPE), LineKeeper::new(0, ClockNs(0)));
    for line in 1..=3i64 {
        let max = five_minutes(&mut data, line as u64);
        keeper.extend(max);
        let now = line * LENGTH.ns();
        series.append_line(&keeper.end_line(&data, now, ClockNs(now))).unwrap();
    }
    let start = ClockNs(2 * LENGTH.ns());
    let one = Nanos(7);
    series.append_window(&SampleWindow { start, count: 1, min: one, max: one, sum: one }).unwrap();
    series.save_checkpoint(&state(&data, &series)).unwrap();
    let bundle = Bundle::open(&directory).unwrap();
    let windows = bundle.all_series().next().unwrap().1.load_log().unwrap().windows;
    let starts: Vec<i64> = windows.iter().map(|window| window.start.ns()).collect();
    assert_eq!(starts, [0, LENGTH.ns(), 2 * LENGTH.ns()]);
    assert_eq!(windows[2].max, one, "the third line is covered by the detail");
}

proptest! {
    #[test]
    fn each_latency_falls_into_a_bucket_within_its_precision(latency in 0..HDR_MAX) {
        let at = latency_bucket(latency);
        let upper = upper_end(at).ns() as u64;
        prop_assert!(latency <= upper && upper - latency <= latency / 32 + 1);
        prop_assert_eq!(latency_bucket(upper), at);
        prop_assert_eq!(latency_bucket(upper + 1), at + 1);
    }

    #[test]
    fn a_truncated_file_of_lines_yields_its_complete_lines(
        latencies in proptest::collection::vec(0i64..10_000_000, 1..200), cut in 0usize..4_000,
    ) {
        let (mut data, mut keeper) = (SeriesData::new(SHAPE), LineKeeper::new(5, ClockNs(7)));
        let (mut bytes, mut lines) = (MAGIC.to_vec(), Vec::new());
        for (number, some) in latencies.chunks(40).enumerate() {
            for latency in some {
                let sample =
                    Sample { seq: 0, due: ClockNs(0), woke: ClockNs(*latency), cpu: 0 };
                data.record_sample(&sample, 0);
                keeper.extend(Nanos(*latency));
            }
            let line = keeper.end_line(&data, number as i64, ClockNs(number as i64 + 9));
            let max = some.iter().max().copied().map(Nanos);
            prop_assert_eq!(line.max, max);
            prop_assert_eq!(line.percentile(100.0), max);
            prop_assert_eq!(line.losses.recorded, some.len() as u64);
            prop_assert_eq!(line.sum.ns(), some.iter().sum::<i64>());
            let mut sorted = some.to_vec();
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() - 1) / 2];
            let median = line.percentile(50.0).unwrap().ns();
            prop_assert!(median >= exact - exact / 900 && median <= exact + exact / 32 + 1);
            encode_line(&mut bytes, &line);
            lines.push(line);
        }
        prop_assert_eq!(&decode_lines(&bytes).unwrap(), &lines);
        let cut = decode_lines(&bytes[..cut.min(bytes.len())]).unwrap();
        prop_assert!(lines.starts_with(&cut));
    }

    #[test]
    fn no_bytes_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200), proper in any::<bool>(),
    ) {
        if proper {
            bytes.splice(0..0, *MAGIC);
        }
        let _ = decode_lines(&bytes);
        let _ = decode_line(&bytes);
    }
}
