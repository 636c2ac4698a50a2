//! `punctual measure testpoint-cost`: every way of this system, cheapest first where that must hold
//! anywhere.

use crate::common::{Place, text};
use serde_json::Value;

#[test]
fn every_test_point_mechanism_is_measured_or_gives_a_reason() {
    let place = Place::with("");
    let arguments =
        ["measure", "testpoint-cost", "--quiet", "--json", "--policy", "other", "--count", "3000"];
    let output = place.punctual(&[&arguments[..], &["--output", "bundle"]].concat());
    let summary: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&output)));
    let mechanisms = summary["mechanisms"].as_array().unwrap();
    let names: Vec<&str> =
        mechanisms.iter().filter_map(|mechanism| mechanism["name"].as_str()).collect();
    for name in [
        "clock",
        "ring",
        "syscall",
        "procfs",
        "device",
        "tracefs",
        "trace_marker_raw",
        "uprobe",
        "lttng",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for mechanism in mechanisms {
        match mechanism.get("unavailable") {
            Some(why) => {
                assert_eq!(
                    (&mechanism["count"], &mechanism["median_ns"]),
                    (&Value::from(0), &Value::Null),
                    "{mechanism}"
                );
                println!("SKIPPED: {} is unavailable: {why}", mechanism["name"]);
            }
            None => {
                assert_eq!(mechanism["count"], 3_000, "{mechanism}");
                let figure = |key: &str| {
                    mechanism[key].as_i64().unwrap_or_else(|| panic!("{key}: {mechanism}"))
                };
                assert!(
                    figure("min_ns") <= figure("median_ns")
                        && figure("median_ns") <= figure("p99_ns"),
                    "{mechanism}"
                );
                assert!(figure("p99_ns") <= figure("max_ns"), "{mechanism}");
            }
        }
    }
    let median = |name: &str| {
        mechanisms.iter().find(|m| m["name"] == name).and_then(|m| m["median_ns"].as_i64())
    };
    if let Some((ring, system_call)) = median("ring").zip(median("syscall")) {
        assert!(
            ring < system_call,
            "a point in the ring takes {ring} ns, a system call {system_call}"
        );
    }
    for validation in
        summary["phases"][0]["measures"][0]["notes"]["validations"].as_array().unwrap()
    {
        assert_ne!(validation["agrees"], false, "{validation}");
    }
    assert_eq!(place.summary()["mechanisms"], summary["mechanisms"], "the bundle says the same");
}

#[test]
fn a_way_twice_is_refused() {
    let place = Place::with("");
    let refused =
        place.punctual(&["measure", "testpoint-cost", "-q", "-s", "mechanisms=['ring', 'ring']"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
}
