//! `--on-violation`: a command that runs once when a requirement is violated.

use crate::common::{Place, is_root, text};

fn experiment(require: &str, rest: &str) -> String {
    format!(
        "[[measure]]\nname = \"timer\"\nkind = \"timer\"\ncpus = \"0\"\nthreads = 2\n\
         policy = \"other\"\nperiod = \"1ms\"\nduration = \"2s\"\nrequire = [\"{require}\"]\n{rest}"
    )
}

/// The findings of this kind.
fn findings(place: &Place, id: &str) -> Vec<serde_json::Value> {
    let summary = place.summary();
    let all = summary["findings"].as_array().expect("a list of findings");
    all.iter().filter(|finding| finding["id"] == id).cloned().collect()
}

const COMMAND: &str = "echo $PUNCTUAL_SERIES/$PUNCTUAL_VALUE/$PUNCTUAL_LIMIT >>ran; \
                       echo $PUNCTUAL_REQUIREMENT; cp $PUNCTUAL_BUNDLE/bundle.json then; exit 7";

#[test]
fn the_command_runs_once_while_the_run_goes_on_and_its_exit_status_is_reported() {
    let place = Place::with(&experiment("max < 1ns", ""));
    let run = ["run", "-q", "experiment.toml", "-o", "bundle", "--on-violation", COMMAND];
    let ran = place.punctual(&run);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    let written = std::fs::read_to_string(place.path().join("ran")).expect("it ran");
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 1, "once: {written}");
    let words: Vec<&str> = lines[0].split('/').collect();
    assert_eq!((words[0], words[1], words[4]), ("main", "timer", "1"), "{written}");
    assert!(words[3].parse::<i64>().expect("ns") > 1, "{written}");
    let printed = std::fs::read_to_string(place.bundle().join("on-violation.log"));
    assert_eq!(printed.expect("its output"), "max < 1ns\n");
    // The command ran before the end, which the manifest of that time does not contain.
    let then = std::fs::read(place.path().join("then")).expect("a copy of bundle.json");
    let then: serde_json::Value = serde_json::from_slice(&then).expect("JSON");
    assert!(then["ending"].is_null(), "{then}");
    let found = findings(&place, "on-violation-failed");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["message"].to_string().contains("exit status: 7"), "{found:?}");
}

#[test]
fn without_a_violation_the_on_violation_command_is_not_run() {
    let place = Place::with(&experiment("max < 1000s", "").replace("2s", "1s"));
    let run = ["run", "-q", "experiment.toml", "-o", "bundle", "--on-violation", COMMAND];
    let ran = place.punctual(&run);
    assert!(!place.path().join("ran").exists(), "{}", text(&ran));
    for id in ["on-violation", "on-violation-failed"] {
        assert!(findings(&place, id).is_empty());
    }
}

/// A requirement decided only at the end, and the key of the file.
#[test]
fn a_violation_found_at_the_end_runs_the_on_violation_command() {
    let file = experiment("count > 1000000", "[experiment]\non_violation = 'touch ran'\n")
        .replace("2s", "200ms");
    let place = Place::with(&file);
    let ran = place.punctual(&["run", "-q", "experiment.toml", "-o", "bundle"]);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    assert!(place.path().join("ran").exists());
    assert_eq!(findings(&place, "on-violation").len(), 1);
}

#[test]
fn a_latency_above_stop_above_runs_the_on_violation_command() {
    let file = experiment("count > 0", "stop_above = \"1ns\"\n");
    let place = Place::with(&file);
    let run = ["run", "-q", "experiment.toml", "-o", "bundle", "--on-violation", COMMAND];
    let ran = place.punctual(&run);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    let printed = std::fs::read_to_string(place.bundle().join("on-violation.log"));
    assert_eq!(printed.expect("its output"), "max <= 1ns\n");
}

#[test]
fn the_window_of_the_worst_sample_is_kept_before_it_runs() {
    if !is_root("the_window_of_the_worst_sample_is_kept_before_it_runs") {
        return;
    }
    let place = Place::with(&experiment("max < 1ns", ""));
    let command = "ls $PUNCTUAL_BUNDLE/windows/*.window >windows";
    let run =
        ["run", "-q", "--explain", "experiment.toml", "-o", "bundle", "--on-violation", command];
    let ran = place.punctual(&run);
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    let windows = std::fs::read_to_string(place.path().join("windows")).expect("it ran");
    assert!(windows.lines().count() > 0);
}

#[test]
fn attached_programs_have_it_too() {
    if !is_root("attached_programs_have_it_too") {
        return;
    }
    let place = Place::with("");
    let command = "echo $PUNCTUAL_SERIES $PUNCTUAL_REQUIREMENT >>ran";
    let mut attach = vec!["attach", "-q", "-o", "bundle", "--duration", "2s"];
    attach.extend(["--require", "response max < 1ns", "--on-violation", command]);
    attach.extend(["--", "sh", "-c", "while :; do sleep 0.02; done"]);
    let ran = place.punctual(&attach);
    if text(&ran).contains("cannot be measured here") {
        println!("SKIPPED: attached_programs_have_it_too lacks BPF: {}", text(&ran));
        return;
    }
    let written = std::fs::read_to_string(place.path().join("ran"));
    let written = written.unwrap_or_else(|why| panic!("{why}: {}", text(&ran)));
    assert_eq!(written.lines().count(), 1, "{written}");
    assert!(written.ends_with("/response max < 1ns\n"), "{written}");
}
