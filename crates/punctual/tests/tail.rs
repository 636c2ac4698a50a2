//! `punctual tail` on the fixtures: its output, and that it refuses to predict what it cannot.

use crate::common::{Place, text};
use std::path::Path;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/bundles")
        .join(name)
        .display()
        .to_string()
}

#[test]
fn a_short_run_has_no_tail_model() {
    let place = Place::with("");
    let good = fixture("good");
    let said =
        place.line(&format!("tail {good} --series loaded/timer/cpu0 --gates --report t.html"));
    assert_eq!(said.status.code(), Some(0), "{}", text(&said));
    for words in ["153.7 µs", "95 % confidence", "29,956 independent", "too few for a model"] {
        assert!(text(&said).contains(words), "{words}: {}", text(&said));
    }
    assert!(!text(&said).contains("idle/timer"), "{}", text(&said));
    let page = std::fs::read_to_string(place.path().join("t.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("No model is valid")
            && !page.contains("<script")
    );
    let json = place.punctual(&["tail", &good, "--json"]);
    let tails: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(tails["schema"], "punctual-tail/2");
    assert_eq!(tails["series"].as_array().unwrap().len(), 4);
    assert_eq!(tails["series"][0]["model"]["accepted"], false);
    assert_eq!(tails["series"][0]["seen"]["quantiles"][3]["needed"], 299_572);
}

#[test]
fn without_samples_a_histogram_is_assumed_to_be_independent() {
    let said = Place::with("").punctual(&["tail", &fixture("imported")]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said));
    assert!(text(&said).contains("assumed to be independent, which is unknown"), "{}", text(&said));
    assert!(text(&said).contains("keep_samples"), "{}", text(&said));
}

#[test]
fn an_unknown_series_is_refused() {
    let said = Place::with("").punctual(&["tail", &fixture("good"), "--series", "nothing"]);
    assert_eq!(said.status.code(), Some(2), "{}", text(&said));
    assert!(text(&said).contains("idle/timer/cpu0"), "{}", text(&said));
}
