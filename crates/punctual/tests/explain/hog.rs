//! A task of higher priority that takes the CPU of a measured thread now and then.

use crate::injected::{Disturber, arena, assert_right, within};
use std::time::Duration;

#[test]
fn a_hog_of_higher_priority_is_named() {
    let Some(arena) = arena("a_hog_of_higher_priority_is_named") else { return };
    let hog = Disturber::start("rude-hog", arena.cpu, Some(90), Duration::from_millis(2), Duration::from_millis(23));
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
    let priority = late[0]["parts"].as_array().unwrap().iter().find(|part| part["who"] == "rude-hog").unwrap();
    assert_eq!(priority["prio"], 99 - 90, "{priority}");
}
