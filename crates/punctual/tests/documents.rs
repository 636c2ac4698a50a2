//! `show` and `report` for documents other than bundles: labs, comparisons.

use crate::common::{Place, text};
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
    let both = place.punctual(&["report", "c.json", &good]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both));
    assert!(text(&both).contains("c.json is a comparison: it has a page of its own"));
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
