//! `--json` of the rt-tests tools, file_version 1 (src/lib/rt-utils.c, and each tool's
//! `write_stats`).

use super::cmdline::{self, CommandLineOptions};
use super::oslat::{CommonProperties, OslatThread};
use super::recorded::{ImportedFile, Thread};
use super::scan::{MAX_COUNT, MAX_LATENCY, check_bin, check_bound, read_thousandths};
use super::{Malformed, Tool, tool};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Deserialize)]
struct ImportedDocument {
    file_version: u64,
    /// The key ends in a colon in every version so far.
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    cmdline: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    rt_test_version: String,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    end_time: String,
    #[serde(default)]
    return_code: i64,
    #[serde(default)]
    sysinfo: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    resolution_in_ns: u64,
    thread: Option<JsonThreads>,
}

/// A thread of any tool: the keys depend on the tool.
#[derive(Deserialize)]
struct ThreadDocument {
    #[serde(default)]
    histogram: ImportedBins,
    cycles: Option<u64>,
    #[serde(flatten)]
    figures: ImportedFigures,
    cpu: Option<i64>,
    node: Option<i64>,
}

/// Meaningless without cycles, and possibly negative.
#[derive(Deserialize, Clone, Copy)]
struct ImportedFigures {
    min: Option<i64>,
    max: Option<i64>,
    avg: Option<f64>,
}

/// The threads by key, preserving repeated keys.
struct JsonThreads(Vec<(String, ThreadDocument)>);

impl<'de> Deserialize<'de> for JsonThreads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonThreads, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = JsonThreads;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with a thread under each index")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonThreads, A::Error> {
                let mut threads = Vec::new();
                while let Some(thread) = map.next_entry()? {
                    threads.push(thread);
                }
                Ok(JsonThreads(threads))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A histogram: ascending latencies in thousandths of the unit, each with its count. Checked entry
/// by entry, so that a hostile file takes little memory.
#[derive(Default)]
pub(crate) struct ImportedBins(Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for ImportedBins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ImportedBins, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = ImportedBins;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with a count under each latency")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ImportedBins, A::Error> {
                let mut bins: Vec<(u64, u64)> = Vec::new();
                while let Some((key, count)) = map.next_entry::<Cow<str>, u64>()? {
                    let wrong = |why: &str| A::Error::custom(format!("{key:?} {why}"));
                    let latency =
                        read_thousandths(&key).ok_or_else(|| wrong("is not a latency"))?;
                    check_bin(latency / 1_000)
                        .and(check_bound(count, MAX_COUNT, "the count"))
                        .map_err(|malformed| A::Error::custom(malformed.why))?;
                    if bins.last().is_some_and(|(before, _)| *before >= latency) {
                        return Err(wrong("comes twice or out of order"));
                    }
                    bins.push((latency, count));
                }
                Ok(ImportedBins(bins))
            }
        }
        deserializer.deserialize_map(All)
    }
}

impl ImportedBins {
    /// The non-empty bins, with latencies in whole units.
    pub(crate) fn into_whole_bins(self) -> Result<Vec<(u64, u64)>, Malformed> {
        let mut bins = self.0;
        if bins.iter().any(|(latency, _)| latency % 1_000 != 0) {
            return Err("a latency of its histogram is not a whole number".into());
        }
        bins.iter_mut().for_each(|(latency, _)| *latency /= 1_000);
        bins.retain(|(_, count)| *count > 0);
        Ok(bins)
    }
}

/// Reads a document after repairing known errors of the tools.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Malformed> {
    let place = |e: serde_json::Error| {
        let reason = match e.to_string().starts_with("trailing characters") {
            true => "a second document begins here: give one run at a time".to_owned(),
            false => format!("column {}: {e}", e.column()),
        };
        Malformed::with_line(e.line(), reason)
    };
    match serde_json::from_str(text) {
        Ok(document) => Ok(document),
        Err(error) => match repair_text(text) {
            Some(repaired) => serde_json::from_str(&repaired).map_err(place),
            None => Err(place(error)),
        },
    }
}

/// Reads the file. The tool is that of its command line, else `from`.
pub fn parse(text: &str, from: Option<Tool>) -> Result<ImportedFile, Malformed> {
    let document: ImportedDocument = read(text)?;
    if document.file_version != 1 {
        return Err(format!("its file_version is {}; known is 1", document.file_version).into());
    }
    let tool = document.tool_of_document(from)?;
    document.into_file(text, tool)
}

