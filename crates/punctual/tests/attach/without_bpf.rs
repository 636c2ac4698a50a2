//! `punctual attach` by who may not use BPF: through tracefs.

use super::{CYCLES, OWN, assert_kind, compiled, cyclictest, figure, measure, part, series};
use crate::common::{Place, has_program, text};
use serde_json::Value;
use std::process::{Command, Output};

/// Root without the rights that BPF needs; the kernel refuses its programs.
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

/// The summary of the program in this mode, which says how it was measured.
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
fn without_bpf_an_absolute_sleeper() {
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
fn without_bpf_a_timerfd_that_expired_before_it_was_read() {
    let Some(place) = compiled() else { return };
    let Some(summary) = summary(&place, "timerfd-late") else { return };
    assert_kind(&summary, "timerfd", true);
    let measure = measure(&summary, "periodic");
    assert!(figure(measure, "overruns") >= 35.0, "{measure:#}");
    assert!(part(&summary, "periodic/wakeup", "overrun") > 10_000.0, "{summary:#}");
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn without_bpf_cyclictest_prints_the_same() {
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

#[test]
fn without_bpf_nothing_is_explained() {
    let Some(place) = compiled() else { return };
    let Some(output) = attached(&place, &["--explain"], &["./periodic", "absolute", "10", "0"])
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("BPF") && !place.bundle().exists(), "{}", text(&output));
}
