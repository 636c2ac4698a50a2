//! Test points of an application and the kernel's events about it: one recording, one order.
//!
//! The application is this file: its test starts it again.

use crate::common::{Place, is_root, punctual, text};
use punctual_testpoint::{begin, end};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: u64 = 300;

#[test]
#[ignore = "a part of another test"]
fn the_application() {
    for round in 0..ROUNDS {
        begin!("cycle", round);
        std::thread::sleep(Duration::from_micros(500));
        end!("cycle", round);
    }
}

/// `punctual trace ARGUMENTS -- APPLICATION`, in a separate directory of test points.
fn trace(place: &Place) -> Command {
    let mut command = punctual();
    command.args(["trace", "--events", "sched", "-q", "--output", "bundle", "--"]);
    command.arg(std::env::current_exe().expect("this program")).args([
        "--ignored",
        "--exact",
        "trace_points::the_application",
    ]);
    let points = place.path().join("points");
    // Accessible by its owner alone; otherwise applications do not use it.
    std::fs::DirBuilder::new().mode(0o700).create(&points).expect("a directory of points");
    command.env("PUNCTUAL_POINTS_DIR", points).current_dir(place.path()).stdin(Stdio::null());
    command
}

fn pairs(place: &Place) -> serde_json::Value {
    let answer = place.punctual(&["pairs", "bundle", "--json"]);
    serde_json::from_slice(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&answer)))
}

#[test]
fn every_point_lies_among_the_switches_of_its_thread() {
    if !is_root("every_point_lies_among_the_switches_of_its_thread") {
        return;
    }
    let place = Place::with("");
    let traced = trace(&place).output().expect("punctual starts");
    assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
    let recording = place.summary()["recording"].clone();
    assert_eq!(
        (&recording["points"], &recording["lost"]),
        (&(2 * ROUNDS).into(), &0.into()),
        "{recording}"
    );
    assert!(
        recording["point_clock_error"].as_i64().is_some_and(|error| error < 1_000_000),
        "{recording}"
    );
    let pairs = pairs(&place);
    let cycle = &pairs["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pair| pair["name"] == "cycle")
        .expect("the scope");
    assert_eq!((&cycle["count"], &cycle["unmatched_from"]), (&ROUNDS.into(), &0.into()), "{cycle}");
    assert!(cycle["min"].as_i64().unwrap() >= 500_000, "{cycle}");
    // Without a measurement and without named pairs, the longest intervals are explained.
    let explained = place.punctual(&["explain", "bundle", "--json"]);
    assert_eq!(explained.status.code(), Some(0), "{}", text(&explained));
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let samples = explained["samples"].as_array().unwrap();
    let cycles: Vec<_> = samples.iter().filter(|sample| sample["series"] == "cycle").collect();
    assert!(!cycles.is_empty() && cycles.len() == samples.len(), "{explained:#}");
    // In each cycle the thread slept: it was switched out after its start, and in before its end.
    let slept = place.punctual(&["pairs", "bundle", "cycle:begin->sched_switch", "--json"]);
    assert_eq!(slept.status.code(), Some(0), "{}", text(&slept));
}