/// The text with the tools' two errors repaired: an unescaped command line, and means that are not
/// a number (0/0).
fn repair_text(text: &str) -> Option<String> {
    let escaped = escape_cmdline(text);
    let numbers = null_means(escaped.as_deref().unwrap_or(text));
    numbers.or(escaped)
}

/// The command line ends at the quote and comma before the next key.
fn escape_cmdline(text: &str) -> Option<String> {
    const KEY: &str = "\"cmdline:\": \"";
    let start = text.find(KEY)? + KEY.len();
    let next = start + text[start..].find("\"rt_test_version:\"")?;
    let end = start + text[start..next].rfind("\",")?;
    let escaped = serde_json::to_string(&text[start..end]).ok()?;
    Some(format!("{}{escaped}{}", &text[..start - 1], &text[end + 1..]))
}

/// printf(3) prints 0/0 as `"avg": -nan`: a thread without a cycle.
fn null_means(text: &str) -> Option<String> {
    const KEY: &str = "\"avg\":";
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(KEY) {
        let (before, value) = rest.split_at(at + KEY.len());
        repaired.push_str(before);
        let bare = value.trim_start_matches(' ');
        let word = bare.strip_prefix('-').unwrap_or(bare);
        rest = match word.strip_prefix("nan").or_else(|| word.strip_prefix("inf")) {
            Some(after) => {
                repaired.push_str(" null");
                after
            }
            None => value,
        };
    }
    repaired.push_str(rest);
    (repaired != text).then_some(repaired)
}

/// The line where a thread's object begins. Only computed for errors, as it reads the whole text.
fn line_of(text: &str, key: &str) -> usize {
    let begin = text.find("\"thread\"").unwrap_or(0);
    let at = text[begin..].find(&format!("\"{key}\"")).map_or(begin, |at| begin + at);
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

impl ImportedDocument {
    fn tool_of_document(&self, from: Option<Tool>) -> Result<Tool, Malformed> {
        let program = cmdline::program_name(&self.cmdline);
        // Exports of punctual have the layout of cyclictest, and some users rename the program.
        match (Tool::from_name(program), from) {
            (Some(named), Some(from)) if named != from => {
                let from = from.name();
                Err(format!("its command line is one of {program}, not of {from}").into())
            }
            (Some(named), _) => Ok(named),
            (None, Some(from)) => Ok(from),
            (None, None) if program.is_empty() || program == "punctual" => Ok(Tool::Cyclictest),
            (None, None) => {
                let known_tools = tool::all_names();
                let reason = match self.thread {
                    None => format!("keeps no latencies of threads; known tools are {known_tools}"),
                    Some(_) => {
                        format!("is not a known tool ({known_tools}); --from names what wrote it")
                    }
                };
                Err(format!("{program:?} {reason}").into())
            }
        }
    }

    fn into_file(self, text: &str, tool: Tool) -> Result<ImportedFile, Malformed> {
        let mut options = cmdline::read(tool, &self.cmdline);
        // Without -p and --policy, cyclictest creates threads that are not real-time.
        if cmdline::program_name(&self.cmdline) == "cyclictest" && options.policy.is_none() {
            options.priority = options.priority.or(Some(0));
        }
        let mut into = ImportedFile::new(tool, source_name(tool));
        into.details =
            [("command_line", self.cmdline), ("rt_tests_version", self.rt_test_version.clone())]
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
        for (key, value) in self.sysinfo {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            into.details.insert(format!("system_{key}"), value);
        }
        let instant = |text: &str| rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
        into.times = instant(&self.start_time)
            .zip(instant(&self.end_time))
            .filter(|(start, end): &(Timestamp, _)| start <= end);
        into.failed = Some(self.return_code).filter(|code| *code != 0);
        into.clock = options.clock.unwrap_or_default();
        into.unit = if self.resolution_in_ns == 0 { Nanos::MICRO } else { Nanos(1) };
        let threads = self.thread.ok_or("there is no `thread` in it")?.0;
        let mut gaps = Vec::new();
        for (key, thread) in threads {
            let place = |wrong: Malformed| Malformed {
                line: line_of(text, &key),
                why: format!("thread {}: {}", key.escape_debug(), wrong.why),
            };
            let index = key.parse().ok().filter(|index| *index < MAX_CPUS);
            let index = index.ok_or_else(|| place("it has no index".into()))?;
            let next = into.threads.last().map_or(0, |before| before.index + 1).max(gaps.len());
            if index < next {
                let reason = format!("thread {key} comes twice or out of order");
                return Err(Malformed::with_line(line_of(text, &key), reason));
            }
            match tool {
                Tool::Oslat => gaps.push(thread.into_oslat_thread(&options).map_err(place)?),
                _ => into.threads.push(thread.into_thread(index, &options).map_err(place)?),
            }
        }
        if tool == Tool::Oslat {
            let width = options.width.unwrap_or(1_000);
            let priority = options.priority.or(Some(0));
            CommonProperties { version: self.rt_test_version, width, priority }
                .add_threads(gaps, &mut into)?;
        }
        if tool.can_break_run() {
            // The file shows it only in the command line, as the exit code is still 0.
            into.stop_above(options.breaktrace);
        }
        Ok(into)
    }
}

fn source_name(tool: Tool) -> &'static str {
    match tool {
        Tool::Cyclicdeadline => "cyclicdeadline --json",
        Tool::Oslat => "oslat --json",
        _ => "cyclictest --json",
    }
}

