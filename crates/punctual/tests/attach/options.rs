//! `attach` supports the options of a run: for weeks, with a recording, and after a kill.

use super::{OWN, compiled};
use crate::common::{eventually, punctual, text};
use serde_json::Value;
use std::process::Stdio;

fn count(summary: &Value) -> Option<u64> {
    let all = summary["phases"][0]["series"].as_array()?;
    all.iter().find(|one| one["name"] == "periodic/response")?["count"].as_u64()
}

#[test]
fn attach_continues_in_its_bundle_with_lines_and_recording() {
    let Some(place) = compiled() else { return };
    let options = ["attach", "--quiet", "--forever", "--trace", "sched", "--continue", "bundle"];
    let arguments =
        |cycles: &'static str| [&options[..], &["--", "./periodic", "absolute", cycles]].concat();
    let mut killed = punctual()
        .args(arguments("100000"))
        .current_dir(place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let saved = || {
        let shown = place.punctual(&["show", "--json", "bundle"]);
        serde_json::from_slice(&shown.stdout).is_ok_and(|shown: Value| count(&shown) > Some(0))
    };
    eventually("saved figures", saved);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let output = place.punctual(&arguments("300"));
    // The unmeasured time decides nothing here: there is no requirement.
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let summary = place.summary();
    assert!(summary["gaps"][0]["length_ns"].as_i64() > Some(0), "{}", summary["gaps"]);
    let part = place.bundle().join("parts/001");
    let of_part = std::fs::read(part.join("summary.json")).expect("it is there");
    let of_part: Value = serde_json::from_slice(&of_part).expect("JSON");
    assert!(
        count(&of_part) > Some(0) && count(&summary) > count(&of_part),
        "the figures are of both parts: {summary:#}"
    );
    assert!(part.join("recording").is_dir(), "events are recorded");
    let lines = part.join("phases/000/0001.lines");
    assert!(lines.metadata().is_ok_and(|of| of.len() > 100), "the last line is kept");
    let refused = |arguments: &[&str], why: &str| {
        let output = place.punctual(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(why), "{}", text(&output));
    };
    let again = ["attach", "--continue", "bundle", "--forever"];
    refused(&[&again[..], &["--", "sh"]].concat(), "its run ended: completed");
    refused(&["attach", "--cpus", "0", "--explain"], "--trace sched");
}
