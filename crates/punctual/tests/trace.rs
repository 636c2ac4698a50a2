//! `punctual trace` end to end: its counts match the kernel's, and the bundle opens after any end.

use crate::common::{self, Place, eventually, has_program, is_root, kill, punctual, text};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program that yields its CPU, calls getppid, and prints the kernel's counters of it: voluntary
/// and involuntary switches.
const KNOWN: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    struct rusage before, after;
    struct timespec pause = {0, 1000000};
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 200; i++) nanosleep(&pause, NULL);
    for (int i = 0; i < 3000; i++) syscall(SYS_getppid);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld %ld\n", after.ru_nvcsw, after.ru_nivcsw);
    return 5;
}
"#;

fn summary(place: &Place) -> serde_json::Value {
    place.summary()["recording"].clone()
}

fn count(recording: &serde_json::Value, group: &str, kind: &str) -> u64 {
    recording["events"][group][kind].as_u64().unwrap_or_default()
}

fn findings(place: &Place) -> String {
    place.summary()["findings"].to_string()
}

/// Whether kernel events can be recorded here; prints the missing prerequisite if not.
fn can_record(test: &str) -> bool {
    if !is_root(test) {
        return false;
    }
    let listed = punctual().args(["trace", "--events", "list"]).output().expect("punctual starts");
    let possible = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .any(|line| line.starts_with("sched     * yes"));
    if !possible {
        println!(
            "SKIPPED: {test} lacks a kernel that lets scheduling events be recorded: {}",
            text(&listed)
        );
    }
    possible
}

fn compiled(place: &Place) -> bool {
    if !has_program("cc", "gcc") {
        return false;
    }
    place.write("known.c", KNOWN.as_bytes());
    let built = Command::new("cc")
        .args(["-O1", "-o", "known", "known.c"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    true
}

#[test]
fn counts_are_those_of_the_kernel() {
    let place = Place::with("");
    if !can_record("counts_are_those_of_the_kernel") || !compiled(&place) {
        return;
    }
    let arguments =
        ["trace", "-q", "-e", "sched,syscall", "--comm", "known", "-o", "bundle", "--", "./known"];
    let traced = place.punctual(&arguments);
    assert_eq!(traced.status.code(), Some(5), "the command's own: {}", text(&traced));
    let counted = String::from_utf8_lossy(&traced.stdout).into_owned();
    let numbers: Vec<u64> =
        counted.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let recording = summary(&place);
    assert_eq!(recording["lost"], 0);
    // Each switch out has a switch in. A few more or fewer occur before the exec, by which it got
    // its name, and at its end: on a busy machine it is preempted there, too.
    let switches = count(&recording, "sched", "sched_switch");
    let own = numbers[0] + numbers[1];
    assert!((2 * own - 60..2 * own + 60).contains(&switches), "{switches} of {own}: {recording}");
    let calls = count(&recording, "syscall", "sys_enter");
    assert!((3_200..3_600).contains(&calls), "{calls}: {recording}");
    assert_eq!(count(&recording, "sched", "sched_process_exit"), 1, "{recording}");
}

#[test]
fn who_may_not_record_is_told_in_a_line_and_nothing_is_left() {
    if !is_root("becoming somebody else") {
        return;
    }
    let place = Place::with("");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path(), everybody).unwrap();
    let copy = place.path().join("punctual");
    std::fs::copy(env!("CARGO_BIN_EXE_punctual"), &copy).unwrap();
    let mut command = Command::new(&copy);
    std::os::unix::process::CommandExt::uid(&mut command, 65534);
    let refused = command
        .args(["trace", "-o", "bundle", "--", "true"])
        .current_dir(place.path())
        .output()
        .unwrap();
    common::assert_refused(&refused, &place.bundle());
    let said = text(&refused);
    assert!(said.trim_end().lines().count() == 1 && said.len() < 200, "{said}");
    assert!(said.contains("run as root") && said.contains("--events none"), "{said}");
}

/// Recorded by name with every backend: each call of the program, and a text field of its record.
#[test]
fn a_tracepoint_is_recorded_by_its_name_with_its_fields() {
    let place = Place::with("");
    if !can_record("a_tracepoint_is_recorded_by_its_name_with_its_fields") || !compiled(&place) {
        return;
    }
    let (calls, execs) = ("syscalls:sys_enter_getppid", "sched:sched_process_exec");
    let events = format!("{calls},{execs}");
    for backend in ["btf", "tracepoint", "tracefs"] {
        let what = [
            "--backend",
            backend,
            "-e",
            &events,
            "--comm",
            "known",
            "-o",
            backend,
            "--",
            "./known",
        ];
        let traced = place.punctual(&[&["trace", "-q", "--no-points"], &what[..]].concat());
        if traced.status.code() == Some(2) && backend != "btf" {
            println!("SKIPPED: {}", text(&traced));
            continue;
        }
        assert_eq!(traced.status.code(), Some(5), "{backend}: {}", text(&traced));
        let shown = place.punctual(&["show", "--json", backend]);
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let recording = &summary["recording"];
        assert_eq!(recording["lost"], 0, "{backend}: {recording:#}");
        assert_eq!(recording["tracepoints"], serde_json::json!([calls, execs]), "{backend}");
        assert_eq!(count(recording, "tracepoints", calls), 3000, "{backend}: {recording:#}");
        assert_eq!(count(recording, "tracepoints", execs), 1, "{backend}: {recording:#}");
        let shown = text(&place.punctual(&["show", backend]));
        let line =
            shown.lines().find(|line| line.contains(calls)).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains("3,000"), "{shown}");
        // The export has the fields, including a text that the record points to.
        let file = "fields.pftrace";
        let done = place.punctual(&["export", backend, "--format", "perfetto", "-o", file]);
        assert!(done.status.success(), "{}", text(&done));
        let written = std::fs::read(place.path().join(file)).unwrap();
        let has = |word: &str| written.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        assert!(has("filename=./known pid=") && has("__syscall_nr="), "{backend}");
        let page = place.punctual(&["report", backend]);
        assert!(page.status.success(), "{}", text(&page));
        // A bundle of the same events by group has no such events by name.
        assert!(recording["events"].get("sched").is_none(), "{recording:#}");
    }
}

