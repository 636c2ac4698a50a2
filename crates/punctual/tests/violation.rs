//! `--on-violation`: a command that runs once when a requirement is violated.

use crate::common::{Place, text};

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
