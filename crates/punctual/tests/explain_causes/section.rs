//! A long non-preemptible section of the kernel: one call that wakes hundreds of threads.

use super::case::{Case, judge, within};
use serde_json::Value;

pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "150us"]);
    let late = within(&document, &case.stretches());
    let causes = ["non-preemptible", "timer-irq-delay"];
    judge(case, &late, 5, |part| {
        causes.iter().any(|cause| part["cause"] == *cause) && part["who"] == "wakes-them-all"
    });
    let named = |sample: &&&Value| {
        sample["parts"].as_array().unwrap().iter().any(|part| part["syscall"] == "futex")
    };
    let count = late.iter().filter(named).count();
    assert!(count * 10 >= late.len() * 9, "{count} of {} name the system call", late.len());
}
