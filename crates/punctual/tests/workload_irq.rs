//! `punctual measure irq`: its claims match the kernel's counters, hops sum up, and missing
//! prerequisites are reported before anything starts.

use crate::common::{self, Place, has_program, is_root, text};
use crate::irq::{figure, notes, series, whole_and_counted_but};
use punctual_testing::HiddenSamples;
use serde_json::Value;
use std::process::Output;

fn tried(place: &Place, arguments: &[&str]) -> Output {
    place
        .punctual(&[&["measure", "irq", "--quiet", "--json", "--count", "300"], arguments].concat())
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

fn measured(place: &Place, arguments: &[&str]) -> Value {
    read(&tried(place, arguments))
}

/// The result of `work`, and the maximum number of interrupts hidden from BPF programs meanwhile:
/// at most one every 500 µs occurs on a CPU here, including the thread's own each millisecond.
fn with_hidden<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let hidden = HiddenSamples::begin();
    let done = work();
    (done, hidden.samples(500_000))
}

/// Whether timestamps are available here; prints why not.
fn stamped(summary: &Value) -> bool {
    let absent = notes(summary).get("absent").and_then(Value::as_array);
    if let Some(absent) = absent.filter(|absent| !absent.is_empty()) {
        println!("SKIPPED: handlers are not stamped here: {}", absent[0]["why"]);
    }
    absent.is_none_or(Vec::is_empty)
}

#[test]
fn a_timer_is_followed_from_its_expiry_to_its_thread() {
    let place = Place::with("");
    let (summary, hidden) = with_hidden(|| measured(&place, &["--policy", "other"]));
    if stamped(&summary) {
        let hops = ["/to-handler", "/handler-to-expiry", "/expiry-to-thread"];
        whole_and_counted_but(&summary, &hops, 300, hidden);
        assert!(figure(&summary, "stamp-cost") > 0.0, "what a stamp costs is said");
    }
}

#[test]
fn without_the_right_to_stamp_the_whole_is_measured_and_the_rest_is_said() {
    let test = "without_the_right_to_stamp_the_whole_is_measured_and_the_rest_is_said";
    if !is_root(test) || !has_program("setpriv", "util-linux") {
        return;
    }
    let place = Place::with("");
    let mut command = std::process::Command::new("setpriv");
    command.args([
        "--bounding-set=-all",
        "--inh-caps=-all",
        env!("CARGO_BIN_EXE_punctual"),
        "measure",
        "irq",
    ]);
    command
        .args(["--quiet", "--json", "--count", "100", "--policy", "other"])
        .current_dir(place.path());
    let output = command.output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&output)));
    assert_eq!(series(&summary, "/whole")["count"], 100, "{summary}");
    for hop in ["/to-handler", "/handler-to-expiry", "/expiry-to-thread"] {
        assert_eq!(series(&summary, hop)["count"], 0, "nothing is made up");
    }
    let absent = notes(&summary)["absent"].to_string();
    assert!(absent.contains("to-handler") && absent.contains("CAP_BPF"), "{absent}");
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::with("");
    let cases: [(&[&str], &str); 8] = [
        (&["source=uio", "device=/dev/uio77"], "/dev/uio77: No such file"),
        (&["source=uio", "device=/dev/null"], "/dev/null is not a UIO device"),
        (&["source=edu", "device=/sys/bus/pci"], "is not QEMU's edu device"),
        (
            &["source=gpio", "device=/dev/gpiochip77", "out_line=1", "in_line=2"],
            "is there a GPIO controller?",
        ),
        (
            &["source=gpio", "device=/dev/null", "out_line=1", "in_line=2"],
            "/dev/null is not a GPIO chip",
        ),
        (&["source=gpio", "device=/dev/null", "out_line=1", "in_line=1"], "two different lines"),
        (&["source=membarrier", "target_cpu=8000"], "no thread can run on CPU 8000"),
        (&["source=uio"], "this source needs a device"),
    ];
    for (number, (settings, expected)) in cases.into_iter().enumerate() {
        let bundle = number.to_string();
        let mut arguments =
            vec!["measure", "irq", "--quiet", "--policy", "other", "--output", &bundle];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let output = place.punctual(&arguments);
        common::assert_refused(&output, &place.path().join(&bundle));
        let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{settings:?}: {said}");
    }
}
