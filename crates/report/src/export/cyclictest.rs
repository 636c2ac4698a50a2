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

/// The file of `--json`. Unknown fields are omitted.
#[derive(Serialize)]
struct CyclictestDocument<'a> {
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
    resolution_in_ns: u8,
    thread: Ordered<CyclictestThread>,
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
struct Ordered<T>(Vec<(u64, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// `--json`, file_version 1.
fn write_json(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    // In ns if a bin is not a whole number of µs, as with cyclictest's -N.
    let fine = |series: &Series| series.state.data.exact.resolution.ns() % 1_000 != 0;
    let fine = bundle.series().any(|(_, series)| fine(series));
    write_json_of(bundle, "punctual export --format cyclictest-json", fine, out)
}

/// The same for this command line, in ns or in µs.
pub(super) fn write_json_of(
    bundle: &Bundle,
    cmdline: &str,
    fine: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let series: Vec<(&str, &Series)> = bundle.series().collect();
    let ended = bundle.manifest.ending.as_ref();
    let threads = series
        .iter()
        .enumerate()
        .map(|(k, (phase, series))| (k as u64, thread(phase, series, fine)));
    let document = CyclictestDocument {
        file_version: 1,
        cmdline,
        version: format!("punctual {}", bundle.manifest.punctual),
        start_time: bundle.manifest.created.strftime(DATE).to_string(),
        end_time: ended.map(|ending| ending.at.strftime(DATE).to_string()),
        return_code: punctual_stats::summarize(bundle).verdict.exit() as u8,
        timebase: bundle.timebase().mark(),
        sysinfo: sysinfo(bundle),
        num_threads: series.len(),
        resolution_in_ns: u8::from(fine),
        thread: Ordered(threads.collect()),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn thread(phase: &str, series: &Series, fine: bool) -> CyclictestThread {
    let (meta, data) = (&series.meta, &series.state.data);
    let unit = if fine { 1 } else { 1_000 };
    let whole = |latency: Option<Nanos>| latency.map_or(0, |latency| latency.ns().max(0) / unit);
    let bins = if fine {
        data.exact.occupied().map(|(edge, n)| (edge.ns().max(0) as u64, n)).collect()
    } else {
        micros::occupied(&data.exact)
    };
    let mean = data.mean().unwrap_or(0.0).max(0.0) / unit as f64;
    CyclictestThread {
        histogram: Ordered(with_negative(bins, data.exact.below)),
        cycles: data.count(),
        min: whole(data.min),
        max: whole(data.max),
        avg: (mean * 100.0).round() / 100.0,
        cpu: meta.cpus.first(),
        name: full_name(phase, series),
        scheduling: meta.scheduling.clone(),
    }
}

/// The environment fields of cyclictest, if known.
fn sysinfo(bundle: &Bundle) -> BTreeMap<&'static str, Value> {
    let environment = RanUnder::of(bundle);
    let real_time = environment.is_real_time().map(|is| u8::from(is).into());
    let facts = [
        ("sysname", Some("Linux".into())),
        ("release", environment.release().map(Value::from)),
        ("version", environment.version().map(Value::from)),
        ("machine", environment.architecture().map(Value::from)),
        ("realtime", real_time),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// `-h`: rows of all latencies with the count of each thread, then minima, means, maxima and
/// overflows. Comments before the histogram map threads to series.
pub(crate) fn write_histogram(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let all: Vec<(&str, &Series)> = bundle.series().collect();
    for (k, (phase, series)) in all.iter().enumerate() {
        writeln!(out, "# Column {k} is {}", crate::format::plain(&full_name(phase, series)))?;
    }
    if let Some(mark) = bundle.timebase().mark() {
        writeln!(out, "# {mark}")?;
    }
    writeln!(out, "# Histogram")?;
    let bins: Vec<Vec<(u64, u64)>> = all
        .iter()
        .map(|(_, s)| {
            with_negative(micros::occupied(&s.state.data.exact), s.state.data.exact.below)
        })
        .collect();
    let rows = rows(&all, &bins);
    let end = rows.last().map_or(0, |last| last + 1);
    let in_rows =
        |k: usize| bins[k].iter().filter(|(us, _)| *us < end).map(|(_, n)| n).sum::<u64>();
    let mut next: Vec<_> = bins.iter().map(|bins| bins.iter().copied().peekable()).collect();
    for us in rows {
        let count = |bins: &mut std::iter::Peekable<_>| {
            bins.next_if(|(bin, _)| *bin == us).map_or(0, |(_, n): (u64, u64)| n)
        };
        let counts: Vec<String> =
            next.iter_mut().map(|bins| format!("{:06}", count(bins))).collect();
        writeln!(out, "{us:06} {}", counts.join("\t"))?;
    }
    let line = |out: &mut dyn Write, name: &str, number: &dyn Fn(usize, &Series) -> String| {
        let numbers: Vec<String> =
            all.iter().enumerate().map(|(k, (_, series))| number(k, series)).collect();
        writeln!(out, "# {name}: {}", numbers.join(" "))
    };
    let whole = |latency: Option<Nanos>| format!("{:05}", latency.map_or(0, micros::whole));
    line(out, "Total", &|k, _| format!("{:09}", in_rows(k)))?;
    line(out, "Min Latencies", &|_, s| whole(s.state.data.min))?;
    line(out, "Avg Latencies", &|_, s| whole(s.state.data.mean().map(|mean| Nanos(mean as i64))))?;
    line(out, "Max Latencies", &|_, s| whole(s.state.data.max))?;
    line(out, "Histogram Overflows", &|k, s| format!("{:05}", overflows(s, in_rows(k))))?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    let in_ns = Nanos(i64::try_from(end.saturating_mul(1_000)).unwrap_or(i64::MAX));
    for (k, (_, series)) in all.iter().enumerate() {
        writeln!(out, "# Thread {k}:{}", overflowed(series, in_ns, overflows(series, in_rows(k))))?;
    }
    Ok(())
}

/// The latencies in µs that have a row: all of the longest histogram, and the non-empty ones of the
/// others. cyclictest has one range for all threads and counts overflows beyond it: if series have
/// overflows, the shortest range of those applies to all.
fn rows(all: &[(&str, &Series)], bins: &[Vec<(u64, u64)>]) -> Vec<u64> {
    let exact = || all.iter().map(|(_, series)| &series.state.data.exact);
    let longest = exact().max_by_key(|exact| exact.bins.len());
    let mut rows: Vec<u64> = longest.into_iter().flat_map(micros::rows).collect();
    rows.extend(bins.iter().flatten().map(|(us, _)| us));
    rows.sort_unstable();
    rows.dedup();
    let end = exact().filter(|exact| exact.above > 0).map(|exact| micros::whole(exact.end())).min();
    rows.retain(|us| end.is_none_or(|end| *us < end));
    rows
}

/// The bins with negative latencies counted as 0.
pub(super) fn with_negative(mut bins: Vec<(u64, u64)>, below: u64) -> Vec<(u64, u64)> {
    match bins.first_mut().filter(|(first, _)| *first == 0) {
        Some((_, count)) => *count += below,
        None if below > 0 => bins.insert(0, (0, below)),
        None => {}
    }
    bins
}

/// Cycles without a row, also those of a source without a histogram.
pub(super) fn overflows(series: &Series, in_rows: u64) -> u64 {
    series.state.data.count().saturating_sub(in_rows)
}

/// The known numbers of cycles from `end` on, and how many others there are.
pub(super) fn overflowed(series: &Series, end: Nanos, all: u64) -> String {
    let beyond = |sample: &&Sample| sample.latency() >= end;
    let mut cycles: Vec<u64> =
        series.state.data.worst.iter().filter(beyond).map(|sample| sample.seq).collect();
    cycles.sort_unstable();
    let mut text: String = cycles.iter().map(|cycle| format!(" {cycle:05}")).collect();
    let others = all.saturating_sub(cycles.len() as u64);
    if others > 0 {
        text += &format!(" # {others:05} others");
    }
    text
}
