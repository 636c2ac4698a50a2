//! The output of cyclictest, for scripts that read it: every series of the bundle is a thread, in
//! the order of phases.
//!
//! cyclictest knows no losses and no negative latencies: overruns and lost samples are omitted,
//! negative latencies count as 0.

use super::{Exporter, Writer, full_name, micros};
use punctual_bundle::{Bundle, RanUnder, Series};
use punctual_core::{Nanos, Sample};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(super) const JSON: Exporter = Exporter {
    answers: true,
    ..Exporter::new(
        "cyclictest-json",
        "what cyclictest --json writes",
        Writer::Bundle(|bundle, out| Ok(write_json(bundle, out)?)),
    )
};
pub(super) const HISTOGRAM: Exporter = Exporter::new(
    "cyclictest-histogram",
    "what cyclictest -h prints",
    Writer::Bundle(|bundle, out| Ok(write_histogram(bundle, out)?)),
);

const DATE: &str = "%a, %d %b %Y %H:%M:%S %z";

/// The file of `--json`, which rt-tests' programs share. Unknown fields are omitted.
#[derive(Serialize)]
struct RtTestsDocument<'a, T> {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    cmdline: &'a str,
    #[serde(rename = "rt_test_version:")]
    version: String,
    start_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
    return_code: u8,
    /// The timebase of the latencies, unless it is the system's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    timebase: Option<&'static str>,
    sysinfo: BTreeMap<&'static str, Value>,
    num_threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution_in_ns: Option<u8>,
    thread: Ordered<T>,
}

/// A thread, with the name and the scheduling of its series added to cyclictest's fields.
#[derive(Serialize)]
struct CyclictestThread {
    histogram: Ordered<u64>,
    cycles: u64,
    min: i64,
    max: i64,
    avg: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<usize>,
    name: String,
    scheduling: String,
}