fn valid_cpu(cpu: Option<i64>) -> Option<u32> {
    cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|cpu| (*cpu as usize) < MAX_CPUS)
}

fn format_absent(what: &str) -> String {
    format!("it has no `{what}`")
}

impl ImportedFigures {
    /// Minimum, mean and maximum of `cycles` cycles.
    fn min_mean_max(self, cycles: u64) -> Result<(u64, f64, u64), Malformed> {
        if cycles == 0 {
            return Ok((0, 0.0, 0));
        }
        let whole = |value: Option<i64>, key: &str, what: &str| {
            let value = u64::try_from(value.ok_or_else(|| format_absent(key))?);
            let value = value.map_err(|_| format!("{what} is negative"))?;
            check_bound(value, MAX_LATENCY, what)
        };
        let (min, max) =
            (whole(self.min, "min", "the minimum")?, whole(self.max, "max", "the maximum")?);
        let mean = self.avg.ok_or_else(|| format_absent("avg"))?;
        if !(0.0..=MAX_LATENCY as f64).contains(&mean) {
            return Err("its mean is implausible".into());
        }
        Ok((min, mean, max))
    }
}

/// Errors here name neither the thread nor its line.
impl ThreadDocument {
    /// A thread of cyclictest or cyclicdeadline.
    fn into_thread(self, index: usize, options: &CommandLineOptions) -> Result<Thread, Malformed> {
        let bins = self.histogram.into_whole_bins()?;
        let cycles = self.cycles.ok_or_else(|| format_absent("cycles"))?;
        check_bound(cycles, MAX_COUNT, "the count of cycles")?;
        let inside: u64 = bins.iter().map(|(_, n)| n).sum();
        let beyond = cycles.checked_sub(inside);
        let beyond = beyond
            .ok_or_else(|| format!("{inside} cycles in its histogram, but only {cycles} in all"))?;
        // Without a histogram option there are no bins; with one, cycles in no bin lay beyond.
        let (overflows, undistributed) =
            if inside > 0 || options.range.is_some() { (beyond, 0) } else { (0, beyond) };
        let details = self.node.map(|node| ("numa_node".to_owned(), node.to_string()));
        let (min, mean, max) = self.figures.min_mean_max(cycles)?;
        Ok(Thread {
            index,
            cpu: valid_cpu(self.cpu),
            priority: options.priority,
            policy: options.policy.clone(),
            bins,
            range: options.range,
            overflows,
            undistributed,
            min,
            mean,
            max,
            details: details.into_iter().collect(),
            ..Thread::default()
        })
    }

    /// A thread of oslat. Minimum and maximum are in the unit of the bins: ns if those are not
    /// whole µs.
    fn into_oslat_thread(self, options: &CommandLineOptions) -> Result<OslatThread, Malformed> {
        let fine = options.width.is_some_and(|width| width % 1_000 != 0);
        let count = self.histogram.0.iter().map(|(_, count)| count).sum();
        let (min, mean, max) = self.figures.min_mean_max(count)?;
        let unit = if fine { 1 } else { 1_000 };
        Ok(OslatThread {
            cpu: valid_cpu(self.cpu),
            bins: self.histogram.0,
            min: min * unit,
            mean: mean * 1_000.0,
            max: max * unit,
        })
    }
}
