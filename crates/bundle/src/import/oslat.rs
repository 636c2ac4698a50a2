//! The output of oslat: gaps of a busy loop, in bins named by their upper edge. The last bin also
//! holds all longer gaps.
//!
//! Up to rt-tests 2.4, its minimum and maximum are upper edges like the names of the bins; later
//! they are truncated to whole units (src/oslat/oslat.c of both). The figures kept are lower edges,
//! as everywhere.

use super::recorded::{ImportedFile, Thread};
use super::scan::{
    MAX_COUNT, MAX_LATENCY, check_bin, check_bound, clip_text, common_divisor, read_cpu,
    read_number, read_priority, read_thousandths, refuse_second_run, scan_lines,
};
use super::{Malformed, TextReader, Tool};
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;
use std::mem::replace;

pub(super) const READER: TextReader = TextReader {
    what: "text of oslat",
    recognize: |text| is_oslat_text(text).then_some(Tool::Oslat),
    parse: |text, _, _| parse(text),
    may_lack_unit: false,
};

/// A thread as stated by oslat, times in ns.
#[derive(Debug, Default, Clone)]
pub struct OslatThread {
    /// The CPU; none if the file does not state it.
    pub cpu: Option<u32>,
    /// Upper edges and counts, ascending.
    pub bins: Vec<(u64, u64)>,
    pub min: u64,
    pub mean: f64,
    pub max: u64,
}

/// The properties that all threads share.
#[derive(Debug, Default)]
pub(crate) struct CommonProperties {
    /// The version of rt-tests: `2.40`.
    pub version: String,
    /// The width of a bin in ns.
    pub width: u64,
    /// Priority of SCHED_FIFO; 0 without.
    pub priority: Option<u8>,
}

impl CommonProperties {
    /// Whether minimum and maximum are upper edges.
    fn rounds_up(&self, stated: &OslatThread) -> bool {
        match self.version.trim().parse::<f64>() {
            Ok(version) => version < 2.45,
            // Then the first non-empty bin has the minimum's name.
            Err(_) => stated
                .bins
                .iter()
                .find(|(_, n)| *n > 0)
                .is_some_and(|(edge, _)| *edge == stated.min),
        }
    }

    /// Adds the threads to the recording.
    pub fn add_threads(
        &self,
        threads: Vec<OslatThread>,
        into: &mut ImportedFile,
    ) -> Result<(), Malformed> {
        // Whole microseconds are kept as such.
        let unit = if self.width.is_multiple_of(1_000) { 1_000 } else { 1 };
        into.unit = Nanos(unit as i64);
        into.step = self.width / unit;
        for (index, stated) in threads.into_iter().enumerate() {
            into.threads.push(self.build_thread(index, &stated, unit)?);
        }
        Ok(())
    }

    fn build_thread(
        &self,
        index: usize,
        stated: &OslatThread,
        unit: u64,
    ) -> Result<Thread, Malformed> {
        let up = if self.rounds_up(stated) { unit } else { 0 };
        let max = stated.max.saturating_sub(up);
        let mut bins = Vec::new();
        for (edge, count) in &stated.bins {
            let lower = edge.saturating_sub(self.width) / unit;
            bins.push((check_bin(lower)?, check_bound(*count, MAX_COUNT, "the count")?));
        }
        let range = bins.last().map(|(lower, _)| lower * unit / self.width);
        // Gaps longer than the last bin's upper edge are counted in it.
        let beyond = stated.bins.last().filter(|(edge, _)| max >= *edge).and_then(|_| bins.pop());
        bins.retain(|(_, count)| *count > 0);
        Ok(Thread {
            index,
            cpu: stated.cpu,
            priority: self.priority,
            bins,
            range: range.map(|range| if beyond.is_some() { range.max(1) } else { range + 1 }),
            overflows: beyond.map_or(0, |(_, count)| count),
            min: stated.min.saturating_sub(up) / unit,
            // The stated mean is that of upper edges.
            mean: (stated.mean - self.width as f64).max(0.0) / unit as f64,
            max: max / unit,
            ..Thread::default()
        })
    }
}

