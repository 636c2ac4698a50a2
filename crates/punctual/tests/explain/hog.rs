//! A task of higher priority that takes the CPU of a measured thread now and then.

use crate::injected::{Disturber, arena, assert_right, within};
use std::time::Duration;

#[test]
fn a_hog_of_higher_priority_is_named() {
    let Some(arena) = arena("a_hog_of_higher_priority_is_named") else { return };
    let hog = Disturber::start(
        "rude-hog",
        arena.cpu,
        Some(90),
        Duration::from_millis(2),
        Duration::from_millis(23),
    );
    let cpu = arena.cpu.to_string();
    let measured = arena.measure(
        "a_hog_of_higher_priority_is_named",
        &["measure", "timer", "--cpus", &cpu, "--priority", "80", "--duration", "2s"],
    );
    let bursts = hog.stop();
    if measured.is_none() {
        return;
    }
    let document = arena.explained(&["--min-latency", "300us"]);
    let late = within(&document, &bursts);
    assert_right(&late, 10, |part| part["cause"] == "preempted" && part["who"] == "rude-hog");
    // The worst of them may be one that the host made, with no part of the hog's.
    let parts = late.iter().flat_map(|sample| sample["parts"].as_array().unwrap());
    let of_hog: Vec<_> =
        parts.filter(|part| part["cause"] == "preempted" && part["who"] == "rude-hog").collect();
    assert!(of_hog.iter().all(|part| part["prio"] == 99 - 90), "{of_hog:?}");
    tail_names_the_hog(&arena);
}

/// Of the same bundle: `punctual tail` tells what made the tail.
fn tail_names_the_hog(arena: &crate::injected::Arena) {
    let report = arena.place.punctual(&["tail", "bundle", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&report.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", crate::common::text(&report)));
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
    let said = arena.place.punctual(&["tail", "bundle", "--html", "tail.html"]);
    assert!(crate::common::text(&said).contains("(rude-hog)"), "{}", crate::common::text(&said));
    let page = std::fs::read_to_string(arena.place.path().join("tail.html")).expect("a page");
    assert!(page.contains("preempted (rude-hog)"), "the page does not name it");
}
