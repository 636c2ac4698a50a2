//! The lines of a program at which it was delayed, against the marks in its source.

use super::{OWN, attached, compiled_from, measure};
use crate::common::text;
use serde_json::Value;
use std::collections::BTreeSet;

const SOURCE: &str = include_str!("places.c");

fn line_of(mark: &str) -> String {
    let mark = format!("/* {mark} */");
    let place = SOURCE.lines().position(|line| line.contains(&mark)).expect("marked");
    format!("places.c:{}", place + 1)
}

/// Cells of these columns.
fn rows<const N: usize>(summary: &Value, thread: &str, columns: [&str; N]) -> Vec<[String; N]> {
    let tables = measure(summary, thread)["notes"]["tables"].as_array().unwrap();
    let Some(table) = tables.iter().find(|table| table["name"] == "places") else {
        return Vec::new();
    };
    let all = table["columns"].as_array().unwrap();
    let column = columns.map(|name| all.iter().position(|of| of["name"] == name).unwrap());
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| column.map(|at| row[at].as_str().unwrap_or_default().to_owned())).collect()
}

#[test]
fn each_fault_call_and_wait_has_its_line_and_no_other() {
    let Some(place) = compiled_from(SOURCE.as_bytes(), "places", &["-O2", "-g", "-pthread"]) else {
        return;
    };
    let output = attached(&place, &[], &["./places"]);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let found =
        rows(&place.summary(), "places", ["what", "line", "mostly ended by", "holder meanwhile"]);
    let is_line = |row: &&[String; 4]| row[1].starts_with("places.c:") && row[0] != "preempted";
    let lines: BTreeSet<&str> = found.iter().filter(is_line).map(|row| row[1].as_str()).collect();
    let marks = ["touched", "locked", "mapped", "unmapped", "written"].map(line_of);
    assert_eq!(lines, marks.iter().map(String::as_str).collect(), "{found:#?}");
    let lock = found.iter().find(|row| row[1] == line_of("locked")).unwrap();
    assert!(lock[0] == "waiting for a lock" && lock[2].starts_with("panel-"), "{lock:?}");
    assert!(lock[2].ends_with(&format!(" at {}", line_of("released"))), "{lock:?}");
    let tables = measure(&place.summary(), "places")["notes"]["tables"].clone();
    let holders = tables.as_array().unwrap().iter().find(|table| table["name"] == "lock-holders");
    let holder = &holders.expect("lock-holders")["rows"][0];
    assert_eq!((&holder[0], &holder[2]), (&"panel".into(), &"owner in the mutex".into()));
    // Beside other programs the holder is preempted wherever it holds the lock.
    let (deed, line) = lock[3].split_once(" at places.c:").unwrap_or((&lock[3], ""));
    assert!(deed.starts_with("preempted") || deed.contains("in clock_nanosleep"), "{lock:?}");
    let number = |line: &str| line.split(' ').next().and_then(|line| line.parse::<u32>().ok());
    let of = |mark: &str| number(line_of(mark).strip_prefix("places.c:").unwrap());
    assert!(number(line) <= of("released"), "{lock:?}");
    assert!(!deed.starts_with("asleep") || [None, of("held")].contains(&number(line)), "{lock:?}");
    let folded = place.punctual(&["export", "bundle", "--format", "folded"]);
    let folded = text(&folded);
    let stack = "places;page fault;main places.c:";
    assert!(folded.lines().any(|line| line.starts_with(stack)), "{folded}");
}

#[test]
fn without_lines_no_place_is_known() {
    let Some(place) = compiled_from(SOURCE.as_bytes(), "places", &["-O2", "-g", "-pthread"]) else {
        return;
    };
    let output = attached(&place, &["--no-lines"], &["./places"]);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let found = rows(&place.summary(), "places", ["what", "line", "stack"]);
    let acts: Vec<_> =
        found.iter().filter(|row| ["called", "page fault"].contains(&&*row[0])).collect();
    assert!(acts.is_empty(), "{acts:#?}");
}
