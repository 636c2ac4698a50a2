//! Output of tools that cannot be imported: recognises it and suggests an alternative.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The maximum number of keys inspected.
const MAX_INSPECTED_KEYS: usize = 64;
/// The maximum number of lines inspected.
const MOST_LINES: usize = 2_000;

/// The keys of an object; its values are skipped.
pub(crate) struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Keys;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
                    if keys.len() < MAX_INSPECTED_KEYS {
                        keys.push(key.chars().take(40).collect());
                    }
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Tools by a combination of keys that only their documents have.
const KNOWN: &[(&str, &[&str])] = &[
    ("fio", &["fio version", "jobs"]),
    ("hyperfine", &["results"]),
    ("iperf3", &["start", "intervals", "end"]),
    ("Google Benchmark", &["context", "benchmarks"]),
    ("pytest-benchmark", &["machine_info", "benchmarks"]),
    ("stress-ng", &["system-info", "metrics"]),
    ("sysstat (sar)", &["sysstat"]),
    ("lscpu", &["lscpu"]),
    ("a browser's trace (Trace Event Format)", &["traceEvents"]),
    ("punctual check", &["rules"]),
    ("punctual", &["schema"]),
];

/// Text of tools by the content of a line, with a suggestion.
const TEXTS: &[(&str, &[&str], &str)] = &[
    ("perf sched map", &[" secs ", " => "], PERF_DATA),
    ("perf report", &["# Overhead "], PERF_DATA),
    ("perf trace", &[" ms): ", "("], PERF_DATA),
    ("perf stat", &["Performance counter stats for"], "`punctual count` counts the same"),
    ("perf ftrace latency", &["DURATION", "COUNT", "GRAPH"], MEASURE),
    ("a histogram of BCC (runqlat, hardirqs, …)", &["secs", ": count", "distribution"], MEASURE),
    ("bpftrace", &[") ", "|@"], MEASURE),
    ("LTP", &["TINFO: "], MEASURE),
    ("pi_stress", &["Total inversion performed"], NO_LATENCIES),
    ("stress-ng", &["stress-ng: info:"], NO_LATENCIES),
    ("hackbench", &["Running in ", " mode with "], NO_LATENCIES),
    ("fio", &["(groupid=", "jobs="], "`punctual measure storage` measures the same"),
    ("ping", &["rtt min/avg/max/mdev"], MEASURE),
    ("/proc/interrupts", &["CPU0", "CPU1"], "`punctual attach --cpus` names what interrupts a CPU"),
    ("vmstat", &["procs --", "memory--"], NO_LATENCIES),
    ("sysstat", &["Linux ", " CPU)"], NO_LATENCIES),
    ("/proc/latency_stats", &["Latency Top version"], MEASURE),
    (
        "/proc/sched_debug",
        &["Sched Debug Version:"],
        "`punctual trace` records what threads wait for",
    ),
];

const PERF_DATA: &str = "`punctual explain perf.data` reads the file that perf recorded; \
                         `punctual recipe perf` prints how";
const MEASURE: &str = "`punctual measure` measures latencies, `punctual probe` durations of \
                       functions";
const NO_LATENCIES: &str = "it has no latencies: run it as a load, and measure at the same time";

/// Why a text is refused, in a sentence that names its format if recognised.
pub(crate) fn refusal_of_text(text: &str, known: &str) -> String {
    let is = |line: &str, parts: &[&str]| parts.iter().all(|part| line.contains(part));
    let mut lines = text.lines().take(MOST_LINES);
    let found = lines.find_map(|line| TEXTS.iter().find(|(_, parts, _)| is(line, parts)));
    match found {
        Some((name, _, to_do)) => {
            format!("this is text of {name}, which is not read: {to_do} (tools: {known})")
        }
        None => format!("this is not the output of a tool that can be imported ({known})"),
    }
}

impl Keys {
    /// Whether these are the keys of jitterdebugger's `results.json`, of any version.
    pub(crate) fn is_jitterdebugger(&self) -> bool {
        let known_keys = ["version", "sysinfo", "cpu"];
        self.has_key("cpu") && self.0.iter().all(|key| known_keys.contains(&key.as_str()))
    }

    /// Whether these are the keys of rt-tests.
    pub(crate) fn is_rt_tests(&self) -> bool {
        self.has_key("file_version")
    }

    fn has_key(&self, key: &str) -> bool {
        self.0.iter().any(|own| own == key)
    }

    /// Why it is refused, in a sentence that names the tool or, if unknown, the keys.
    pub fn format_refusal(&self, known: &str) -> String {
        let tool = KNOWN.iter().find(|(_, keys)| keys.iter().all(|key| self.has_key(key)));
        let what = match tool {
            Some((tool, _)) => format!("this is JSON of {tool}, which is not read"),
            None if self.0.is_empty() => "this is an empty JSON object".to_owned(),
            None => {
                let keys: Vec<String> =
                    self.0.iter().take(8).map(|key| format!("{key:?}")).collect();
                format!("this is JSON of no known tool; its keys are {}", keys.join(", "))
            }
        };
        format!("{what} (tools that can be imported: {known})")
    }
}
