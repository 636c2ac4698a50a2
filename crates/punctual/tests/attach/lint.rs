//! The lint on real programs: one that breaks no rule, and those with evidence from the system. The
//! rules on cycles are tested in `explain` (cycles/lint/tests.rs); the recording of a cycle's
//! calls, on a simulated kernel (crates/record/tests/simulated).

use super::{CYCLES, OWN, attached, compiled};
use crate::common::{Place, text};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// The kernel may disturb any program once; a program repeats its own faults.
const ATTEMPTS: usize = 3;

/// The programs share one CPU and one priority: two at once would disturb each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The findings of the lint about the program's first thread.
fn findings(place: &Place, mode: &str, more: &[&str]) -> Vec<Value> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = std::fs::remove_dir_all(place.bundle());
    let output = attached(place, more, &["./periodic", mode, CYCLES, "0"]);
    assert_eq!(output.status.code(), OWN, "the command's own: {}", text(&output));
    let summary = place.summary();
    let all = summary["findings"].as_array().unwrap().iter();
    let of_it = all.filter(|one| one["subject"] == "attached/periodic");
    of_it.filter(|one| !is_of_the_machine(one)).cloned().collect()
}

/// Whether it is about tasks outside of the program: another task of the highest priority may run
/// for the whole test, and a kernel thread may end an fsync(2).
fn is_of_the_machine(finding: &Value) -> bool {
    let evidence = finding["evidence"].as_str().unwrap_or_default();
    let own = ["hog", "holder", "periodic"].iter().any(|name| evidence.contains(name));
    finding["id"] == "waits-for-lower-priority" || finding["id"] == "cpu-shared" && !own
}

/// Asserts exactly these findings, with the stated number of cycles if about cycles.
#[track_caller]
fn finds(mode: &str, expected: &[&str]) -> Vec<Value> {
    let Some(place) = compiled() else { return Vec::new() };
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        found = findings(&place, mode, &[]);
        let ids: Vec<&str> = found.iter().map(|one| one["id"].as_str().unwrap()).collect();
        if ids.len() == expected.len() && expected.iter().all(|id| ids.contains(id)) {
            return found;
        }
        println!("{mode}: {ids:?}, expected {expected:?}");
    }
    panic!("{mode}: expected {expected:?}, found {found:#?}");
}

/// Asserts that the first finding's message and evidence contain these words.
#[track_caller]
fn says(found: &[Value], words: &[&str]) {
    let Some(first) = found.first() else { return };
    let said = format!("{}; {}", first["message"], first["evidence"]);
    for word in words {
        assert!(said.contains(word), "`{word}` is not in {said}");
    }
}

#[test]
fn a_clean_program_has_no_findings() {
    finds("rt:absolute", &[]);
    // The program's lock inherits priorities.
    finds("rt:lock-pi", &[]);
}

#[test]
fn page_faults_in_a_cycle_are_a_finding() {
    says(&finds("fifo:touch", &["page-faults-in-cycle"]), &["not locked", "VmLck 0B"]);
}

#[test]
fn file_calls_in_a_cycle_are_a_finding() {
    says(&finds("rt:fsync", &["file-call-in-cycle"]), &["fsync in", "write into", "/data"]);
}

#[test]
fn time_sharing_and_timer_slack_are_findings() {
    let Some(place) = compiled() else { return };
    let found = findings(&place, "locked:absolute", &[]);
    let of = |id: &str| found.iter().find(|one| one["id"] == id).cloned();
    assert!(of("periodic-time-sharing").is_some(), "{found:#?}");
    let slack = of("timer-slack").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(slack["evidence"], "timerslack_ns 50000, policy SCHED_OTHER");
}

/// Throttling of real-time threads is a setting of the system: `punctual check` reports it.
#[test]
fn possible_throttling_is_a_finding() {
    let Some(place) = compiled() else { return };
    let check = place.punctual(&["check", "--json"]);
    let check: Value = serde_json::from_slice(&check.stdout).unwrap();
    let rules = check["rules"].as_array().unwrap();
    let limited = ["rt-throttling", "fair-server"].iter().any(|id| {
        let rule = rules.iter().find(|rule| rule["id"] == **id).unwrap();
        rule["applies"] == true && !["ok", "unknown"].contains(&rule["verdict"].as_str().unwrap())
    });
    match limited {
        true => says(&finds("rt:greedy", &["throttling-possible"]), &["of a CPU"]),
        false => drop(finds("rt:greedy", &[])),
    }
}

#[test]
fn a_deadline_makes_any_thread_a_subject() {
    let Some(place) = compiled() else { return };
    let ids = |more: &[&str]| {
        let found = findings(&place, "event-print", more);
        found.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(ids(&[]).is_empty(), "an event releases its cycles, and it is no real-time thread");
    assert!(ids(&["--deadline", "1h"]).contains(&"prints-in-cycle".to_owned()));
}