/// Whether the text is oslat's.
fn is_oslat_text(text: &str) -> bool {
    text.lines()
        .map(str::trim_start)
        .any(|line| line.starts_with("oslat V ") || line.starts_with("Counter Freq:"))
}

fn parse(text: &str) -> Result<ImportedFile, Malformed> {
    let mut common = CommonProperties::default();
    let mut threads: Vec<OslatThread> = Vec::new();
    let (mut edges, mut stated, mut duration) = (Vec::new(), 0, None);
    let lines = scan_lines(text, |line| {
        let line = line.trim_start();
        if let Some(version) = line.strip_prefix("oslat V ") {
            let before = replace(&mut common.version, version.trim().to_owned());
            refuse_second_run(!before.is_empty())?;
        }
        if let Some(priority) = line.strip_prefix("Thread priority:") {
            let fifo = priority.trim().strip_prefix("SCHED_FIFO:");
            common.priority = fifo.map_or(Some(0), read_priority);
        }
        let Some((name, rest)) = line.split_once(":\t") else { return Ok(()) };
        let rest = rest.split(" (").next().unwrap_or(rest);
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let name = name.trim();
        let check_number = |what: &str, threads: usize| match words.len() == threads {
            true => Ok(()),
            false => Err(format!("{} numbers of {what} for {threads} threads", words.len())),
        };
        if name == "Core" {
            refuse_second_run(!threads.is_empty())?;
            if words.is_empty() || words.len() > MAX_CPUS {
                return Err("the threads of this file are not one list of CPUs".into());
            }
            let thread =
                |word: &&str| OslatThread { cpu: read_cpu(word), ..OslatThread::default() };
            threads = words.iter().map(thread).collect();
        } else if let Some(edge) = name.strip_suffix(" (us)").and_then(read_thousandths) {
            check_number("a bin", threads.len())?;
            if edges.last().is_some_and(|before| *before >= edge) {
                return Err(format!("the bin {name} comes twice or out of order").into());
            }
            edges.push(edge);
            for (thread, word) in threads.iter_mut().zip(&words) {
                thread.bins.push((edge, read_number(word)?));
            }
        } else if ["Minimum", "Average", "Maximum"].contains(&name) {
            check_number(name, threads.len())?;
            for (thread, word) in threads.iter_mut().zip(&words) {
                set_figure(thread, name, word)?;
            }
            stated += 1;
        } else if name == "Duration" {
            let ms = words.first().and_then(|word| read_thousandths(word));
            duration = ms.map(|ms| Nanos(ms as i64 * 1_000_000));
        }
        Ok(())
    })?;
    if stated < 3 || threads.is_empty() {
        let reason = "oslat printed no figures: it was stopped (-T does that) or cut off";
        return Err(Malformed::with_line(lines, reason));
    }
    common.width = edges.windows(2).fold(0, |width, pair| common_divisor(width, pair[1] - pair[0]));
    if common.width == 0 {
        common.width = 1_000;
    }
    let mut recorded = ImportedFile::new(Tool::Oslat, "oslat text");
    recorded.duration = duration;
    if !common.version.is_empty() {
        recorded.details.insert("rt_tests_version".into(), common.version.clone());
    }
    common.add_threads(threads, &mut recorded)?;
    Ok(recorded)
}

/// A figure of a thread: µs with up to three decimals.
fn set_figure(thread: &mut OslatThread, name: &str, word: &str) -> Result<(), String> {
    if name == "Average" {
        // Without a gap the mean is 0/0.
        let mean: f64 = word.parse().unwrap_or(0.0);
        thread.mean =
            if mean.is_finite() { mean.clamp(0.0, MAX_LATENCY as f64) * 1_000.0 } else { 0.0 };
        return Ok(());
    }
    let ns = read_thousandths(word).filter(|ns| *ns <= MAX_LATENCY * 1_000);
    let ns = ns.ok_or_else(|| format!("{:?} is not a time in us", clip_text(word, 40)))?;
    match name {
        "Minimum" => thread.min = ns,
        _ => thread.max = ns,
    }
    Ok(())
}
