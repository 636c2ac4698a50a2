//! Test points of an application and the kernel's events about it: one recording, one order.
//!
//! The application is this file: its test starts it again, with a variable that selects the role.

use crate::common::{self, Place, eventually, is_root, kill, punctual, text};
use punctual_testpoint::{begin, end, point};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROLE: &str = "PUNCTUAL_TEST_APPLICATION";
const ROUNDS: u64 = 300;

/// Not a test but the application, if requested.
#[test]
fn the_application() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "scopes" {
        return scopes();
    }
    for round in 0..ROUNDS {
        begin!("cycle", round);
        std::thread::sleep(Duration::from_micros(500));
        end!("cycle", round);
    }
    // Long, but bounded: if ending it fails, the wait is short.
    for _ in 0..if role == "long" { 5_000 } else { 0 } {
        point!("long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Scopes that nest, recurse and overlap, in two threads.
fn scopes() {
    let work = || {
        for _ in 0..50 {
            begin!("step");
            std::thread::sleep(Duration::from_micros(100));
            begin!("step.send");
            std::thread::sleep(Duration::from_micros(300));
            end!("step.send");
            end!("step");
        }
    };
    let other = std::thread::spawn(work);
    work();
    other.join().expect("it ends");
    for _ in 0..3 {
        begin!("walk");
    }
    for _ in 0..3 {
        std::thread::sleep(Duration::from_micros(100));
        end!("walk");
    }
    begin!("first");
    begin!("second");
    end!("first");
    end!("second");
    begin!("never ends");
}

/// `punctual trace ARGUMENTS -- APPLICATION`, in a separate directory of test points.
fn trace(place: &Place, arguments: &[&str], role: &str) -> Command {
    let mut command = punctual();
    command.arg("trace").args(arguments).args(["-q", "--output", "bundle", "--"]);
    command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "trace_points::the_application"]);
    let points = place.path().join("points");
    // Accessible by its owner alone; otherwise applications do not use it.
    std::fs::DirBuilder::new().mode(0o700).create(&points).expect("a directory of points");
    command
        .env(ROLE, role)
        .env("PUNCTUAL_POINTS_DIR", points)
        .current_dir(place.path())
        .stdin(Stdio::null());
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
    let traced = trace(&place, &["--events", "sched"], "short").output().expect("punctual starts");
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

#[test]
fn recorded_points_survive_a_killed_unprivileged_recorder() {
    let place = Place::with("");
    let mut child = trace(&place, &["--events", "none"], "long")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let document = place.bundle().join("recording/recording.json");
    eventually("the points' names", || {
        std::fs::read_to_string(&document).is_ok_and(|text| text.contains("\"long\""))
    });
    kill(child.id(), "KILL");
    child.wait().unwrap();
    // The command ends with punctual, although punctual was killed.
    eventually("the application's end", || {
        common::processes_with("the_application").iter().all(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            !String::from_utf8_lossy(&environment).contains(&*place.path().to_string_lossy())
        })
    });
    let recording = place.summary()["recording"].clone();
    assert_eq!(recording["recorder"], "none");
    assert!(recording["points"].as_u64().is_some_and(|points| points >= 2 * ROUNDS), "{recording}");
    let pairs = pairs(&place);
    let cycle = pairs["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pair| pair["name"] == "cycle")
        .expect("the scope");
    assert_eq!(cycle["count"], ROUNDS, "{cycle}");
}

#[test]
fn scopes_are_reported_with_inclusive_and_exclusive_time() {
    let place = Place::with("");
    let traced = trace(&place, &["--events", "none"], "scopes").output().expect("punctual starts");
    assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
    let pairs = pairs(&place);
    let scopes = pairs["scopes"].as_array().expect("scopes");
    let scope = |name: &str| {
        scopes.iter().find(|scope| scope["name"] == name).unwrap_or_else(|| panic!("{pairs:#}"))
    };
    let ns = |value: &serde_json::Value| {
        value.as_i64().unwrap_or_else(|| panic!("{value} in {pairs:#}"))
    };
    let (step, send, walk) = (scope("step"), scope("step.send"), scope("walk"));
    assert_eq!((&step["count"], &step["threads"]), (&100.into(), &2.into()), "{step}");
    // Exactly its total without its inner scopes.
    assert_eq!(ns(&step["total"]), ns(&step["exclusive_total"]) + ns(&send["total"]), "{pairs:#}");
    assert_eq!(send["total"], send["exclusive_total"], "nothing lies in it: {send}");
    assert!(ns(&step["exclusive"]["min"]) >= 100_000 && ns(&step["min"]) >= 400_000, "{step}");
    assert_eq!(
        (&walk["count"], &walk["recursive"], &walk["total"]),
        (&3.into(), &2.into(), &walk["max"]),
        "{walk}"
    );
    assert_eq!(walk["total"], walk["exclusive_total"], "all of it is its own: {walk}");
    assert_eq!(
        (&scope("first")["overlapping"], &scope("second")["overlapping"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&scope("never ends")["open"], &scope("never ends")["count"]),
        (&1.into(), &0.into())
    );
    let shares: f64 = scopes.iter().filter_map(|scope| scope["share"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");

    let terminal = text(&place.punctual(&["pairs", "bundle"]));
    assert!(terminal.contains("scopes, with and without those within them"), "{terminal}");
    assert!(terminal.contains("walk: 2 within another one of the same name"), "{terminal}");
    // Shares are of all scopes, even if only one is requested.
    let one = place.punctual(&["pairs", "bundle", "step.send", "--json"]);
    let one: serde_json::Value = serde_json::from_slice(&one.stdout).expect("JSON");
    assert_eq!(one["scopes"], serde_json::json!([send]), "{one:#}");
    let calls = text(&place.punctual(&["pairs", "bundle", "step", "--calls", "--json"]));
    let exclusive = calls.lines().filter(|line| !line.contains("\"exclusive\":null")).count();
    assert_eq!(exclusive, 100, "{calls}");

    let page = place.punctual(&["report", "bundle", "-o", "page.html"]);
    assert_eq!(page.status.code(), Some(0), "{}", text(&page));
    let page = std::fs::read_to_string(place.path().join("page.html")).expect("the page");
    assert!(page.contains("Scopes, with and without those within them"));
    assert!(page.contains("2 within another one of the same name"));
}
