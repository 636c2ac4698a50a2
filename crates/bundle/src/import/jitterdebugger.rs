//! The files of jitterdebugger: `results.json` with a histogram per thread, and `samples.raw` with
//! every sample (jitterdebugger.c, dump_stats and store_file). Its status lines are read with those
//! of cyclictest, whose latencies it measures.
//!
//! Both files number threads, not CPUs. A thread's CPU is known only without a chosen affinity and
//! without offline CPUs, which is not recorded; it is omitted.

use super::json::{self, ImportedBins};
use super::recorded::{ImportedFile, Thread, file_note};
use super::scan::{MAX_COUNT, MAX_LATENCY, check_bound, refuse_second_run};
use super::{Malformed, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos};
use serde::Deserialize;
use std::collections::BTreeMap;

/// `results.json`; `version` is 1 to 3, and missing before 0.2.
#[derive(Deserialize)]
struct JitterdebuggerDocument {
    #[serde(default)]
    sysinfo: BTreeMap<String, serde_json::Value>,
    cpu: BTreeMap<String, CpuDocument>,
}

#[derive(Deserialize)]
struct CpuDocument {
    #[serde(default)]
    histogram: ImportedBins,
    count: u64,
    min: u64,
    max: u64,
    /// `-nan` without a cycle, replaced by `null` before this is read.
    avg: Option<f64>,
}

/// Reads `results.json`.
pub(crate) fn parse_results(text: &str) -> Result<ImportedFile, Malformed> {
    let document: JitterdebuggerDocument = json::read(text)?;
    let mut into = ImportedFile::new(Tool::Jitterdebugger, "jitterdebugger results.json");
    let unit = document.sysinfo.get("resolution_in_ns").and_then(serde_json::Value::as_u64);
    into.unit = match unit {
        None | Some(1_000) => Nanos::MICRO,
        Some(1) => Nanos(1),
        Some(other) => {
            return Err(format!("a resolution of {other} ns is not known").into());
        }
    };
    for (key, value) in document.sysinfo {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        into.details.insert(format!("system_{key}"), value);
    }
    // One bin per unit below a millisecond.
    let range = (1_000_000 / into.unit.ns()) as u64;
    for (key, thread) in document.cpu {
        let wrong = |defect: Malformed| format!("thread {}: {}", key.escape_debug(), defect.why);
        into.threads.push(thread.read(&key, range).map_err(wrong)?);
    }
    // Keys are texts: "10" sorts before "2".
    into.threads.sort_by_key(|thread| thread.index);
    Ok(into)
}

impl CpuDocument {
    fn read(self, key: &str, range: u64) -> Result<Thread, Malformed> {
        let index = key.parse().ok().filter(|index| *index < MAX_CPUS);
        let index = index.ok_or("it has no index")?;
        let cycles = check_bound(self.count, MAX_COUNT, "the count")?;
        let bins = self.histogram.into_whole_bins()?;
        let inside: u64 = bins.iter().map(|(_, count)| count).sum();
        let overflows = cycles.checked_sub(inside);
        let overflows = overflows
            .ok_or_else(|| format!("{inside} in its histogram, but only {cycles} in all"))?;
        let thread = fifo_thread(index);
        if cycles == 0 {
            return Ok(thread);
        }
        let (min, max) = (
            check_bound(self.min, MAX_LATENCY, "min")?,
            check_bound(self.max, MAX_LATENCY, "max")?,
        );
        let mean = self.avg.filter(|mean| (0.0..=MAX_LATENCY as f64).contains(mean));
        let mean = mean.ok_or("its mean is not plausible")?;
        Ok(Thread { bins, range: Some(range), overflows, min, mean, max, ..thread })
    }
}

/// The storing thread ends with the measurement and drops what its rings still hold (store_file).
fn last_missing() -> Finding {
    let message = "jitterdebugger stores no sample of its last moment: the newest ones are missing";
    file_note("last-samples-missing", message)
        .with_evidence("samples.raw; results.json of the same run counts all")
        .with_remedy("import results.json where the largest latency matters")
}

/// jitterdebugger creates SCHED_FIFO threads of unrecorded priority, and fails without permission.
fn fifo_thread(index: usize) -> Thread {
    Thread { index, policy: Some("fifo".into()), ..Thread::default() }
}

