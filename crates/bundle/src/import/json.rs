//! cyclictest's `--json`, file_version 1 (rt-tests, src/lib/rt-utils.c and src/cyclictest/cyclictest.c).

use super::Malformed;
use super::cmdline;
use super::recorded::{self, MAX_COUNT, MAX_LATENCY, Recorded, Thread};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Deserialize)]
struct Document {
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
    thread: Threads,
}

#[derive(Deserialize)]
struct ThreadDocument {
    #[serde(default)]
    histogram: Bins,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    cpu: Option<i64>,
    node: Option<i64>,
}

/// The threads by their key, none lost where a key comes twice.
struct Threads(Vec<(String, ThreadDocument)>);

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Threads, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Threads;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with a thread under each index")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Threads, A::Error> {
                let mut threads = Vec::new();
                while let Some(thread) = map.next_entry()? {
                    threads.push(thread);
                }
                Ok(Threads(threads))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A histogram: latencies ascending, each with its count. Checked entry by entry, so that a hostile file takes little memory.
#[derive(Default)]
struct Bins(Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bins, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Bins;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with a count under each latency")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bins, A::Error> {
                let mut bins: Vec<(u64, u64)> = Vec::new();
                while let Some((key, count)) = map.next_entry::<Cow<str>, u64>()? {
                    let wrong = |why: String| A::Error::custom(format!("{key:?} {why}"));
                    let latency = key.parse().map_err(|_| wrong("is not a latency".into()))?;
                    let bounded = recorded::bin(latency, 0).and(recorded::bounded(count, MAX_COUNT, "the count", 0));
                    bounded.map_err(|malformed| A::Error::custom(malformed.why))?;
                    if bins.last().is_some_and(|(before, _)| *before >= latency) {
                        return Err(wrong("comes twice or out of order".into()));
                    }
                    bins.push((latency, count));
                }
                bins.retain(|(_, count)| *count > 0);
                Ok(Bins(bins))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Reads the file.
pub fn parse(text: &str) -> Result<Recorded, Malformed> {
    let document: Document = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => {
            let place = |e: serde_json::Error| Malformed::at(e.line(), format!("column {}: {e}", e.column()));
            let Some(repaired) = repair(text) else { return Err(place(error)) };
            serde_json::from_str(&repaired).map_err(place)?
        }
    };
    if document.file_version != 1 {
        return Err(Malformed::at(1, format!("its file_version is {}; known is 1", document.file_version)));
    }
    let recorded = document.recorded(text)?;
    recorded.check_size()?;
    Ok(recorded)
}

/// The text with the command line escaped, which cyclictest leaves undone: it runs up to the quote and comma before the next key.
fn repair(text: &str) -> Option<String> {
    const KEY: &str = "\"cmdline:\": \"";
    let start = text.find(KEY)? + KEY.len();
    let next = start + text[start..].find("\"rt_test_version:\"")?;
    let end = start + text[start..next].rfind("\",")?;
    let escaped = serde_json::to_string(&text[start..end]).ok()?;
    Some(format!("{}{escaped}{}", &text[..start - 1], &text[end + 1..]))
}

/// Where a thread's object begins. Its place is looked for only when something is wrong with it, as that reads the whole text.
fn line_of(text: &str, key: &str) -> usize {
    let begin = text.find("\"thread\"").unwrap_or(0);
    let at = text[begin..].find(&format!("\"{key}\"")).map_or(begin, |at| begin + at);
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

impl Document {
    fn recorded(self, text: &str) -> Result<Recorded, Malformed> {
        let options = cmdline::read(&self.cmdline);
        let mut details: BTreeMap<String, String> = [
            ("source", "cyclictest --json".to_owned()),
            ("command_line", self.cmdline),
            ("rt_tests_version", self.rt_test_version),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
        for (key, value) in self.sysinfo {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            details.insert(format!("system_{key}"), value);
        }
        let instant = |text: &str| rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
        let mut threads = Vec::new();
        for (key, thread) in self.thread.0 {
            let place = |wrong: Malformed| Malformed { line: line_of(text, &key), ..wrong };
            let thread = thread.recorded(&key, &options).map_err(place)?;
            if threads.last().is_some_and(|before: &Thread| before.index >= thread.index) {
                return Err(place(Malformed::at(0, format!("thread {} comes twice or out of order", thread.index))));
            }
            threads.push(thread);
        }
        Ok(Recorded {
            unit: if self.resolution_in_ns == 0 { Nanos::MICRO } else { Nanos(1) },
            threads,
            times: instant(&self.start_time)
                .zip(instant(&self.end_time))
                .filter(|(start, end): &(Timestamp, _)| start <= end),
            stopped: None,
            failed: Some(self.return_code).filter(|code| *code != 0),
            clock: options.clock.unwrap_or_default(),
            details,
        })
    }
}

impl ThreadDocument {
    /// Errors name no line.
    fn recorded(self, key: &str, options: &cmdline::Options) -> Result<Thread, Malformed> {
        let wrong = |why: String| Malformed::at(0, format!("thread {}: {why}", key.escape_debug()));
        let index =
            key.parse().ok().filter(|index| *index < MAX_CPUS).ok_or_else(|| wrong("it has no index".into()))?;
        let bins = self.histogram.0;
        let cycles = recorded::bounded(self.cycles, MAX_COUNT, "the count of cycles", 0)?;
        let inside: u64 = bins.iter().map(|(_, n)| n).sum();
        let beyond = cycles.checked_sub(inside);
        let beyond =
            beyond.ok_or_else(|| wrong(format!("{inside} cycles in its histogram, but only {cycles} in all")))?;
        // Without a histogram option there are no bins at all; with one, what is in none of them lay beyond.
        let (overflows, undistributed) = if inside > 0 || options.range.is_some() { (beyond, 0) } else { (0, beyond) };
        let details = self.node.map(|node| ("numa_node".to_owned(), node.to_string()));
        Ok(Thread {
            index,
            cpu: self.cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|cpu| (*cpu as usize) < MAX_CPUS),
            priority: options.priority,
            policy: options.policy.clone(),
            bins,
            range: options.range,
            overflows,
            undistributed,
            min: recorded::bounded(self.min, MAX_LATENCY, "the minimum", 0)?,
            mean: if (0.0..=MAX_LATENCY as f64).contains(&self.avg) {
                self.avg
            } else {
                return Err(wrong("its mean is beyond belief".into()));
            },
            max: recorded::bounded(self.max, MAX_LATENCY, "the maximum", 0)?,
            details: details.into_iter().collect(),
            ..Thread::default()
        })
    }
}
