//! The tasks that a thread delayed, against one that counts its own delays.

use super::{OWN, attached, compiled_from, measure};
use crate::common::text;
use std::fs;

#[test]
fn a_task_that_waits_while_a_thread_runs_is_shown_with_its_waits() {
    let source = include_bytes!("delayed.c");
    let Some(place) = compiled_from(source, "delayed", &["-O2", "-pthread"]) else { return };
    let output = attached(&place, &[], &["./delayed"]);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let own = fs::read_to_string(place.path().join("own")).unwrap();
    let (times, total) = own.split_once(' ').expect("two numbers");
    let (times, total): (f64, f64) = (times.parse().unwrap(), total.parse().unwrap());
    assert!(times >= 100.0, "it was delayed {times} times");
    let summary = place.summary();
    let tables = measure(&summary, "threads")["notes"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == "delayed-tasks").expect("the table");
    let rows = table["rows"].as_array().unwrap();
    // Both threads have this name until the second one renames itself.
    let row = rows.iter().find(|row| row[0] == "delayed" && row[1] == "delayed");
    let row = row.unwrap_or_else(|| panic!("{rows:#?}"));
    // It is not always the next one; its own delays below 1 ms are not in its count.
    let (found, sum) = (row[3].as_f64().unwrap(), row[4].as_f64().unwrap());
    assert!(found >= times / 2.0 && sum >= total / 2.0 && sum <= total * 1.2, "{own}: {row}");
}
