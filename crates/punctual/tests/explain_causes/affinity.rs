//! Two measured threads on one CPU: one waits for the other.

use super::case::{Case, judge};
use serde_json::Value;

pub fn is_named(case: &Case) {
    let waiting = case.truth("judged").as_str().unwrap();
    let document = case.explained(&["--series", waiting, "--min-latency", "1ms"]);
    let late: Vec<&Value> = document["samples"].as_array().unwrap().iter().collect();
    let working = case.truth("working").as_u64();
    assert!(working.is_some());
    judge(case, &late, 10, |part| part["cause"] == "runqueue" && part["tid"].as_u64() == working);
}
