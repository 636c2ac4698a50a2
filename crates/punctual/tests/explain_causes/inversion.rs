//! A priority inversion on a plain mutex, and its absence on one with priority inheritance.

use super::case::{Case, judge};
use punctual_core::MonotonicNs;
use serde_json::Value;

pub fn is_named(case: &Case) {
    let (document, bursts) = (case.explained(&["--series", "mutex/1"]), case.stretches());
    // Waits in which the hog ran for long: that part of them is an inversion, and the rest the
    // holder's own time.
    let late: Vec<&Value> = samples_of(&document)
        .iter()
        .filter(|sample| overlap(sample, &bursts) >= 2_000_000)
        .collect();
    assert!(!samples_of(&document).is_empty(), "{document}");
    // A wait may include many holders, each with its own wake-up, and the test's machine may be
    // stopped meanwhile: these causes are true as well.
    const BESIDE: [&str; 4] = ["lock", "wakeup", "non-preemptible", "steal"];
    judge(case, &late, 8, |part| {
        part["cause"] == "priority-inversion" && part["who"] == "mid-hog"
            || BESIDE.iter().any(|cause| part["cause"] == *cause)
    });
    let exact =
        late.iter().filter(|sample| inverted(sample) * 10 >= overlap(sample, &bursts) * 9).count();
    assert!(
        exact * 10 >= late.len() * 9,
        "{exact} of {} waits blame all of the hog's time on it",
        late.len()
    );
    let report =
        late.iter().find(|sample| inverted(sample) > 0).expect("a wait that blames the hog");
    let part = &report["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["cause"] == "priority-inversion")
        .unwrap();
    assert_eq!(part["prio"], 99 - 50, "{part}");
    assert!(part["meanwhile"].as_array().is_some_and(|parts| !parts.is_empty()), "{part}");
    assert!(report["chain"].as_array().is_some_and(|chain| !chain.is_empty()), "{report}");
}

pub fn is_lent(case: &Case) {
    let document = case.explained(&["--series", "mutex/1"]);
    let samples = document["samples"].as_array().unwrap();
    assert!(samples.len() >= 10, "{} waits were kept", samples.len());
    // The hog may run until the waiter has lent its priority; then no more.
    let whole: i64 = samples.iter().map(|sample| sample["latency_ns"].as_i64().unwrap()).sum();
    let sum: i64 = samples.iter().map(inverted).sum();
    assert!(sum * 10 < whole, "{sum} of {whole} ns");
}

fn samples_of(document: &Value) -> &Vec<Value> {
    document["samples"].as_array().unwrap()
}

/// The time of a sample that is attributed to the hog.
fn inverted(sample: &Value) -> i64 {
    let parts = sample["parts"].as_array().unwrap().iter();
    let hog =
        parts.filter(|part| part["cause"] == "priority-inversion" && part["who"] == "mid-hog");
    hog.map(|part| part["ns"].as_i64().unwrap()).sum()
}

/// The time of a sample in which the hog was busy.
fn overlap(sample: &Value, bursts: &[(MonotonicNs, MonotonicNs)]) -> i64 {
    let (at, latency) = (sample["at"].as_i64().unwrap(), sample["latency_ns"].as_i64().unwrap());
    bursts.iter().map(|(from, to)| (to.0.min(at + latency) - from.0.max(at)).max(0)).sum()
}
