//! The selection of kept windows, and their storage.

use crate::common::{Place, eventually, is_root, kill, punctual, text, words};
use crate::injected::{Disturber, arena};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_spike_ends_the_run_and_is_there_to_be_explained() {
    let Some(arena) = arena("a_spike_ends_the_run_and_is_there_to_be_explained") else { return };
    let hog = Disturber::start("spiky", arena.cpu, Some(90), 8, 400);
    let Some(ended) = arena.timer("--duration 30s --stop-above 5ms") else { return };
    hog.stop();
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended));
    let document = arena.explained(&["--worst", "1"]);
    let spike = &document["samples"][0];
    assert!(spike["latency_ns"].as_i64().unwrap() > 5_000_000, "{document}");
    let worst = arena.place.summary()["phases"][0]["series"][0]["max"].as_i64();
    assert_eq!(spike["latency_ns"].as_i64(), worst, "the one that ended it is the worst");
    // The same for users, and for Perfetto.
    let report =
        arena.place.punctual(&["explain", "bundle", "--worst", "1", "--perfetto", "trace.pftrace"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    assert!(std::fs::metadata(arena.place.path().join("trace.pftrace")).unwrap().len() > 1_000);
}

#[test]
fn every_kind_of_measure_is_explained() {
    let Some(arena) = arena("every_kind_of_measure_is_explained") else { return };
    let cpu = arena.cpu;
    let kinds = ["timer", "switch", "syscall", "mutex", "storage", "heap", "spin"];
    let measure = |kind: &&str| {
        let policy = if *kind == "timer" { "priority = 80" } else { "policy = 'other'" };
        format!(
            "[[measure]]\nname = '{kind}'\nkind = '{kind}'\ncpus = '{cpu}'\n{policy}\nduration = \
             '1s'\n"
        )
    };
    let text = format!("[explain]\nworst = 3\n{}", kinds.iter().map(measure).collect::<String>());
    let Some(ended) = arena.run(&text) else { return };
    assert_eq!(ended.status.code(), Some(0), "{}", crate::common::text(&ended));
    let document = arena.explained(&[]);
    let series = document["series"].as_array().unwrap();
    let samples = document["samples"].as_array().unwrap();
    for kind in kinds {
        let of = |one: &&Value| one["series"].as_str().unwrap().split('/').next() == Some(kind);
        let counts: Vec<&Value> = series.iter().filter(of).collect();
        let kept: u64 = counts.iter().map(|one| one["kept"].as_u64().unwrap()).sum();
        assert!(kept > 0 && kept <= 3 * counts.len() as u64, "{kind}: {counts:?}");
        assert_eq!(samples.iter().filter(of).count() as u64, kept, "{kind}");
    }
    // The kept windows are those of the worst samples in the statistics.
    let summary = arena.place.summary();
    for shown in summary["phases"][0]["series"].as_array().unwrap() {
        let of = |one: &&Value| one["series"] == shown["name"];
        let latest = samples.iter().filter(of).map(|one| one["latency_ns"].as_i64().unwrap()).max();
        let counts = series.iter().find(of).unwrap();
        if counts["missed_overwritten"] == 0 && counts["unseen"] == 0 {
            assert_eq!(latest, shown["max"].as_i64(), "{}", shown["name"]);
        }
    }
}

#[test]
fn what_was_kept_survives_the_death_of_the_run() {
    if !is_root("what_was_kept_survives_the_death_of_the_run") {
        return;
    }
    let place = Place::with("");
    let mut command = punctual();
    command.args(words(
        "measure timer --cpus 0 --duration 60s --explain --no-calibration --quiet --output bundle",
    ));
    let mut child = command
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let kept = || windows(&place.bundle()).len();
    let mut ended = false;
    eventually("windows", || {
        ended = child.try_wait().unwrap().is_some();
        ended || kept() == 20
    });
    if ended {
        println!("SKIPPED: what_was_kept_survives_the_death_of_the_run lacks kernel events");
        return;
    }
    kill(child.id(), "KILL");
    child.wait().unwrap();
    let report = place.punctual(&["explain", "bundle", "--json"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    let document: Value = serde_json::from_slice(&report.stdout).unwrap();
    // One may have been about to replace another.
    assert!((20..=25).contains(&document["samples"].as_array().unwrap().len()), "{document}");
    assert!(document["findings"].to_string().contains("windows-cut-off"));
    let named =
        |sample: &Value| sample["task"].as_str().is_some_and(|name| !name.starts_with("tid "));
    assert!(document["samples"].as_array().unwrap().iter().all(named));
}

fn windows(bundle: &Path) -> BTreeSet<std::ffi::OsString> {
    let files = std::fs::read_dir(bundle.join("windows"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    files.filter(|name| name.to_string_lossy().ends_with(".window")).collect()
}

#[test]
fn a_recording_of_the_whole_run_explains_too() {
    if !is_root("a_recording_of_the_whole_run_explains_too") {
        return;
    }
    let place = Place::with("");
    let arguments =
        ["measure", "timer", "--cpus", "0", "--duration", "500ms", "--quiet", "--output", "bundle"];
    let recorded =
        place.punctual(&[&arguments[..], &["--trace", "sched,irq,vectors,softirq"]].concat());
    if recorded.status.code() == Some(2) {
        println!(
            "SKIPPED: a_recording_of_the_whole_run_explains_too lacks kernel events: {}",
            text(&recorded).trim()
        );
        return;
    }
    let report = place.punctual(&["explain", "bundle", "--json", "--worst", "5"]);
    let document: Value = serde_json::from_slice(&report.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&report)));
    assert_eq!(
        (document["source"].as_str(), document["samples"].as_array().unwrap().len()),
        (Some("recording"), 5)
    );
    let of_pair = place.line("explain bundle --json --worst 2 --pair 'sched_waking->sched_switch'");
    let document: Value = serde_json::from_slice(&of_pair.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&of_pair)));
    assert_eq!(document["samples"].as_array().unwrap().len(), 2, "{document}");
    let wrong = place.punctual(&["explain", "bundle", "--series", "nobody"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong).contains("there is no series `nobody`; known are timer"),
        "{}",
        text(&wrong)
    );
}

#[test]
fn explaining_a_bundle_without_events_suggests_recording_them() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles/good");
    let report = punctual().arg("explain").arg(fixture).output().unwrap();
    assert_eq!(report.status.code(), Some(2));
    assert!(text(&report).contains("punctual run --explain"), "{}", text(&report));
}

