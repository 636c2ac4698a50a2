//! The report on a bundle with a recording, in a real browser: tables, timeline, zooming; nothing hostile becomes markup.

#[path = "browser/mod.rs"]
mod browser;
#[path = "recording/mod.rs"]
mod recording;
#[path = "html/mod.rs"]
mod support;

use browser::{Seen, assert_drawn, open};
use punctual_bundle::Bundle;
use punctual_core::event::{FunctionName, TaskName};
use punctual_report::html::recording::{Digest, RecordingSource};
use punctual_report::html::{ReportInput, report};
use recording::Recording;
use std::path::Path;
use support::synthetic::{Load, Recipe, write};

fn digest(all: &Recording) -> Digest {
    let source = RecordingSource {
        recorded: &all.recorded,
        names: &all.names,
        series: vec!["timer/cpu0".to_owned()],
        requests: Vec::new(),
    };
    Digest::of(&source, || all.events.iter().copied())
}

fn page(bundle: &Bundle, all: &Recording) -> String {
    let summary = punctual_analyze::summarize(bundle);
    let digest = digest(all);
    report(&[ReportInput { recording: Some(&digest), ..ReportInput::of(bundle, &summary) }]).unwrap()
}

/// Of a recorder alone: no series.
fn recording_only(directory: &Path) -> Bundle {
    write(&directory.join("b"), &Recipe { phases: Vec::new(), ..Recipe::default() })
}

fn data(document: &str, name: &str) -> f64 {
    let after = document.split(&format!("{name}=\"")).nth(1).unwrap_or_else(|| panic!("no {name}"));
    after.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn play() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = recording_only(directory.path());
    let all = recording::recording(30);
    let page = page(&bundle, &all);
    std::fs::write("/tmp/pf/rec.html", &page).unwrap();
    println!("{} bytes", page.len());
    let Some(seen) = open(&page, directory.path()) else { return };
    println!("{:?}", seen.console);
    println!("{}", &seen.document.split("<body").next().unwrap()[..300]);
}