#[test]
fn a_filter_keeps_the_records_whose_fields_match_and_the_list_has_the_fields() {
    let place = Place::with("");
    if !can_record("a filter on fields") || !compiled(&place) {
        return;
    }
    let exec = "sched:sched_process_exec";
    let listed = text(&place.punctual(&["trace", "--events", "list"]));
    assert!(listed.contains(&format!("\n{exec}  filename pid old_pid\n")), "{listed}");
    for (operator, expected) in [("==", 1), ("!=", 0)] {
        let events = format!("{exec}/filename {operator} \"./known\"/,syscalls:sys_enter_getppid");
        let what = ["-e", &events, "--comm", "known", "-o", operator, "--", "./known"];
        let traced = place.punctual(&[&["trace", "-q", "--no-points"], &what[..]].concat());
        assert_eq!(traced.status.code(), Some(5), "{}", text(&traced));
        let shown = place.punctual(&["show", "--json", operator]);
        let summary: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(count(&summary["recording"], "tracepoints", exec), expected, "{summary:#}");
    }
}

#[test]
fn a_tracepoint_that_is_not_there_is_refused_with_the_nearest_one() {
    let place = Place::with("");
    if !can_record("a_tracepoint_that_is_not_there_is_refused_with_the_nearest_one") {
        return;
    }
    let wrong = [
        ("kmem:kmaloc", "did you mean `kmem:kmalloc`?"),
        ("+kmen:kmalloc", "did you mean `kmem:…`?"),
        ("kmem:*", "mm_page_alloc"),
        ("+sched:sched_switch", "one of the group `sched`"),
        ("../sched:sched_switch", "is not GROUP:NAME"),
        ("sched:sched_process_exec/file == 1/", "its fields are filename, pid, old_pid"),
        ("schd", "did you mean `sched`?"),
    ];
    for (words, said) in wrong {
        let refused =
            place.punctual(&["trace", "-e", words, "-o", "bundle", "--", "touch", "started"]);
        assert_eq!(refused.status.code(), Some(2), "{words}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{words}: {}", text(&refused));
        assert!(!place.bundle().exists() && !place.path().join("started").exists(), "{words}");
    }
}

