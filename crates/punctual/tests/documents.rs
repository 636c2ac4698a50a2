//! `show` and `report` for documents other than bundles: searches, labs, comparisons.

use crate::common::{Place, text};
use serde_json::{Value, json};
use std::path::Path;

fn fixture(name: &str) -> String {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    bundles.join(name).display().to_string()
}

/// The output of a successful command.
fn printed(place: &Place, arguments: &[&str]) -> String {
    let ended = place.punctual(arguments);
    assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {}", text(&ended));
    String::from_utf8(ended.stdout).unwrap()
}

fn page(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap()
}

fn search() -> Value {
    let trial = |number: u64, longest: u64| {
        json!({
            "number": number, "stage": "survey", "loads": ["true"], "state": "measured",
            "seed": 1, "why": null, "worst_ns": 1_000 * longest, "irqs_disabled": longest,
            "bundle": null, "console": null,
        })
    };
    json!({
        "schema": "punctual-hunt/2", "kernel": "6.1", "ns_per_instruction": 8,
        "measured_ns": 200_000_000, "seed": 1, "loads": 1, "surveyed": 1, "least_percent": 90,
        "trials": [trial(1, 10), trial(2, 40), trial(3, 20)], "worst": null, "causes": [],
        "more_causes": 0, "against": [], "required": [], "failures": [],
    })
}

#[test]
fn a_saved_search_is_shown_with_its_trials() {
    let place = Place::with("");
    std::fs::create_dir(place.path().join("search")).unwrap();
    place.write("search/hunt.json", search().to_string().as_bytes());
    assert!(printed(&place, &["show", "search"]).contains("search on kernel 6.1"));
    let shown: Value =
        serde_json::from_str(&printed(&place, &["show", "--json", "search"])).unwrap();
    assert_eq!(shown["trials"].as_array().map(Vec::len), Some(3));
    assert_eq!(printed(&place, &["report", "search"]), "search/report.html\n");
    let page = page(&place, "search/report.html");
    assert!(page.contains("by trial; the line is the longest so far"), "{page}");
    let both = place.punctual(&["report", "search", &fixture("good")]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both));
    assert!(text(&both).contains("search is a search: it has a page of its own"));
    place.write("search/hunt.json", b"{\"schema\": \"punctual-hunt/1\"}");
    let old = place.punctual(&["show", "search"]);
    assert_eq!(old.status.code(), Some(2), "{}", text(&old));
}

#[test]
fn a_saved_comparison_is_shown_unchanged() {
    let place = Place::with("");
    let good = fixture("good");
    let saved = printed(&place, &["compare", &good, &good, "--json"]);
    place.write("c.json", saved.as_bytes());
    assert_eq!(printed(&place, &["show", "c.json"]), printed(&place, &["compare", &good, &good]));
    assert_eq!(printed(&place, &["show", "--json", "c.json"]), saved);
    assert_eq!(printed(&place, &["report", "c.json"]), "./c.html\n");
    assert_eq!(printed(&place, &["report", "c.json", "-o", "-"]), page(&place, "c.html"));
}

#[test]
fn a_report_as_markdown_is_one_screen() {
    let place = Place::with("");
    let good = fixture("good");
    let text = printed(&place, &["report", &good, "--format", "markdown"]);
    assert!(text.lines().count() < 40 && text.starts_with("### "), "{text}");
    let [bold] = text.lines().filter(|line| line.starts_with("**")).collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    let shown = printed(&place, &["show", &good]);
    let verdict = shown.lines().find_map(|line| line.strip_prefix("verdict")).expect("a verdict");
    assert!(bold.contains(verdict.trim().split([':', ' ']).nth(1).unwrap_or_default()), "{bold}");
    assert!(text.contains("| series |") && text.contains("| --- |"), "{text}");
}

#[test]
fn unknown_json_is_refused() {
    let place = Place::with("");
    place.write("x.json", b"{\"schema\": \"another\"}");
    let shown = place.punctual(&["show", "x.json"]);
    assert_eq!(shown.status.code(), Some(2), "{}", text(&shown));
}
