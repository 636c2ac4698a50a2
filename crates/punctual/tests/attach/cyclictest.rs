//! The output of cyclictest -v for each of its cycles, compared with punctual's measurements.

use serde_json::Value;

/// The sorted latencies of its first thread in µs.
pub fn latencies(printed: &str) -> Vec<i64> {
    let of_line = |line: &str| {
        let mut fields = line.split(':').map(str::trim);
        match (fields.next(), fields.next(), fields.next()) {
            (Some("0"), Some(_), Some(latency)) => latency.parse::<i64>().ok(),
            _ => None,
        }
    };
    let mut all: Vec<i64> = printed.lines().filter_map(of_line).collect();
    all.sort_unstable();
    all
}

/// The number of cycles. The printing thread can be too late for some: they are overwritten.
pub fn taken(printed: &str) -> u64 {
    let number = |line: &str| -> Option<u64> {
        let mut fields = line.split(':').map(str::trim);
        fields.next().filter(|thread| *thread == "0")?;
        fields.next()?.parse().ok()
    };
    printed.lines().filter_map(number).max().map_or(0, |last| last + 1)
}

/// The measuring thread in a phase of the summary: the printing one sleeps relatively.
pub fn measuring_thread(phase: &Value) -> &str {
    let is_absolute = |one: &&Value| one["parameters"]["cycle"] == "absolute";
    let measures = phase["measures"].as_array().unwrap();
    let found = measures.iter().find(is_absolute);
    found.unwrap_or_else(|| panic!("{measures:#?}"))["name"].as_str().unwrap()
}

/// The wake-up latencies of that thread have the same median as cyclictest's own.
#[track_caller]
pub fn assert_same_median(ours: &Value, theirs: &[i64]) {
    let median = theirs[theirs.len() / 2] as f64;
    println!("cyclictest: {} cycles, median {median} µs; here: {ours:#}", theirs.len());
    let here = ours["median"].as_f64().unwrap() / 1_000.0;
    assert!((here - median).abs() <= median * 0.05 + 2.0, "median {here} µs, theirs {median} µs");
}