#[test]
fn wrong_requests_start_nothing_and_leave_nothing() {
    let place = Place::with("");
    for (arguments, word) in [
        (vec!["-e", "shed"], "`sched`"),
        (vec!["-e", "none", "--no-points"], "nothing to record"),
        (vec!["--cpus", "4000"], "not online"),
        (vec!["--max-size", "1KiB"], "1MiB"),
        (vec!["--syscalls", "opennat"], "opennat"),
        (vec!["--", "/nonexistent/program"], "/nonexistent/program"),
        (vec!["-e", "list", "--duration", "x"], "duration"),
    ] {
        let arguments: Vec<&str> = ["trace", "-o", "bundle"].into_iter().chain(arguments).collect();
        let refused = place.punctual(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
        assert!(text(&refused).contains(word), "{arguments:?}: {}", text(&refused));
        assert!(!place.bundle().exists(), "{arguments:?}");
    }
}

#[test]
fn a_recorder_that_is_killed_leaves_a_bundle_that_opens() {
    if !can_record("a_recorder_that_is_killed_leaves_a_bundle_that_opens") {
        return;
    }
    for round in 0..4u64 {
        let place = Place::with("");
        let mut command = punctual();
        command
            .args(["trace", "-q", "-e", "sched,irq,vectors", "-o", "bundle"])
            .current_dir(place.path());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let segment = place.bundle().join("recording/00-000000.events");
        eventually("a segment", || segment.metadata().is_ok_and(|meta| meta.len() > 1_000));
        std::thread::sleep(Duration::from_millis(37 * round));
        kill(child.id(), "KILL");
        child.wait().unwrap();
        let recording = summary(&place);
        assert!(count(&recording, "sched", "sched_switch") > 0, "{recording}");
        assert!(findings(&place).contains("recording-cut-off"), "{}", findings(&place));
        for arguments in [vec!["show", "bundle"], vec!["report", "bundle", "-o", "r.html"]] {
            let answer = place.punctual(&arguments);
            assert_eq!(answer.status.code(), Some(0), "{arguments:?}: {}", text(&answer));
        }
    }
}

#[test]
fn trace_fails_if_a_limit_on_its_recording_is_violated() {
    let place = Place::with("");
    let limited = |limit: &str, bundle: &str| {
        let events =
            ["trace", "--quiet", "--events", "sched", "--output", bundle, "--limit", limit];
        place.punctual(&[&events[..], &["--", "sleep", "0.05"]].concat())
    };
    let wrong = limited("sched_waking->sched_switch", "none");
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    let violated = limited("sched_waking->sched_switch < 1ns", "violated");
    if violated.status.code() == Some(2) {
        println!("SKIPPED: events cannot be recorded here: {}", text(&violated).trim());
        return;
    }
    assert_eq!(violated.status.code(), Some(3), "{}", text(&violated));
    assert!(text(&violated).contains("is violated"), "{}", text(&violated));
    let shown = |bundle: &str| -> serde_json::Value {
        let shown = place.punctual(&["show", bundle, "--json"]);
        serde_json::from_slice(&shown.stdout).expect("a summary")
    };
    let summary = shown("violated");
    assert_eq!(
        (&summary["verdict"], &summary["ending"]["exit_code"]),
        (&"not-met".into(), &3.into())
    );
    let undecided = limited("no_such_point < 1s", "undecided");
    assert_eq!(undecided.status.code(), Some(4), "{}", text(&undecided));
    assert_eq!(shown("undecided")["verdict"], "undecided");
}
