//! Unlocked memory: each first touch of a page is a page fault.

use super::case::{Case, judge};
use serde_json::Value;

pub fn are_page_faults(case: &Case) {
    let document = case.json("explain", &["--pair", "touch", "--worst", "40"]);
    let all = document["samples"].as_array().unwrap().iter();
    // CPU time taken by others is not made by this test.
    let own = |sample: &&Value| {
        let foreign = ["preempted", "runqueue", "steal", "throttled"];
        let parts = sample["parts"].as_array().unwrap().iter();
        let foreign = parts.filter(|part| foreign.iter().any(|word| part["cause"] == *word));
        let foreign: i64 = foreign.map(|part| part["ns"].as_i64().unwrap()).sum();
        foreign * 20 < sample["latency_ns"].as_i64().unwrap()
    };
    let late: Vec<&Value> = all.filter(own).collect();
    judge(case, &late, 10, |part| part["cause"] == "page-fault");
}
