//! `punctual check` on the running kernel: as a table, as JSON and explained; fixed and reverted.

use crate::common::{has_program, is_root, punctual, text};
use crate::system::{Bystanders, assert_same, expect, json, last_cpu, paths, snapshot, turn};
use std::collections::BTreeMap;
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

/// What refuses a real-time policy to a program that is started by this command line; `None` if
/// the machine lacks something for it.
fn obstacles(line: &[&str]) -> Option<Vec<String>> {
    if !has_program(line[0], "util-linux") {
        return None;
    }
    let mut child = Command::new(line[0]).args(&line[1..]).spawn().expect("it starts");
    let comm = format!("/proc/{}/comm", child.id());
    let sleeps = || std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n");
    let began = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        sleeps() || child.try_wait().expect("a child").is_some()
    });
    let there = began && sleeps();
    let output = punctual().args(["check", "--json", "--pid", &child.id().to_string()]).output();
    let _ = child.kill();
    child.wait().expect("a child");
    if !there {
        println!("SKIPPED: why_threads_are_not_real_time lacks the right to {}", line.join(" "));
        return None;
    }
    let output = output.expect("punctual starts");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let answer = json(&output);
    let process = &answer["processes"][0];
    assert!(process["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{process}");
    let kinds = process["obstacles"].as_array().expect("obstacles").iter();
    Some(kinds.map(|one| one["kind"].as_str().expect("a word").to_owned()).collect())
}

#[test]
fn why_threads_are_not_real_time_is_told() {
    if !is_root("why_threads_are_not_real_time") {
        return;
    }
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let limited = [&["prlimit", "--rtprio=0"][..], &user, &["sleep", "60"]].concat();
    if let Some(found) = obstacles(&limited) {
        assert_eq!(found[0], "limit", "{found:?}");
    }
    let inside = ["prlimit", "--rtprio=0", "unshare", "--user", "--map-root-user", "sleep", "60"];
    if let Some(found) = obstacles(&inside) {
        assert_eq!(found[0], "user-namespace", "{found:?}");
    }
    expect(2, &["check", "--pid", "0"]);
    expect(2, &["check", "--pid", "1", "--fix"]);
    expect(2, &["check", "--comm", "no-such-program"]);
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
    let undo = expect(0, &["isolate", "undo"]);
    assert!(text(&undo).contains("nothing to undo"));
    let note = String::from_utf8_lossy(&undo.stderr).into_owned();
    assert!(note.contains("`punctual isolate undo --fixes`"), "{note}");
    expect(0, &["isolate", "undo", "--fixes"]);
    assert_same(&before, &snapshot(&paths, &bystanders), "after undo --fixes");
}
