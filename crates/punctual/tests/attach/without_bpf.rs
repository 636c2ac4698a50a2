//! `punctual attach` without the right to use BPF: through tracefs.

use super::{CYCLES, OWN, assert_kind, compiled, cyclictest, figure, measure, part, series};
use crate::common::{Place, has_program, text};
use serde_json::Value;
use std::process::{Command, Output};

/// Root without the capabilities for BPF; the kernel refuses its programs.
fn attached(place: &Place, more: &[&str], command: &[&str]) -> Option<Output> {
    if !has_program("setpriv", "util-linux") {
        return None;
    }
    let output = Command::new("setpriv")
        .arg("--bounding-set=-bpf,-perfmon,-sys_admin")
        .args([env!("CARGO_BIN_EXE_punctual"), "attach", "--quiet", "--output", "bundle"])
        .args(more)
        .arg("--")
        .args(command)
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = text(&output);
    if said.contains("cannot be measured here") && said.contains("tracefs") {
        println!("SKIPPED: attaching without BPF lacks tracefs: {said}");
        return None;
    }
    Some(output)
}

/// The summary of the program in this mode, including how it was measured.
fn summary(place: &Place, mode: &str) -> Option<Value> {
    let output = attached(place, &[], &["./periodic", mode, CYCLES, "0"])?;
    assert_eq!(output.status.code(), OWN, "the command's own: {}", text(&output));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    let summary = place.summary();
    let findings = summary["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["id"] == "cycles-without-bpf");
    let why = found.unwrap_or_else(|| panic!("{findings:#?}"))["message"].as_str().unwrap();
    assert!(why.contains("tracefs"), "{why}");
    Some(summary)
}

#[test]
fn without_bpf_a_loop_with_absolute_sleeps_is_recognised() {
    let Some(place) = compiled() else { return };
    let Some(summary) = summary(&place, "absolute") else { return };
    assert_kind(&summary, "absolute", true);
    let account = &series(&summary, "periodic/response")["account"]["known"]["whole"];
    let parts: f64 =
        account["mean_ns"].as_object().unwrap().values().map(|ns| ns.as_f64().unwrap()).sum();
    let mean = series(&summary, "periodic/response")["mean"].as_f64().unwrap();
    assert!((parts - mean).abs() < 1.0, "the parts add up to {parts}, the mean is {mean}");
    let own = part(&summary, "periodic/response", "self");
    assert!(own >= 50_000.0, "{own} ns of its own: {account:#}");
}

#[test]
fn without_bpf_cycles_of_a_late_timerfd_loop_are_overruns() {
    let Some(place) = compiled() else { return };
    let Some(summary) = summary(&place, "timerfd-late") else { return };
    assert_kind(&summary, "timerfd", true);
    let measure = measure(&summary, "periodic");
    assert!(figure(measure, "overruns") >= 35.0, "{measure:#}");
    assert!(part(&summary, "periodic/wakeup", "overrun") > 10_000.0, "{summary:#}");
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn without_bpf_attach_measures_the_latencies_that_cyclictest_prints() {
    let Some(place) = compiled().filter(|_| has_program("cyclictest", "rt-tests")) else { return };
    let command = ["cyclictest", "-m", "-p95", "-i1000", "-l3000", "-v"];
    let Some(output) = attached(&place, &[], &command) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let theirs = cyclictest::latencies(&String::from_utf8_lossy(&output.stdout));
    let summary = place.summary();
    let name = cyclictest::measuring_thread(&summary["phases"][0]);
    let ours = series(&summary, &format!("{name}/wakeup"));
    cyclictest::assert_same_median(ours, &theirs);
    let count = ours["count"].as_u64().unwrap();
    assert!(count + 10 >= theirs.len() as u64, "{count} cycles of {}", theirs.len());
}

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
    let command = ["./periodic", "absolute", CYCLES, "0"];
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

#[test]
fn the_btf_backend_is_refused_without_bpf() {
    let Some(place) = compiled() else { return };
    let command = ["./periodic", "absolute", "10", "0"];
    let Some(output) = attached(&place, &["--backend", "btf"], &command) else { return };
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("BPF") && !place.bundle().exists(), "{}", text(&output));
}
