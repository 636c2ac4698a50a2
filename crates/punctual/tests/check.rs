//! `punctual check` on the running kernel: as a table, as JSON and explained; fixed and reverted.

use crate::common::{has_program, punctual, text};
use crate::system::{Bystanders, assert_same, expect, json, last_cpu, paths, snapshot, turn};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// The verdict of each rule.
fn verdicts(arguments: &[&str]) -> BTreeMap<String, String> {
    let answer = json(&expect(0, &[&["check", "--json"], arguments].concat()));
    let word = |value: &serde_json::Value| value.as_str().expect("a word").to_owned();
    answer["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| (word(&rule["id"]), word(&rule["verdict"])))
        .collect()
}

#[test]
fn table_and_json_hold_the_same_rules_and_each_is_explained() {
    let answer = json(&expect(0, &["check", "--json"]));
    let rules = answer["rules"].as_array().unwrap();
    assert!(rules.len() >= 40, "{} rules", rules.len());
    let table = text(&expect(0, &["check"]));
    assert!(!table.contains('\u{1b}'), "no colours into a pipe");
    let named: Vec<&str> = table.split([' ', ',', '\n']).collect();
    for rule in rules {
        let id = rule["id"].as_str().unwrap();
        assert!(
            ["ok", "advice", "warning", "bad", "unknown"]
                .contains(&rule["verdict"].as_str().unwrap()),
            "{rule}"
        );
        for key in ["evidence", "why", "source", "title", "message"] {
            assert!(
                rule[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key} is missing in {rule}"
            );
        }
        assert!(rule["fix"].is_string() || rule["fix"].is_null(), "{rule}");
        assert!(named.contains(&id), "{id} is missing in the table");
        let explained = text(&expect(0, &["check", "--explain", id]));
        assert!(
            explained.contains(id) && explained.contains(rule["source"].as_str().unwrap()),
            "{explained}"
        );
    }
    assert_eq!(verdicts(&[]).len(), rules.len(), "every id is there once");
    assert!(
        text(&expect(2, &["check", "--explain", "rt-throtling"]))
            .contains("did you mean `rt-throttling`?")
    );
}

#[test]
fn the_worst_verdict_decides_the_exit_code() {
    let found = verdicts(&[]);
    let has =
        |verdicts: &[&str]| found.values().any(|verdict| verdicts.contains(&verdict.as_str()));
    for (limit, fails) in [
        ("advice", has(&["advice", "warning", "bad"])),
        ("warning", has(&["warning", "bad"])),
        ("bad", has(&["bad"])),
    ] {
        expect(if fails { 3 } else { 0 }, &["check", "--fail-on", limit]);
    }
    expect(2, &["check", "--fail-on", "ok"]);
    expect(2, &["check", "--dry-run"]);
    expect(2, &["check", "--json", "--fix"]);
}

#[test]
fn hostile_lists_of_cpus_are_refused() {
    let mask = format!("0x{}", "f".repeat(100_000));
    for cpus in [
        "",
        "x",
        "-1",
        "3-1",
        "0-99999999",
        "9999999999999999999999",
        "1,,2",
        "\u{1b}[31m",
        "\u{202e}3",
        "0x",
        &mask,
    ] {
        let answer = text(&expect(2, &["check", &format!("--cpus={cpus}")]));
        assert!(
            !answer.contains("panicked") && !answer.contains(['\u{1b}', '\u{202e}']),
            "{answer:?}"
        );
    }
}

#[test]
fn what_is_fixed_is_reverted() {
    let Some(_turn) = turn("what_is_fixed_is_reverted") else { return };
    let (cpu, paths, bystanders) = (last_cpu(), paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let check = ["check", "--cpus", &cpu];
    let planned = text(&expect(0, &[&check[..], &["--fix", "--dry-run"]].concat()));
    assert_same(&before, &snapshot(&paths, &bystanders), "a dry run");
    if planned.starts_with("nothing to fix") {
        println!("SKIPPED: what_is_fixed_is_reverted lacks a setting that could be better");
        return;
    }

    let fixed = punctual().args(check).arg("--fix").output().unwrap();
    let report = text(&fixed);
    let fixed_rules: Vec<&str> =
        planned.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for rule in &fixed_rules {
        assert!(report.contains(&format!("{rule} ")), "{rule} is missing in {report}");
    }
    // The kernel may refuse some, and then reports it.
    assert_eq!(
        fixed.status.code(),
        Some(i32::from(report.contains("refused: ") || report.contains("the kernel kept"))),
        "{report}"
    );
    let now = verdicts(&check[1..]);
    let worse = fixed_rules
        .iter()
        .filter(|rule| !report.contains("refused") && now[**rule] != "ok")
        .collect::<Vec<_>>();
    assert!(worse.is_empty(), "fixed but not ok: {worse:?}\n{report}");
    // The fixes are permanent: no hint to revert them, and a partition's undo leaves them.
    assert_eq!(expect(0, &["check"]).stderr, b"");
    assert!(text(&expect(0, &["isolate", "undo"])).contains("nothing to undo"));
    expect(0, &["isolate", "undo", "--fixes"]);
    assert_same(&before, &snapshot(&paths, &bystanders), "after undo --fixes");
}

/// A bundle to show.
const GOOD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");

fn journals() -> usize {
    let names = std::fs::read_dir("/run/punctual").unwrap().flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with("journal-")).count()
}

/// The command itself, killed at each of its writes and syncs; the library below it:
/// crates/host/tests/isolate_real.rs.
#[test]
fn a_fix_killed_at_any_write_is_reverted() {
    let Some(_turn) = turn("a_fix_killed_at_any_write_is_reverted") else { return };
    if !has_program("strace", "strace") {
        return;
    }
    let (cpu, paths, bystanders) = (last_cpu(), paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let mut deaths = 0;
    for call in ["write", "fsync"] {
        let mut step = 1;
        loop {
            let inject = format!("inject={call}:signal=KILL:when={step}");
            let arguments =
                ["-qq", "-o", "/dev/null", "-e", &inject, env!("CARGO_BIN_EXE_punctual"), "check"];
            let output = Command::new("strace")
                .args(arguments)
                .args(["--cpus", &cpu, "--fix"])
                .output()
                .unwrap();
            let killed = output.status.signal() == Some(9);
            if !killed && !matches!(output.status.code(), Some(0 | 1)) {
                println!("SKIPPED: strace cannot trace here: {}", text(&output).trim());
                return;
            }
            if killed && journals() > 0 {
                let note = String::from_utf8(expect(0, &["show", "--json", GOOD]).stderr).unwrap();
                assert!(
                    note.starts_with("note: ") && note.contains("`punctual isolate undo"),
                    "{note}"
                );
            }
            expect(0, &["isolate", "undo", "--all"]);
            assert_eq!(journals(), 0);
            assert_same(
                &before,
                &snapshot(&paths, &bystanders),
                &format!("killed at {call} {step}"),
            );
            if !killed {
                break;
            }
            deaths += 1;
            step += 1 + step / 2;
        }
    }
    assert!(deaths > 4, "killed {deaths} times only");
    println!("killed {deaths} times");
}