/// An object whose keys are in numeric order, as in cyclictest's output.
pub(super) struct Ordered<T>(pub Vec<(u64, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// `--json`, file_version 1.
fn write_json(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    // In ns if a bin is not a whole number of µs, as with cyclictest's -N.
    let fine = |series: &Series| series.state.data.exact.resolution.ns() % 1_000 != 0;
    let fine = bundle.all_series().any(|(_, series)| fine(series));
    write_json_of(bundle, "punctual export --format cyclictest-json", fine, out)
}

/// The same for this command line, in ns or in µs.
pub(super) fn write_json_of(
    bundle: &Bundle,
    cmdline: &str,
    fine: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let threads = bundle
        .all_series()
        .map(|(phase, series)| to_cyclictest_thread(phase, series, fine))
        .collect();
    write_document(bundle, cmdline, Some(fine), threads, out)
}

/// The document with these threads. `fine`: whether times are in ns; `None`: it does not say so.
pub(super) fn write_document(
    bundle: &Bundle,
    cmdline: &str,
    fine: Option<bool>,
    threads: Vec<impl Serialize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ended = bundle.manifest.ending.as_ref();
    let document = RtTestsDocument {
        file_version: 1,
        cmdline,
        version: format!("punctual {}", bundle.manifest.punctual),
        start_time: bundle.manifest.created.strftime(DATE).to_string(),
        end_time: ended.map(|ending| ending.at.strftime(DATE).to_string()),
        return_code: punctual_stats::summarize_bundle(bundle).verdict.to_exit() as u8,
        timebase: bundle.timebase().short_meaning(),
        sysinfo: collect_sysinfo(bundle),
        num_threads: threads.len(),
        resolution_in_ns: fine.map(u8::from),
        thread: Ordered((0..).zip(threads).collect()),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn to_cyclictest_thread(phase: &str, series: &Series, fine: bool) -> CyclictestThread {
    let (meta, data) = (&series.meta, &series.state.data);
    let unit = if fine { 1 } else { 1_000 };
    let whole = |latency: Option<Nanos>| latency.map_or(0, |latency| latency.ns().max(0) / unit);
    let mean = data.mean().unwrap_or(0.0).max(0.0) / unit as f64;
    CyclictestThread {
        histogram: Ordered(bin_counts(series, fine)),
        cycles: data.sample_count(),
        min: whole(data.min),
        max: whole(data.max),
        avg: (mean * 100.0).round() / 100.0,
        cpu: meta.cpus.first_cpu(),
        name: full_name(phase, series),
        scheduling: meta.scheduling.clone(),
    }
}

/// The environment fields of cyclictest, if known.
fn collect_sysinfo(bundle: &Bundle) -> BTreeMap<&'static str, Value> {
    let environment = RanUnder::from_bundle(bundle);
    let real_time = environment.is_real_time().map(|is| u8::from(is).into());
    let facts = [
        ("sysname", Some("Linux".into())),
        ("release", environment.kernel_release().map(Value::from)),
        ("version", environment.kernel_version().map(Value::from)),
        ("machine", environment.architecture().map(Value::from)),
        ("realtime", real_time),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// `-h`: rows of all latencies with the count of each thread, then minima, means, maxima and
/// overflows. Comments before the histogram map threads to series.
pub(crate) fn write_histogram(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let named_series: Vec<(&str, &Series)> = bundle.all_series().collect();
    for (k, (phase, series)) in named_series.iter().enumerate() {
        writeln!(
            out,
            "# Column {k} is {}",
            crate::format::escape_unsafe(&full_name(phase, series))
        )?;
    }
    if let Some(mark) = bundle.timebase().short_meaning() {
        writeln!(out, "# {mark}")?;
    }
    writeln!(out, "# Histogram")?;
    let all_series: Vec<&Series> = named_series.into_iter().map(|(_, series)| series).collect();
    let bins: Vec<Vec<(u64, u64)>> =
        all_series.iter().map(|series| bin_counts(series, false)).collect();
    let rows = histogram_rows(&all_series, &bins);
    let end = rows.last().map_or(0, |last| last + 1);
    let table = HistogramTable { all: &all_series, bins: &bins, end, fine: false, of_all: false };
    table.write(rows.into_iter(), out)
}

/// The counts of a series by whole ns (`fine`) or µs.
pub(super) fn bin_counts(series: &Series, fine: bool) -> Vec<(u64, u64)> {
    let exact = &series.state.data.exact;
    let bins = match fine {
        true => exact.occupied_bins().map(|(edge, n)| (edge.ns().max(0) as u64, n)).collect(),
        false => micros::occupied_bins(exact),
    };
    with_negative(bins, exact.below)
}

/// The table of `-h` and its summary.
pub(super) struct HistogramTable<'a> {
    pub all: &'a [&'a Series],
    pub bins: &'a [Vec<(u64, u64)>],
    /// Latencies from here on have no row.
    pub end: u64,
    /// In ns instead of µs.
    pub fine: bool,
    /// Whether there is a column of all threads.
    pub of_all: bool,
}

impl HistogramTable<'_> {
    pub(super) fn write(
        &self,
        rows: impl Iterator<Item = u64>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let with = |mut values: Vec<u64>, of_all: &dyn Fn(&[u64]) -> u64| {
            values.extend(self.of_all.then(|| of_all(&values)));
            values
        };
        let sum: &dyn Fn(&[u64]) -> u64 = &|values| values.iter().sum();
        let mut next: Vec<_> =
            self.bins.iter().map(|bins| bins.iter().copied().peekable()).collect();
        for row in rows {
            let counts = next
                .iter_mut()
                .map(|bins| bins.next_if(|(bin, _)| *bin == row).map_or(0, |(_, n)| n));
            let counts = with(counts.collect(), sum);
            let counts: Vec<String> = counts.iter().map(|count| format!("{count:06}")).collect();
            writeln!(out, "{row:06} {}", counts.join("\t"))?;
        }
        let in_rows = |bins: &Vec<(u64, u64)>| -> u64 {
            bins.iter().filter(|(bin, _)| *bin < self.end).map(|(_, n)| n).sum()
        };
        let in_rows: Vec<u64> = self.bins.iter().map(in_rows).collect();
        let series = || self.all.iter().copied();
        let over: Vec<u64> = series()
            .zip(&in_rows)
            .map(|(series, inside)| overflow_count(series, *inside))
            .collect();
        let mut line = |name: &str, width: usize, values: &[u64]| {
            let values: Vec<String> = values.iter().map(|of| format!("{of:0width$}")).collect();
            writeln!(out, "# {name}: {}", values.join(" "))
        };
        let unit = if self.fine { 1 } else { 1_000 };
        let whole = |latency: Option<Nanos>| -> u64 {
            latency.map_or(0, |latency| latency.ns().max(0) as u64 / unit)
        };
        let mean = |series: &Series| series.state.data.mean().map(|mean| Nanos(mean as i64));
        line("Total", 9, &with(in_rows, sum))?;
        line("Min Latencies", 5, &series().map(|of| whole(of.state.data.min)).collect::<Vec<_>>())?;
        line("Avg Latencies", 5, &series().map(|of| whole(mean(of))).collect::<Vec<_>>())?;
        let maxima = series().map(|of| whole(of.state.data.max)).collect();
        let highest = |values: &[u64]| values.iter().copied().max().unwrap_or_default();
        line("Max Latencies", 5, &with(maxima, &highest))?;
        line("Histogram Overflows", 5, &with(over.clone(), sum))?;
        writeln!(out, "# Histogram Overflow at cycle number:")?;
        let end = Nanos(i64::try_from(self.end.saturating_mul(unit)).unwrap_or(i64::MAX));
        for (k, (series, over)) in series().zip(over).enumerate() {
            writeln!(out, "# Thread {k}:{}", format_overflows(series, end, over))?;
        }
        Ok(())
    }
}

/// The latencies in µs that have a row: all of the longest histogram, and the non-empty ones of the
/// others. cyclictest has one range for all threads and counts overflows beyond it: if series have
/// overflows, the shortest range of those applies to all.
fn histogram_rows(all: &[&Series], bins: &[Vec<(u64, u64)>]) -> Vec<u64> {
    let exact = || all.iter().map(|series| &series.state.data.exact);
    let longest = exact().max_by_key(|exact| exact.bins.len());
    let mut rows: Vec<u64> = longest.into_iter().flat_map(micros::rows_of_bins).collect();
    rows.extend(bins.iter().flatten().map(|(us, _)| us));
    rows.sort_unstable();
    rows.dedup();
    let end = exact()
        .filter(|exact| exact.above > 0)
        .map(|exact| micros::to_whole_micros(exact.upper_end()))
        .min();
    rows.retain(|us| end.is_none_or(|end| *us < end));
    rows
}

/// The bins with negative latencies counted as 0.
fn with_negative(mut bins: Vec<(u64, u64)>, below: u64) -> Vec<(u64, u64)> {
    match bins.first_mut().filter(|(first, _)| *first == 0) {
        Some((_, count)) => *count += below,
        None if below > 0 => bins.insert(0, (0, below)),
        None => {}
    }
    bins
}

/// Cycles without a row, also those of a source without a histogram.
fn overflow_count(series: &Series, in_rows: u64) -> u64 {
    series.state.data.sample_count().saturating_sub(in_rows)
}

/// The known numbers of cycles from `end` on, and how many others there are.
fn format_overflows(series: &Series, end: Nanos, all: u64) -> String {
    let beyond = |sample: &&Sample| sample.latency() >= end;
    let mut cycles: Vec<u64> =
        series.state.data.worst.iter().filter(beyond).map(|sample| sample.seq).collect();
    cycles.sort_unstable();
    let mut text: String = cycles.iter().map(|cycle| format!(" {cycle:05}")).collect();
    let other_cycles = all.saturating_sub(cycles.len() as u64);
    if other_cycles > 0 {
        text += &format!(" # {other_cycles:05} others");
    }
    text
}
