//! A task of higher priority that sometimes takes the CPU of a measured thread.

use super::case::{Case, judge, within};

pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "300us"]);
    let late = within(&document, &case.stretches());
    judge(case, &late, 10, |part| part["cause"] == "preempted" && part["who"] == "rude-hog");
    // The worst of them may be due to the host, without any part of the hog.
    let parts = late.iter().flat_map(|sample| sample["parts"].as_array().unwrap());
    let of_hog: Vec<_> =
        parts.filter(|part| part["cause"] == "preempted" && part["who"] == "rude-hog").collect();
    assert!(of_hog.iter().all(|part| part["prio"] == 99 - 90), "{of_hog:?}");
}
