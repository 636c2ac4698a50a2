//! Removes each removable proof of validity on this kernel: the run is invalid, exit code 4, never
//! met.

use crate::common::{Place, eventually, is_root, text};
use std::process::Output;

/// A timer with a requirement that any run meets.
fn experiment(length: &str, rest: &str) -> String {
    format!(
        "[[measure]]\nname = \"timer\"\nkind = \"timer\"\ncpus = \"0\"\nperiod = \
         \"1ms\"\n{length}\nrequire = [\"max < 100s\"]\n{rest}"
    )
}

/// The measuring thread of a run, once it measures.
fn measuring(place: &Place) -> String {
    let meta = place.bundle().join("phases/000/0000.meta.json");
    eventually("a second checkpoint", || {
        let log = place.bundle().join("phases/000/0000.log");
        std::fs::metadata(log).is_ok_and(|log| log.len() > 1_000)
    });
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
    meta["tid"].to_string()
}

/// Asserts exit code 4, an invalid requirement, and the failed proof with this reason in each
/// output.
fn assert_invalid(place: &Place, ran: &Output, proof: &str, why: &str) {
    assert_eq!(ran.status.code(), Some(4), "{}", text(ran));
    assert!(text(ran).contains("INVALID"), "{}", text(ran));
    let summary = place.summary();
    assert_eq!(summary["verdict"], "invalid", "{summary}");
    assert_eq!(summary["validity"]["verdict"], "invalid");
    let proofs = summary["validity"]["proofs"].as_array().unwrap();
    let fails = |one: &serde_json::Value| one["proof"] == proof && one["outcome"] == "fails";
    let failed = proofs
        .iter()
        .find(|one| fails(one))
        .unwrap_or_else(|| panic!("{proof} is not in {proofs:#?}"));
    assert!(failed["why"].as_str().unwrap().contains(why), "{failed}");
    let junit = std::fs::read_to_string(place.path().join("j.xml")).unwrap();
    assert!(
        junit.contains("type=\"invalid\"") && junit.contains(&format!("valid: {proof}")),
        "{junit}"
    );
    let lava = std::fs::read_to_string(place.path().join("l")).unwrap();
    assert!(lava.contains("max-lt-100s fail\n") && lava.contains(why), "{lava}");
}

#[test]
fn two_that_measure_one_cpu_are_found_and_decide_nothing() {
    if !is_root("two_that_measure_one_cpu") {
        return;
    }
    let (one, other) = (experiment("duration = \"6s\"", ""), experiment("duration = \"2s\"", ""));
    let (one, other) = (Place::with(&one), Place::with(&other));
    let first = one.start();
    measuring(&one);
    let ran = other.line("run -q experiment.toml -o bundle --junit j.xml --lava l");
    assert_invalid(&other, &ran, "others", "also measured on CPU 0");
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(4), "who was there before sees it too: {}", text(&first));
    assert!(text(&first).contains("another punctual measured on the same CPU"), "{}", text(&first));
}