#[test]
fn every_fixture_is_explained_or_refused_with_the_reason() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    let mut sources = BTreeSet::new();
    for fixture in std::fs::read_dir(fixtures).unwrap().flatten().map(|entry| entry.path()) {
        let report = punctual().args(["explain", "--json"]).arg(&fixture).output().unwrap();
        match report.status.code() {
            Some(0) => {
                let document: Value = serde_json::from_slice(&report.stdout).unwrap();
                for sample in document["samples"].as_array().unwrap() {
                    let parts = sample["parts"].as_array().unwrap().iter();
                    let sum: i64 = parts.map(|part| part["ns"].as_i64().unwrap()).sum();
                    assert_eq!(
                        Some(sum),
                        sample["latency_ns"].as_i64(),
                        "{}: {sample}",
                        fixture.display()
                    );
                }
                let any = !document["samples"].as_array().unwrap().is_empty();
                sources.extend(any.then(|| document["source"].as_str().unwrap().to_owned()));
            }
            Some(2) => assert!(
                text(&report).contains("no events that explain samples"),
                "{}",
                text(&report)
            ),
            _ => panic!("{}: {}", fixture.display(), text(&report)),
        }
        let for_people = punctual().arg("explain").arg(&fixture).output().unwrap();
        assert_eq!(for_people.status.code(), report.status.code(), "{}", text(&for_people));
        let shown = punctual().arg("show").arg(&fixture).output().unwrap();
        assert_eq!(
            text(&shown).contains("worst samples explained"),
            fixture.ends_with("explained"),
            "{}",
            text(&shown)
        );
    }
    assert!(sources.contains("windows"), "{sources:?}");
}
