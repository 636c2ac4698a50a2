//! `punctual measure`, and the contents of its summary.

use super::{Place, assert_refused, eventually, punctual, text, words};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A unique name for a bundle.
pub fn bundle() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("bundle-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// The summary that `punctual measure LINE` prints.
pub fn measured(place: &Place, line: &str) -> Value {
    let line = format!("measure {line} --quiet --json --output {}", bundle());
    let output = place.line(&line);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{line}: {error}: {}", text(&output)))
}

/// The message with which `punctual measure LINE` is refused before anything starts.
pub fn refused(place: &Place, line: &str) -> String {
    let name = bundle();
    let output = place.line(&format!("measure {line} --quiet --output {name}"));
    assert_refused(&output, &place.path().join(&name));
    text(&output)
}

/// `punctual measure LINE` for an hour into this bundle; it has samples.
pub fn endless(place: &Place, line: &str, name: &str) -> Child {
    let mut command = punctual();
    command.args(words(&format!("measure {line} --quiet --duration 1h --output {name}")));
    command.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("punctual");
    eventually("a checkpoint with samples", || {
        let shown = place.punctual(&["show", "--json", name]);
        let summary: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        summary["phases"][0]["series"][0]["count"].as_u64().is_some_and(|count| count > 0)
    });
    child
}

pub fn notes(summary: &Value) -> &Value {
    &summary["phases"][0]["measures"][0]["notes"]
}

pub fn figure(summary: &Value, name: &str) -> Option<f64> {
    let figures = notes(summary)["figures"].as_array()?.iter();
    figures.filter(|one| one["name"] == name).find_map(|one| one["value"].as_f64())
}

pub fn table<'s>(summary: &'s Value, name: &str) -> Option<&'s Value> {
    notes(summary)["tables"].as_array()?.iter().find(|table| table["name"] == name)
}

pub fn rows<'s>(summary: &'s Value, name: &str) -> &'s Vec<Value> {
    let table = table(summary, name).unwrap_or_else(|| panic!("no {name}: {summary}"));
    table["rows"].as_array().expect("rows")
}

/// The names of the series, with their numbers of samples.
pub fn counts(summary: &Value) -> Vec<(String, u64)> {
    let series = summary["phases"][0]["series"].as_array().expect("series").iter();
    let of = |one: &Value| {
        (one["name"].as_str().unwrap_or("").to_owned(), one["count"].as_u64().unwrap_or(0))
    };
    series.map(of).collect()
}

/// Checks that the validations agree, as far as counted; returns their number.
pub fn agrees(summary: &Value, what: &str) -> usize {
    let validations = notes(summary)["validations"].as_array().expect("validations");
    for validation in validations {
        match validation["counted"].get("known") {
            Some(_) => assert_eq!(validation["agrees"], true, "{what}: {validation}"),
            None => println!("SKIPPED: not counted here: {what}: {validation}"),
        }
    }
    validations.len()
}
