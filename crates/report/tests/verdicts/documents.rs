//! Labs and comparisons: in all outcomes, terminal, page, JUnit and exit code agree.

use super::outputs::is_well;
use punctual_bundle::Exit;
use punctual_bundle::comparison::Comparison;
use punctual_bundle::lab::LabDocument;
use punctual_bundle::summary::VerdictWord;
use punctual_report::terminal::ShowOptions;
use punctual_report::{document, export};
use serde_json::{Value, json};

const WORDS: [(&str, Exit); 4] = [
    ("met", Exit::Done),
    ("not-met", Exit::NotMet),
    ("undecided", Exit::NoEvidence),
    ("invalid", Exit::NoEvidence),
];

/// Checks that all outputs agree with the exit code.
fn agree(way: &str, exit: Exit, text: &str, page: &str, junit: Vec<u8>) {
    let well = exit == Exit::Done;
    let junit = String::from_utf8(junit).unwrap();
    let (page_is_well, banner) = is_well(page);
    assert_eq!(page_is_well, well, "{way}: {banner}");
    assert_eq!(!junit.contains("<failure") && !junit.contains("<error"), well, "{way}: {junit}");
    let alarms = [
        "not met",
        "NOT MET",
        "ndecided",
        "UNDECIDED",
        "nvalid",
        "INVALID",
        "not run",
        "r2 differ",
        "panic",
    ];
    assert_eq!(!alarms.iter().any(|alarm| text.contains(alarm)), well, "{way}: {text}");
}

fn lab(verdict: Option<&str>, state: &str, equal: Option<bool>, finished: bool) -> LabDocument {
    let trouble: &[&str] = match (state, equal) {
        ("failed", _) => &["r1 failed, the guest's kernel panicked"],
        ("waiting", _) => &["r1 was not run"],
        (_, Some(false)) => &["the samples of r1 and r2 differ"],
        _ => &[],
    };
    let requirements: Vec<Value> = verdict
        .iter()
        .map(|word| json!({ "requirement": "max < 1ms", "verdict": word, "value": 5_000.0 }))
        .collect();
    let figures = json!({
        "phase": "main", "series": "timer/cpu0", "measure": "timer", "count": 100, "lost": 0,
        "overruns": 0, "min": 1_000, "mean": 2_000.0, "median": 2_000, "max": 5_000,
        "stddev": 1.0, "percentiles": {},
    });
    let mut series = figures.clone();
    for (key, value) in [
        ("modes", json!([])),
        ("worst_seed", Value::Null),
        ("best_max", Value::Null),
        ("requirements", json!(requirements)),
    ] {
        series[key] = value;
    }
    let run = json!({
        "bundle": null, "digest": null, "took": null, "exit_code": 0,
    });
    let document = json!({
        "schema": "punctual-lab/1", "punctual": "0", "name": "ways",
        "created": "2026-11-21T08:00:00Z", "finished": finished, "axes": [], "seeds": [],
        "repeat": 1, "requirements": [], "limits": [], "published": [], "verdict": verdict,
        "cells": [{
            "name": "one", "axes": {}, "target": "here", "state": state, "bundle": null,
            "digest": null, "repeats": [], "equal": equal, "verdict": verdict, "series": [series],
            "seeds": [{
                "seed": null, "experiment": "one.toml", "runs": [run], "verdict": verdict,
                "series": [figures],
            }],
            "trouble": trouble,
        }],
    });
    serde_json::from_value(document).unwrap()
}

/// Verdict, state, whether repetitions are equal, whether the lab is complete; the exit code.
type WayOfLab = (Option<&'static str>, &'static str, Option<bool>, bool, Exit);

#[test]
fn labs_agree_with_their_exit_code() {
    let mut ways: Vec<WayOfLab> = WORDS
        .into_iter()
        .map(|(word, exit)| (Some(word), "done", Some(true), true, exit))
        .collect();
    ways.extend([
        (None, "done", None, true, Exit::Done),
        (None, "failed", None, true, Exit::Failed),
        (Some("met"), "failed", None, true, Exit::Failed),
        (Some("met"), "done", Some(false), true, Exit::Failed),
        (Some("not-met"), "failed", None, true, Exit::NotMet),
        (Some("undecided"), "waiting", None, false, Exit::Failed),
        (None, "waiting", None, false, Exit::Failed),
    ]);
    for (word, state, equal, finished, exit) in ways {
        let lab = lab(word, state, equal, finished);
        let way = format!("{word:?} {state} {equal:?}");
        assert_eq!(lab.to_exit(), exit, "{way}");
        let page = document::lab_page(&lab, &[None], &[], "ways").unwrap();
        let mut junit = Vec::new();
        export::write_junit_of_lab(&lab, &mut junit).unwrap();
        let text = document::build_lab_document(&lab, "ways", &[])
            .to_terminal_text(&ShowOptions::default());
        agree(&way, exit, &text, &page, junit);
    }
}

fn comparison(word: Option<&str>) -> Comparison {
    let gates: Vec<Value> = word
        .iter()
        .map(|word| {
            json!({
                "gate": "require p99:1us", "series": "main/timer/cpu0", "side": 1,
                "verdict": word, "bound": 500.0, "margin": 1_000.0, "reason": "as measured",
            })
        })
        .collect();
    let sides = ["6.1", "6.12"].map(|label| json!({ "label": label, "runs": [label] }));
    let document = json!({
        "schema": "punctual-comparison/2", "sides": sides, "confidence": 0.95,
        "error_rate": 0.05, "tests": 1, "series": [], "gates": gates, "verdict": word,
        "findings": [],
    });
    serde_json::from_value(document).unwrap()
}

#[test]
fn comparisons_agree_with_their_exit_code() {
    let none = [(None, Exit::Done)];
    for (word, exit) in WORDS.map(|(word, exit)| (Some(word), exit)).into_iter().chain(none) {
        let comparison = comparison(word);
        let ended = Exit::of_word(VerdictWord::gravest_verdict(comparison.verdict));
        assert_eq!(ended, exit, "{word:?}");
        let page = document::build_comparison_document(&comparison).render_page().unwrap();
        let mut junit = Vec::new();
        export::write_junit_of_gates(&comparison, &mut junit).unwrap();
        let text = document::build_comparison_document(&comparison)
            .to_terminal_text(&ShowOptions::default());
        agree(&format!("{word:?}"), exit, &text, &page, junit);
    }
}