/// A sample: `struct latency_sample`, packed. `timespec` has two fields of 8 bytes on 64-bit
/// systems, and of 4 on 32-bit systems with times of that size.
#[derive(Clone, Copy)]
struct JitterdebuggerSample {
    thread: usize,
    /// The wake-up time on CLOCK_MONOTONIC.
    at: u64,
    value: u64,
}

const SIZES: [usize; 2] = [28, 20];
/// The number of records that decide whether a file holds samples.
const TRIED: usize = 64;
/// The maximum plausible uptime.
const MAX_SECONDS: u64 = 1 << 32;

impl JitterdebuggerSample {
    fn read(record: &[u8]) -> Option<JitterdebuggerSample> {
        let (head, rest) = record.split_first_chunk::<4>()?;
        let (seconds, nanoseconds, rest) = match record.len() {
            28 => {
                let (seconds, rest) = rest.split_first_chunk::<8>()?;
                let (fraction, rest) = rest.split_first_chunk::<8>()?;
                (u64::from_le_bytes(*seconds), u64::from_le_bytes(*fraction), rest)
            }
            _ => {
                let (seconds, rest) = rest.split_first_chunk::<4>()?;
                let (fraction, rest) = rest.split_first_chunk::<4>()?;
                (u32::from_le_bytes(*seconds).into(), u32::from_le_bytes(*fraction).into(), rest)
            }
        };
        let value = u64::from_le_bytes(*rest.first_chunk::<8>()?);
        let thread = u32::from_le_bytes(*head) as usize;
        let plausible = thread < MAX_CPUS
            && seconds < MAX_SECONDS
            && nanoseconds < 1_000_000_000
            && value <= MAX_LATENCY;
        plausible.then(|| JitterdebuggerSample {
            thread,
            at: seconds * 1_000_000_000 + nanoseconds,
            value,
        })
    }
}

/// The size of a record, if the bytes are samples: the first ones all have plausible values, and
/// the time of each thread increases. A text has no such size.
pub(crate) fn record_size(bytes: &[u8]) -> Option<usize> {
    let is_of = |size: &usize| {
        let first: Vec<&[u8]> = bytes.chunks_exact(*size).take(TRIED).collect();
        let read: Option<Vec<JitterdebuggerSample>> =
            first.iter().map(|record| JitterdebuggerSample::read(record)).collect();
        let mut last = BTreeMap::new();
        let goes_on = |sample: &JitterdebuggerSample| {
            last.insert(sample.thread, sample.at).is_none_or(|before| before < sample.at)
        };
        !first.is_empty() && read.is_some_and(|samples| samples.iter().all(goes_on))
    };
    // The upper bytes of a thread's number are 0, which no text contains.
    let binary = bytes.get(..4).is_some_and(|head| head[2..] == [0, 0]);
    SIZES.into_iter().find(|size| binary && is_of(size))
}

/// Reads `samples.raw`.
pub(crate) fn parse_samples(
    bytes: &[u8],
    size: usize,
    nanoseconds: bool,
) -> Result<ImportedFile, Malformed> {
    let mut into = ImportedFile::new(Tool::Jitterdebugger, "jitterdebugger samples.raw");
    into.unit = if nanoseconds { Nanos(1) } else { Nanos::MICRO };
    let records = bytes.chunks_exact(size);
    if !records.remainder().is_empty() {
        return Err("it ends within a sample: it was cut off".into());
    }
    let mut values: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let mut last = BTreeMap::new();
    let (mut first_of_all, mut last_of_all) = (u64::MAX, 0);
    for (place, record) in records.enumerate() {
        let sample = JitterdebuggerSample::read(record);
        let sample =
            sample.ok_or_else(|| format!("what stands at byte {} is no sample", place * size))?;
        let before = last.insert(sample.thread, sample.at);
        refuse_second_run(before.is_some_and(|before| before >= sample.at))
            .map_err(|defect| format!("byte {}: {}", place * size, defect.why))?;
        (first_of_all, last_of_all) = (first_of_all.min(sample.at), last_of_all.max(sample.at));
        values.entry(sample.thread).or_default().push(sample.value);
    }
    into.findings.push(last_missing());
    into.duration = i64::try_from(last_of_all.saturating_sub(first_of_all)).ok().map(Nanos);
    for (index, values) in values {
        into.threads
            .push(Thread { policy: fifo_thread(index).policy, ..Thread::of_values(index, values) });
    }
    Ok(into)
}
