//! The cost of the loop itself, by method: the distance between two clock readings around an empty
//! sample.

use punctual_measure::timer::SleepMethod;
use punctual_measure::timer::cost::empty_samples;
use serde_json::{Value, json};

const METHODS: [(&str, SleepMethod); 5] = [
    ("nanosleep-absolute", SleepMethod::NanosleepAbsolute),
    ("nanosleep-relative", SleepMethod::NanosleepRelative),
    ("timerfd", SleepMethod::Timerfd),
    ("posix-timer", SleepMethod::PosixTimer),
    ("deadline (sched_yield)", SleepMethod::Deadline),
];

/// Measures each method.
pub fn measure(quick: bool) -> Result<Value, String> {
    let samples = if quick { 1_000 } else { 20_000 };
    println!("cost of an empty sample, {samples} each (ns): minimum, median, p99");
    let mut rows = Vec::new();
    for (name, method) in METHODS {
        let mut costs = empty_samples(method, samples).map_err(|why| format!("{name}: {why}"))?;
        costs.sort_unstable();
        let (min, median, p99) = (costs[0], costs[samples / 2], costs[samples * 99 / 100]);
        println!("  {name:<24} {min:>8} {median:>8} {p99:>8}");
        rows.push(json!({
            "method": name, "samples": samples, "min_ns": min, "median_ns": median, "p99_ns": p99,
        }));
    }
    Ok(Value::Array(rows))
}
