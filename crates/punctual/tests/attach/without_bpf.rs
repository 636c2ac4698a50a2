//! `punctual attach` without the right to use BPF: through tracefs.

use super::{CYCLES, OWN, assert_kind, compiled};
use crate::common::text;
use serde_json::Value;

/// Trace instances of ended punctual processes.
fn left_behind() -> Vec<String> {
    let instances = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten();
    let names = instances.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let has_ended = |name: &String| {
        let pid = name.strip_prefix("punctual-").and_then(|rest| rest.split('-').next());
        pid.is_some_and(|pid| !std::path::Path::new("/proc").join(pid).exists())
    };
    names.filter(has_ended).collect()
}

#[test]
fn by_request_and_explained_from_a_recording() {
    let Some(place) = compiled() else { return };
    let command = ["./periodic", "absolute", CYCLES];
    let output = super::attached(&place, &["--backend", "tracefs", "--explain"], &command);
    if text(&output).contains("tracefs is not possible") {
        println!("SKIPPED: attaching through tracefs: {}", text(&output));
        return;
    }
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    assert_eq!(left_behind(), [""; 0]);
    let summary = place.summary();
    assert_kind(&summary, "absolute", true);
    let finding = |id: &str| {
        let findings = summary["findings"].as_array().unwrap();
        findings.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{findings:#?}"))
    };
    assert_eq!(finding("cycles-without-bpf")["severity"], "note", "it was requested");
    finding("explained-from-recording");
    let explained = place.punctual(&["explain", "--json", "bundle"]);
    assert_eq!(explained.status.code(), Some(0), "{}", text(&explained));
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(explained["source"], "recording");
    let samples = explained["samples"].as_array().unwrap();
    assert!(!samples.is_empty(), "{explained:#}");
    for sample in samples {
        let parts = sample["parts"].as_array().unwrap().iter().filter_map(|one| one["ns"].as_i64());
        let whole = sample["latency_ns"].as_i64().unwrap();
        assert_eq!(parts.sum::<i64>(), whole, "{sample:#}");
    }
}
