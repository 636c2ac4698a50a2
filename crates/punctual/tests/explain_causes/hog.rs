//! A task of higher priority that sometimes takes the CPU of a measured thread.

use super::case::{Case, judge, within};
use crate::common::text;

pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "300us"]);
    let late = within(&document, &case.stretches());
    judge(case, &late, 10, |part| part["cause"] == "preempted" && part["who"] == "rude-hog");
    // The worst of them may be due to the host, without any part of the hog.
    let parts = late.iter().flat_map(|sample| sample["parts"].as_array().unwrap());
    let of_hog: Vec<_> =
        parts.filter(|part| part["cause"] == "preempted" && part["who"] == "rude-hog").collect();
    assert!(of_hog.iter().all(|part| part["prio"] == 99 - 90), "{of_hog:?}");
    tail_names_the_hog(case);
}

/// `punctual tail` on the same bundle identifies the cause of the tail.
fn tail_names_the_hog(case: &Case) {
    let document = case.json("tail", &[]);
    let causes = document["series"][0]["causes"].as_array().unwrap();
    let windows = causes
        .iter()
        .find(|one| one["source"] == "windows")
        .unwrap_or_else(|| panic!("{document:#}"));
    let shares = windows["causes"].as_array().unwrap();
    assert!(
        shares.iter().any(|one| one["cause"] == "preempted" && one["who"] == "rude-hog"),
        "{windows:#}"
    );
    assert_eq!(
        shares.iter().filter_map(|one| one["count"].as_u64()).sum::<u64>(),
        windows["known"],
        "{windows:#}"
    );
    let page = tempfile::NamedTempFile::new().unwrap();
    let said = case.run("tail", &["--html", page.path().to_str().unwrap()]);
    assert!(text(&said).contains("(rude-hog)"), "{}", text(&said));
    let page = std::fs::read_to_string(page.path()).expect("a page");
    assert!(page.contains("preempted (rude-hog)"), "the page does not name it");
}
