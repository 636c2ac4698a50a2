//! JSON of tools that are not read here: which one it is, so that nobody has to guess.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Keys beyond these are not looked at.
const MOST: usize = 64;

/// The keys of an object, its values passed over.
pub struct Keys(Vec<String>);

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
                    if keys.len() < MOST {
                        keys.push(key.chars().take(40).collect());
                    }
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Tools by keys that only their documents have together.
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

impl Keys {
    /// Whether these are the keys of jitterdebugger's `results.json`, of any version.
    pub fn is_jitterdebugger(&self) -> bool {
        let known = ["version", "sysinfo", "cpu"];
        self.has("cpu") && self.0.iter().all(|key| known.contains(&key.as_str()))
    }

    /// Whether these are the keys of rt-tests.
    pub fn is_rt_tests(&self) -> bool {
        self.has("file_version")
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|own| own == key)
    }

    /// Why it is refused, in a sentence that names the tool or, where that is not known, the keys.
    pub fn refusal(&self, known: &str) -> String {
        let tool = KNOWN.iter().find(|(_, keys)| keys.iter().all(|key| self.has(key)));
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
